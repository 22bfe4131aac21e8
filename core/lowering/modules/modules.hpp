// The modules of a transformer, as one rank computes them. Each has a function that writes the ops
// of its forward pass and one for the backward pass, in the file of its name.
//
// Ops are written in the order in which the stack issues them. Tensors that a module hands over to
// another one are arguments; a module's own tensors have names, by which its backward pass finds
// what its forward pass kept. The writer's phase is Forward, Recompute or BackwardInput.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/lowering/modules/block_writer.hpp"

namespace shardwright {

// linear.cpp

// The way a weight is split over the tensor-parallel ranks.
enum class LinearSplit : std::uint8_t { Column, Row, None };

// A linear layer. `in` and `out` are the widths of the rank's share.
struct Linear {
  std::string name;
  LinearSplit split = LinearSplit::Column;
  std::int64_t in = 0, out = 0;
  TensorRef input, output;
  std::vector<std::string> parameters;
  // The rank's widths of the parts of the output, if several parameters are stacked.
  std::vector<std::int64_t> widths = {};
};

void write_linear_forward(const BlockWriter& w, const Linear& linear);
// `adds`: the GEMM adds to an input gradient that another op has written. This is not possible for
// a column-split layer, whose collective writes the whole gradient.
void write_linear_backward(const BlockWriter& w, const Linear& linear, TensorRef output_gradient,
                           TensorRef input_gradient, bool adds = false);
// Writes the product `work` with the layer's weights, which it converts first if they lie in 4
// bits.
void write_linear_product(const BlockWriter& w, const Linear& linear, const std::string& name,
                          const GemmWork& work, std::vector<TensorRef> reads, TensorRef product);
// Converts an operand of a GEMM into FP8 or NVFP4, if the plan has one of them, along its rows and
// along its columns, because the weight gradient needs the transposed operand.
void write_cast(const BlockWriter& w, const std::string& name, double elements, TensorRef tensor);
// An output gradient as the GEMM of the input gradient reads it, and as that of the weight gradient
// does.
struct GradientOperands {
  TensorRef by_rows, by_columns;
};
// Casts an output gradient. Stacks that keep the inputs of GEMMs in FP8 drop the gradient
// afterwards, so that a weight gradient that the schedule defers holds it in FP8 alone; others keep
// it as it is.
GradientOperands write_gradient_cast(const BlockWriter& w, const std::string& name, double elements,
                                     TensorRef gradient);
// Gathers the shares of the tensor-parallel ranks into the tensor `gathered_name`.
TensorRef write_tensor_gather(const BlockWriter& w, const std::string& name,
                              const std::string& gathered_name, double elements, TensorRef share);
// Adds up the partial results of the tensor-parallel ranks. With sequence parallelism each rank
// keeps the sums of its own tokens. The name gets the kind of the collective as a suffix.
void write_tensor_reduction(const BlockWriter& w, const std::string& name, double elements,
                            TensorRef partial, TensorRef sum);

// adapters.cpp

// A projection as its adapters see it: `rows` tokens, or those of `experts` at once.
struct Adapted {
  const Linear& projection;
  std::int64_t rows = 0;
  std::int64_t experts = 1;
};
bool has_adapters(const BlockWriter& w, const std::vector<std::string>& parameters);
// Writes into `output` the frozen weights' product of `input` and what the adapters add to it.
void write_adapters_forward(const BlockWriter& w, const Adapted& adapted, TensorRef input,
                            TensorRef product, TensorRef output);
// Adds their part to `input_gradient`. What the gradients of the adapters' weights read lives on
// until write_adapter_gradients().
void write_adapters_backward(const BlockWriter& w, const Adapted& adapted,
                             TensorRef output_gradient, TensorRef input_gradient);
void write_adapter_gradients(const BlockWriter& w, const Adapted& adapted, TensorRef input);
// Converts frozen weights of 4 bits, `elements` on this rank, for the product to come; returns the
// tensor that the product reads besides.
std::vector<TensorRef> write_dequantization(const BlockWriter& w, const std::string& name,
                                            double elements,
                                            const std::vector<std::string>& parameters);

// norm.cpp

struct Norm {
  std::string name, parameter;
};
void write_norm_forward(const BlockWriter& w, const Norm& norm, TensorRef in, TensorRef out);
// Adds up `gradients`: that of the norm's output, and those of the residual connections around it.
void write_norm_backward(const BlockWriter& w, const Norm& norm, TensorRef in,
                         const std::vector<TensorRef>& gradients, TensorRef in_gradient);

// attention.cpp

void write_attention_forward(const BlockWriter& w, std::int64_t layer, TensorRef in, TensorRef out);
void write_attention_backward(const BlockWriter& w, std::int64_t layer, TensorRef in,
                              TensorRef out_gradient, TensorRef in_gradient);

// attention_projections.cpp

// The projections to queries, keys and values, with the encoding of positions.
void write_projections_forward(const BlockWriter& w, TensorRef in);
void write_projections_backward(const BlockWriter& w, TensorRef in, TensorRef in_gradient);
// Goes from MLA's bottlenecks to queries, keys and values, where attention has them.
void write_latent_up_forward(const BlockWriter& w, TensorRef in);

// linear_attention.cpp

// A batch of matrix products of the recurrence of linear attention, computed chunk by chunk.
struct LinearAttentionProduct {
  std::string name;
  GemmWork work;
  // True if the states at the ends of the chunks follow from it.
  bool makes_states = false;
};
// The products of a forward pass over `tokens` tokens of sequences of `seq_len`, for so many heads
// of values and of keys. Sources: arXiv 2405.21060, section 6 (Mamba-2), and arXiv 2412.06464,
// section 3.3 (the delta rule in its WY form).
std::vector<LinearAttentionProduct> linear_attention_products(const LinearAttentionSpec& linear,
                                                              std::int64_t heads,
                                                              std::int64_t key_heads,
                                                              std::int64_t tokens,
                                                              std::int64_t seq_len);
void write_linear_attention_forward(const BlockWriter& w, TensorRef in, TensorRef out);
void write_linear_attention_backward(const BlockWriter& w, TensorRef in, TensorRef out_gradient,
                                     TensorRef in_gradient);

// feed_forward.cpp

// A dense feed-forward block is written in two halves, which meet behind the activation function:
// shared experts run one half beside each exchange of tokens. In the backward pass the second half
// comes first.
struct FeedForward {
  std::string name;
  Linear up, down;
};
FeedForward feed_forward(const BlockWriter& w, const std::string& name,
                         const std::string& parameters, std::int64_t ffn_hidden, TensorRef in);
void write_up_forward(const BlockWriter& w, const FeedForward& block);
void write_down_forward(const BlockWriter& w, FeedForward block, TensorRef out);
void write_down_backward(const BlockWriter& w, const FeedForward& block, TensorRef out_gradient);
void write_up_backward(const BlockWriter& w, const FeedForward& block, TensorRef in_gradient);
// The parameters of the projection up: gate and up, or up alone.
std::vector<std::string> up_parameters(const BlockWriter& w, const std::string& prefix);
// Their widths, see Linear, where each has `width`.
std::vector<std::int64_t> up_widths(const BlockWriter& w, std::int64_t width);
// Computes the input of the second half from the output of the first projection.
void write_activation_again(const BlockWriter& w, const FeedForward& block);
// `elements` of the output; a gated activation function reads twice as many.
void write_activation_forward(const BlockWriter& w, const std::string& name, double elements,
                              TensorRef up, TensorRef out);
void write_activation_backward(const BlockWriter& w, const std::string& name, double elements,
                               TensorRef up, TensorRef out_gradient, TensorRef up_gradient);

// shared_experts.cpp

// Their two halves, see FeedForward. The second ones return the output, and the gradient of the
// input.
void write_shared_up_forward(const BlockWriter& w, TensorRef in);
TensorRef write_shared_down_forward(const BlockWriter& w, TensorRef in);
void write_shared_down_backward(const BlockWriter& w, TensorRef in, TensorRef out_gradient);
TensorRef write_shared_up_backward(const BlockWriter& w, TensorRef in);

// moe.cpp

void write_moe_forward(const BlockWriter& w, TensorRef in, TensorRef out);
void write_moe_backward(const BlockWriter& w, TensorRef in, TensorRef out_gradient,
                        TensorRef in_gradient);

// transformer_layer.cpp

// The tensors through which a layer is connected to its neighbours.
struct LayerEnds {
  TensorRef in, out, in_gradient, out_gradient;
};
// `layer` (0-based) decides on the branches: attention, full or windowed, linear attention or none;
// a dense feed-forward block, experts or none.
void write_layer_forward(const BlockWriter& w, std::int64_t layer, const LayerEnds& ends);
// With selective recomputation each module runs again right before its backward pass.
void write_layer_backward(const BlockWriter& w, std::int64_t layer, const LayerEnds& ends);

// embedding.cpp

void write_embedding_forward(const BlockWriter& w, TensorRef out);
void write_embedding_backward(const BlockWriter& w, TensorRef out, TensorRef out_gradient);
// The lookup alone, as the embedding and multi-token prediction do it.
void write_lookup_forward(const BlockWriter& w, const std::string& name,
                          const std::vector<std::string>& parameters, TensorRef out);
void write_lookup_backward(const BlockWriter& w, const std::string& name,
                           const std::vector<std::string>& parameters, TensorRef out_gradient);

// head.cpp

// Final norm, output head and loss, and multi-token prediction. `ends` are those of the layer
// after the last one, of which the head reads `in` and writes `in_gradient`.
void write_head_forward(const BlockWriter& w, const LayerEnds& ends);
// `recomputes`: the layers that predict further tokens run their forward pass again.
void write_head_backward(const BlockWriter& w, const LayerEnds& ends, bool recomputes);
// Output head and loss alone.
void write_loss_forward(const BlockWriter& w, TensorRef in);
void write_loss_backward(const BlockWriter& w, TensorRef in, TensorRef in_gradient);

// mtp.cpp

// Predicts one more token from the hidden state of the depth before, and returns its own.
TensorRef write_mtp_forward(const BlockWriter& w, std::int64_t depth, TensorRef previous);
// `gradients` are those of this depth's hidden state that the depth after it has computed. Returns
// the gradient of the hidden state of the depth before.
TensorRef write_mtp_backward(const BlockWriter& w, std::int64_t depth, TensorRef model_out,
                             const std::vector<TensorRef>& gradients, bool recomputes);

}  // namespace shardwright
