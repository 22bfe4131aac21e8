#include "gui/models/plan_search.hpp"

#include <algorithm>
#include <utility>

#include "gui/models/chosen_request.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

constexpr int kDebounceMs = 150;
constexpr std::chrono::milliseconds kBetweenReports{100};
// Pauses between the sets that the narrow search and the whole one hand over.
constexpr std::chrono::milliseconds kBetweenFirstSets{250}, kBetweenSets{1000};
constexpr std::int64_t kFirstPlans = 12;
// The shares of the work at which the first look and the search of the narrow space end in what the
// bar shows.
constexpr double kLookShare = 0.02, kFirstShare = 0.1;
// The number of plans of the first look, which are simulated at once.
constexpr std::int64_t kPlansOfLook = 4;

// A small part of the narrow space that has plans of most scenarios. Mixtures of experts on
// thousands of GPUs have tens of thousands of plans in the narrow space, which take seconds.
planner::SearchLimits limits_of_first_look() {
  planner::SearchLimits limits = planner::narrow_limits();
  limits.schedules = {ScheduleKind::OneFOneB};
  limits.zero_stages = {1};
  limits.max_micro_batch = 1;
  return limits;
}

}  // namespace

PlanStream::PlanStream(const planner::PlanRequest& request, std::chrono::milliseconds pause,
                       Deliver deliver)
    : request_(request), pause_(pause), deliver_(std::move(deliver)) {}

void PlanStream::take(const std::vector<planner::PlanCandidate>& best) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  PlanSet set = plan_set_so_far(request_, best, kept_);
  const auto is_same = [](const auto& a, const auto& b) { return a.plan == b.plan; };
  if (std::equal(set.plans.begin(), set.plans.end(), last_.begin(), last_.end(), is_same)) return;
  last_ = set.plans;
  next_ = now + pause_;
  deliver_(std::make_shared<const PlanSet>(std::move(set)));
}

PlanSearch::PlanSearch(QObject* parent) : QObject(parent) {
  debounce_.setSingleShot(true);
  debounce_.setInterval(kDebounceMs);
  connect(&debounce_, &QTimer::timeout, this, &PlanSearch::begin);
}

void PlanSearch::request(const ScenarioChoice& choice) {
  resume(choice, {});
}

void PlanSearch::resume(const ScenarioChoice& choice, Plans plans) {
  wanted_ = choice;
  known_ = std::move(plans);
  ++newest_;
  worker_.cancel();
  debounce_.start();
}

void PlanSearch::stop() {
  const bool debounced = debounce_.isActive();
  debounce_.stop();
  // A search that has not begun emits nothing by itself.
  if (worker_.cancel() || debounced) end();
}

void PlanSearch::abandon() {
  if (!is_running()) return;
  debounce_.stop();
  ++newest_;  // Results on their way no longer arrive.
  worker_.cancel();
  end();
}

void PlanSearch::end() {
  running_ = false;
  Q_EMIT finished();
}

void PlanSearch::begin() {
  running_ = true;
  Q_EMIT started();
  const std::uint64_t id = newest_;
  worker_.submit(
      [this, choice = wanted_, known = std::exchange(known_, {}), id](const std::stop_token& stop) {
        yield_to_the_window();
        work(choice, known, id, stop);
      });
}

template <class Deliver>
void PlanSearch::post(std::uint64_t id, Deliver deliver) {
  QMetaObject::invokeMethod(
      this,
      [this, id, deliver = std::move(deliver)] {
        if (id == newest_) deliver();
      },
      Qt::QueuedConnection);
}

void PlanSearch::work(const ScenarioChoice& choice, const Plans& known, std::uint64_t id,
                      const std::stop_token& stop) {
  try {
    search_both(load_request(choice), known, id, stop);
  } catch (const InputError& error) {
    post(id, [this, problems = error.problems()] { Q_EMIT failed(problems); });
  } catch (const std::exception& error) {
    const std::vector<Problem> problems = {{"", error.what(), ""}};
    post(id, [this, problems] { Q_EMIT failed(problems); });
  }
  post(id, [this] { end(); });
}

