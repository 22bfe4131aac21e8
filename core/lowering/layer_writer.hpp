// Writes the ops of a transformer layer on one rank, forward and backward.
//
// Each function appends ops that say what they read and write; the order is the order in which the
// stack issues them. Backward ops of weight gradients carry Phase::BackwardWeight, so that
// zero-bubble schedules can put them elsewhere.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lowering/block_builder.hpp"
#include "core/lowering/shard_shape.hpp"

namespace shardwright {

// How a linear layer's weight is split over the tensor-parallel ranks.
enum class LinearSplit : std::uint8_t { Column, Row, None };

// A linear layer as one rank sees it: `in` and `out` are the rank's share.
struct Linear {
  std::string name;
  LinearSplit split = LinearSplit::Column;
  std::int64_t in = 0, out = 0;
  TensorRef input, output;
};

class LayerWriter {
 public:
  LayerWriter(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
              TensorTable& tensors);

  // The whole layer `layer` (0-based; it decides between dense and sparse, full and windowed
  // attention). Reads input() and writes output().
  void forward(std::int64_t layer);
  // Reads output_gradient() and writes input_gradient(). Selective recomputation runs inside of it.
  void backward(std::int64_t layer);

  // The token embedding: writes input() of the first layer.
  void embedding_forward();
  void embedding_backward();
  // Final norm, output head and loss, and the layers that predict further tokens: reads input() as
  // the call's layer's, writes input_gradient().
  void head_forward();
  // `recomputes`: runs the forward pass of these layers again.
  void head_backward(bool recomputes);

  // The ops written since the last call of this function.
  std::vector<Op> take();
  // Phase of the ops to come: Forward, or Recompute for the second run of a forward pass.
  void set_phase(Phase phase) { phase_ = phase; }

  TensorRef input() const { return ends_.in; }
  TensorRef output() const { return ends_.out; }
  TensorRef input_gradient() const { return ends_.in_gradient; }
  TensorRef output_gradient() const { return ends_.out_gradient; }
  // FSDP only: the gathered parameters and the unsharded gradient of a layer of the kind written
  // last.
  TensorRef parameters() const { return {parameters_, 0}; }
  TensorRef parameter_gradient() const { return {parameter_gradient_, 0}; }
  // Sizes of these two for a layer with this many parameters on the rank (with none there is
  // nothing to gather); call before writing the layer.
  void use_gathered_parameters(std::string_view kind, double parameters);
  bool gathers_parameters() const { return gathers_parameters_; }

 private:
  // The tensors that a layer hands over.
  struct LayerEnds {
    TensorRef in, out, in_gradient, out_gradient;
  };

  // layer_ops.cpp
  void norm_forward(const std::string& name, TensorRef in, TensorRef out);
  // `gradients` are added up: that of the output and those that went around the norm.
  void norm_backward(const std::string& name, TensorRef in, const std::vector<TensorRef>& gradients,
                     TensorRef in_gradient);
  // Where a block ("attention" or "ffn") writes to, and what becomes of that before it is added to
  // the residual stream: Gemma 2 has a norm there. And the gradient on its way back, through
  // dropout and that norm.
  TensorRef branch_output(const std::string& branch);
  TensorRef branch_forward(const std::string& branch, TensorRef out);
  TensorRef branch_backward(const std::string& branch, TensorRef gradient);
  void residual_forward(const std::string& name, TensorRef branch, TensorRef skip, TensorRef out);
  void residual_backward(const std::string& name, TensorRef out_gradient,
                         TensorRef branch_gradient);
  TensorRef dropout_mask(const std::string& name);

  // embedding_ops.cpp
  void lookup_forward(const std::string& name, TensorRef out);
  void lookup_backward(const std::string& name, TensorRef out_gradient);
  TensorRef embedding_norm_input();

  // head_ops.cpp
  struct LossTensors {
    double elements = 0.0;  // logits that the loss of a rank sees
    double copy = 1.0;      // size of what the loss keeps over that of the logits
    TensorRef shard;        // the rank's output of the head
    TensorRef logits, probabilities, gradient;
  };
  bool gathers_logits() const;
  LossTensors loss_tensors();
  Precision head_format() const;
  Linear output_head(TensorRef in);
  // Output head and loss on `in`.
  void loss_forward(TensorRef in);
  void loss_backward(TensorRef in, TensorRef in_gradient);
  TensorRef head_input();

