// Fused CUDA kernels of our own for everything but matrix products and attention. Activations and
// applied weights are bf16, the rest fp32; sums are fp32 or fp64 and are added in a fixed order.
//
// Kernels access 16 bytes at once if rows and pointers allow it, and single elements otherwise.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "core/program/executable.hpp"
#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// The longest rows that the norms support. A block keeps a row in its registers (norm.cu), in at
// most this many packs per thread.
inline constexpr unsigned kMaxNormThreads = 256;
inline constexpr int kMaxNormPacks = 8;

static_assert(longest_norm_row(false) == std::int64_t{kMaxNormThreads} * kMaxNormPacks);
static_assert(longest_norm_row(true) == 8 * longest_norm_row(false));

class FusedKernels : public Kernels {
 public:
  Element element() const final { return Element::Bfloat16; }
  Element state_element() const final { return Element::Float32; }

  // Throws CudaError for rows longer than longest_norm_row.
  void norm(const NormShape& shape, const void* x, const void* weight, const void* bias, void* y,
            Queue queue) final;
  void norm_backward(const NormShape& shape, const void* dy, const void* residual, const void* x,
                     const void* weight, void* dx, void* dweight, void* dbias, Queue queue) final;
  void prepare_rope(const RopeShape& shape) final { rope_table(shape); }
  void rope(const RopeShape& shape, bool inverse, void* data, Queue queue) final;
  void activation(const ActivationShape& shape, const void* up, void* out, Queue queue) final;
  void activation_backward(const ActivationShape& shape, const void* up, const void* dout,
                           void* dup, Queue queue) final;
  void add(std::int64_t elements, const void* a, const void* b, void* sum, Queue queue) final;
  void embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                 const void* table, const void* positions, void* out, Queue queue) final;
  void embedding_backward(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                          const void* gradient, void* dtable, void* dpositions, Queue queue) final;
  void loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                       const void* logits, void* statistics, Queue queue) final;
  void loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics, Queue queue) final;
  void loss_probabilities(const LossShape& shape, const void* logits, const void* statistics,
                          void* probabilities, double* loss, Queue queue) final;
  void loss_backward(const LossShape& shape, std::span<const std::int32_t> targets, float scale,
                     const void* probabilities, void* dlogits, Queue queue) final;
  void accumulate(std::int64_t elements, const void* from, void* into, Queue queue) final;
  void add_squares(std::int64_t elements, const void* gradient, double* sum, Queue queue) final;
  void count_not_finite(std::int64_t elements, Element format, const void* data, double* count,
                        Queue queue) final;
  void adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
             const double* gradient_squares, Queue queue) final;

 protected:
  // Returns at least 1 MiB for intermediate results of one call; the queue's next call may
  // overwrite it.
  virtual std::span<float> scratch(Queue queue) = 0;

  // Adds the sums of the columns of `rows` [rows, width] to `sums`.
  void add_column_sums(std::int64_t rows, std::int64_t width, const void* matrix, void* sums,
                       Queue queue);

 private:
  // Returns cosine and sine of each pair at each position: float2 [seq_len, rotated / 2].
  const void* rope_table(const RopeShape& shape);

  // Tables by sequence length, rotated width and base.
  std::map<std::tuple<std::int64_t, std::int64_t, double, std::optional<RopeScalingSpec>>,
           std::shared_ptr<void>>
      rope_tables_;
};

}  // namespace shardwright::executor
