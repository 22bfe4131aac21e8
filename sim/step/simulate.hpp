// Simulates one training step of a plan: the event simulation, and what all fidelity levels report.
#pragma once

#include <array>
#include <optional>
#include <stop_token>

#include "core/lowering/model_flop.hpp"
#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

// A plan that is lowered and priced, for one or more simulations of its step.
struct PricedStep {
  Program program;
  Prices prices;
};
PricedStep lower_and_price(const Scenario& scenario);

// The event simulation, from a plan that `check_plan` accepts.
StepResult simulate_step(const Scenario& scenario);

// The same, or nothing once `stop` is requested before its end.
std::optional<StepResult> simulate_step(const Scenario& scenario, const std::stop_token& stop);

// The same for a program that is already lowered and priced.
StepResult simulate_step(const Scenario& scenario, const Program& program, const Prices& prices);

// What the replay of that program says of the step.
StepResult step_result(const Scenario& scenario, const Program& program, const Prices& prices,
                       const FoldedReplay& replay);

// By stream: `busy`, and idle for the rest of the step.
std::array<StreamUse, kStreams> stream_uses(const std::array<Seconds, kStreams>& busy,
                                            Seconds step);

// Makes the stage whose compute stream is busiest that of the report, by the stages' times.
void set_bottleneck(const Program& program, const Prices& prices, StepResult& result);

// FLOP of the matrix products that one step really runs, over all ranks: causal attention counted
// as it is computed, recomputation included.
Flop hardware_flop_per_step(const Program& program);

}  // namespace shardwright::sim
