#include "core/spec/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/spec/plan_rules.hpp"

namespace shardwright {
namespace {

using enum LoraTarget;

// The end of a weight's name, and the targets of which each covers it.
struct TargetName {
  std::string_view ending;
  LoraTargetSet targets;
};
constexpr std::array kTargetNames = {
    TargetName{"attention.q_proj", {Q}},       TargetName{"attention.q_a_proj", {Q}},
    TargetName{"attention.q_b_proj", {Q}},     TargetName{"attention.k_proj", {K}},
    TargetName{"attention.v_proj", {V}},       TargetName{"attention.kv_a_proj", {K, V}},
    TargetName{"attention.kv_b_proj", {K, V}}, TargetName{"attention.o_proj", {O}},
    TargetName{".gate_proj", {Gate}},          TargetName{".up_proj", {Up}},
    TargetName{".down_proj", {Down}}};

// Projections that stacks compute as one product.
struct JointName {
  std::array<std::string_view, 3> parts;
  LoraTargetSet targets;
  std::string_view name;
};
constexpr std::array kJointNames = {
    JointName{{".q_proj", ".k_proj", ".v_proj"}, {Q, K, V}, ".qkv_proj"},
    JointName{{".gate_proj", ".up_proj", ".up_proj"}, {Gate, Up}, ".gate_up_proj"}};

constexpr std::string_view kWeight = ".weight";

LoraTargetSet common(LoraTargetSet a, LoraTargetSet b) {
  return LoraTargetSet::of_bits(a.bits() & b.bits());
}

bool has_layer(const ModelSpec& model, auto part, auto wanted) {
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (model.parts_of(layer).*part == wanted) return true;
  }
  return false;
}

bool is_of_experts(const ParameterTensor& tensor) {
  return tensor.shard == ShardKind::ExpertColumn || tensor.shard == ShardKind::ExpertRow;
}

ParameterTensor matrix_of(const ParameterTensor& weight, const std::string& name,
                          std::int64_t output, std::int64_t input, ShardKind shard) {
  ParameterTensor matrix = weight;
  matrix.name = name;
  matrix.place = ParameterPlace::Adapter;
  matrix.shape[matrix.shape.size() - 2] = output;
  matrix.shape.back() = input;
  matrix.shard = shard;
  if (shard != ShardKind::Column) matrix.most_shards = 0;
  return matrix;
}

void append_adapter(const ParameterTensor& weight, const std::string& name, const Lora& lora,
                    std::vector<ParameterTensor>& parameters) {
  const std::int64_t output = weight.shape[weight.shape.size() - 2], input = weight.shape.back();
  const ShardKind whole =
      is_of_experts(weight) ? ShardKind::ExpertReplicated : ShardKind::Replicated;
  const bool splits_input = weight.shard == ShardKind::Row || weight.shard == ShardKind::ExpertRow;
  parameters.push_back(matrix_of(weight, name + ".lora_a.weight", lora.rank, input,
                                 splits_input ? weight.shard : whole));
  parameters.push_back(matrix_of(weight, name + ".lora_b.weight", output, lora.rank,
                                 splits_input ? whole : weight.shard));
}

constexpr LoraTargetSet kFeedForward = {Gate, Up, Down};

// Rules

bool splits_adapted_experts(const PlanSubject& s) {
  return s.plan.expert_tp > 1 && adapts_experts(s.model, *s.plan.lora);
}

// Joint adapters of some of the projections that share them.
bool splits_joint(const PlanSubject& s) {
  return s.plan.lora->joint && std::ranges::any_of(kJointNames, [&](const JointName& joint) {
           const LoraTargetSet possible = common(joint.targets, lora_targets(s.model));
           const LoraTargetSet chosen = common(chosen_targets(s.model, *s.plan.lora), possible);
           return !chosen.empty() && chosen != possible;
         });
}

}  // namespace

LoraTargetSet lora_targets(const ModelSpec& model) {
  LoraTargetSet targets;
  if (has_layer(model, &LayerParts::mixer, LayerMixer::Attention)) targets = {Q, K, V, O};
  const bool feeds = has_layer(model, &LayerParts::ffn, LayerFfn::Dense) ||
                     has_layer(model, &LayerParts::ffn, LayerFfn::Experts);
  if (!feeds) return targets;
  if (model.mlp.gated) targets.insert(Gate);
  targets.insert(Up);
  targets.insert(Down);
  return targets;
}

