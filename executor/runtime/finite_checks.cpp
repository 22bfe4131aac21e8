// Counts values of an op that are not finite, when a failed step is repeated to find the cause.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {
namespace {

bool is_statistics(const Op& op, std::size_t written) {
  if (op.payload == Payload::SoftmaxStatistics) return true;
  if (op.kind == OpKind::Attention) return written == 1;
  return op.kind == OpKind::Loss && op.phase == Phase::Forward && op.reads.size() == 1;
}

}  // namespace

void OpRunner::run_checked(const BoundOp& bound, StepState& state, NotFiniteCounts* counts) {
  count_weights(bound, &counts->weights);
  run(bound, state);
  const Op& op = *bound.op;
  // Counted where they were computed.
  if (op.kind == OpKind::Offload) return;
  // Gradients are counted with the parameters that they belong to.
  const std::size_t results = bound.writes.size() - (writes_gradient(op) ? 1 : 0);
  for (std::size_t i = 0; i < results; ++i) {
    const Element format = is_statistics(op, i) ? kernels_.state_element() : kernels_.element();
    if (is_latent() && op.kind == OpKind::Gemm && !is_of_experts(op)) {
      count_outputs(bound, &counts->results);
      continue;
    }
    const auto bytes =
        static_cast<std::int64_t>(elements_written(bound, i) * bytes_of(kernels_.element()));
    kernels_.count_not_finite(bytes / static_cast<std::int64_t>(bytes_of(format)), format,
                              bound.writes[i], &counts->results, bound.queue);
  }
  if (op.kind == OpKind::Loss && op.reads.size() == 2)
    kernels_.count_not_finite(1, Element::Float64, state.loss, &counts->results, bound.queue);
  if (op.kind == OpKind::GradientNorm || op.payload == Payload::GradientNorm)
    kernels_.count_not_finite(1, Element::Float64, state.gradient_squares, &counts->results,
                              bound.queue);
  count_gradients(bound, &counts->results);
}

// The other columns of a row that a projection writes may hold nothing yet.
void OpRunner::count_outputs(const BoundOp& bound, double* count) {
  const auto& work = std::get<GemmWork>(bound.op->work);
  const std::int64_t width = output_width(bound.op->writes.front(), work.m);
  for (std::int64_t r = 0; r < work.m; ++r)
    kernels_.count_not_finite(work.n, kernels_.element(), at(bound.write(0), r * width), count,
                              bound.queue);
}

void OpRunner::for_each_applied(
    const BoundOp& bound,
    const std::function<void(std::size_t unit, const ParameterSlice&)>& visit) const {
  const ParameterLayout& layout = parameters_.layout();
  for (const std::string& pattern : bound.op->parameters) {
    const std::size_t unit = layout.find(pattern, bound.call->layer).unit;
    const std::string name = parameter_name(pattern, bound.call->layer);
    for (const ParameterSlice& slice : layout.units[unit].slices)
      if (slice.name == name + ".weight" || slice.name == name + ".bias") visit(unit, slice);
  }
}

void OpRunner::count_weights(const BoundOp& bound, double* count) {
  for_each_applied(bound, [&](std::size_t unit, const ParameterSlice& slice) {
    const void* weights = applied(bound, unit, slice.offset);
    if (weights == nullptr) return;
    kernels_.count_not_finite(static_cast<std::int64_t>(slice.elements()), kernels_.element(),
                              weights, count, bound.queue);
  });
}

// Counts in the gradients that the op has added to or reduced.
void OpRunner::count_gradients(const BoundOp& bound, double* count) {
  const auto add = [&](const void* gradients, std::size_t elements) {
    if (gradients == nullptr) return;
    kernels_.count_not_finite(static_cast<std::int64_t>(elements), kernels_.state_element(),
                              gradients, count, bound.queue);
  };
  const Op& op = *bound.op;
  if (op.payload == Payload::Gradients && is_communication(op.kind)) {
    for (const std::size_t unit : carried_units(bound)) {
      const ElementRange own = parameters_.own(unit);
      add(parameters_.gradients(unit, own.begin), own.size());
    }
    return;
  }
  if (!is_backward(op.phase) || is_communication(op.kind)) return;
  for_each_applied(bound, [&](std::size_t unit, const ParameterSlice& slice) {
    add(gradient(bound, unit, slice.offset), slice.elements());
  });
}

std::string describe_not_finite(const NotFiniteOp& found) {
  const std::string weights = found.counts.weights == 0.0
                                  ? ""
                                  : fmt::format(" and {} of its weights {}", found.counts.weights,
                                                fmt::join(found.weights, ", "));
  return fmt::format("{}: {} values of its result{} are not finite", found.op, found.counts.results,
                     weights);
}

}  // namespace shardwright::executor
