#include "planner/tuning/study.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "planner/tuning/gaussian_process.hpp"
#include "sim/run/random_stream.hpp"

namespace shardwright::planner {
namespace {

std::vector<double> random_values(const StudyRules& rules, std::size_t trial) {
  std::vector<double> values;
  for (std::size_t i = 0; i < rules.parameters.size(); ++i)
    values.push_back(
        rules.parameters[i].value_at(sim::RandomStream(rules.seed, trial, i).uniform()));
  return values;
}

std::optional<TrialJob> new_trial(const Study& study) {
  const std::size_t number = study.trials.size();
  if (static_cast<std::int64_t>(number) >= study.rules.trials) return std::nullopt;
  std::optional<std::vector<double>> values;
  if (study.rules.search == TuningSearch::Bayes) values = proposed_values(study);
  return TrialJob{number, 0, values ? *values : random_values(study.rules, number), std::nullopt};
}

// The best trial at a rung that has not gone on, if it is among the best 1 / reduction there: from
// the highest rung down.
std::optional<TrialJob> promotion(const Study& study) {
  const std::size_t last = study.rules.rungs.size() - 1;
  for (std::size_t rung = std::min(last, study.rungs.size()); rung-- > 0;) {
    const auto& [order, waiting] = study.rungs[rung];
    if (waiting.empty() || !std::isfinite(waiting.begin()->loss)) continue;
    const auto place = std::ranges::lower_bound(order, *waiting.begin()) - order.begin();
    if (place >= std::ssize(order) / study.rules.reduction) continue;
    const std::size_t trial = waiting.begin()->trial;
    return TrialJob{trial, rung + 1, study.trials[trial].values, std::nullopt};
  }
  return std::nullopt;
}

// How a population goes on from a rung that all of it has reached.
class Generation {
 public:
  Generation(const Study& study, std::size_t rung)
      : rules_(study.rules), study_(study), rung_(rung), order_(study.rungs[rung].order) {
    const auto replaced = order_.size() / static_cast<std::size_t>(rules_.reduction);
    const auto is_good = [](const TrialPlace& place) { return std::isfinite(place.loss); };
    const auto good =
        static_cast<std::size_t>(std::ranges::partition_point(order_, is_good) - order_.begin());
    best_ = std::clamp<std::size_t>(replaced, std::min<std::size_t>(1, good), good);
    kept_ = std::min(order_.size() - replaced, good);
  }

  // False if every trial has diverged.
  bool goes_on() const { return best_ > 0; }

  TrialJob job_of(std::size_t trial) const {
    const Trial& own = study_.trials[trial];
    const auto found =
        std::ranges::lower_bound(order_, TrialPlace{own.losses[rung_], trial}) - order_.begin();
    const auto place = static_cast<std::size_t>(found);
    if (place < kept_) return {trial, rung_ + 1, own.values, std::nullopt};
    sim::RandomStream random(rules_.seed, trial, rules_.parameters.size() + rung_);
    const auto chosen = static_cast<std::size_t>(random.uniform() * static_cast<double>(best_));
    // A trial among the best keeps its own values, so that these are those of the rung.
    const std::size_t source = order_[std::min(chosen, best_ - 1)].trial;
    return {trial, rung_ + 1, explored(study_.trials[source].values, random), source};
  }

 private:
  // Each value is drawn anew with a probability of a quarter, and otherwise perturbed.
  std::vector<double> explored(std::vector<double> values, sim::RandomStream& random) const {
    constexpr double kDrawnAnew = 0.25;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool anew = random.uniform() < kDrawnAnew;
      const double draw = random.uniform();
      const TunedParameter& parameter = rules_.parameters[i];
      values[i] = anew ? parameter.value_at(draw) : parameter.perturbed(values[i], draw < 0.5);
    }
    return values;
  }

  const StudyRules& rules_;
  const Study& study_;
  std::size_t rung_;
  const std::vector<TrialPlace>& order_;
  // How many of the best give their states, and how many keep their own.
  std::size_t best_ = 0, kept_ = 0;
};

std::optional<TrialJob> next_of_population(const Study& study) {
  if (auto job = new_trial(study)) return job;
  // The rung that all trials have reached last.
  std::size_t rung = study.rungs.size();
  while (rung > 0 && study.rungs[rung - 1].order.size() < study.trials.size()) --rung;
  if (rung-- == 0 || rung + 1 == study.rules.rungs.size()) return std::nullopt;
  const Generation generation(study, rung);
  if (!generation.goes_on()) return std::nullopt;
  // Trials go on in their order.
  const auto has_begun = [&](const Trial& trial) {
    return trial.running || trial.losses.size() > rung + 1;
  };
  const auto next = std::ranges::partition_point(study.trials, has_begun) - study.trials.begin();
  if (next == std::ssize(study.trials)) return std::nullopt;
  return generation.job_of(static_cast<std::size_t>(next));
}

}  // namespace

std::vector<double> halving_rungs(std::int64_t rungs, std::int64_t reduction) {
  std::vector<double> shares(static_cast<std::size_t>(rungs), 1.0);
  for (std::size_t i = shares.size() - 1; i-- > 0;)
    shares[i] = shares[i + 1] / static_cast<double>(reduction);
  return shares;
}

std::int64_t most_halving_rungs(std::int64_t trials, std::int64_t reduction) {
  std::int64_t rungs = 1;
  for (std::int64_t left = trials / reduction; left > 0; left /= reduction) ++rungs;
  return rungs;
}

std::vector<double> even_rungs(std::int64_t rungs) {
  std::vector<double> shares;
  for (std::int64_t i = 1; i <= rungs; ++i)
    shares.push_back(static_cast<double>(i) / static_cast<double>(rungs));
  return shares;
}

bool Trial::diverged() const {
  return !losses.empty() && !std::isfinite(losses.back());
}

std::optional<TrialJob> next_job(const Study& study) {
  if (study.rules.search == TuningSearch::Population) return next_of_population(study);
  if (auto job = promotion(study)) return job;
  return new_trial(study);
}

void begin(Study& study, const TrialJob& job) {
  if (job.trial == study.trials.size()) study.trials.emplace_back();
  Trial& trial = study.trials[job.trial];
  SHARDWRIGHT_CHECK(!trial.running, "a trial has one job at a time");
  if (job.rung > 0)
    study.rungs[job.rung - 1].waiting.erase({trial.losses[job.rung - 1], job.trial});
  trial.values = job.values;
  trial.running = true;
}

void complete(Study& study, const TrialJob& job, double loss) {
  Trial& trial = study.trials[job.trial];
  trial.running = false;
  trial.losses.push_back(std::isnan(loss) ? INFINITY : loss);
  if (study.rungs.size() < trial.losses.size()) study.rungs.emplace_back();
  auto& [order, waiting] = study.rungs[trial.losses.size() - 1];
  const TrialPlace place{trial.losses.back(), job.trial};
  order.insert(std::ranges::upper_bound(order, place), place);
  waiting.insert(place);
}

std::vector<std::size_t> ranking(const Study& study) {
  std::vector<std::size_t> order(study.trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const Trial &left = study.trials[a], &right = study.trials[b];
    if (left.diverged() != right.diverged()) return right.diverged();
    if (left.losses.size() != right.losses.size()) return left.losses.size() > right.losses.size();
    return !left.losses.empty() && left.losses.back() < right.losses.back();
  });
  return order;
}

}  // namespace shardwright::planner
