// The computations of a decoder's Program on one device.
//
// Matrices are row-major. Activations, their gradients and the applied weights have the format
// `element()`; gradients of weights, optimizer states and statistics have `state_element()`. Rows
// are tokens, one sequence after another. All pointers and spans refer to device memory. Calls with
// a queue return at once if the device runs asynchronously.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numbers>
#include <optional>
#include <span>

#include "core/base/error.hpp"
#include "core/op/op.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/data/sequence_part.hpp"
#include "executor/kernels/element.hpp"

namespace shardwright::executor {

// An affine map of rows: weight [outputs, inputs]; bias [outputs] or null.
struct LinearShape {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  // Elements from one row of the outputs to the next, on CPUs alone; 0 stands for `outputs`.
  std::int64_t output_width = 0;
};

struct NormShape {
  NormKind kind = NormKind::RmsNorm;
  std::int64_t rows = 0, width = 0;
  // Added to the variance before the root.
  double epsilon = 1e-5;
  // Elements from one row of the inputs to the next, on CPUs alone; 0 stands for `width`.
  std::int64_t input_width = 0;
};

// Some heads of rows. The widths are the elements from those of one row to those of the next, in
// place and in a copy of the heads before a norm.
struct HeadNormShape {
  std::int64_t rows = 0, heads = 0, head_dim = 0;
  std::int64_t row_width = 0, before_width = 0;
  double epsilon = 1e-5;
};

// The root of the factor by which YaRN increases the scores of attention, weighted by `mscale`
// (arXiv 2309.00071, equation 22; `yarn_get_mscale` of DeepSeek-V2's modeling_deepseek.py).
inline double yarn_magnitude(const RopeScalingSpec& scaling, double mscale) {
  return scaling.factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(scaling.factor) + 1.0;
}

// Rotary positions (arXiv 2104.09864) of the first `heads` heads of each row. Element i of a head's
// first `rotated` elements pairs with element i + rotated / 2, as in Hugging Face's Llama, or where
// pairs are interleaved element 2i with element 2i + 1, as in the paper and DeepSeek's models.
struct RopeShape {
  std::int64_t rows = 0, row_width = 0;
  std::int64_t heads = 0, head_dim = 0, rotated = 0;
  // Row r is the token r mod seq_len of the rank's part of a sequence.
  std::int64_t seq_len = 0;
  double theta = 10'000.0;
  // yarn on CPUs alone.
  std::optional<RopeScalingSpec> scaling{};
  SequencePart part{};
  bool interleaved = false;

  // The angle, in radians, by which pair `i` turns from one position to the next. Llama 3.1 and
  // YaRN divide those of long wavelengths by the factor, and blend the wavelengths between.
  double frequency(std::int64_t i) const {
    const double base =
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotated));
    if (!scaling) return base;
    if (scaling->kind == RopeScalingKind::Linear) return base / scaling->factor;
    const double kept =
        scaling->kind == RopeScalingKind::Yarn ? kept_by_yarn(i) : kept_by_llama(base);
    return base * (kept + (1.0 - kept) / scaling->factor);
  }

  // The length that a rotation gives to vectors of length 1 (YaRN, as in `mscale` of
  // DeepSeek-V2's modeling_deepseek.py).
  double magnitude() const {
    if (!scaling || scaling->kind != RopeScalingKind::Yarn) return 1.0;
    return yarn_magnitude(*scaling, scaling->mscale) /
           yarn_magnitude(*scaling, scaling->mscale_all_dim);
  }

 private:
  // `scale_freqs` of https://github.com/meta-llama/llama-models, models/llama3/model.py.
  double kept_by_llama(double base) const {
    // Turns over the sequences of pre-training.
    const double turns =
        static_cast<double>(scaling->original_max_seq_len) * base / (2.0 * std::numbers::pi);
    return std::clamp(
        (turns - scaling->low_freq_factor) / (scaling->high_freq_factor - scaling->low_freq_factor),
        0.0, 1.0);
  }

  // arXiv 2309.00071, section 3.2, with a ramp over the numbers of the pairs, whose ends are whole
  // (`_compute_yarn_parameters` of transformers, modeling_rope_utils.py).
  double kept_by_yarn(std::int64_t i) const {
    const auto pair_of_turns = [this](double turns) {
      const double wavelength = static_cast<double>(scaling->original_max_seq_len) / turns;
      return static_cast<double>(rotated) * std::log(wavelength / (2.0 * std::numbers::pi)) /
             (2.0 * std::log(theta));
    };
    const double first = std::max(std::floor(pair_of_turns(scaling->beta_fast)), 0.0);
    const double last =
        std::min(std::ceil(pair_of_turns(scaling->beta_slow)), static_cast<double>(rotated - 1));
    constexpr double kLeastRamp = 1e-3;
    const double ramp = last == first ? kLeastRamp : last - first;
    return 1.0 - std::clamp((static_cast<double>(i) - first) / ramp, 0.0, 1.0);
  }
};

