#include "sim/validation/possible_cuts.hpp"

#include <algorithm>

#include "sim/validation/noted_experts.hpp"
#include "sim/validation/stack_habits.hpp"

namespace shardwright::sim {
namespace {

constexpr std::int64_t kMostTensorRanks = 64, kMostStages = 64;

std::vector<std::int64_t> tensor_degrees(const TrainingRow& row, const Scenario& parts) {
  if (row.plan.tp) return {*row.plan.tp};
  if (leaves_layers_whole(parts.model, parts.stack)) return {1};
  const std::int64_t most = std::min(
      {parts.cluster.accelerators_per_node(), parts.model.attention.heads, kMostTensorRanks});
  std::vector<std::int64_t> degrees;
  for (std::int64_t tp = 1; tp <= most; tp *= 2)
    if (parts.model.attention.heads % tp == 0) degrees.push_back(tp);
  return degrees;
}

bool cuts_evenly(const ModelSpec& model, std::int64_t stages) {
  const auto divide = [stages](std::int64_t layers) { return layers % stages == 0; };
  return divide(model.layers) || divide(model.layers + 1) || divide(model.layers + 2);
}

std::vector<std::int64_t> pipeline_degrees(const TrainingRow& row, const ModelSpec& model) {
  if (row.plan.pp) return {*row.plan.pp};
  std::vector<std::int64_t> degrees;
  for (std::int64_t pp = 1; pp <= std::min(model.layers, kMostStages); ++pp)
    if (cuts_evenly(model, pp)) degrees.push_back(pp);
  return degrees;
}

}  // namespace

std::vector<TrainingRow> possible_cuts(const TrainingRow& row, const Scenario& parts) {
  std::vector<TrainingRow> cuts;
  const std::int64_t ranks = row.cluster.gpus, cp = row.plan.cp.value_or(1);
  for (const std::int64_t tp : tensor_degrees(row, parts)) {
    for (const std::int64_t pp : pipeline_degrees(row, parts.model)) {
      const std::int64_t others = tp * pp * cp;
      if (ranks % others != 0 || row.plan.dp.value_or(ranks / others) * others != ranks) continue;
      cuts.push_back(row);
      cuts.back().plan.tp = tp;
      cuts.back().plan.pp = pp;
    }
  }
  return cuts;
}

bool leaves_experts_open(const TrainingRow& row, const Scenario& parts) {
  if (!parts.model.moe || row.plan.ep) return false;
  return !shards_by_habit(row, parts.stack) || notes_say_tokens_exchanged(row.notes);
}

std::vector<TrainingRow> possible_expert_cuts(const TrainingRow& row, const Scenario& parts) {
  std::vector<TrainingRow> cuts;
  const std::int64_t experts = parts.model.moe ? parts.model.moe->experts : 1;
  for (std::int64_t ep = 1; ep <= std::min(experts, row.cluster.gpus); ep *= 2) {
    if (experts % ep != 0) continue;
    cuts.push_back(row);
    cuts.back().plan.ep = ep;
  }
  return cuts;
}

}  // namespace shardwright::sim
