#include "sim/step/fidelity.hpp"

#include <array>

#include "core/lowering/lowering.hpp"
#include "sim/step/simulate.hpp"
#include "sim/step/step_estimate.hpp"

namespace shardwright::sim {
namespace {

constexpr std::array kNames = {"bound", "analytic", "event", "full"};

void set_step(RungResult& rung, Seconds step) {
  const double faster = rung.result.step / step;
  Throughput& rates = rung.result.throughput;
  for (double* rate : {&rates.tokens_per_s_per_gpu, &rates.tflops_per_gpu, &rates.mfu, &rates.hfu})
    *rate *= faster;
  rung.result.step = step;
}

}  // namespace

const char* name_of(Fidelity fidelity) {
  return kNames[static_cast<std::size_t>(fidelity)];
}

std::vector<Fidelity> all_fidelities() {
  return {Fidelity::Bound, Fidelity::Analytic, Fidelity::Event, Fidelity::Full};
}

RungResult simulate_at(const Scenario& scenario, Fidelity fidelity, const FullOptions& options) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const Prices prices = price(program, scenario.cluster, scenario.stack);
  RungResult rung;
  rung.fidelity = fidelity;
  rung.result = simulate_step(scenario, program, prices);
  rung.event_step = rung.result.step;
  if (fidelity == Fidelity::Full) {
    const FullReplay replay = replay_full(program, scenario.cluster, prices, options);
    rung.cancelled = replay.cancelled;
    // A part of a step tells nothing of the whole.
    if (replay.cancelled) {
      rung.fidelity = Fidelity::Event;
    } else {
      set_step(rung, replay.step);
    }
  } else if (fidelity != Fidelity::Event) {
    const StepEstimate estimate = estimate_step(scenario);
    set_step(rung, fidelity == Fidelity::Bound ? estimate.bound : estimate.analytic);
  }
  return rung;
}

}  // namespace shardwright::sim
