#include "executor/runtime/parameter_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "executor/runtime/expert_routing.hpp"

namespace shardwright::executor {
namespace {

std::int64_t divide_up(std::int64_t amount, std::int64_t parts) {
  return (amount + parts - 1) / parts;
}

bool is_of_experts(const std::string& name) {
  return name.find("moe.experts.") != std::string::npos;
}

// The parts into which tensor-parallel ranks split a parameter. Consecutive ranks hold the same key
// and value heads if there are more ranks, as their queries do.
std::int64_t tensor_parts(const ParameterTensor& tensor, const Plan& plan) {
  if (tensor.shard == ShardKind::Replicated) return 1;
  return tensor.most_shards > 0 ? std::min(tensor.most_shards, plan.tp) : plan.tp;
}

ParameterSlice slice_of(const ParameterTensor& tensor, const Plan& plan, const LayoutPlace& place) {
  ParameterSlice slice;
  slice.name = tensor.name;
  slice.shape = tensor.shape;
  slice.replicated = tensor.shard == ShardKind::Replicated;
  slice.rows = slice.held_rows = tensor.shape.front();
  slice.columns = slice.whole_columns();
  const std::int64_t parts = tensor_parts(tensor, plan);
  slice.holders = plan.tp / parts;
  slice.holder = place.tensor_rank % slice.holders;
  switch (tensor.shard) {
    case ShardKind::Column:
    case ShardKind::Vocabulary: {
      slice.held_rows = divide_up(tensor.shape.front(), parts);
      slice.first_row =
          std::min(place.tensor_rank / slice.holders * slice.held_rows, tensor.shape.front());
      slice.rows = std::min(slice.held_rows, tensor.shape.front() - slice.first_row);
      break;
    }
    case ShardKind::Row:
      slice.columns = slice.whole_columns() / plan.tp;
      slice.first_column = place.tensor_rank * slice.columns;
      break;
    default:
      break;
  }
  return slice;
}

// The matrices of the rank's experts, stacked as one matrix. Where each is split by rows, the parts
// are a slice each.
std::vector<ParameterSlice> expert_slices(const ParameterTensor& tensor, const Plan& plan,
                                          const LayoutPlace& place) {
  const std::vector<std::int64_t> held = experts_by_rank(plan, tensor.shape[0]);
  const auto own = held.begin() + place.expert_rank;
  const std::int64_t experts = *own, outputs = tensor.shape[1];
  ParameterSlice all;
  all.name = tensor.name;
  all.shape = {tensor.shape[0] * outputs, tensor.shape[2]};
  all.first_row = std::accumulate(held.begin(), own, std::int64_t{0}) * outputs;
  all.rows = all.held_rows = experts * outputs;
  all.columns = tensor.shape[2];
  if (tensor.shard == ShardKind::ExpertRow) {
    all.columns /= plan.expert_tp;
    all.first_column = place.expert_tensor_rank * all.columns;
  }
  if (tensor.shard != ShardKind::ExpertColumn || plan.expert_tp == 1) return {all};
  const std::int64_t each = outputs / plan.expert_tp;
  std::vector<ParameterSlice> slices(static_cast<std::size_t>(experts), all);
  std::int64_t first = all.first_row + place.expert_tensor_rank * each;
  for (ParameterSlice& slice : slices) {
    slice.first_row = std::exchange(first, first + outputs);
    slice.rows = slice.held_rows = each;
  }
  return slices;
}

class LayoutBuilder {
 public:
  LayoutBuilder(const Program& program, const ModelSpec& model, const LayoutPlace& place)
      : program_(program), model_(model), place_(place) {
    for (ParameterTensor& tensor : parameter_tensors(model))
      tensors_.emplace(tensor.name, std::move(tensor));
  }

  void add(const Op& op, const Call& call) {
    std::vector<std::string> names;
    for (const std::string& pattern : op.parameters)
      names.push_back(parameter_name(pattern, call.layer));
    // An op that shares its first parameter with another op (a tied head) shares all of them.
    if (names.empty() || layout_.places.contains(names.front())) return;
    // The position embedding is added to the token embedding, not stacked on it.
    if (op.kind == OpKind::Embedding) {
      for (const std::string& name : names) add_group({name}, part_of(name));
    } else {
      add_group(names, part_of(names.front()));
    }
  }

  ParameterLayout finish() {
    std::map<PartId, std::size_t> ends;
    for (ParameterUnit& unit : layout_.units) {
      const std::size_t parts = unit.experts ? place_.expert_shards : place_.shards;
      unit.elements = (unit.elements + parts - 1) / parts * parts;
      unit.offset_in_part = std::exchange(ends[unit.part], ends[unit.part] + unit.elements);
    }
    return std::move(layout_);
  }