// Each search looks at the plans of the one before it once more, so that the larger number of plans
// is that of both.
void PlanSearch::keep_reached(planner::SearchProgress& progress, Reached& reached) {
  progress.checked = reached.checked = std::max(reached.checked, progress.checked);
  progress.simulated = reached.simulated = std::max(reached.simulated, progress.simulated);
  if (progress.best_step && (!reached.best_step || *progress.best_step < *reached.best_step))
    reached.best_step = progress.best_step;
  progress.best_step = reached.best_step;
}

void PlanSearch::watch(planner::PlanRequest& request, std::uint64_t id, double from, double to,
                       const std::shared_ptr<Reached>& reached) {
  auto last = std::make_shared<std::chrono::steady_clock::time_point>();
  const bool batch_is_open = request.global_batch == 0;
  request.progress = [=, this](planner::SearchProgress progress) {
    if (!batch_is_open) keep_reached(progress, *reached);
    const auto now = std::chrono::steady_clock::now();
    if (now - *last < kBetweenReports) return;
    *last = now;
    const double share = batch_is_open ? kUnknownShare : from + (to - from) * progress.share;
    if (batch_is_open) progress.best_step.reset();
    // What the bounds leave of a part of the space says nothing of the plans outside of it.
    if (batch_is_open || to < 1.0) progress.open.reset();
    const QString text = to_qstring(planner::progress_text(progress));
    post(id, [this, share, text] { Q_EMIT progressed(share, text); });
  };
}

void PlanSearch::search_both(planner::PlanRequest request, const Plans& known, std::uint64_t id,
                             const std::stop_token& stop) {
  request.stop = stop;
  request.layer_costs = std::make_shared<planner::LayerCostCache>();
  const planner::SearchLimits all = request.limits;
  const auto show = [this, id](PlanSetPointer set) {
    post(id, [this, set = std::move(set)] { Q_EMIT found(set); });
  };
  const auto reached = std::make_shared<Reached>();
  const auto search_one = [&] {
    const planner::SearchResult result = planner::search(request);
    // Searches on several pools report no simulations.
    reached->checked = std::max(reached->checked, result.counts.space);
    reached->simulated = std::max(reached->simulated, result.counts.simulated);
    return result;
  };
  const auto search = [&](PlanStream stream, bool complete) {
    request.found = [&](const auto& best) { stream.take(best); };
    PlanSet found = plan_set_of(request, search_one());
    if (!found.complete || !complete) keep_plans(found, stream.handed_over());
    found.complete = found.complete && complete;
    found.request.limits = all;
    auto set = std::make_shared<const PlanSet>(std::move(found));
    if (!set->plans.empty() || (complete && !stop.stop_requested())) show(set);
    return set;
  };
  PlanStream first(request, kBetweenFirstSets, show), rest(request, kBetweenSets, show);
  request.advice = false;
  first.keep(known);
  // An open batch would be looked for once more, and so would the places of several pools.
  if (request.global_batch > 0 && request.cluster.pools.empty()) {
    watch(request, id, 0.0, kLookShare, reached);
    request.limits = limits_of_first_look();
    request.top = kPlansOfLook;
    request.front = false;
    request.found = [&](const auto& best) { first.take(best); };
    PlanSet look = plan_set_of(request, search_one());
    keep_plans(look, known);
    first.keep(look.plans);
    request.front = true;
  }
  watch(request, id, kLookShare, kFirstShare, reached);
  request.limits = planner::narrow_limits();
  request.top = kFirstPlans;
  rest.keep(search(std::move(first), false)->plans);
  if (stop.stop_requested()) return;
  watch(request, id, kFirstShare, 1.0, reached);
  request.limits = all;
  request.top = kShownPlans;
  request.layouts = kShownLayouts;
  request.advice = true;
  search(std::move(rest), true);
}

}  // namespace shardwright::gui
