// A search for hyper-parameters: trials, what they have reached, and which job comes next.
//
// A trial trains one set of values. Its budget is divided at rungs, at each of which it has a loss;
// a job takes a trial from one rung to the next. What comes next depends on nothing but the study,
// so that a study that was interrupted goes on as if it had not been.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "planner/tuning/tuned_parameter.hpp"

namespace shardwright::planner {

enum class TuningSearch : std::uint8_t {
  // Random values, and successive halving without waiting for others (ASHA, Li et al. 2020).
  Random,
  // The same, with values that a Gaussian process proposes.
  Bayes,
  // All trials go on; the worst continue from the states of the best with other values (Jaderberg
  // et al. 2017).
  Population,
};
constexpr auto enum_names(TuningSearch) {
  return std::array{"random", "bayes", "population"};
}

struct StudyRules {
  TuningSearch search = TuningSearch::Random;
  std::vector<TunedParameter> parameters;
  std::int64_t trials = 0;
  // One trial in so many goes on to the next rung; of a population, one in so many gives its state
  // to one of as many others.
  std::int64_t reduction = 3;
  // Shares of the budget, ascending; the last is 1.
  std::vector<double> rungs;
  std::uint64_t seed = 1;
};

// The rungs of a halving: each `reduction` times the one before it. With as many as the trials
// allow, one trial reaches the last.
std::vector<double> halving_rungs(std::int64_t rungs, std::int64_t reduction);
std::int64_t most_halving_rungs(std::int64_t trials, std::int64_t reduction);

// Evenly spaced rungs.
std::vector<double> even_rungs(std::int64_t rungs);

struct Trial {
  // One a parameter, as they are now.
  std::vector<double> values;
  // The loss at each rung that it has reached; infinite where it diverged.
  std::vector<double> losses;
  bool running = false;

  bool diverged() const;
};

// One trial from its last rung to `rung`.
struct TrialJob {
  std::size_t trial = 0;
  std::size_t rung = 0;
  std::vector<double> values;
  // The trial from whose state, at the rung before, it continues; usually itself.
  std::optional<std::size_t> copied_from;
};

// A trial that has a loss at a rung. Its order is that of the losses, then of the trials.
struct TrialPlace {
  double loss = 0.0;
  std::size_t trial = 0;

  auto operator<=>(const TrialPlace&) const = default;
};

// The trials that have a loss at a rung.
struct Rung {
  // All of them, from the best to the worst.
  std::vector<TrialPlace> order;
  // Those that have not begun to go on.
  std::set<TrialPlace> waiting;
};

// `begin` and `complete` keep trials and rungs together.
struct Study {
  StudyRules rules;
  // Those that have begun, in the order of their beginning.
  std::vector<Trial> trials;
  // As many as any trial has reached.
  std::vector<Rung> rungs = {};
};

// The job that is to start now. Nothing if the study is complete, or has to wait for one that runs.
std::optional<TrialJob> next_job(const Study& study);

void begin(Study& study, const TrialJob& job);
void complete(Study& study, const TrialJob& job, double loss);

// The trials from the best to the worst: those that got further first, then the lower loss.
std::vector<std::size_t> ranking(const Study& study);

}  // namespace shardwright::planner
