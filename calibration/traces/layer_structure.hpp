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

// A layer that has some of the products and attentions of the others.
struct IncompleteLayer {
  // Among all layers, from 1.
  std::int64_t number = 0;
  std::int64_t anchors = 0;
  // True if the others have attention, and it does not.
  bool lacks_attention = false;
};

// What repeats in the first forward pass of a step, which ends at its first backward attention or
// at a message to another stage: the same matrix products and attentions, at least two of them, at
// least three times in a row.
struct LayerStructure {
  // All layers, those that lack something among them.
  std::int64_t layers = 0;
  std::vector<IncompleteLayer> incomplete;
  // Means over the layers that follow each other without a gap. A layer lasts from its first
  // product until the next layer's first product, with all kernels between them.
  double kernels = 0.0;
  Seconds time{};
  // Products and attentions of a layer.
  std::int64_t anchors = 0;
  // Products and attentions of the pass, and those of them that the layers have.
  std::int64_t anchors_of_pass = 0, anchors_of_layers = 0;
  // False if the trace tells no shapes, so that products count as equal by the names of their
  // kernels.
  bool by_shape = false;
  // The n and k of a layer's products, in order, where the trace has shapes.
  std::vector<std::pair<std::int64_t, std::int64_t>> products;
  // Rows that all products of a layer share; the size that occurs most often among the others; and
  // the largest size that a product outside of the layers shares with it: the vocabulary.
  std::optional<std::int64_t> tokens, hidden, vocabulary;
};

// Returns the layers of the first whole step, or nothing if less than half of its pass's products
// and attentions repeat.
std::optional<LayerStructure> layer_structure(const Trace& trace);

nlohmann::ordered_json to_json(const LayerStructure& structure);

}  // namespace shardwright::calibration
