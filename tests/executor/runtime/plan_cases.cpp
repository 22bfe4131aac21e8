#include "tests/executor/runtime/plan_cases.hpp"

namespace shardwright::executor {

void PrintTo(const PlanCase& plan, std::ostream* out) {
  *out << plan.name;
}

const std::vector<PlanCase>& plan_cases() {
  static const std::vector<PlanCase> cases = {
      {"dp2", false, [](Plan& p) { p.dp = 2; }},
      {"dp4_zero1", false, [](Plan& p) { p.dp = 4, p.zero_stage = 1; }},
      {"dp2_zero1_gathers_after", true,
       [](Plan& p) { p.dp = 2, p.zero_stage = 1, p.overlap.param_gather = false; }},
      {"tp2", true, [](Plan& p) { p.tp = 2, p.micro_batch = 2; }},
      {"tp2_without_sp", false,
       [](Plan& p) { p.tp = p.micro_batch = 2, p.sequence_parallel = false; }},
      {"tp4_recompute", true,
       [](Plan& p) { p.tp = p.micro_batch = 4, p.recompute = RecomputePolicy::Full; }},
      {"pp4_gpipe", false, [](Plan& p) { p.pp = 4, p.schedule = ScheduleKind::GPipe; }},
      {"pp4_1f1b", true, [](Plan& p) { p.pp = 4; }},
      {"pp2_interleaved", false,
       [](Plan& p) { p.pp = 2, p.vpp = 2, p.schedule = ScheduleKind::Interleaved; }},
      {"pp2_interleaved_ends_without_layers", true,
       [](Plan& p) {
         p.pp = 2, p.vpp = 3, p.schedule = ScheduleKind::Interleaved;
         p.embedding_counts_as_layer = p.head_counts_as_layer = true;
       }},
      {"dp2_tp2_pp2_zero1", true,
       [](Plan& p) { p.dp = p.tp = p.pp = p.micro_batch = 2, p.zero_stage = 1; }},
      {"dp2_tp2_pp2", false,
       [](Plan& p) { p.dp = p.tp = p.pp = 2, p.recompute = RecomputePolicy::Full; }},
      {"tp2_pp2_interleaved_dp2_zero1", false,
       [](Plan& p) {
         p.dp = p.tp = p.pp = p.vpp = 2, p.zero_stage = 1;
         p.schedule = ScheduleKind::Interleaved;
         p.rank_order = {Axis::Data, Axis::Pipeline, Axis::Tensor, Axis::Context, Axis::Expert};
       }},
  };
  return cases;
}

TrainingOptions twenty_steps() {
  TrainingOptions options;
  options.steps = 20;
  options.learning_rate = 3e-3;
  options.warmup_steps = 5;
  return options;
}

}  // namespace shardwright::executor
