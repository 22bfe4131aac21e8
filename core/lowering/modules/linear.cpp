// Linear layers with Megatron's tensor and sequence parallelism (arXiv 1909.08053, 2205.05198).
//
// A column-split layer with sequence parallelism gathers its input before the GEMM. A row-split
// layer reduces its output afterwards. In the backward pass a column-split layer reduces its input
// gradient beside the GEMM of the weight gradient, or after it if the stack leaves both GEMMs to
// one node of autograd.
#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

// The gradient of the weight is added to the main gradient: inside of the GEMM, or by a kernel of
// its own. With FSDP it is written unsharded. A frozen weight has none, but its adapters have.
void write_linear_weight_gradient(const BlockWriter& w, const Linear& linear,
                                  TensorRef output_gradient, TensorRef input, std::int64_t rows) {
  if (w.freezes()) return write_adapter_gradients(w, {linear, rows}, input);
  const GemmWork work{.m = linear.out, .n = linear.in, .k = rows};
  const std::string name = linear.name + ".wgrad";
  if (w.gathered || w.stack.fusion.wgrad_accumulation) {
    w.weight_gradient(name, work, {output_gradient, input}, linear.parameters);
    return;
  }
  const auto weights = static_cast<double>(linear.in * linear.out);
  const TensorRef gradient = w.temporary(linear.name + ".weight_gradient", weights);
  Op& product = w.weight_gradient(name, work, {output_gradient, input}, linear.parameters);
  product.work = work;
  product.writes = {gradient};
  const double element = main_gradient_bytes(w.stack, w.plan).value();
  Op& sum = w.memory_op(linear.name + ".accumulate", OpKind::GradientAccumulation, 0.0, 0.0,
                        {gradient}, {});
  sum.phase = Phase::BackwardWeight;
  sum.work = MemoryWork{Bytes(weights * (w.shape.element + element)), Bytes(weights * element),
                        Flop(weights), 1};
}

std::int64_t rows_of(const BlockWriter& w, const Linear& linear) {
  return linear.split == LinearSplit::None ? w.shape.residual_tokens : w.shape.tokens;
}

}  // namespace

void write_linear_product(const BlockWriter& w, const Linear& linear, const std::string& name,
                          const GemmWork& work, std::vector<TensorRef> reads, TensorRef product) {
  const std::vector<TensorRef> weights = write_dequantization(
      w, name, static_cast<double>(work.groups * linear.in * linear.out), linear.parameters);
  reads.insert(reads.end(), weights.begin(), weights.end());
  w.apply(w.gemm(name, work, std::move(reads), {product}), linear.parameters);
}

TensorRef write_tensor_gather(const BlockWriter& w, const std::string& name,
                              const std::string& gathered_name, double elements, TensorRef share) {
  const TensorRef gathered = w.temporary(gathered_name, elements);
  w.collective(name, OpKind::AllGather, Group::Tensor, elements, {share}, {gathered});
  return gathered;
}

void write_tensor_reduction(const BlockWriter& w, const std::string& name, double elements,
                            TensorRef partial, TensorRef sum) {
  const bool scatters = w.shape.gathers_sequence;
  w.collective(name + (scatters ? ".reduce_scatter" : ".all_reduce"),
               scatters ? OpKind::ReduceScatter : OpKind::AllReduce, Group::Tensor, elements,
               {partial}, {sum});
}

void write_cast(const BlockWriter& w, const std::string& name, double elements, TensorRef tensor) {
  if (!casts_operands(w.precision)) return;
  // NVFP4 needs a pass over the whole tensor for its scale before the one that converts it. The
  // tensor is written as it is and, unless no weight has a gradient, transposed.
  const double reads = w.precision == Precision::Nvfp4 ? 2.0 : 1.0;
  const double layouts = w.freezes() ? 1.0 : 2.0;
  const double written = layouts * (operand_bytes(w.precision) / storage_bytes(w.precision));
  w.memory_op(name + ".cast", OpKind::Cast, reads * elements, written * elements, {tensor},
              {tensor});
}

