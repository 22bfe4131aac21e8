// Linear layers with Megatron's tensor and sequence parallelism (arXiv 1909.08053, 2205.05198).
//
// Column split: [all-gather of the input] GEMM. Row split: GEMM [reduce-scatter or all-reduce of
// the output]. In the backward pass a column-split layer reduces its input gradient beside the
// weight-gradient GEMM, or after it where the stack leaves both GEMMs to one node of autograd.
#include "core/lowering/layer_writer.hpp"

namespace shardwright {

void LayerWriter::linear_forward(const Linear& linear) {
  const auto rows = linear.split == LinearSplit::None ? shape_.residual_tokens : shape_.tokens;
  TensorRef input = linear.input;
  if (linear.split == LinearSplit::Column && shape_.gathers_sequence) {
    const auto elements = static_cast<double>(shape_.tokens * linear.in);
    input = temporary(linear.name + ".gathered", elements);
    collective(linear.name + ".all_gather", OpKind::AllGather, Group::Tensor, phase_,
               elements * shape_.element, {linear.input}, {input});
  }
  // Column-split layers take their input from a norm, which casts on its way.
  if (linear.split == LinearSplit::Row)
    cast_operand(linear.name + ".input", phase_, static_cast<double>(rows * linear.in), input);
  const bool reduces = linear.split == LinearSplit::Row && plan_.tp > 1;
  const auto out_elements = static_cast<double>(rows * linear.out);
  const TensorRef partial =
      reduces ? temporary(linear.name + ".partial", out_elements) : linear.output;
  gemm(linear.name, phase_, {.m = rows, .n = linear.out, .k = linear.in}, {input}, {partial});
  read_parameters(ops_.back());
  if (reduces) {
    collective(linear.name + (shape_.gathers_sequence ? ".reduce_scatter" : ".all_reduce"),
               shape_.gathers_sequence ? OpKind::ReduceScatter : OpKind::AllReduce, Group::Tensor,
               phase_, out_elements * shape_.element, {partial}, {linear.output});
  }
}

void LayerWriter::cast_operand(const std::string& name, Phase phase, double elements,
                               TensorRef tensor) {
  if (!casts_operands(format_)) return;
  // It is read once more before, for the scale of the whole tensor, and written as it is and
  // transposed.
  const double reads = format_ == Precision::Nvfp4 ? 2.0 : 1.0;
  const double written = 2.0 * (operand_bytes(format_) / storage_bytes(format_));
  memory_op(name + ".cast", OpKind::Cast, phase, reads * elements, written * elements, {tensor},
            {tensor});
}

void LayerWriter::linear_backward(const Linear& linear, TensorRef output_gradient,
                                  TensorRef input_gradient, bool adds) {
  const auto rows = linear.split == LinearSplit::None ? shape_.residual_tokens : shape_.tokens;
  const auto in_elements = static_cast<double>(rows * linear.in);
  TensorRef gradient = output_gradient;
  TensorRef input = linear.input;
  if (linear.split == LinearSplit::Row && shape_.gathers_sequence) {
    const auto out_elements = static_cast<double>(rows * linear.out);
    gradient = temporary(linear.name + ".gradient.gathered", out_elements);
    collective(linear.name + ".gradient.all_gather", OpKind::AllGather, Group::Tensor,
               Phase::BackwardInput, out_elements * shape_.element, {output_gradient}, {gradient});
  }
  cast_operand(linear.name + ".gradient", Phase::BackwardInput,
               static_cast<double>(rows * linear.out), gradient);
  if (linear.split == LinearSplit::Column && shape_.gathers_sequence) {
    input = temporary(linear.name + ".regathered", in_elements);
    collective(linear.name + ".input.all_gather", OpKind::AllGather, Group::Tensor,
               Phase::BackwardWeight, in_elements * shape_.element, {linear.input}, {input});
  }
  const bool reduces = linear.split == LinearSplit::Column && plan_.tp > 1;
  const TensorRef partial =
      reduces ? temporary(linear.name + ".input_gradient.partial", in_elements) : input_gradient;
  gemm(linear.name + ".dgrad", Phase::BackwardInput, {.m = rows, .n = linear.in, .k = linear.out},
       {gradient}, {partial});
  if (adds) ops_.back().reads.push_back(partial);
  read_parameters(ops_.back());
  const auto reduce = [&] {
    if (!reduces) return;
    collective(
        linear.name + (shape_.gathers_sequence ? ".dgrad.reduce_scatter" : ".dgrad.all_reduce"),
        shape_.gathers_sequence ? OpKind::ReduceScatter : OpKind::AllReduce, Group::Tensor,
        Phase::BackwardInput, in_elements * shape_.element, {partial}, {input_gradient});
  };
  if (stack_.overlap_input_gradient) reduce();
  weight_gradient(linear, gradient, input, rows);
  if (stack_.overlap_input_gradient) return;
  reduce();
  if (reduces) ops_.back().after_kernels = true;
}

void LayerWriter::weight_gradient(const Linear& linear, TensorRef output_gradient, TensorRef input,
                                  std::int64_t tokens) {
  const bool separate = !gathers_parameters_ && !stack_.fused_wgrad_accumulation;
  const auto parameters = static_cast<double>(linear.in * linear.out);
  std::vector<TensorRef> writes;
  if (gathers_parameters_) writes.push_back(parameter_gradient());
  if (separate) writes.push_back(temporary(linear.name + ".weight_gradient", parameters));
  gemm(linear.name + ".wgrad", Phase::BackwardWeight,
       {.m = linear.out,
        .n = linear.in,
        .k = tokens,
        .accumulate_fp32 = !gathers_parameters_ && !separate},
       {output_gradient, input}, writes);
  if (separate) accumulate_gradient(linear.name + ".accumulate", parameters, writes.front());
}

}  // namespace shardwright
