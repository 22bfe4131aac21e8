#include "planner/stage_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/spec_document.hpp"

namespace shardwright::planner {
namespace {

using nlohmann::json;

// The value of a setting; a text that is no JSON stands for itself.
json value_of_setting(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

// The plan with the further fields of a stage. Those that only another recomputation has are left
// out.
Plan with_settings(const Plan& plan, const std::vector<std::string>& settings,
                   const std::string& where, ProblemList& problems) {
  if (settings.empty()) return plan;
  json document = to_json(plan);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.add(where, fmt::format("\"{}\"", setting), "FIELD=VALUE, as in recompute=full");
      return plan;
    }
    if (setting.starts_with("recompute=")) {
      for (const char* field : {"recompute_modules", "recompute_layers", "recompute_interval",
                                "recompute_group", "stage_recompute_layers"})
        document.erase(field);
    }
    document.merge_patch(
        patch_at(setting.substr(0, equals), value_of_setting(setting.substr(equals + 1))));
  }
  ObjectReader object(document, where, problems);
  return read_plan(object);
}

void set_degrees(const RunStage& stage, Plan& plan) {
  // The chunks and the layers of the plan's stages say nothing of other stages.
  if (stage.pp > 0) plan.vpp = 1;
  if (stage.pp > 0 || stage.vpp > 0) plan.stage_layers.clear();
  if (stage.pp > 0) plan.stage_recompute_layers.clear();
  for (const auto& [stated, degree] :
       {std::pair(stage.tp, &plan.tp), std::pair(stage.pp, &plan.pp),
        std::pair(stage.vpp, &plan.vpp), std::pair(stage.ep, &plan.ep),
        std::pair(stage.cp, &plan.cp)}) {
    if (stated > 0) *degree = stated;
  }
  if (plan.vpp == 1 && plan.schedule == ScheduleKind::Interleaved)
    plan.schedule = ScheduleKind::OneFOneB;
  if (plan.vpp > 1 && plan.schedule == ScheduleKind::OneFOneB)
    plan.schedule = ScheduleKind::Interleaved;
}

Plan plan_of_stage(const Plan& plan, const RunStage& stage, const std::string& where,
                   ProblemList& problems) {
  Plan own = with_settings(plan, stage.set, where + "/set", problems);
  if (stage.global_batch > 0) own.global_batch = stage.global_batch;
  if (stage.seq_len > 0) own.seq_len = stage.seq_len;
  if (stage.micro_batch > 0) own.micro_batch = stage.micro_batch;
  set_degrees(stage, own);
  own.dp = stage.dp > 0 ? stage.dp
                        : std::max<std::int64_t>(1, plan.world_size() / (own.tp * own.pp * own.cp));
  // A smaller batch may not hold whole microbatches of the plan's size.
  if (stage.micro_batch == 0 && own.global_batch % own.dp == 0)
    own.micro_batch = std::gcd(own.micro_batch, own.global_batch / own.dp);
  return own;
}

}  // namespace

std::vector<Plan> stage_plans(const Scenario& scenario, const std::vector<RunStage>& stages,
                              ProblemList& problems) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::string where = fmt::format("/stages/{}", i);
    const std::size_t before = problems.size();
    plans.push_back(plan_of_stage(scenario.plan, stages[i], where, problems));
    if (problems.size() > before) continue;
    for (const BrokenRule& broken :
         broken_rules(scenario.model, &scenario.cluster, plans.back(),
                      std::min(plans.back().world_size(), scenario.plan.world_size()), where))
      problems.add(broken.problem.where, broken.problem.found, broken.problem.expected);
  }
  return plans;
}

}  // namespace shardwright::planner