  // mtp_ops.cpp
  class MtpScope;
  struct MtpTensors {
    TensorRef embedding, joined, normed;
  };
  MtpTensors mtp_tensors();
  Linear mtp_join(const MtpTensors& mtp, TensorRef out) const;
  // Predicts one more token from the hidden state `previous`; returns that of this depth.
  TensorRef mtp_forward(std::int64_t depth, TensorRef previous);
  // `gradients`: of this depth's hidden state, from the depth after it. Returns that of the one
  // before.
  TensorRef mtp_backward(std::int64_t depth, const std::vector<TensorRef>& gradients,
                         bool recomputes);
  TensorRef mtp_output(std::int64_t depth);

  // linear_ops.cpp
  void linear_forward(const Linear& linear);
  // `adds`: the input gradient already holds a part, to which this one is added (not for a column
  // split over ranks, whose collective writes the whole).
  void linear_backward(const Linear& linear, TensorRef output_gradient, TensorRef input_gradient,
                       bool adds = false);
  // With FP8 or NVFP4 GEMMs: reads the tensor and writes it in that format, along the rows and
  // along the columns (the weight gradient needs the transposed one).
  void cast_operand(const std::string& name, Phase phase, double elements, TensorRef tensor);
  void weight_gradient(const Linear& linear, TensorRef output_gradient, TensorRef input,
                       std::int64_t tokens);

  // attention_ops.cpp
  // From "attention.norm.out" to `out`, and back to "attention.norm.out.gradient".
  void attention_forward(std::int64_t layer, TensorRef out);
  void attention_backward(std::int64_t layer, TensorRef out_gradient);
  // The part between the projections; `recompute` runs it forward a second time, inside of the
  // backward pass.
  void attention_core_forward(std::int64_t layer, Phase phase);
  void attention_core_backward(std::int64_t layer);
  Linear attention_output();

  // attention_projections.cpp
  void projections_forward();
  void projections_backward();
  void latent_projections_forward();  // MLA
  void latent_projections_backward();
  struct LatentShape {
    std::int64_t q_rank, kv_rank, q_width, kv_width;
    TensorRef in, q_down, q_normed, kv_down, kv_normed, qkv, qkv_gradient;
  };
  LatentShape latent_shape();
  // The rotary part of the key, which all heads share: each tensor-parallel rank needs that of all
  // tokens, and its gradient is the sum over the heads of all ranks. The latter directly after the
  // op that computes it.
  TensorRef gather_rotary_key(const LatentShape& latent);
  std::optional<TensorRef> reduce_rotary_key_gradient();
  void latent_queries_backward(const LatentShape& latent, TensorRef in_gradient);
  // Positions (and Qwen3's norm of queries and keys), in place.
  void rotate_forward(const std::string& name, double width, TensorRef tensor);
  void rotate_backward(const std::string& name, double width, TensorRef gradient);

  // attention_kernels.cpp
  void fused_attention(double score_share, Phase phase, bool backward);
  void ring_attention(double score_share, Phase phase, bool backward);
  // Products with the score matrix in memory know no ring: keys and values are gathered first.
  TensorRef gather_keys_and_values(Phase phase);
  void unfused_forward(Phase phase);
  void unfused_backward();
  AttentionWork attention_work(double score_share, bool backward) const;
  struct CoreTensors {
    double kv_elements = 0.0;
    TensorRef qkv, qkv_gradient, out, out_gradient, statistics;
  };
  CoreTensors core_tensors();
  struct UnfusedTensors {
    double elements = 0.0;
    TensorRef scores, probabilities, dropped, mask, gradient;
  };
  UnfusedTensors unfused_tensors();

  // feed_forward_ops.cpp
  struct DenseShape {
    std::string name;
    std::int64_t width = 0, up_width = 0;
    TensorRef up, activated;
  };
  DenseShape dense_shape(const std::string& name, std::int64_t ffn);
  // The block in two halves: to the activation, and from it. Backward the second half comes first.
  void dense_up_forward(const DenseShape& dense, TensorRef in);
  void dense_down_forward(const DenseShape& dense, TensorRef out);
  void dense_down_backward(const DenseShape& dense, TensorRef out_gradient);
  void dense_up_backward(const DenseShape& dense, TensorRef in, TensorRef in_gradient);
  void activation_forward(const std::string& name, double rows, std::int64_t ffn, TensorRef up,
                          TensorRef out);
  void activation_backward(const std::string& name, double rows, std::int64_t ffn, TensorRef up,
                           TensorRef out_gradient, TensorRef up_gradient);

