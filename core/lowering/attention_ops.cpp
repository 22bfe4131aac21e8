// Attention between its norm and the residual addition: projections, positions, the core, the
// output projection.
//
// Context parallelism wraps the core: a ring passes key/value blocks on while the block at hand is
// used, an all-gather collects them first, Ulysses exchanges sequence for heads before and after.
#include <algorithm>

#include "core/lowering/layer_writer.hpp"

namespace shardwright {
namespace {

// Share of the q x kv score matrix below the causal diagonal, and within a sliding window of
// `window` tokens where there is one.
double score_share(std::int64_t window, std::int64_t seq_len) {
  constexpr double kCausal = 0.5;
  if (window == 0 || window >= seq_len) return kCausal;
  const double seen = static_cast<double>(window) / static_cast<double>(seq_len);
  return seen * (1.0 - seen / 2.0);
}

}  // namespace

Linear LayerWriter::attention_output() {
  const std::int64_t width = shape_.heads * shape_.value_dim;
  const TensorRef core_out =
      activation("attention.core.out", static_cast<double>(shape_.tokens * width));
  return {"attention.out", LinearSplit::Row, width, shape_.hidden, core_out, {}};
}

void LayerWriter::attention_forward(std::int64_t layer, TensorRef out) {
  projections_forward();
  attention_core_forward(layer, phase_);
  Linear output_projection = attention_output();
  output_projection.output = out;
  linear_forward(output_projection);
}

void LayerWriter::attention_backward(std::int64_t layer, TensorRef out_gradient) {
  const Linear output_projection = attention_output();
  if (plan_.recompute == RecomputePolicy::Selective && !stack_.flash_attention)
    attention_core_forward(layer, Phase::Recompute);
  linear_backward(output_projection, out_gradient,
                  temporary("attention.core.gradient",
                            static_cast<double>(shape_.tokens * output_projection.in)));
  attention_core_backward(layer);
  projections_backward();
}

void LayerWriter::attention_core_forward(std::int64_t layer, Phase phase) {
  const double share = score_share(model_.sliding_window_of(layer), plan_.seq_len);
  if (!stack_.flash_attention) {
    unfused_forward(phase);
  } else if (plan_.cp > 1 && plan_.context_parallel == ContextParallelKind::Ring) {
    ring_attention(share, phase, false);
  } else {
    fused_attention(share, phase, false);
  }
}

void LayerWriter::attention_core_backward(std::int64_t layer) {
  const double share = score_share(model_.sliding_window_of(layer), plan_.seq_len);
  if (!stack_.flash_attention) {
    unfused_backward();
  } else if (plan_.cp > 1 && plan_.context_parallel == ContextParallelKind::Ring) {
    ring_attention(share, Phase::BackwardInput, true);
  } else {
    fused_attention(share, Phase::BackwardInput, true);
  }
}

}  // namespace shardwright
