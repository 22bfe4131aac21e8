// The rules of what a plan does without in memory: recomputation, offload, states of fewer bits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/quantity_text.hpp"
#include "core/spec/plan_rules.hpp"
#include "core/spec/plan_text.hpp"

namespace shardwright {

RecomputeModuleSet recomputable_modules(const ModelSpec& model) {
  RecomputeModuleSet has = {RecomputeModule::CoreAttention, RecomputeModule::LayerNorm};
  if (model.attention.kind == AttentionKind::MultiHeadLatent)
    has.insert(RecomputeModule::MlaUpProjection);
  if (has_dense_layers(model)) {
    has.insert(RecomputeModule::Mlp);
    has.insert(RecomputeModule::MlpActivation);
  }
  if (has_shared_experts(model)) has.insert(RecomputeModule::SharedExperts);
  if (!model.moe) return has;
  has.insert(RecomputeModule::MoeActivation);
  has.insert(RecomputeModule::Moe);
  return has;
}

bool recompute_modules_hold(const PlanSubject& s) {
  if (s.plan.recompute_modules.empty()) return true;
  return s.plan.recompute == RecomputePolicy::Selective &&
         recomputable_modules(s.model).contains_all(s.plan.recompute_modules);
}

Problem recompute_modules_problem(const PlanSubject& s) {
  const std::string found = names_of(s.plan.recompute_modules);
  if (s.plan.recompute != RecomputePolicy::Selective) {
    return {"/recompute_modules",
            fmt::format("{} with the policy {}", found, name_of(s.plan.recompute)),
            "none, or \"recompute\": \"selective\""};
  }
  return {"/recompute_modules", found,
          fmt::format("modules that the model {} has: {}", s.model.name,
                      names_of(recomputable_modules(s.model)))};
}

bool recompute_layers_hold(const PlanSubject& s) {
  return s.plan.recompute_layers == 0 ||
         (s.plan.recompute == RecomputePolicy::Full && s.plan.recompute_layers <= s.model.layers);
}

Problem recompute_layers_problem(const PlanSubject& s) {
  if (s.plan.recompute != RecomputePolicy::Full) {
    return {
        "/recompute_layers",
        fmt::format("{} with the policy {}", s.plan.recompute_layers, name_of(s.plan.recompute)),
        "0, or \"recompute\": \"full\""};
  }
  return {"/recompute_layers", fmt::format("{}", s.plan.recompute_layers),
          fmt::format("at most the model's {} layers", s.model.layers)};
}

bool stage_recompute_holds(const PlanSubject& s) {
  const Plan& plan = s.plan;
  const std::vector<std::int64_t>& counts = plan.stage_recompute_layers;
  if (counts.empty()) return true;
  return plan.recompute == RecomputePolicy::Full && plan.recompute_layers == 0 &&
         plan.recompute_interval == 1 && plan.recompute_group == 1 &&
         plan.schedule != ScheduleKind::DualPipe &&
         counts.size() == static_cast<std::size_t>(plan.pp) &&
         *std::max_element(counts.begin(), counts.end()) <= s.model.layers;
}

Problem stage_recompute_problem(const PlanSubject& s) {
  const Plan& plan = s.plan;
  const std::vector<std::int64_t>& counts = plan.stage_recompute_layers;
  const std::string where = "/stage_recompute_layers";
  if (plan.recompute != RecomputePolicy::Full)
    return {where, fmt::format("the policy {}", name_of(plan.recompute)),
            "\"recompute\": \"full\""};
  if (counts.size() != static_cast<std::size_t>(plan.pp))
    return {where, fmt::format("{} numbers", counts.size()),
            fmt::format("one for each of the {} stages", plan.pp)};
  if (plan.schedule == ScheduleKind::DualPipe)
    return {where, "the schedule dualpipe, whose stages share their chunks with others",
            "a schedule with one stage for each chunk"};
  if (plan.recompute_layers > 0 || plan.recompute_interval > 1 || plan.recompute_group > 1)
    return {where, fmt::format("recompute {}", recompute_text(plan)),
            "recompute_layers, recompute_interval and recompute_group as they are by default"};
  return {where, fmt::format("[{}]", fmt::join(counts, ", ")),
          fmt::format("at most the model's {} layers each", s.model.layers)};
}

bool recompute_pattern_holds(const PlanSubject& s) {
  const bool interval = s.plan.recompute_interval > 1, group = s.plan.recompute_group > 1;
  if (!interval && !group) return true;
  return s.plan.recompute == RecomputePolicy::Full && s.plan.recompute_layers == 0 &&
         interval != group && s.plan.recompute_interval <= s.model.layers &&
         s.plan.recompute_group <= s.model.layers;
}

Problem recompute_pattern_problem(const PlanSubject& s) {
  const bool interval = s.plan.recompute_interval > 1;
  const std::string where = interval ? "/recompute_interval" : "/recompute_group";
  const std::int64_t number = interval ? s.plan.recompute_interval : s.plan.recompute_group;
  if (s.plan.recompute != RecomputePolicy::Full)
    return {where, fmt::format("{} with the policy {}", number, name_of(s.plan.recompute)),
            "1, or \"recompute\": \"full\""};
  if (number > s.model.layers)
    return {where, fmt::format("{}", number),
            fmt::format("at most the model's {} layers", s.model.layers)};
  return {where, fmt::format("{} with {}", number, recompute_text(s.plan)),
          "1, or only one of recompute_layers, recompute_interval and recompute_group"};
}

OffloadModuleSet offloadable_modules(const ModelSpec& model) {
  OffloadModuleSet has = {OffloadModule::QkvLinear, OffloadModule::CoreAttention,
                          OffloadModule::AttentionProjection, OffloadModule::MlpNorm};
  if (!model.moe) return has;
  has.insert(OffloadModule::ExpertFc1);
  has.insert(OffloadModule::MoeActivation);
  return has;
}

namespace {

// The backward pass of attention reads its output as that of the projection does, so that the one's
// input is not free without the other's (transformer_config.py of Megatron Core).
bool offloads_output_alone(const Plan& plan) {
  return plan.offload_modules.contains(OffloadModule::AttentionProjection) &&
         !plan.offload_modules.contains(OffloadModule::CoreAttention);
}

// True if what the plan offloads is not kept because it is recomputed.
bool offloads_recomputed(const Plan& plan) {
  const OffloadModuleSet modules = plan.offload_modules;
  const bool experts =
      modules.contains(OffloadModule::ExpertFc1) || modules.contains(OffloadModule::MoeActivation);
  return (experts && plan.recompute_modules.contains(RecomputeModule::Moe)) ||
         (modules.contains(OffloadModule::CoreAttention) &&
          plan.recompute_modules.contains(RecomputeModule::CoreAttention));
}

}  // namespace

bool activation_offload_holds(const PlanSubject& s) {
  const Plan& plan = s.plan;
  if (!plan.offload_activations)
    return plan.offload_layers == 0 && plan.offload_ratio == 1.0 && plan.offload_modules.empty();
  return !plan.reruns_layers() &&
         (plan.offload_modules.empty() ||
          (offloadable_modules(s.model).contains_all(plan.offload_modules) &&
           !offloads_output_alone(plan) && !offloads_recomputed(plan)));
}

Problem activation_offload_problem(const PlanSubject& s) {
  const std::string modules = names_of(s.plan.offload_modules);
  if (!s.plan.offload_activations && !modules.empty())
    return {"/offload_modules", modules, "none, or \"offload_activations\": true"};
  if (s.plan.offload_activations && !s.plan.reruns_layers()) {
    if (offloads_output_alone(s.plan))
      return {"/offload_modules", modules, "core_attn with attn_proj, which read the same"};
    if (offloads_recomputed(s.plan))
      return {"/offload_modules", modules, "none of the modules that run again"};
    return {"/offload_modules", modules,
            fmt::format("modules that the model {} has: {}", s.model.name,
                        names_of(offloadable_modules(s.model)))};
  }
  if (!s.plan.offload_activations) {
    const bool layers = s.plan.offload_layers != 0;
    return {
        layers ? "/offload_layers" : "/offload_ratio",
        layers ? fmt::format("{}", s.plan.offload_layers) : fmt::format("{}", s.plan.offload_ratio),
        fmt::format("{}, or \"offload_activations\": true", layers ? 0 : 1)};
  }
  return {"/offload_activations", "true",
          "false, or the recomputation none or selective: the others keep too little to offload"};
}

// The host's optimizer works in fp32.
bool optimizer_states_hold(const PlanSubject& s) {
  const OptimizerStates states = s.plan.optimizer_states;
  if (!is_narrow(states)) return true;
  const Precision precision = s.plan.precision;
  const bool bf16_weights =
      precision != Precision::Fp32 && precision != Precision::Tf32 && precision != Precision::Fp16;
  return !s.plan.offloads_optimizer() && (bf16_weights || !is_pure(states));
}

Problem optimizer_states_problem(const PlanSubject& s) {
  const std::string found = name_of(s.plan.optimizer_states);
  if (s.plan.offloads_optimizer())
    return {"/optimizer_states", found + " on the " + name_of(s.plan.offload_optimizer),
            "of-stack or fp32: the host's optimizer has no others"};
  return {"/optimizer_states",
          fmt::format("{} with the precision {}", found, name_of(s.plan.precision)),
          "of-stack, fp32, bf16 or 8-bit: the weights are not in bf16"};
}

namespace {

// The states on one node, which all of its ranks fill alike.
Bytes states_on_node(const PlanSubject& s) {
  const std::int64_t world = s.plan.world_size();
  return offloaded_states(s.model, s.plan) *
         (static_cast<double>(s.cluster->ranks_per_node(world)) / static_cast<double>(world));
}

}  // namespace

bool optimizer_offload_holds(const PlanSubject& s) {
  if (s.cluster == nullptr || !s.plan.offloads_optimizer()) return true;
  const HostSpec& host = s.cluster->node.host;
  if (s.plan.offload_optimizer == OptimizerOffload::Nvme)
    return host.nvme_read > BytesPerSecond(0) && host.nvme_write > BytesPerSecond(0);
  return states_on_node(s) <= host.memory;
}

Problem optimizer_offload_problem(const PlanSubject& s) {
  const std::string found = fmt::format("\"{}\"", name_of(s.plan.offload_optimizer));
  if (s.plan.offload_optimizer == OptimizerOffload::Nvme)
    return {"/offload_optimizer", found,
            fmt::format("\"none\" or \"host\": the nodes {} have no disks", s.cluster->node.name)};
  return {"/offload_optimizer", found,
          fmt::format("\"none\" or \"nvme\": the states take {} of a node's host memory of {}",
                      format_bytes(states_on_node(s)), format_bytes(s.cluster->node.host.memory))};
}

}  // namespace shardwright
