// The layers of a model, found as what repeats in a traced step, and its shape.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// The longest stretch of a step, up to its first backward attention, in which the same matrix products and attentions
// repeat: at least two of them, at least three times.
struct LayerStructure {
  std::int64_t layers = 0;
  // Means over the layers: all kernels from the first product of a layer to that of the next one.
  double kernels = 0.0;
  Seconds time{};
  // Products and attentions of a layer.
  std::int64_t anchors = 0;
  // The n and k of a layer's products, in order, where the trace has shapes.
  std::vector<std::pair<std::int64_t, std::int64_t>> products;
  // Rows that all products of a layer share; the size that occurs most often among the others; and
  // the largest size that a product outside of the layers shares with it: the vocabulary.
  std::optional<std::int64_t> tokens, hidden, vocabulary;
};

// Returns the layers of the first whole step, or nothing if no kernels repeat.
std::optional<LayerStructure> layer_structure(const Trace& trace);

nlohmann::ordered_json to_json(const LayerStructure& structure);

}  // namespace shardwright::calibration
