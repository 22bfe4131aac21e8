// The step that the benchmarks of the simulator run: Llama 3.1 405B on 16,384 H100.
#pragma once

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright {

// dp 128, tp 8, pp 16 with `vpp` chunks a stage, global batch 2048 sequences of 8192 tokens.
inline Scenario llama_405b_on_16384_gpus(std::int64_t vpp) {
  Scenario scenario;
  scenario.model = load_model("llama3.1-405b");
  scenario.cluster = load_cluster("dgx-h100");
  scenario.stack = load_stack("megatron-core");
  Plan& plan = scenario.plan;
  plan.dp = 128;
  plan.tp = 8;
  plan.pp = 16;
  plan.vpp = vpp;
  plan.schedule = vpp > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  plan.global_batch = 2048;
  plan.seq_len = 8192;
  return scenario;
}

}  // namespace shardwright
