// Megatron-LM's arguments of the kinds of a model's layers: patterns of hybrid models and linear
// attention.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "planner/export/argument_list.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// A Python list expression with a flag for each layer: "([0]*3+[1]*58)".
template <class Has>
std::string layer_flags_text(std::int64_t layers, Has has) {
  std::vector<std::string> runs;
  for (std::int64_t layer = 0; layer < layers;) {
    std::int64_t end = layer + 1;
    while (end < layers && has(end) == has(layer)) ++end;
    runs.push_back(fmt::format("[{}]*{}", has(layer) ? 1 : 0, end - layer));
    layer = end;
  }
  return fmt::format("({})", fmt::join(runs, "+"));
}

// True of models whose layers have one branch each, which Megatron-LM's pretrain_mamba.py trains.
// Their pattern also states the chunks of the pipeline and the prediction layers.
bool is_hybrid(const ModelSpec& model);

// Adds nothing for models with attention in all layers.
void add_layer_pattern(const Scenario& scenario, ArgumentList& arguments, PlanExport& result);

}  // namespace shardwright::planner
