// Simulates one training step of a plan at the event level, and reports it as all levels do.
#pragma once

#include <array>
#include <optional>
#include <stop_token>

#include "core/lowering/model_flop.hpp"
#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/steady_state.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

// A plan that is lowered and priced, for one or more simulations of its step.
struct PricedStep {
  Program program;
  Prices prices;
};
PricedStep lower_and_price(const Scenario& scenario);

// Lowers a plan that breaks no rule and replays it. Where the pipeline has a steady state, only
// some of its periods are replayed (steady_state.hpp); the result is that of all, but for rounding.
StepResult simulate_step(const Scenario& scenario);

// Does the same, but returns nothing once `stop` is requested before its end.
std::optional<StepResult> simulate_step(const Scenario& scenario, const std::stop_token& stop);

// Reports a step by the replay of its program.
StepResult step_result(const Scenario& scenario, const Program& program, const Prices& prices,
                       const FoldedReplay& replay);

// Reports the whole step of a short one, whose replay has found its period.
StepResult step_result(const Scenario& scenario, const ShortStep& step, const Prices& prices,
                       FoldedReplay replay);

// The use of each stream: it is busy for its time of `busy` and idle for the rest of the step.
EnumArray<Stream, StreamUse> stream_uses(const std::array<Seconds, kStreams>& busy, Seconds step);

// Makes the stage whose compute stream is busiest that of the report, by the stages' times.
void set_bottleneck(const Program& program, const Prices& prices, StepResult& result);

// The FLOP of the matrix products that one step really runs, over all ranks: causal attention
// counts as it is computed, and recomputation counts too.
Flop hardware_flop_per_step(const Program& program);

}  // namespace shardwright::sim