LoraTargetSet chosen_targets(const ModelSpec& model, const Lora& lora) {
  const LoraTargetSet all = lora_targets(model);
  return lora.targets.empty() ? all : common(lora.targets, all);
}

bool adapts_experts(const ModelSpec& model, const Lora& lora) {
  return model.moe && !common(chosen_targets(model, lora), kFeedForward).empty();
}

bool adapts_others(const ModelSpec& model, const Lora& lora) {
  const LoraTargetSet targets = chosen_targets(model, lora);
  if (!common(targets, {Q, K, V, O}).empty()) return true;
  return !targets.empty() &&
         (has_shared_experts(model) || has_layer(model, &LayerParts::ffn, LayerFfn::Dense));
}

bool is_adapted(const Lora& lora, std::string_view weight) {
  return std::ranges::any_of(kTargetNames, [&](const TargetName& each) {
    return weight.ends_with(each.ending) &&
           (lora.targets.empty() || !common(lora.targets, each.targets).empty());
  });
}

std::string adapter_of(const Lora& lora, std::string_view weight) {
  for (const JointName& joint : kJointNames) {
    for (const std::string_view part : joint.parts) {
      if (!lora.joint || !weight.ends_with(part)) continue;
      return std::string(weight.substr(0, weight.size() - part.size())).append(joint.name);
    }
  }
  return std::string(weight);
}

bool is_quantized(const Lora& lora, std::string_view weight) {
  return lora.base == FrozenFormat::Nf4 && weight.ends_with("_proj");
}

std::vector<ParameterTensor> adapter_parameters(const ModelSpec& model, const Lora& lora,
                                                std::int64_t layer) {
  std::vector<ParameterTensor> parameters, joined;
  std::string before;
  // The weights of a joint adapter follow each other; their outputs are stacked.
  for (ParameterTensor& weight : layer_parameters(model, layer)) {
    if (!weight.name.ends_with(kWeight)) continue;
    const std::string named = weight.name.substr(0, weight.name.size() - kWeight.size());
    if (!is_adapted(lora, named)) continue;
    const std::string name = adapter_of(lora, named);
    if (name == before) {
      std::vector<std::int64_t>& shape = joined.back().shape;
      shape[shape.size() - 2] += weight.shape[weight.shape.size() - 2];
      joined.back().most_shards = 0;
      continue;
    }
    weight.name = before = name;
    joined.push_back(std::move(weight));
  }
  for (const ParameterTensor& weight : joined)
    append_adapter(weight, weight.name, lora, parameters);
  return parameters;
}

AdapterCount count_adapters(const ModelSpec& model, const Lora& lora) {
  AdapterCount count;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    for (const ParameterTensor& tensor : adapter_parameters(model, lora, layer)) {
      count.total += tensor.elements();
      if (is_of_experts(tensor) || tensor.shard == ShardKind::ExpertReplicated)
        count.routed += tensor.elements();
    }
  }
  return count;
}

bool lora_holds(const PlanSubject& s) {
  if (!s.plan.lora) return true;
  const Lora& lora = *s.plan.lora;
  return !chosen_targets(s.model, lora).empty() &&
         lora_targets(s.model).contains_all(lora.targets) && lora.rank <= s.model.hidden &&
         !splits_adapted_experts(s) && !splits_joint(s) &&
         (lora.base == FrozenFormat::Plain || !casts_operands(s.plan.precision));
}

Problem lora_problem(const PlanSubject& s) {
  const Lora& lora = *s.plan.lora;
  const LoraTargetSet possible = lora_targets(s.model);
  if (chosen_targets(s.model, lora).empty() || !possible.contains_all(lora.targets)) {
    return {"/lora/targets", names_of(lora.targets),
            fmt::format("projections that the model {} has: {}", s.model.name, names_of(possible))};
  }
  if (lora.rank > s.model.hidden) {
    return {"/lora/rank", fmt::format("{}", lora.rank),
            fmt::format("at most the model's width of {}", s.model.hidden)};
  }
  if (splits_joint(s)) {
    return {"/lora/targets", fmt::format("{} with joint adapters", names_of(lora.targets)),
            "all or none of q, k and v, and both or none of gate and up"};
  }
  if (splits_adapted_experts(s)) {
    return {"/expert_tp", fmt::format("{}", s.plan.expert_tp),
            "1, or only targets of attention: adapters of experts are not split"};
  }
  return {"/lora/base", name_of(lora.base),
          fmt::format("plain with {}: 4-bit weights are converted to 16 bits",
                      name_of(s.plan.precision))};
}

}  // namespace shardwright
