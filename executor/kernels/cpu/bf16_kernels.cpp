#include "executor/kernels/cpu/bf16_kernels.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "executor/kernels/bfloat16.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"

namespace shardwright::executor {
namespace {

// An operand in bf16 as fp32 numbers.
class Read {
 public:
  Read(const void* data, std::int64_t elements) : is_null_(data == nullptr) {
    if (is_null_) return;
    const auto* from = static_cast<const std::uint16_t*>(data);
    values_.resize(static_cast<std::size_t>(elements));
    std::transform(from, from + elements, values_.begin(), from_bfloat16);
  }
  const void* get() const { return is_null_ ? nullptr : values_.data(); }

 private:
  bool is_null_;
  std::vector<float> values_;
};

// A result of fp32 numbers, which are rounded into place at the end of its life. `Change` has the
// values that lie there at first.
class Write {
 public:
  Write(void* data, std::int64_t elements)
      : to_(static_cast<std::uint16_t*>(data)),
        values_(data == nullptr ? 0 : static_cast<std::size_t>(elements)) {}
  ~Write() { std::transform(values_.begin(), values_.end(), to_, to_bfloat16); }
  Write(const Write&) = delete;
  Write& operator=(const Write&) = delete;
  void* get() { return to_ == nullptr ? nullptr : values_.data(); }

 protected:
  std::uint16_t* to_;
  std::vector<float> values_;
};

class Change : public Write {
 public:
  Change(void* data, std::int64_t elements) : Write(data, elements) {
    std::transform(to_, to_ + values_.size(), values_.begin(), from_bfloat16);
  }
};

// Elements from the first row's beginning to the last row's end.
std::int64_t extent(std::int64_t rows, std::int64_t columns, std::int64_t width) {
  return rows == 0 ? 0 : (rows - 1) * std::max(width, columns) + columns;
}

std::int64_t outputs_of(const LinearShape& shape) {
  return extent(shape.rows, shape.outputs, shape.output_width);
}

std::int64_t inputs_of(const NormShape& shape) {
  return extent(shape.rows, shape.width, shape.input_width);
}

std::int64_t rows_of(const AttentionWork& work) {
  return work.batch * work.q_tokens;
}

std::int64_t qkv_of(const AttentionWork& work) {
  return rows_of(work) * HeadPlace(work, 0, 0).row_width;
}

std::int64_t out_of(const AttentionWork& work) {
  return rows_of(work) * work.heads * work.v_head_dim;
}

std::int64_t gathered_of(const AttentionWork& work, SequencePart part) {
  return part.ranks * rows_of(work) * key_value_width(work);
}

std::int64_t block_of(const AttentionWork& work) {
  return work.batch * work.kv_tokens * key_value_width(work);
}

std::int64_t logits_of(const LossShape& shape) {
  return shape.rows * shape.vocabulary.rows;
}

std::int64_t rows_of(const ExpertProductShape& shape) {
  return std::accumulate(shape.rows.begin(), shape.rows.end(), std::int64_t{0});
}

std::int64_t results_of(const ExpertProductShape& shape, std::size_t parts) {
  return rows_of(shape) * shape.outputs * static_cast<std::int64_t>(parts);
}

// The matrices of all experts.
std::vector<Read> matrices_of(const ExpertProductShape& shape,
                              std::span<const void* const> weights) {
  const auto experts = static_cast<std::int64_t>(shape.rows.size());
  std::vector<Read> matrices;
  for (const void* weight : weights)
    matrices.emplace_back(weight, experts * shape.outputs * shape.inputs);
  return matrices;
}

std::vector<const void*> places_of(const std::vector<Read>& operands) {
  std::vector<const void*> places;
  for (const Read& operand : operands) places.push_back(operand.get());
  return places;
}

// The rows up to the last one that the index names.
std::int64_t rows_up_to(std::span<const std::int32_t> index) {
  return index.empty() ? 0 : 1 + *std::max_element(index.begin(), index.end());
}

class Bf16CpuKernels final : public Kernels {
 public:
  Element element() const override { return Element::Bfloat16; }
  Element state_element() const override { return Element::Float32; }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return wide_.allocate(bytes); }
  std::size_t memory_used() const override { return wide_.memory_used(); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    wide_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    wide_.download(to, from, bytes);
  }

