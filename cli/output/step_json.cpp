#include "cli/output/step_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/op/op.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/stack_json.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

ordered_json stages_json(const Plan& plan, const sim::StepResult& result) {
  ordered_json stages = ordered_json::array();
  for (const sim::StageResult& stage : result.stages) {
    ordered_json entry = {{"time", sim::time_json(stage.time)},
                          {"streams", streams_json(stage.streams)},
                          {"memory", sim::memory_json(stage.memory)}};
    if (names_pools(plan)) entry["pool"] = pool_name_of_stage(plan, stages.size());
    stages.push_back(std::move(entry));
  }
  return stages;
}

ordered_json basis_json(const sim::BasisTimes& basis) {
  return {{"measured_s", basis.measured.value()},
          {"formula_s", basis.formula.value()},
          {"extrapolated_s", basis.extrapolated.value()}};
}

ordered_json confidence_json(const validation::Confidence& confidence) {
  if (!confidence.prediction_class) return {};
  return {{"class", class_text(*confidence.prediction_class)},
          {"runs", confidence.step->runs},
          {"fit_probability", *confidence.fit_probability},
          {"validated", confidence.gap.empty()},
          {"gap", confidence.gap}};
}

}  // namespace

ordered_json streams_json(const EnumArray<Stream, sim::StreamUse>& streams) {
  ordered_json document = ordered_json::object();
  for (const Stream stream : enumerators<Stream>()) {
    const sim::StreamUse& use = streams[stream];
    if (use.busy.value() <= 0.0) continue;
    document[name_of(stream)] = {{"busy_s", use.busy.value()}, {"idle_s", use.idle.value()}};
  }
  return document;
}

Bytes memory_shortfall(const sim::StepResult& result, const ClusterSpec& cluster) {
  return std::max(Bytes(0), result.memory().peak - cluster.accelerator.memory);
}

ordered_json step_json(const Scenario& scenario, const sim::StepResult& result,
                       const validation::Confidence& confidence) {
  const Bytes shortfall =
      memory_shortfall(result, stage_cluster(scenario.cluster, scenario.plan, result.fullest));
  ordered_json memory = sim::memory_json(result.memory());
  memory["stage"] = result.fullest;
  ordered_json time = sim::time_json(result.time());
  time["stage"] = result.bottleneck;
  const auto& interval = confidence.step;
  const ordered_json limits =
      interval ? ordered_json{interval->low.value(), interval->high.value()} : ordered_json();
  return {{"plan", to_json(scenario.plan)},
          {"layout", plan_text(scenario.plan)},
          {"step_s", result.step.value()},
          {"step_interval_s", limits},
          {"confidence", confidence_json(confidence)},
          {"tokens_per_s_per_gpu", result.throughput.tokens_per_s_per_gpu},
          {"tflops_per_gpu", result.throughput.tflops_per_gpu},
          {"mfu", result.throughput.mfu},
          {"hfu", result.throughput.hfu},
          {"fits", shortfall <= Bytes(0)},
          {"shortfall_bytes", shortfall.value()},
          {"memory", std::move(memory)},
          {"time", std::move(time)},
          {"kernel_time_basis", basis_json(result.basis)},
          {"stages", stages_json(scenario.plan, result)}};
}

void add_parts(ordered_json& document, const ModelSpec& model, const ClusterSpec& cluster,
               const StackSpec& stack) {
  document["model"] = to_json(model);
  document["cluster"] = to_json(cluster);
  document["stack"] = to_json(stack);
}

ordered_json inputs_json(const ModelSpec& model, const ClusterSpec& cluster,
                         const StackSpec& stack) {
  return {{"model", model.name}, {"cluster", cluster.name}, {"stack", stack.name}};
}

}  // namespace shardwright::cli
