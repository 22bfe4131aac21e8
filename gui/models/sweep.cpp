#include "gui/models/sweep.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/spec/plan_check.hpp"
#include "gui/models/plan_search.hpp"
#include "gui/models/text.hpp"
#include "planner/explain.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/scale.hpp"
#include "sim/step/simulate.hpp"
#include "validation/prediction_interval.hpp"

namespace shardwright::gui {
namespace {

using planner::PlanCandidate;

struct AxisText {
  const char* title;
  const char* change;
};
constexpr std::array<AxisText, kSweepAxes> kAxisTexts = {{
    {"GPUs", "on other numbers of accelerators"},
    {"Global batch (sequences)", "with other batches"},
    {"Sequence length (tokens)", "with other sequences, the batch keeping its tokens"},
    {"Inter-node bandwidth (GB/s per NIC)", "on faster and slower NICs"},
    {"Scale-up bandwidth (GB/s per GPU)", "on faster and slower NVLink"},
    {"Memory bandwidth (GB/s)", "on faster and slower HBM"},
}};

constexpr std::array<const char*, kSweepFigures> kFigureTitles = {
    "Tokens/s",
    "Tokens/s per GPU",
    "Step (s)",
    "MFU (%)",
    "Memory (GB)",
    "Cost ($ per Mtoken)",
    "Energy (kJ per ktoken)",
    "HFU (%)",
    "Exposed communication (% of step)",
    "Bubble (% of step)",
    "Waiting for the host (% of step)"};

// Below this gain per doubling, more bandwidth does not pay.
constexpr double kLeastGain = 0.02;
constexpr double kFullThroughput = 0.95;

PlanCandidate simulated(const Scenario& scenario) {
  PlanCandidate candidate;
  candidate.plan = scenario.plan;
  candidate.result = sim::simulate_step(scenario);
  const auto expense = planner::step_expense(scenario.cluster, scenario.plan, candidate.result.step,
                                             planner::computing_time(candidate.result));
  candidate.dollars_per_step = expense.price;
  candidate.joules_per_step = expense.energy;
  return candidate;
}

SweepPoint point_of(double x, const Scenario& scenario) {
  SweepPoint point;
  point.x = x;
  const auto broken = broken_rules(scenario.model, &scenario.cluster, scenario.plan);
  if (!broken.empty()) {
    point.fits = false;
    point.why_not = problem_text(broken.front().problem);
    return point;
  }
  point.best = simulated(scenario);
  const Bytes peak = point.best->result.memory().peak;
  point.fits = peak <= scenario.cluster.accelerator.memory;
  if (!point.fits)
    point.why_not = QStringLiteral("the plan needs %1 of %2")
                        .arg(bytes_text(peak), bytes_text(scenario.cluster.accelerator.memory));
  return point;
}

planner::Resource resource_of(SweepAxis axis) {
  if (axis == SweepAxis::ScaleUpBandwidth) return planner::Resource::ScaleUpBandwidth;
  if (axis == SweepAxis::MemoryBandwidth) return planner::Resource::MemoryBandwidth;
  return planner::Resource::ScaleOutBandwidth;
}

double bandwidth_of(SweepAxis axis, const ClusterSpec& cluster) {
  if (axis == SweepAxis::ScaleUpBandwidth) return cluster.node.scale_up.bandwidth.value() / 1e9;
  if (axis == SweepAxis::MemoryBandwidth) return cluster.accelerator.memory_bandwidth.value() / 1e9;
  return cluster.node.nic.bandwidth.value() / 1e9;
}

bool is_bandwidth(SweepAxis axis) {
  return axis == SweepAxis::ScaleOutBandwidth || axis == SweepAxis::ScaleUpBandwidth ||
         axis == SweepAxis::MemoryBandwidth;
}

// Multiples of nothing are nothing.
QString obstacle_to(SweepAxis axis, const ClusterSpec& cluster) {
  if (!is_bandwidth(axis) || bandwidth_of(axis, cluster) > 0.0) return {};
  const QString without = axis == SweepAxis::ScaleOutBandwidth
                              ? QStringLiteral("has no NIC")
                              : QStringLiteral("has no such link between its accelerators");
  return QStringLiteral("There is nothing to sweep: %1 %2.").arg(to_qstring(cluster.name), without);
}

struct Variant {
  double x;
  Scenario scenario;
};

// The plan's own batch, halves of it in whole micro-batches of every replica, and doubles.
std::vector<std::int64_t> batches_around(const Plan& plan) {
  constexpr int kSmaller = 5, kLarger = 4;
  const std::int64_t unit = plan.dp * plan.micro_batch;
  std::vector<std::int64_t> batches = {plan.global_batch};
  for (int i = 0; i < kSmaller && batches.back() >= 2 * unit; ++i)
    batches.push_back(batches.back() / unit / 2 * unit);
  std::reverse(batches.begin(), batches.end());
  for (int i = 0; i < kLarger && batches.back() <= kMaxBatch / 2; ++i)
    batches.push_back(2 * batches.back());
  return batches;
}

std::vector<Variant> batch_variants(const Scenario& scenario) {
  std::vector<Variant> variants;
  for (const std::int64_t batch : batches_around(scenario.plan)) {
    Variant variant{static_cast<double>(batch), scenario};
    variant.scenario.plan.global_batch = batch;
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<Variant> sequence_variants(const Scenario& scenario) {
  std::vector<Variant> variants;
  for (std::int64_t length = 1024; length <= 262144; length *= 2) {
    Variant variant{static_cast<double>(length), scenario};
    Plan& plan = variant.scenario.plan;
    const std::int64_t unit = plan.dp * plan.micro_batch;
    const double batches = static_cast<double>(scenario.plan.global_batch) *
                           static_cast<double>(scenario.plan.seq_len) /
                           static_cast<double>(length * unit);
    plan.seq_len = length;
    plan.global_batch = std::max<std::int64_t>(1, std::llround(batches)) * unit;
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<Variant> bandwidth_variants(SweepAxis axis, const Scenario& scenario) {
  std::vector<Variant> variants;
  for (const double factor : {0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0}) {
    Variant variant{factor * bandwidth_of(axis, scenario.cluster), scenario};
    variant.scenario.cluster = planner::improved(scenario.cluster, resource_of(axis), factor - 1.0);
    variants.push_back(std::move(variant));
  }
  return variants;
}

double rate_of(const SweepPoint& point) {
  return point.best->tokens() / point.best->result.step.value();
}

QString share_text(const PlanCandidate& candidate, Seconds part) {
  return percent_text(part / candidate.result.step);
}

// The smallest batch with nearly all of the best throughput.
void find_batch_knee(Sweep& sweep) {
  double best = 0.0;
  for (const SweepPoint& point : sweep.points) {
    if (point.best && point.fits) best = std::max(best, rate_of(point));
  }
  sweep.knee_reason = QStringLiteral("no batch fits");
  for (const SweepPoint& point : sweep.points) {
    if (!point.best || !point.fits || rate_of(point) < kFullThroughput * best) continue;
    const PlanCandidate& candidate = *point.best;
    sweep.knee = point.x;
    sweep.knee_reason =
        QStringLiteral(
            "95 % of the best throughput: bubble %1, exposed communication %2 of the "
            "step")
            .arg(share_text(candidate, candidate.result.time().bubble),
                 share_text(candidate, candidate.result.time().exposed_total()));
    return;
  }
}

// Where doubling brings less than `kLeastGain`.
void find_bandwidth_knee(Sweep& sweep) {
  sweep.knee_reason =
      QStringLiteral("every doubling up to the end still brings more than 2 % of tokens/s");
  for (std::size_t i = 0; i + 1 < sweep.points.size(); ++i) {
    const SweepPoint &here = sweep.points[i], &next = sweep.points[i + 1];
    if (!here.best || !next.best) continue;
    const double doublings = std::log2(next.x / here.x);
    if (rate_of(next) / rate_of(here) - 1.0 > kLeastGain * doublings) continue;
    sweep.knee = here.x;
    sweep.knee_reason =
        QStringLiteral(
            "twice as much brings less than 2 %: exposed communication is %1 of the "
            "step, kernels %2")
            .arg(share_text(*here.best, here.best->result.time().exposed_total()),
                 share_text(*here.best, here.best->result.time().compute()));
    return;
  }
}

// The longest sequence that fits.
void find_sequence_knee(Sweep& sweep) {
  const bool any = std::any_of(sweep.points.begin(), sweep.points.end(),
                               [](const SweepPoint& point) { return point.fits; });
  sweep.knee_reason =
      any ? QStringLiteral("every sequence fits") : QStringLiteral("no sequence fits");
  for (std::size_t i = 0; i + 1 < sweep.points.size(); ++i) {
    if (!sweep.points[i].fits || sweep.points[i + 1].fits) continue;
    sweep.knee = sweep.points[i].x;
    sweep.knee_reason =
        QStringLiteral("the longest that fits: beyond, %1").arg(sweep.points[i + 1].why_not);
    return;
  }
}

void find_knee(Sweep& sweep) {
  if (sweep.axis == SweepAxis::GlobalBatch) return find_batch_knee(sweep);
  if (sweep.axis == SweepAxis::SeqLen) return find_sequence_knee(sweep);
  find_bandwidth_knee(sweep);
}

std::vector<Variant> variants_of(SweepAxis axis, const Scenario& scenario) {
  if (axis == SweepAxis::GlobalBatch) return batch_variants(scenario);
  if (axis == SweepAxis::SeqLen) return sequence_variants(scenario);
  return bandwidth_variants(axis, scenario);
}

// The part of a sweep's time that the narrow searches are taken to need.
constexpr double kNarrowShare = 0.1;

// Searches twice for every point: in the narrow space, then in that of the request.
class BestPlans {
 public:
  BestPlans(planner::PlanRequest request, const SweepWatch& watch, const std::stop_token& stop)
      : request_(std::move(request)), all_(request_.limits), watch_(watch) {
    request_.top = 1;
    request_.layouts = 0;
    request_.front = request_.advice = false;
    request_.stop = stop;
    request_.found = nullptr;
    request_.progress = [this](const planner::SearchProgress& search) {
      report(std::min(1.0, search.share));  // a sum, which may be a little above
    };
  }

  void sweep_variants(Sweep& sweep, const std::vector<Variant>& variants) {
    const auto costs = std::make_shared<planner::LayerCostCache>();
    for (const bool narrow : {true, false}) {
      begin_pass(narrow, variants.size());
      for (const Variant& variant : variants) {
        auto best = best_plan(variant, costs);
        if (request_.stop.stop_requested()) return;
        take(sweep, variant.x, std::move(best));
      }
    }
  }

  void sweep_sizes(Sweep& sweep) {
    const std::int64_t last =
        std::min(request_.cluster.most_accelerators().value_or(kMaxWorld), 8 * request_.gpus);
    const auto sizes = planner::machine_sizes(std::max<std::int64_t>(1, request_.gpus / 16), last);
    request_.layer_costs = std::make_shared<planner::LayerCostCache>();
    planner::ScaleResult found;
    for (const bool narrow : {true, false}) {
      begin_pass(narrow, sizes.size());
      found = planner::scale(request_, sizes, [&](const planner::ScalePoint& point) {
        if (request_.global_batch == 0 && point.best)
          sweep.chosen_batch = point.best->plan.global_batch;
        take(sweep, static_cast<double>(point.gpus), point.best);
      });
      if (found.partial) return;
    }
    sweep.knee_reason =
        QStringLiteral("tokens/s of the whole cluster grow with the GPUs up to the end");
    if (!found.knee) return;
    sweep.knee = static_cast<double>(*found.knee);
    sweep.knee_reason = to_qstring(found.knee_cause);
  }

 private:
  void begin_pass(bool narrow, std::size_t points) {
    narrow_ = narrow;
    request_.limits = narrow ? narrow_limits() : all_;
    points_ = points;
    done_ = 0;
  }

  std::optional<PlanCandidate> best_plan(const Variant& variant,
                                         const std::shared_ptr<planner::LayerCostCache>& costs) {
    planner::PlanRequest request = request_;
    request.global_batch = variant.scenario.plan.global_batch;
    request.seq_len = variant.scenario.plan.seq_len;
    request.layer_costs = request.cluster == variant.scenario.cluster ? costs : nullptr;
    request.cluster = variant.scenario.cluster;
    std::vector<PlanCandidate> found = planner::search(request).plans;
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }

  // The next point of the pass.
  void take(Sweep& sweep, double x, std::optional<PlanCandidate> best) {
    SweepPoint point;
    point.x = x;
    point.fits = best.has_value();
    if (!best) point.why_not = QStringLiteral("no plan fits");
    point.best = std::move(best);
    point.preliminary = narrow_;
    if (narrow_) {
      sweep.points.push_back(std::move(point));
    } else {
      sweep.points[done_] = std::move(point);
    }
    ++done_;
    report(0.0);
    // Half a line would be drawn on other axes each time.
    const bool whole_line = !narrow_ || done_ == points_;
    if (watch_.found && whole_line && !sweep.is_final()) watch_.found(sweep);
  }

  void report(double share_of_point) const {
    if (!watch_.progress) return;
    const double share =
        std::min(1.0, (static_cast<double>(done_) + share_of_point) / static_cast<double>(points_));
    watch_.progress(narrow_ ? kNarrowShare * share : kNarrowShare + (1.0 - kNarrowShare) * share);
  }

  planner::PlanRequest request_;
  planner::SearchLimits all_;
  const SweepWatch& watch_;
  bool narrow_ = true;
  std::size_t points_ = 1, done_ = 0;  // of the pass
};

void sweep_chosen_plan(Sweep& sweep, const std::vector<Variant>& variants, const SweepWatch& watch,
                       const std::stop_token& stop) {
  for (const Variant& variant : variants) {
    if (stop.stop_requested()) return;
    sweep.points.push_back(point_of(variant.x, variant.scenario));
    if (watch.progress)
      watch.progress(static_cast<double>(sweep.points.size()) /
                     static_cast<double>(variants.size()));
  }
}

}  // namespace

QString title_of(SweepAxis axis) {
  return QString::fromUtf8(kAxisTexts[static_cast<std::size_t>(axis)].title);
}

SweepPlan possible_plan(SweepAxis axis, SweepPlan wanted) {
  return axis == SweepAxis::Gpus ? SweepPlan::Best : wanted;
}

QString tip_of(SweepAxis axis, SweepPlan plan) {
  const QString change = QString::fromUtf8(kAxisTexts[static_cast<std::size_t>(axis)].change);
  return plan == SweepPlan::Chosen ? QStringLiteral("The chosen plan as it is, %1.").arg(change)
                                   : QStringLiteral("The best plan of each point, %1.").arg(change);
}

bool Sweep::is_final() const {
  return std::none_of(points.begin(), points.end(),
                      [](const SweepPoint& point) { return point.preliminary; });
}

QString title_of(SweepFigure figure) {
  return QString::fromUtf8(kFigureTitles[static_cast<std::size_t>(figure)]);
}

bool has_interval(SweepFigure figure) {
  switch (figure) {
    case SweepFigure::Memory:
    case SweepFigure::Exposed:
    case SweepFigure::Bubble:
    case SweepFigure::Host:
      return false;
    default:
      return true;
  }
}

bool knee_is_of(SweepAxis axis, SweepFigure figure) {
  // What fits is a matter of memory, whatever is drawn.
  return axis == SweepAxis::SeqLen || has_interval(figure);
}

SweepValue value_of(SweepFigure figure, const PlanCandidate& candidate,
                    std::optional<validation::PredictionGround> ground) {
  const sim::StepResult& result = candidate.result;
  const auto with_interval = [&ground](double value, bool is_rate) {
    if (!ground) return SweepValue{value, value, value};
    const auto [low, high] = validation::prediction_interval(value, is_rate, *ground);
    return SweepValue{value, low, high};
  };
  const auto share_of_step = [&](Seconds part) {
    const double share = 100.0 * (part / result.step);
    return SweepValue{share, share, share};
  };
  switch (figure) {
    case SweepFigure::TokensPerSecond:
      return with_interval(candidate.tokens() / result.step.value(), true);
    case SweepFigure::TokensPerSecondPerGpu:
      return with_interval(result.throughput.tokens_per_s_per_gpu, true);
    case SweepFigure::Step:
      return with_interval(result.step.value(), false);
    case SweepFigure::Mfu:
      return with_interval(100.0 * result.throughput.mfu, true);
    case SweepFigure::Memory: {
      const double memory = result.memory().peak.value() / 1e9;
      return {memory, memory, memory};
    }
    case SweepFigure::CostPerMegatoken:
      return with_interval(1e6 * candidate.dollars_per_token(), false);
    case SweepFigure::EnergyPerKilotoken:
      return with_interval(candidate.joules_per_step.value() / candidate.tokens(), false);
    case SweepFigure::Hfu:
      return with_interval(100.0 * result.throughput.hfu, true);
    case SweepFigure::Exposed:
      return share_of_step(result.time().exposed_total());
    case SweepFigure::Bubble:
      return share_of_step(result.time().bubble);
    case SweepFigure::Host:
      return share_of_step(result.time().host);
  }
  return {};
}

Sweep run_sweep(SweepAxis axis, SweepPlan plan, const planner::PlanRequest& request,
                const Scenario& scenario, const SweepWatch& watch, const std::stop_token& stop) {
  Sweep sweep;
  sweep.axis = axis;
  sweep.plan = possible_plan(axis, plan);
  sweep.ground = validation::ground_of(scenario.cluster.accelerator, scenario.stack);
  if (stop.stop_requested()) return sweep;
  sweep.obstacle = obstacle_to(axis, scenario.cluster);
  if (!sweep.obstacle.isEmpty()) return sweep;
  if (axis == SweepAxis::Gpus) {
    BestPlans(request, watch, stop).sweep_sizes(sweep);
    return sweep;
  }
  const std::vector<Variant> variants = variants_of(axis, scenario);
  if (sweep.plan == SweepPlan::Best) {
    BestPlans(request, watch, stop).sweep_variants(sweep, variants);
  } else {
    sweep_chosen_plan(sweep, variants, watch, stop);
  }
  if (!stop.stop_requested()) find_knee(sweep);
  return sweep;
}

}  // namespace shardwright::gui
