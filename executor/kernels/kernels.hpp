// The computations that a decoder's Program is made of, for one device.
//
// Matrices are row-major. Activations, their gradients and the weights that are applied have the
// format `element()`; gradients of weights, optimizer states and statistics have
// `state_element()`. Rows are tokens, those of one sequence after another. All pointers and spans
// are into the device's memory. Calls with a queue return at once where the device runs on its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/op/op.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/kernels/element.hpp"
#include "executor/kernels/queue.hpp"

namespace shardwright::executor {

// An affine map of rows: weight [outputs, inputs]; bias [outputs], or null.
struct LinearShape {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
};

struct NormShape {
  NormKind kind = NormKind::RmsNorm;
  std::int64_t rows = 0, width = 0;
  double epsilon = 1e-5;  // added to the variance inside of the root
};

// Rotary positions (arXiv 2104.09864) of the first `heads` heads of each row. The halves of a
// head's first `rotated` elements make the pairs, as in Hugging Face's Llama.
struct RopeShape {
  std::int64_t rows = 0, row_width = 0;
  std::int64_t heads = 0, head_dim = 0, rotated = 0;
  std::int64_t seq_len = 0;  // row r has the position r mod seq_len
  double theta = 10'000.0;   // base of the angles
};

struct ActivationShape {
  Activation kind = Activation::Silu;
  bool gated = true;
  std::int64_t rows = 0, width = 0;  // of the output; a row of the input has twice as many if gated
};

// The rows of a vocabulary-sized matrix that a rank holds: `first` is the token of row 0, `count`
// rows are tokens, the rest up to `rows` is padding.
struct VocabularyShard {
  std::int64_t first = 0, count = 0, rows = 0;
};

struct EmbeddingShape {
  VocabularyShard vocabulary;
  std::int64_t width = 0, seq_len = 0;
};

struct LossShape {
  VocabularyShard vocabulary;  // columns of the logits
  std::int64_t rows = 0;
};

// AdamW (arXiv 1711.05101) of one step.
struct AdamStep {
  float learning_rate = 0.0F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, weight_decay = 0.0F;
  float clip_norm = 0.0F;  // gradients are scaled to this norm at most; 0: not at all
  std::int64_t step = 1;   // from 1 on: corrects the moments' bias
};

// The arrays that AdamW works on, in the states' format but for `applied`.
struct AdamArrays {
  const void* gradient = nullptr;
  void* weight = nullptr;
  void* first_moment = nullptr;
  void* second_moment = nullptr;
  void* applied = nullptr;  // gets the weight in the activations' format; null: `weight` is applied
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual Element element() const = 0;
  virtual Element state_element() const = 0;
  // Memory of the device, of unspecified content; back to the device with the last owner.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Bytes that this process has taken of the device's memory, its own and the libraries': on a CPU
  // the most so far, on a GPU what it holds now (and where the driver does not tell processes
  // apart, what others on it hold too). 0: not known.
  virtual std::size_t memory_taken() const = 0;
  // From and to the host's memory; nothing that still runs may use the device's side. Return when
  // it is done.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;

  // Make what calls need beside their operands (memory of a queue, tables, plans), so that later
  // calls make nothing: that could wait for the device, which may wait for other ranks.
  virtual void prepare_queue(Queue /*queue*/) {}
  virtual void prepare_rope(const RopeShape& /*shape*/) {}
  virtual void prepare_attention(const AttentionWork& /*work*/, Queue /*queue*/) {}

  // y = x W^T + b
  virtual void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
                      void* y, Queue queue) = 0;
  // dx = dy W
  virtual void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight,
                                     void* dx, Queue queue) = 0;
  // dW += dy^T x, db += the sum of dy's rows
  virtual void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                                      void* dweight, void* dbias, Queue queue) = 0;

  virtual void norm(const NormShape& shape, const void* x, const void* weight, const void* bias,
                    void* y, Queue queue) = 0;
  // dx = the input's gradient, plus `around` unless that is null; adds to dweight and dbias.
  virtual void norm_backward(const NormShape& shape, const void* dy, const void* around,
                             const void* x, const void* weight, void* dx, void* dweight,
                             void* dbias, Queue queue) = 0;

  // In place; `inverse` turns back, which is the backward pass.
  virtual void rope(const RopeShape& shape, bool inverse, void* data, Queue queue) = 0;

  virtual void activation(const ActivationShape& shape, const void* up, void* out, Queue queue) = 0;
  virtual void activation_backward(const ActivationShape& shape, const void* up, const void* dout,
                                   void* dup, Queue queue) = 0;

  virtual void add(std::int64_t elements, const void* a, const void* b, void* sum, Queue queue) = 0;

  // Causal softmax attention with scores over sqrt(qk_head_dim). A row of `qkv` holds the heads'
  // queries, then keys, then values. `statistics` [heads, rows] is the log of each softmax's sum.
  virtual void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                         Queue queue) = 0;
  virtual void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                                  const void* statistics, const void* dout, void* dqkv,
                                  Queue queue) = 0;

  // Rows of tokens that the rank does not hold are zero. `positions` [.., width] is added unless
  // null.
  virtual void embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                         const void* table, const void* positions, void* out, Queue queue) = 0;
  virtual void embedding_backward(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                                  const void* gradient, void* dtable, void* dpositions,
                                  Queue queue) = 0;

  // statistics [3, rows]: maximum of the rank's logits, sum of the exponentials relative to it,
  // logit of the target (0 where another rank holds it).
  virtual void loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                               const void* logits, void* statistics, Queue queue) = 0;
  // Rescales the sums of `statistics` from this rank's maxima to the maxima over all ranks.
  virtual void loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                            Queue queue) = 0;
  // Softmax of the rank's columns from the statistics over all of them; adds the sum of the rows'
  // cross-entropies to `loss`.
  virtual void loss_probabilities(const LossShape& shape, const void* logits,
                                  const void* statistics, void* probabilities, double* loss,
                                  Queue queue) = 0;
  // dlogits = (probabilities - 1 at the target) * scale
  virtual void loss_backward(const LossShape& shape, std::span<const std::int32_t> targets,
                             float scale, const void* probabilities, void* dlogits,
                             Queue queue) = 0;

  // Adds the sum of the squares to `sum`.
  virtual void add_squares(std::int64_t elements, const void* gradient, double* sum,
                           Queue queue) = 0;
  // Adds how many elements are infinite or NaN to `count`.
  virtual void count_not_finite(std::int64_t elements, Element format, const void* data,
                                double* count, Queue queue) = 0;
  // `gradient_squares`: sum of the squares of all gradients, which their norm is the root of. Where
  // it is not finite nothing is changed: the step can be repeated to find out why.
  virtual void adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
                     const double* gradient_squares, Queue queue) = 0;
  virtual void zero(void* data, std::size_t bytes, Queue queue) = 0;
  // Within the device.
  virtual void copy(void* to, const void* from, std::size_t bytes, Queue queue) = 0;
};

}  // namespace shardwright::executor