 private:
  PartId part_of(const std::string& name) const {
    if (name.rfind("layers.", 0) == 0) return std::stoi(name.substr(7));
    const bool embeds = name.find("embedding") != std::string::npos;
    return embeds ? kEmbeddingPart : static_cast<PartId>(model_.layers);
  }

  std::size_t unit_for(const std::string& name, PartId part) {
    const bool token_embedding = name == "embedding", experts = is_of_experts(name);
    for (std::size_t i = 0; i < layout_.units.size(); ++i) {
      const ParameterUnit& unit = layout_.units[i];
      if (unit.part == part && unit.token_embedding == token_embedding && unit.experts == experts)
        return i;
    }
    layout_.units.push_back({.part = part, .token_embedding = token_embedding, .experts = experts});
    return layout_.units.size() - 1;
  }

  void add_group(const std::vector<std::string>& names, PartId part) {
    const std::size_t unit = unit_for(names.front(), part);
    for (const std::string& name : names) {
      ParameterSpan place;
      place.unit = unit;
      place.weight = append(unit, name + ".weight");
      layout_.places[name] = place;
    }
    for (const std::string& name : names) {
      if (!tensors_.contains(name + ".bias")) continue;
      ParameterSpan& place = layout_.places[name];
      place.bias = append(unit, name + ".bias");
      const auto is_split = [this](const std::string& tensor) {
        return tensors_.at(tensor).shard != ShardKind::Replicated;
      };
      place.bias_of_sum = is_split(name + ".weight") && !is_split(name + ".bias");
    }
  }

  std::size_t append(std::size_t unit_index, const std::string& name) {
    ParameterUnit& unit = layout_.units[unit_index];
    const auto tensor = tensors_.find(name);
    SHARDWRIGHT_CHECK(tensor != tensors_.end(), "an op applies \"" + name + "\"");
    const std::size_t offset = unit.elements;
    const auto add_slice = [&unit](ParameterSlice slice) {
      slice.offset = unit.elements;
      unit.elements += slice.elements();
      unit.slices.push_back(std::move(slice));
    };
    if (unit.experts) {
      for (ParameterSlice& slice : expert_slices(tensor->second, program_.plan, place_))
        add_slice(std::move(slice));
    } else {
      add_slice(slice_of(tensor->second, program_.plan, place_));
    }
    return offset;
  }

  const Program& program_;
  const ModelSpec& model_;
  LayoutPlace place_;
  std::map<std::string, ParameterTensor> tensors_;
  ParameterLayout layout_;
};

}  // namespace

std::int64_t ParameterSlice::whole_columns() const {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

bool ParameterSlice::sees_own_tokens() const {
  return is_norm() || name.find("moe.router.") != std::string::npos ||
         name.find("moe.shared_expert_gate.") != std::string::npos ||
         name.find("attention.q_a_proj.") != std::string::npos ||
         name.find("attention.kv_a_proj.") != std::string::npos;
}

bool ParameterSlice::sees_own_heads() const {
  return (!replicated && holders > 1) || name.ends_with("attention.q_norm.weight") ||
         name.ends_with("attention.k_norm.weight");
}

const ParameterSpan& ParameterLayout::find(const std::string& pattern, std::int32_t layer) const {
  const auto found = places.find(parameter_name(pattern, layer));
  SHARDWRIGHT_CHECK(found != places.end(), "a parameter that is not laid out: " + pattern);
  return found->second;
}

std::vector<std::size_t> ParameterLayout::units_of(PartId part) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i].part == part) found.push_back(i);
  }
  return found;
}

std::size_t ParameterLayout::elements_of(PartId part) const {
  std::size_t sum = 0;
  for (const std::size_t unit : units_of(part)) sum += units[unit].elements;
  return sum;
}

std::string parameter_name(const std::string& pattern, std::int32_t layer) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern;
  return pattern.substr(0, star) + std::to_string(layer) + pattern.substr(star + 1);
}

ParameterLayout lay_out_parameters(const Program& program, const ModelSpec& model,
                                   const LayoutPlace& place) {
  LayoutBuilder builder(program, model, place);
  const RankProgram& rank = program.stages[static_cast<std::size_t>(place.stage)];
  bool embeds = false;
  for (const Call& call : rank.calls) {
    for (const Op& op : program.blocks[call.block].ops) {
      builder.add(op, call);
      embeds = embeds || op.kind == OpKind::Embedding;
    }
  }
  ParameterLayout layout = builder.finish();
  const bool mirrors =
      program.plan.schedule == ScheduleKind::DualPipe && 2 * place.stage >= program.plan.pp;
  for (ParameterUnit& unit : layout.units)
    unit.is_copy = mirrors || (unit.token_embedding && !embeds);
  return layout;
}

}  // namespace shardwright::executor
