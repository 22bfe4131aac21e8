// Gradient norm and optimizer, over all parameters that the rank updates.
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {

// Each parameter counts once, though several tensor-parallel ranks or stages may hold it.
bool OpRunner::counts_in_norm(const ParameterUnit& unit, const ParameterSlice& slice) const {
  return !unit.is_copy && !(slice.replicated && place_[Axis::Tensor] != 0);
}

void OpRunner::for_each_updated(
    const std::function<void(std::size_t, const ParameterSlice&, ElementRange)>& visit) const {
  parameters_.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    const ElementRange range =
        overlap(parameters_.own(unit), {slice.offset, slice.offset + slice.elements()});
    if (range.size() > 0) visit(unit, slice, range);
  });
}

void OpRunner::gradient_norm(const BoundOp& bound, StepState& state) {
  kernels_.zero(state.gradient_squares, sizeof(double), bound.queue);
  for_each_updated([&](std::size_t u, const ParameterSlice& slice, ElementRange range) {
    if (!counts_in_norm(parameters_.layout().units[u], slice)) return;
    kernels_.add_squares(static_cast<std::int64_t>(range.size()),
                         parameters_.gradients(u, range.begin), state.gradient_squares,
                         bound.queue);
  });
}

// Called before the data-parallel reduction. Copies the addends of norms for
// add_replicated_gradients, since the squares of addends do not add up to the square of the sum.
void OpRunner::add_own_squares(std::size_t unit, const StepState& state, Queue queue) {
  const ParameterUnit& here = parameters_.layout().units[unit];
  for (const ParameterSlice& slice : here.slices) {
    if (!counts_in_norm(here, slice) || (slice.is_norm() && !split_norms_.empty())) continue;
    kernels_.add_squares(static_cast<std::int64_t>(slice.elements()),
                         parameters_.gradients(unit, slice.offset), state.own_squares, queue);
  }
  const std::size_t each = bytes_of(kernels_.state_element());
  for (const NormGradient& norm : split_norms_) {
    if (norm.unit != unit) continue;
    kernels_.copy(static_cast<std::byte*>(norm_buffer_.get()) +
                      (split_norm_elements_ + norm.in_buffer) * each,
                  parameters_.gradients(unit, norm.offset), norm.elements * each, queue);
  }
}

void OpRunner::optimizer(const BoundOp& bound, const StepState& state) {
  for_each_updated([&](std::size_t u, const ParameterSlice& slice, ElementRange range) {
    AdamStep of_slice = state.adam;
    // Biases and norms do not decay.
    if (!slice.is_matrix()) of_slice.weight_decay = 0.0F;
    AdamArrays arrays;
    arrays.gradient = parameters_.gradients(u, range.begin);
    arrays.weight = parameters_.updated(OptimizerArray::Weights, u, range.begin);
    arrays.first_moment = parameters_.updated(OptimizerArray::FirstMoments, u, range.begin);
    arrays.second_moment = parameters_.updated(OptimizerArray::SecondMoments, u, range.begin);
    if (!parameters_.applies_updated()) arrays.applied = parameters_.weights(u, range.begin);
    kernels_.adamw(static_cast<std::int64_t>(range.size()), of_slice, arrays,
                   state.gradient_squares, bound.queue);
  });
  parameters_.zero_gradients(bound.queue);
}

}  // namespace shardwright::executor
