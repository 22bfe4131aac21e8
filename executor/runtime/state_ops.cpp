// Gradient norm and optimizer, over all parameters that the rank updates.
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {

// Each parameter counts once, though several tensor-parallel ranks or stages may hold it.
bool OpRunner::counts_in_norm(const ParameterUnit& unit, const ParameterSlice& slice) const {
  return !unit.is_copy && slice.holder == 0;
}

void OpRunner::for_each_updated(
    const std::function<void(std::size_t, const ParameterSlice&, ElementRange)>& visit) const {
  parameters_.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    const ElementRange range =
        overlap(parameters_.own(unit), {slice.offset, slice.offset + slice.elements()});
    if (range.size() > 0) visit(unit, slice, range);
  });
}

void OpRunner::add_squares_of(bool experts, const BoundOp& bound, StepState& state) {
  for_each_updated([&](std::size_t u, const ParameterSlice& slice, ElementRange range) {
    const ParameterUnit& unit = parameters_.layout().units[u];
    if (unit.experts != experts || !counts_in_norm(unit, slice)) return;
    kernels_.add_squares(static_cast<std::int64_t>(range.size()),
                         parameters_.gradients(u, range.begin), state.gradient_squares,
                         bound.queue);
  });
}

// The program sums the squares over the ranks among which the dense parameters are split. Experts
// are split otherwise, so all ranks sum theirs here, and one of those ranks adds the sum.
void OpRunner::gradient_norm(const BoundOp& bound, StepState& state) {
  kernels_.zero(state.gradient_squares, sizeof(double), bound.queue);
  const ShardPlaces& shards = parameters_.shards();
  if (model_.moe) {
    if (shards.experts.replica == 0) add_squares_of(true, bound, state);
    if (Communicator* world = communicators_.world()) {
      world->all_reduce(state.gradient_squares, 1, Element::Float64, Reduction::Sum, bound.queue);
      const bool adds =
          shards.dense.index == 0 && place_[Axis::Tensor] == 0 && place_[Axis::Pipeline] == 0;
      if (!adds) kernels_.zero(state.gradient_squares, sizeof(double), bound.queue);
    }
  }
  add_squares_of(false, bound, state);
}

// Called before the data-parallel reduction. Copies the addends of norms for
// add_replicated_gradients, since the squares of addends do not add up to the square of the sum.
void OpRunner::add_own_squares(std::size_t unit, const StepState& state, Queue queue) {
  const ParameterUnit& here = parameters_.layout().units[unit];
  for (const ParameterSlice& slice : here.slices) {
    if (!counts_in_norm(here, slice) || is_split(slice)) continue;
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
  if (state.validates) return parameters_.zero_gradients(bound.queue);
  exchange_.keep_anchor();
  for_each_updated([&](std::size_t u, const ParameterSlice& slice, ElementRange range) {
    parameters_.apply_adam(u, slice, range, state.adam, state.gradient_squares, bound.queue);
  });
  parameters_.zero_gradients(bound.queue);
}

}  // namespace shardwright::executor