GradientOperands write_gradient_cast(const BlockWriter& w, const std::string& name, double elements,
                                     TensorRef gradient) {
  write_cast(w, name, elements, gradient);
  const bool keeps_8_bits = casts_operands(w.precision) && w.stack.memory.fp8_saved_inputs;
  if (!keeps_8_bits || w.freezes()) return {gradient, gradient};
  const double bytes = elements * operand_bytes(w.precision).value();
  const GradientOperands operands{
      w.tensor(name + ".by_rows", MemoryCategory::Temporaries, bytes),
      w.tensor(name + ".by_columns", MemoryCategory::Temporaries, bytes)};
  w.ops.back().writes = {operands.by_rows, operands.by_columns};
  return operands;
}

void write_linear_forward(const BlockWriter& w, const Linear& linear) {
  const std::int64_t rows = rows_of(w, linear);
  const auto in_elements = static_cast<double>(rows * linear.in);
  const auto out_elements = static_cast<double>(rows * linear.out);
  TensorRef input = linear.input;
  if (linear.split == LinearSplit::Column && w.shape.gathers_sequence) {
    input = write_tensor_gather(w, linear.name + ".all_gather", linear.name + ".gathered",
                                in_elements, input);
  }
  // The input of a column-split layer comes from a norm, which casts it.
  if (linear.split == LinearSplit::Row) write_cast(w, linear.name + ".input", in_elements, input);
  const bool reduces = linear.split == LinearSplit::Row && w.plan.tp > 1;
  const TensorRef result =
      reduces ? w.temporary(linear.name + ".partial", out_elements) : linear.output;
  const bool adapted = has_adapters(w, linear.parameters);
  const TensorRef product =
      adapted ? w.temporary(linear.name + ".frozen.out", out_elements) : result;
  write_linear_product(w, linear, linear.name, {.m = rows, .n = linear.out, .k = linear.in},
                       {input}, product);
  if (adapted) write_adapters_forward(w, {linear, rows}, input, product, result);
  if (reduces) write_tensor_reduction(w, linear.name, out_elements, result, linear.output);
}

void write_linear_backward(const BlockWriter& w, const Linear& linear, TensorRef output_gradient,
                           TensorRef input_gradient, bool adds) {
  const std::int64_t rows = rows_of(w, linear);
  const auto in_elements = static_cast<double>(rows * linear.in);
  const auto out_elements = static_cast<double>(rows * linear.out);
  TensorRef gradient = output_gradient;
  TensorRef input = linear.input;
  if (linear.split == LinearSplit::Row && w.shape.gathers_sequence) {
    gradient = write_tensor_gather(w, linear.name + ".gradient.all_gather",
                                   linear.name + ".gradient.gathered", out_elements, gradient);
  }
  const GradientOperands operands =
      write_gradient_cast(w, linear.name + ".gradient", out_elements, gradient);
  const bool adapted = has_adapters(w, linear.parameters);
  const bool needs_input = adapted || !w.freezes();
  if (needs_input && linear.split == LinearSplit::Column && w.shape.gathers_sequence) {
    input = write_tensor_gather(w, linear.name + ".input.all_gather", linear.name + ".regathered",
                                in_elements, input);
    w.ops.back().phase = Phase::BackwardWeight;
  }
  const bool reduces = linear.split == LinearSplit::Column && w.plan.tp > 1;
  const TensorRef product =
      reduces ? w.temporary(linear.name + ".input_gradient.partial", in_elements) : input_gradient;
  std::vector<TensorRef> reads = {operands.by_rows};
  if (adds) reads.push_back(product);
  write_linear_product(w, linear, linear.name + ".dgrad",
                       {.m = rows, .n = linear.in, .k = linear.out}, std::move(reads), product);
  if (adapted) write_adapters_backward(w, {linear, rows}, gradient, product);
  const auto reduce = [&] {
    write_tensor_reduction(w, linear.name + ".dgrad", in_elements, product, input_gradient);
  };
  if (reduces && w.stack.overlap.input_gradient) reduce();
  write_linear_weight_gradient(w, linear, operands.by_columns, input, rows);
  if (reduces && !w.stack.overlap.input_gradient) {
    reduce();
    w.ops.back().after_kernels = true;
  }
}

}  // namespace shardwright
