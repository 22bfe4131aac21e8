#include <nlohmann/json.hpp>

#include "sim/step/step_result.hpp"

namespace shardwright::sim {

using nlohmann::ordered_json;

ordered_json time_json(const TimeBreakdown& time) {
  ordered_json exposed = ordered_json::object();
  for (const Axis axis : {Axis::Tensor, Axis::Data, Axis::Pipeline, Axis::Context, Axis::Expert})
    exposed[name_of(axis)] = time.exposed[axis].value();
  return {{"compute_s", time.compute().value()},
          {"gemm_s", time.gemm.value()},
          {"attention_s", time.attention.value()},
          {"memory_bound_s", time.memory_bound.value()},
          {"recompute_s", time.recompute.value()},
          {"optimizer_s", time.optimizer.value()},
          {"interference_s", time.interference.value()},
          {"exposed", std::move(exposed)},
          {"offload_s", time.offload.value()},
          {"bubble_s", time.bubble.value()},
          {"host_s", time.host.value()},
          {"stall_s", time.stall.value()}};
}

ordered_json memory_json(const MemoryPeak& memory) {
  ordered_json breakdown = ordered_json::object();
  for (const MemoryCategory category : enumerators<MemoryCategory>()) {
    breakdown[name_of(category)] = memory.of(category).value();
  }
  return {{"peak_bytes", memory.peak.value()}, {"breakdown", std::move(breakdown)}};
}

}  // namespace shardwright::sim