struct ActivationShape {
  Activation kind = Activation::Silu;
  bool gated = true;
  // Shape of the output; if gated, input rows are twice as wide.
  std::int64_t rows = 0, width = 0;
};

// A rank's rows of a vocabulary-sized matrix: `first` is the token of row 0, `count` rows are
// tokens, the others up to `rows` are padding.
struct VocabularyShard {
  std::int64_t first = 0, count = 0, rows = 0;
};

struct EmbeddingShape {
  VocabularyShard vocabulary;
  // Tokens of the rank's part of a sequence.
  std::int64_t width = 0, seq_len = 0;
  SequencePart part{};
};

struct LossShape {
  VocabularyShard vocabulary;
  std::int64_t rows = 0;
};

struct RouterShape {
  std::int64_t tokens = 0, experts = 0, top_k = 0;
  // The weights of a token's experts are their probabilities over the sum of these.
  bool renormalised = true;
};

// Products of rows with the matrices of their experts. All matrices of one expert map `inputs` to
// `outputs` elements; their results lie side by side in a row.
struct ExpertProductShape {
  // Rows of each expert, which lie one expert after another.
  std::span<const std::int64_t> rows;
  std::int64_t inputs = 0, outputs = 0;
};

// Parameters of one step of AdamW (arXiv 1711.05101).
struct AdamStep {
  float learning_rate = 0.0F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, weight_decay = 0.0F;
  // Gradients are scaled down to this norm; 0 disables it.
  float clip_norm = 0.0F;
  // Counts from 1; corrects the bias of the moments.
  std::int64_t step = 1;
};

// The arrays of AdamW, all but `applied` in the format of states.
struct AdamArrays {
  const void* gradient = nullptr;
  void* weight = nullptr;
  void* first_moment = nullptr;
  void* second_moment = nullptr;
  // Receives the weight in the format of activations; null if `weight` itself is applied.
  void* applied = nullptr;
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual Element element() const = 0;
  virtual Element state_element() const = 0;
  // Allocates uninitialised device memory, which its last owner releases.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Returns the device memory of this process, including that of libraries: on a CPU the peak, on a
  // GPU the current amount (with that of other processes if the driver does not tell them apart). 0
  // stands for unknown.
  virtual std::size_t memory_used() const = 0;
  // Copy from and to host memory and wait for it. No running work may use the device memory.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;

  // Prepare what calls need besides their operands (workspaces, tables, plans). Preparing it during
  // a later call could wait for the device, and thereby for other ranks.
  virtual void prepare_queue(Queue /*queue*/) {}
  virtual void prepare_rope(const RopeShape& /*shape*/) {}
  virtual void prepare_attention(const AttentionWork& /*work*/, Queue /*queue*/) {}

