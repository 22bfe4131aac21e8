// Kernels on one CPU core in fp32. Tests also use them in fp64.
#pragma once

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

template <class Real>
class CpuKernels final : public Kernels {
 public:
  Element element() const override {
    return sizeof(Real) == sizeof(double) ? Element::Float64 : Element::Float32;
  }
  Element state_element() const override { return element(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  std::size_t memory_used() const override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;

  void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
              void* y, Queue queue) override;
  void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight, void* dx,
                             Queue queue) override;
  void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                              void* dweight, void* dbias, Queue queue) override;
  void norm(const NormShape& shape, const void* x, const void* weight, const void* bias, void* y,
            Queue queue) override;
  void norm_backward(const NormShape& shape, const void* dy, const void* residual, const void* x,
                     const void* weight, void* dx, void* dweight, void* dbias,
                     Queue queue) override;
  void rope(const RopeShape& shape, bool inverse, void* data, Queue queue) override;
  void activation(const ActivationShape& shape, const void* up, void* out, Queue queue) override;
  void activation_backward(const ActivationShape& shape, const void* up, const void* dout,
                           void* dup, Queue queue) override;
  void add(std::int64_t elements, const void* a, const void* b, void* sum, Queue queue) override;
  void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                 Queue queue) override;
  void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                          const void* statistics, const void* dout, void* dqkv,
                          Queue queue) override;
  void embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                 const void* table, const void* positions, void* out, Queue queue) override;
  void embedding_backward(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                          const void* gradient, void* dtable, void* dpositions,
                          Queue queue) override;
  void loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                       const void* logits, void* statistics, Queue queue) override;
  void loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                    Queue queue) override;
  void loss_probabilities(const LossShape& shape, const void* logits, const void* statistics,
                          void* probabilities, double* loss, Queue queue) override;
  void loss_backward(const LossShape& shape, std::span<const std::int32_t> targets, float scale,
                     const void* probabilities, void* dlogits, Queue queue) override;
  void add_squares(std::int64_t elements, const void* gradient, double* sum, Queue queue) override;
  void count_not_finite(std::int64_t elements, Element format, const void* data, double* count,
                        Queue queue) override;
  void adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
             const double* gradient_squares, Queue queue) override;
  void zero(void* data, std::size_t bytes, Queue queue) override;
  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override;
};

}  // namespace shardwright::executor