  void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
              void* y, Queue queue) override {
    wide_.linear(shape, Read(x, shape.rows * shape.inputs).get(),
                 Read(weight, shape.outputs * shape.inputs).get(), Read(bias, shape.outputs).get(),
                 Change(y, outputs_of(shape)).get(), queue);
  }
  void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight, void* dx,
                             Queue queue) override {
    wide_.linear_input_gradient(shape, Read(dy, outputs_of(shape)).get(),
                                Read(weight, shape.outputs * shape.inputs).get(),
                                Write(dx, shape.rows * shape.inputs).get(), queue);
  }
  void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                              void* dweight, void* dbias, Queue queue) override {
    wide_.linear_weight_gradient(shape, Read(dy, outputs_of(shape)).get(),
                                 Read(x, shape.rows * shape.inputs).get(), dweight, dbias, queue);
  }

  void norm(const NormShape& shape, const void* x, const void* weight, const void* bias, void* y,
            Queue queue) override {
    wide_.norm(shape, Read(x, inputs_of(shape)).get(), Read(weight, shape.width).get(),
               Read(bias, shape.width).get(), Write(y, shape.rows * shape.width).get(), queue);
  }
  void norm_backward(const NormShape& shape, const void* dy, const void* residual, const void* x,
                     const void* weight, void* dx, void* dweight, void* dbias,
                     Queue queue) override {
    const std::int64_t elements = shape.rows * shape.width;
    wide_.norm_backward(shape, Read(dy, elements).get(), Read(residual, elements).get(),
                        Read(x, inputs_of(shape)).get(), Read(weight, shape.width).get(),
                        Change(dx, inputs_of(shape)).get(), dweight, dbias, queue);
  }
  void head_norm(const HeadNormShape& shape, const void* weight, void* heads, void* before,
                 Queue queue) override {
    const std::int64_t columns = shape.heads * shape.head_dim;
    wide_.head_norm(shape, Read(weight, shape.head_dim).get(),
                    Change(heads, extent(shape.rows, columns, shape.row_width)).get(),
                    Change(before, extent(shape.rows, columns, shape.before_width)).get(), queue);
  }
  void head_norm_backward(const HeadNormShape& shape, const void* before, const void* weight,
                          void* gradient, void* dweight, Queue queue) override {
    const std::int64_t columns = shape.heads * shape.head_dim;
    wide_.head_norm_backward(
        shape, Read(before, extent(shape.rows, columns, shape.before_width)).get(),
        Read(weight, shape.head_dim).get(),
        Change(gradient, extent(shape.rows, columns, shape.row_width)).get(), dweight, queue);
  }

  void rope(const RopeShape& shape, bool inverse, void* data, Queue queue) override {
    const std::int64_t columns = (shape.heads - 1) * shape.head_dim + shape.rotated;
    wide_.rope(shape, inverse, Change(data, extent(shape.rows, columns, shape.row_width)).get(),
               queue);
  }

  void activation(const ActivationShape& shape, const void* up, void* out, Queue queue) override {
    const std::int64_t elements = shape.rows * shape.width;
    wide_.activation(shape, Read(up, elements * (shape.gated ? 2 : 1)).get(),
                     Write(out, elements).get(), queue);
  }
  void activation_backward(const ActivationShape& shape, const void* up, const void* dout,
                           void* dup, Queue queue) override {
    const std::int64_t elements = shape.rows * shape.width;
    const std::int64_t up_elements = elements * (shape.gated ? 2 : 1);
    wide_.activation_backward(shape, Read(up, up_elements).get(), Read(dout, elements).get(),
                              Write(dup, up_elements).get(), queue);
  }

  void add(std::int64_t elements, const void* a, const void* b, void* sum, Queue queue) override {
    wide_.add(elements, Read(a, elements).get(), Read(b, elements).get(),
              Write(sum, elements).get(), queue);
  }

  void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                 Queue queue) override {
    wide_.attention(work, Read(qkv, qkv_of(work)).get(), Write(out, out_of(work)).get(), statistics,
                    queue);
  }
  void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                          const void* statistics, const void* dout, void* dqkv,
                          Queue queue) override {
    wide_.attention_backward(work, Read(qkv, qkv_of(work)).get(), Read(out, out_of(work)).get(),
                             statistics, Read(dout, out_of(work)).get(),
                             Write(dqkv, qkv_of(work)).get(), queue);
  }
  void context_attention(const AttentionWork& work, SequencePart part, const void* qkv,
                         const void* gathered, void* out, void* statistics, Queue queue) override {
    wide_.context_attention(work, part, Read(qkv, qkv_of(work)).get(),
                            Read(gathered, gathered_of(work, part)).get(),
                            Write(out, out_of(work)).get(), statistics, queue);
  }
  void context_attention_backward(const AttentionWork& work, SequencePart part, const void* qkv,
                                  const void* gathered, const void* out, const void* statistics,
                                  const void* dout, void* dq, void* dgathered,
                                  Queue queue) override {
    wide_.context_attention_backward(
        work, part, Read(qkv, qkv_of(work)).get(), Read(gathered, gathered_of(work, part)).get(),
        Read(out, out_of(work)).get(), statistics, Read(dout, out_of(work)).get(),
        Write(dq, rows_of(work) * work.heads * work.qk_head_dim).get(),
        Write(dgathered, gathered_of(work, part)).get(), queue);
  }
  void ring_attention(const AttentionWork& work, SequencePart part, SequencePart owner,
                      const void* qkv, const void* block, void* out, void* statistics,
                      Queue queue) override {
    wide_.ring_attention(work, part, owner, Read(qkv, qkv_of(work)).get(),
                         Read(block, block_of(work)).get(), Change(out, out_of(work)).get(),
                         statistics, queue);
  }
  void ring_attention_backward(const AttentionWork& work, SequencePart part, SequencePart owner,
                               const void* qkv, const void* block, const void* out,
                               const void* statistics, const void* dout, void* dqkv, void* dblock,
                               Queue queue) override {
    wide_.ring_attention_backward(
        work, part, owner, Read(qkv, qkv_of(work)).get(), Read(block, block_of(work)).get(),
        Read(out, out_of(work)).get(), statistics, Read(dout, out_of(work)).get(),
        Change(dqkv, qkv_of(work)).get(), Write(dblock, block_of(work)).get(), queue);
  }

  void embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                 const void* table, const void* positions, void* out, Queue queue) override {
    const std::int64_t held = shape.seq_len * shape.part.ranks * shape.width;
    wide_.embedding(shape, tokens, Read(table, shape.vocabulary.rows * shape.width).get(),
                    Read(positions, held).get(),
                    Write(out, static_cast<std::int64_t>(tokens.size()) * shape.width).get(),
                    queue);
  }
  void embedding_backward(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                          const void* gradient, void* dtable, void* dpositions,
                          Queue queue) override {
    const auto rows = static_cast<std::int64_t>(tokens.size());
    wide_.embedding_backward(shape, tokens, Read(gradient, rows * shape.width).get(), dtable,
                             dpositions, queue);
  }

  void loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                       const void* logits, void* statistics, Queue queue) override {
    wide_.loss_statistics(shape, targets, Read(logits, logits_of(shape)).get(), statistics, queue);
  }
  void loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                    Queue queue) override {
    wide_.loss_rescale(rows, own_maxima, statistics, queue);
  }
  void loss_probabilities(const LossShape& shape, const void* logits, const void* statistics,
                          void* probabilities, double* loss, Queue queue) override {
    wide_.loss_probabilities(shape, Read(logits, logits_of(shape)).get(), statistics,
                             Write(probabilities, logits_of(shape)).get(), loss, queue);
  }
  void loss_backward(const LossShape& shape, std::span<const std::int32_t> targets, float scale,
                     const void* probabilities, void* dlogits, Queue queue) override {
    wide_.loss_backward(shape, targets, scale, Read(probabilities, logits_of(shape)).get(),
                        Write(dlogits, logits_of(shape)).get(), queue);
  }

  void accumulate(std::int64_t elements, const void* from, void* into, Queue queue) override {
    wide_.accumulate(elements, from, into, queue);
  }
  void add_squares(std::int64_t elements, const void* gradient, double* sum, Queue queue) override {
    wide_.add_squares(elements, gradient, sum, queue);
  }
  void count_not_finite(std::int64_t elements, Element format, const void* data, double* count,
                        Queue queue) override {
    if (format != Element::Bfloat16)
      return wide_.count_not_finite(elements, format, data, count, queue);
    wide_.count_not_finite(elements, Element::Float32, Read(data, elements).get(), count, queue);
  }
  void adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
             const double* gradient_squares, Queue queue) override {
    wide_.adamw(elements, step, arrays, gradient_squares, queue);
    if (arrays.applied == nullptr || !std::isfinite(*gradient_squares)) return;
    const auto* from = static_cast<const float*>(arrays.weight);
    std::transform(from, from + elements, static_cast<std::uint16_t*>(arrays.applied), to_bfloat16);
  }
  void zero(void* data, std::size_t bytes, Queue queue) override { wide_.zero(data, bytes, queue); }
  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override {
    wide_.copy(to, from, bytes, queue);
  }

  void copy_columns(std::int64_t rows, std::int64_t columns, const void* from,
                    std::int64_t from_width, void* to, std::int64_t to_width,
                    Queue /*queue*/) override {
    matrix<std::uint16_t>(to, rows, columns, to_width) =
        matrix<std::uint16_t>(from, rows, columns, from_width);
  }
  void scale_columns(std::int64_t rows, std::int64_t columns, double factor, void* data,
                     std::int64_t width, Queue queue) override {
    wide_.scale_columns(rows, columns, factor, Change(data, extent(rows, columns, width)).get(),
                        width, queue);
  }
  void add_columns(std::int64_t rows, std::int64_t columns, const void* from,
                   std::int64_t from_width, void* to, std::int64_t to_width, Queue queue) override {
    wide_.add_columns(rows, columns, Read(from, extent(rows, columns, from_width)).get(),
                      from_width, Change(to, extent(rows, columns, to_width)).get(), to_width,
                      queue);
  }

  void choose_experts(const RouterShape& shape, void* scores, std::int32_t* chosen, void* weights,
                      Queue queue) override {
    wide_.choose_experts(shape, Change(scores, shape.tokens * shape.experts).get(), chosen,
                         Write(weights, shape.tokens * shape.top_k).get(), queue);
  }
  void choose_experts_backward(const RouterShape& shape, const void* probabilities,
                               const std::int32_t* chosen, const void* dweights,
                               const double* dbalance, std::int64_t balanced_tokens, void* dscores,
                               Queue queue) override {
    const std::int64_t scores = shape.tokens * shape.experts;
    wide_.choose_experts_backward(shape, Read(probabilities, scores).get(), chosen,
                                  Read(dweights, shape.tokens * shape.top_k).get(), dbalance,
                                  balanced_tokens, Write(dscores, scores).get(), queue);
  }
  void gather_rows(std::int64_t width, std::span<const std::int32_t> index, const void* from,
                   void* to, Queue /*queue*/) override {
    const auto* source = static_cast<const std::uint16_t*>(from);
    auto* place = static_cast<std::uint16_t*>(to);
    for (const std::int32_t row : index) {
      if (row >= 0) {
        std::copy_n(source + row * width, width, place);
      } else {
        std::fill_n(place, width, std::uint16_t{0});
      }
      place += width;
    }
  }
  void sum_rows(std::int64_t width, std::int64_t each, std::span<const std::int32_t> index,
                const void* from, const void* addend, void* to, Queue queue) override {
    const std::int64_t elements = static_cast<std::int64_t>(index.size()) / each * width;
    wide_.sum_rows(width, each, index, Read(from, rows_up_to(index) * width).get(),
                   Read(addend, elements).get(), Write(to, elements).get(), queue);
  }
  void expert_product(const ExpertProductShape& shape, const void* x,
                      std::span<const void* const> weights, void* y, Queue queue) override {
    const std::vector<Read> matrices = matrices_of(shape, weights);
    wide_.expert_product(shape, Read(x, rows_of(shape) * shape.inputs).get(), places_of(matrices),
                         Write(y, results_of(shape, weights.size())).get(), queue);
  }
  void expert_input_gradient(const ExpertProductShape& shape, const void* dy,
                             std::span<const void* const> weights, void* dx, Queue queue) override {
    const std::vector<Read> matrices = matrices_of(shape, weights);
    wide_.expert_input_gradient(shape, Read(dy, results_of(shape, weights.size())).get(),
                                places_of(matrices), Write(dx, rows_of(shape) * shape.inputs).get(),
                                queue);
  }
  void expert_weight_gradient(const ExpertProductShape& shape, const void* dy, const void* x,
                              std::span<void* const> dweights, Queue queue) override {
    wide_.expert_weight_gradient(shape, Read(dy, results_of(shape, dweights.size())).get(),
                                 Read(x, rows_of(shape) * shape.inputs).get(), dweights, queue);
  }
  void scale_rows(std::int64_t rows, std::int64_t width, const void* weights, void* data,
                  Queue queue) override {
    wide_.scale_rows(rows, width, Read(weights, rows).get(), Change(data, rows * width).get(),
                     queue);
  }
  void multiply_rows(std::int64_t rows, std::int64_t width, const void* a, const void* b,
                     void* products, Queue queue) override {
    wide_.multiply_rows(rows, width, Read(a, rows * width).get(), Read(b, rows * width).get(),
                        Write(products, rows).get(), queue);
  }
  void gate_rows(std::int64_t rows, std::int64_t width, const void* in, const void* gate, void* out,
                 Queue queue) override {
    wide_.gate_rows(rows, width, Read(in, rows * width).get(), Read(gate, rows).get(),
                    Write(out, rows * width).get(), queue);
  }
  void gate_rows_backward(std::int64_t rows, std::int64_t width, const void* dout, const void* in,
                          const void* gate, void* din, void* dgate, Queue queue) override {
    const std::int64_t elements = rows * width;
    wide_.gate_rows_backward(rows, width, Read(dout, elements).get(), Read(in, elements).get(),
                             Read(gate, rows).get(), Write(din, elements).get(),
                             Write(dgate, rows).get(), queue);
  }

 private:
  CpuKernels<float> wide_;
};

}  // namespace

std::unique_ptr<Kernels> make_bf16_cpu_kernels() {
  return std::make_unique<Bf16CpuKernels>();
}

}  // namespace shardwright::executor
