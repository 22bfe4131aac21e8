// The ladder of fidelity: one step time, estimated ever more closely.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/base/enum_names.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/server_steps.hpp"
#include "sim/step/server_use.hpp"
#include "sim/step/simulate.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

enum class Fidelity : std::uint8_t {
  // A bound that no simulated step falls below.
  Bound,
  // A closed form estimates the step.
  Analytic,
  // The program runs on one representative of each stage.
  Event,
  // The program runs on every rank, with contention between nodes.
  Full,
};
constexpr auto enum_names(Fidelity) {
  return std::array{"bound", "analytic", "event", "full"};
}

struct SimulatedStep {
  Fidelity fidelity = Fidelity::Event;
  // Step time and rates are those of the fidelity level. So is the breakdown of the full level, of
  // the slowest rank of each stage; the closed forms of bound and analytic have none, theirs is the
  // event fidelity level's. Memory is the same at all levels.
  StepResult result;
  Seconds event_step;
  // The replay of the event simulation, with finish times if these were asked for.
  FoldedReplay event;
  // The full level's replay of all ranks. It watches the slowest rank of each stage (of equals the
  // first), in the order of the stages, then the ranks that the options ask for.
  std::optional<FullReplay> full;
  // Plans with parameter servers have the first, and those whose replicas push without an agreement
  // in each step the second: many simulated steps, which at the full level are the ranks' own and
  // give the step.
  std::optional<ServerUse> servers;
  std::optional<ServedSteps> served;
  // True if the full level was stopped: all figures, and `fidelity`, are then those of the event
  // level.
  bool cancelled = false;
};

// Simulates a plan that breaks no rule. `options` are those of the full level, which throws
// InputError if they name ranks or NICs that do not exist, or if the step is too long for it.
// Random factors of the ranks take the place of the accelerator's `speed_variation`.
SimulatedStep simulate_at(const Scenario& scenario, Fidelity fidelity,
                          const FullOptions& options = {});

// Prices without the slowest device: where each rank has a speed of its own, no slowest one stands
// for all.
Prices prices_of_alike_ranks(const Scenario& scenario, const Program& program);

// Does the same for a step that is lowered and priced. `keep_finish_times` keeps those of the event
// simulation, for its timeline.
SimulatedStep simulate_at(const Scenario& scenario, const PricedStep& step, Fidelity fidelity,
                          const FullOptions& options, bool keep_finish_times);

}  // namespace shardwright::sim