  // y = x W^T + b
  virtual void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
                      void* y, Queue queue) = 0;
  // dx = dy W
  virtual void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight,
                                     void* dx, Queue queue) = 0;
  // dW += dy^T x, db += column sums of dy
  virtual void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                                      void* dweight, void* dbias, Queue queue) = 0;

  virtual void norm(const NormShape& shape, const void* x, const void* weight, const void* bias,
                    void* y, Queue queue) = 0;
  // dx = gradient of the input, plus `residual` unless that is null; adds to dweight and dbias.
  virtual void norm_backward(const NormShape& shape, const void* dy, const void* residual,
                             const void* x, const void* weight, void* dx, void* dweight,
                             void* dbias, Queue queue) = 0;

  // RMSNorm of each head, in place, which `check_executable` admits on CPUs alone. `before`
  // receives the heads as they were.
  virtual void head_norm(const HeadNormShape& /*shape*/, const void* /*weight*/, void* /*heads*/,
                         void* /*before*/, Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no norm of heads on this device");
  }
  // Turns the gradient of its result into that of its input, in place; adds to dweight.
  virtual void head_norm_backward(const HeadNormShape& /*shape*/, const void* /*before*/,
                                  const void* /*weight*/, void* /*gradient*/, void* /*dweight*/,
                                  Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no norm of heads on this device");
  }

  // Works in place; the backward pass uses `inverse`.
  virtual void rope(const RopeShape& shape, bool inverse, void* data, Queue queue) = 0;

  virtual void activation(const ActivationShape& shape, const void* up, void* out, Queue queue) = 0;
  virtual void activation_backward(const ActivationShape& shape, const void* up, const void* dout,
                                   void* dup, Queue queue) = 0;

  virtual void add(std::int64_t elements, const void* a, const void* b, void* sum, Queue queue) = 0;

  // Causal softmax attention with scores divided by sqrt(qk_head_dim). A row of `qkv` holds the
  // queries of all heads, then keys, then values. `statistics` [heads, rows] is the log of each
  // softmax's sum. On CPUs the backward pass takes `out` as null, too.
  virtual void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                         Queue queue) = 0;
  virtual void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                                  const void* statistics, const void* dout, void* dqkv,
                                  Queue queue) = 0;

  // Writes zero rows for tokens of other ranks. Adds `positions` [.., width] unless it is null.
  virtual void embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                         const void* table, const void* positions, void* out, Queue queue) = 0;
  virtual void embedding_backward(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                                  const void* gradient, void* dtable, void* dpositions,
                                  Queue queue) = 0;

  // statistics [3, rows]: maximum of the rank's logits, sum of exponentials relative to it, logit
  // of the target (0 if another rank holds it).
  virtual void loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                               const void* logits, void* statistics, Queue queue) = 0;
  // Rescales the sums of `statistics` from this rank's maxima to those over all ranks.
  virtual void loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                            Queue queue) = 0;
  // Computes the softmax of the rank's columns from the statistics over all ranks; adds the sum of
  // the rows' cross-entropies to `loss`.
  virtual void loss_probabilities(const LossShape& shape, const void* logits,
                                  const void* statistics, void* probabilities, double* loss,
                                  Queue queue) = 0;
  // dlogits = (probabilities - 1 at the target) * scale
  virtual void loss_backward(const LossShape& shape, std::span<const std::int32_t> targets,
                             float scale, const void* probabilities, void* dlogits,
                             Queue queue) = 0;

  // into += from, both in the format of states.
  virtual void accumulate(std::int64_t elements, const void* from, void* into, Queue queue) = 0;
  // Adds the sum of squares to `sum`.
  virtual void add_squares(std::int64_t elements, const void* gradient, double* sum,
                           Queue queue) = 0;
  // Adds the number of infinite or NaN elements to `count`.
  virtual void count_not_finite(std::int64_t elements, Element format, const void* data,
                                double* count, Queue queue) = 0;
  // `gradient_squares` is the sum of squares of all gradients. If it is not finite, nothing
  // changes, so that the step can be repeated to find the cause.
  virtual void adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
                     const double* gradient_squares, Queue queue) = 0;
  virtual void zero(void* data, std::size_t bytes, Queue queue) = 0;
  // Copies within the device.
  virtual void copy(void* to, const void* from, std::size_t bytes, Queue queue) = 0;

  // Context parallelism, which `check_executable` admits on CPUs alone. The queries are those of
  // the rank's part of each sequence, the keys and values those of whole sequences. `gathered` has
  // a row of keys and values for each token, the tokens of one context-parallel rank after those of
  // another. `dq` is [rows, queries of all heads]; `dgathered` has the shape of `gathered`.
  virtual void context_attention(const AttentionWork& /*work*/, SequencePart /*part*/,
                                 const void* /*qkv*/, const void* /*gathered*/, void* /*out*/,
                                 void* /*statistics*/, Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no context parallelism on this device");
  }
  virtual void context_attention_backward(const AttentionWork& /*work*/, SequencePart /*part*/,
                                          const void* /*qkv*/, const void* /*gathered*/,
                                          const void* /*out*/, const void* /*statistics*/,
                                          const void* /*dout*/, void* /*dq*/, void* /*dgathered*/,
                                          Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no context parallelism on this device");
  }
  // Attention of a ring over the keys and values of one rank, whose part of each sequence is
  // `owner`. `block` has a row of them for each token. It is null in the first step, whose keys and
  // values lie in `qkv`; a query of this step sees a key. The other steps add to `out` and
  // `statistics`, of which these are the log of the sum so far.
  virtual void ring_attention(const AttentionWork& /*work*/, SequencePart /*part*/,
                              SequencePart /*owner*/, const void* /*qkv*/, const void* /*block*/,
                              void* /*out*/, void* /*statistics*/, Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no context parallelism on this device");
  }
  // Here the first step need not be that of the rank's own keys. The others add to `dqkv`. `dblock`
  // receives the gradients of keys and values; where it is null, they are added to those in `dqkv`.
  virtual void ring_attention_backward(const AttentionWork& /*work*/, SequencePart /*part*/,
                                       SequencePart /*owner*/, const void* /*qkv*/,
                                       const void* /*block*/, const void* /*out*/,
                                       const void* /*statistics*/, const void* /*dout*/,
                                       void* /*dqkv*/, void* /*dblock*/, Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no context parallelism on this device");
  }
  // Copies the first `columns` of rows of activations within the device; widths are those of a row
  // in elements.
  virtual void copy_columns(std::int64_t /*rows*/, std::int64_t /*columns*/, const void* /*from*/,
                            std::int64_t /*from_width*/, void* /*to*/, std::int64_t /*to_width*/,
                            Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no context parallelism on this device");
  }
  // Multiplies the first `columns` of rows of activations.
  virtual void scale_columns(std::int64_t /*rows*/, std::int64_t /*columns*/, double /*factor*/,
                             void* /*data*/, std::int64_t /*width*/, Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no latent attention on this device");
  }
  // Adds them instead of copying them.
  virtual void add_columns(std::int64_t /*rows*/, std::int64_t /*columns*/, const void* /*from*/,
                           std::int64_t /*from_width*/, void* /*to*/, std::int64_t /*to_width*/,
                           Queue /*queue*/) {
    SHARDWRIGHT_CHECK(false, "no context parallelism on this device");
  }

  // Mixtures of experts, which `check_executable` admits on CPUs alone.
  //
  // Turns logits [tokens, experts] into probabilities, and sets the experts of each token [tokens,
  // top_k], the likeliest first, in host memory, and their weights.
  virtual void choose_experts(const RouterShape& /*shape*/, void* /*scores*/,
                              std::int32_t* /*chosen*/, void* /*weights*/, Queue /*queue*/) {
    refuse_experts();
  }
  // `dbalance` [.., experts] is null or a further gradient of the probabilities of each
  // `balanced_tokens` tokens.
  virtual void choose_experts_backward(const RouterShape& /*shape*/, const void* /*probabilities*/,
                                       const std::int32_t* /*chosen*/, const void* /*dweights*/,
                                       const double* /*dbalance*/, std::int64_t /*balanced_tokens*/,
                                       void* /*dscores*/, Queue /*queue*/) {
    refuse_experts();
  }
  // Row i of `to` is row index[i] of `from`, or zero for -1. The index lies in host memory.
  virtual void gather_rows(std::int64_t /*width*/, std::span<const std::int32_t> /*index*/,
                           const void* /*from*/, void* /*to*/, Queue /*queue*/) {
    refuse_experts();
  }
  // Row i of `to` is the sum of the rows index[i * each], ..., index[i * each + each - 1] of
  // `from`, without those of -1, plus row i of `addend` unless that is null.
  virtual void sum_rows(std::int64_t /*width*/, std::int64_t /*each*/,
                        std::span<const std::int32_t> /*index*/, const void* /*from*/,
                        const void* /*addend*/, void* /*to*/, Queue /*queue*/) {
    refuse_experts();
  }
  // y = x W^T with the expert's matrices. `weights` are the places of the first expert's matrices;
  // those of the further experts follow behind each.
  virtual void expert_product(const ExpertProductShape& /*shape*/, const void* /*x*/,
                              std::span<const void* const> /*weights*/, void* /*y*/,
                              Queue /*queue*/) {
    refuse_experts();
  }
  virtual void expert_input_gradient(const ExpertProductShape& /*shape*/, const void* /*dy*/,
                                     std::span<const void* const> /*weights*/, void* /*dx*/,
                                     Queue /*queue*/) {
    refuse_experts();
  }
  // Adds to the gradients of the weights.
  virtual void expert_weight_gradient(const ExpertProductShape& /*shape*/, const void* /*dy*/,
                                      const void* /*x*/, std::span<void* const> /*dweights*/,
                                      Queue /*queue*/) {
    refuse_experts();
  }
  // Multiplies row i by weights[i] in place.
  virtual void scale_rows(std::int64_t /*rows*/, std::int64_t /*width*/, const void* /*weights*/,
                          void* /*data*/, Queue /*queue*/) {
    refuse_experts();
  }
  // products[i] is the scalar product of row i of `a` and of `b`.
  virtual void multiply_rows(std::int64_t /*rows*/, std::int64_t /*width*/, const void* /*a*/,
                             const void* /*b*/, void* /*products*/, Queue /*queue*/) {
    refuse_experts();
  }
  // Row i of `out` is row i of `in` times the logistic function of gate[i] (Qwen2-MoE's shared
  // experts).
  virtual void gate_rows(std::int64_t /*rows*/, std::int64_t /*width*/, const void* /*in*/,
                         const void* /*gate*/, void* /*out*/, Queue /*queue*/) {
    refuse_experts();
  }
  virtual void gate_rows_backward(std::int64_t /*rows*/, std::int64_t /*width*/,
                                  const void* /*dout*/, const void* /*in*/, const void* /*gate*/,
                                  void* /*din*/, void* /*dgate*/, Queue /*queue*/) {
    refuse_experts();
  }

 private:
  static void refuse_experts() { SHARDWRIGHT_CHECK(false, "no experts on this device"); }
};

// Makes kernels for one CPU core.
std::unique_ptr<Kernels> make_cpu_kernels();

// Makes the kernels of a CUDA device: matrix products by cuBLASLt, attention by cuDNN, and fused
// kernels of our own for the rest. Queues are streams. One thread uses the kernels, on the GPU that
// it has selected (use_gpu). Calls throw CudaError. `shares_gpu`: other ranks use the GPU too, so
// its used memory is not this process's.
std::unique_ptr<Kernels> make_cuda_kernels(bool shares_gpu);

}  // namespace shardwright::executor