  // moe_ops.cpp
  void sparse_forward(TensorRef in, TensorRef out);
  void sparse_backward(TensorRef in, TensorRef out_gradient, TensorRef in_gradient);
  struct ExpertShape {
    std::int64_t rows = 0;         // of tokens x top_k that the rank's experts work on
    std::int64_t routed_rows = 0;  // of tokens x top_k that the rank sends out, padding included
    std::int64_t width = 0, up_width = 0, local_experts = 0;
    bool moves = false;  // tokens to other ranks
    double load = 1.0;   // see Op
    TensorRef permuted, received, up, activated;
  };
  ExpertShape expert_shape();
  void on_expert_tokens(std::size_t first, const ExpertShape& expert);
  TensorRef router_scores();
  void route_forward(TensorRef in);
  // Adds the router's part to `in_gradient`.
  void route_backward(TensorRef in, TensorRef in_gradient);
  // From the tokens that a rank received to what its experts make of them.
  void experts_forward(const ExpertShape& expert, TensorRef out);
  void experts_backward(const ExpertShape& expert, TensorRef out_gradient, TensorRef in_gradient);
  // Of a weight [outputs, hidden] that each rank applies to its own tokens.
  void weight_gradient_of_replicated(const std::string& name, std::int64_t outputs,
                                     TensorRef output_gradient, TensorRef input);
  void expert_gemm(const std::string& name, Phase phase, const ExpertShape& expert, std::int64_t n,
                   std::int64_t k, TensorRef in, TensorRef out);
  void expert_weight_gradient(const std::string& name, const ExpertShape& expert, std::int64_t n,
                              std::int64_t k, TensorRef in, TensorRef out_gradient);
  void sort_received(const std::string& name, Phase phase, const ExpertShape& expert,
                     TensorRef rows);
  void limit_activation(Phase phase, const ExpertShape& expert, TensorRef up);
  void add_expert_bias(Phase phase, const ExpertShape& expert, TensorRef rows);
  // Tokens to the ranks of their experts, or back.
  void exchange_tokens(const std::string& name, Phase phase, const ExpertShape& expert,
                       bool to_experts, TensorRef in, TensorRef out);

  // shared_expert_ops.cpp
  // Shared experts run beside the exchange of tokens; otherwise before it.
  bool overlaps_exchange() const;
  DenseShape shared_shape();
  TensorRef shared_output();
  TensorRef shared_input_gradient();
  TensorRef ungated_output();
  TensorRef gate_value();
  TensorRef gate_gradient();
  void shared_up_forward(TensorRef in);
  void shared_down_forward();
  void shared_down_backward(TensorRef out_gradient);
  void shared_up_backward(TensorRef in);

  // op_parameters.cpp
  // Of an op with this name, without `prefix_`.
  std::vector<std::string> parameters_of(const std::string& name, OpKind kind) const;

  // op_writing.cpp
  Op& append(const std::string& name, OpKind kind, Phase phase, std::vector<TensorRef> reads,
             std::vector<TensorRef> writes);
  void gemm(const std::string& name, Phase phase, GemmWork work, std::vector<TensorRef> reads,
            std::vector<TensorRef> writes);
  // Elements are read and written in the activations' format.
  void memory_op(const std::string& name, OpKind kind, Phase phase, double elements_read,
                 double elements_written, std::vector<TensorRef> reads,
                 std::vector<TensorRef> writes, std::int64_t kernels = 1);
  void collective(const std::string& name, OpKind kind, Group group, Phase phase, double bytes,
                  std::vector<TensorRef> reads, std::vector<TensorRef> writes);
  void read_parameters(Op& op) const;
  void accumulate_gradient(const std::string& name, double parameters, TensorRef gradient);
  // The tensor of this name: `elements` in the activations' format.
  TensorRef activation(std::string_view name, double elements);
  // What an unfused norm keeps for the backward pass besides its input and output.
  TensorRef norm_intermediates(const std::string& name);
  // An activation that only GEMMs read again: stacks that multiply in FP8 may keep it as such.
  TensorRef gemm_input(std::string_view name, double elements);
  TensorRef temporary(std::string_view name, double elements);
  TensorRef bytes_tensor(std::string_view name, MemoryCategory category, double bytes);

  const ModelSpec& model_;
  const Plan& plan_;
  const StackSpec& stack_;
  TensorTable& tensors_;
  ShardShape shape_;
  Precision format_;  // that is multiplied in
  Phase phase_ = Phase::Forward;
  std::vector<Op> ops_;
  std::int64_t mtp_layers_ = 0;  // that are trained
  std::string prefix_;           // of the names of ops and tensors
  LayerEnds ends_;
  TensorId parameters_ = 0;
  TensorId parameter_gradient_ = 0;
  bool gathers_parameters_ = false;
};

}  // namespace shardwright
