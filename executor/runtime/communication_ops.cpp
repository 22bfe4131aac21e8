// Collectives and messages.
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {
namespace {

constexpr Element kElement = Element::Float32;

// Activations and their gradients pass each other in channels of their own.
int channel_of(Stream stream) {
  return stream == Stream::SendGradient || stream == Stream::ReceiveGradient ? 1 : 0;
}

}  // namespace

std::size_t OpRunner::elements_of(TensorRef ref) const {
  return static_cast<std::size_t>(program_.tensors[ref.tensor].bytes.value()) / bytes_of(kElement);
}

void OpRunner::communicate(const BoundOp& bound, StepState& state) {
  const auto& work = std::get<CommunicationWork>(bound.op->work);
  if (bound.op->kind == OpKind::Send || bound.op->kind == OpKind::Receive)
    return message(bound, work);
  Communicator& group = communicators_.of(work.group);
  switch (bound.op->payload) {
    case Payload::Tensors:
      return exchange_tensors(bound, work);
    case Payload::SoftmaxStatistics:
      return softmax_statistics(bound, group);
    case Payload::Gradients:
      return reduce_gradients(bound, group, state);
    case Payload::Parameters:
      return gather_parameters(bound, group);
    case Payload::ReplicatedGradients:
      return add_replicated_gradients(bound, group);
    case Payload::TiedGradient:
      return add_tied_gradient(bound, group);
    case Payload::GradientNorm:
      return add_gradient_norm(group, state);
  }
}

void OpRunner::message(const BoundOp& bound, const CommunicationWork& work) {
  Communicator& pipeline = communicators_.of(work.group);
  const int peer = static_cast<int>(place_[Axis::Pipeline]) + work.peer_offset;
  const auto bytes = static_cast<std::size_t>(work.bytes.value());
  const int channel = channel_of(bound.op->stream);
  if (bound.op->kind == OpKind::Send) {
    pipeline.send(bound.reads.front().get(), bytes, peer, channel, bound.queue);
  } else {
    pipeline.receive(bound.writes.front().get(), bytes, peer, channel, bound.queue);
  }
}

void OpRunner::exchange_tensors(const BoundOp& bound, const CommunicationWork& work) {
  Communicator& group = communicators_.of(work.group);
  const void* in = bound.reads.front().get();
  void* out = bound.writes.front().get();
  const std::size_t read = elements_of(bound.op->reads.front());
  const std::size_t written = elements_of(bound.op->writes.front());
  switch (bound.op->kind) {
    case OpKind::AllReduce:
      if (out != in) kernels_.copy(out, in, written * bytes_of(kElement), bound.queue);
      return group.all_reduce(out, written, kElement, Reduction::Sum, bound.queue);
    case OpKind::AllGather:
      return group.all_gather(in, out, read, kElement, bound.queue);
    case OpKind::ReduceScatter:
      return group.reduce_scatter(in, out, written, kElement, bound.queue);
    default:
      SHARDWRIGHT_CHECK(false, "no collective for " + bound.op->name);
  }
}

// Two reductions under one op: maxima first, then what is relative to them.
void OpRunner::softmax_statistics(const BoundOp& bound, Communicator& group) {
  const auto rows = static_cast<std::size_t>(shape_.tokens);
  auto* statistics = static_cast<std::byte*>(bound.writes.front().get());
  const std::size_t bytes = rows * kernels_.element_bytes();
  const std::shared_ptr<void> own_maxima = kernels_.allocate(bytes);
  kernels_.copy(own_maxima.get(), statistics, bytes, bound.queue);
  group.all_reduce(statistics, rows, kElement, Reduction::Max, bound.queue);
  kernels_.loss_rescale(shape_.tokens, own_maxima.get(), statistics, bound.queue);
  group.all_reduce(statistics + bytes, 2 * rows, kElement, Reduction::Sum, bound.queue);
}

void OpRunner::reduce_gradients(const BoundOp& bound, Communicator& group, StepState& state) {
  for (const PartId part : bound.covered) {
    for (const std::size_t unit : parameters_.layout().units_of(part)) {
      if (state.measures_noise) add_own_squares(unit, state, bound.queue);
      if (bound.op->kind == OpKind::AllReduce) {
        group.all_reduce(parameters_.gradients(unit), parameters_.layout().units[unit].elements,
                         kElement, Reduction::Sum, bound.queue);
      } else {
        const ElementRange own = parameters_.own(unit);
        group.reduce_scatter(parameters_.gradients(unit), parameters_.gradients(unit, own.begin),
                             own.size(), kElement, bound.queue);
      }
    }
  }
}

void OpRunner::gather_parameters(const BoundOp& bound, Communicator& group) {
  for (const PartId part : bound.covered) {
    for (const std::size_t unit : parameters_.layout().units_of(part)) {
      const ElementRange own = parameters_.own(unit);
      group.all_gather(parameters_.weights(unit, own.begin), parameters_.weights(unit), own.size(),
                       kElement, bound.queue);
    }
  }
}

// Of what the executor trains these are the norms, which lie scattered over the units; they travel
// in one message. (Each rank knows all of the gradients of row-split layers' biases.) Where ZeRO
// splits the gradients, what this rank does not update is carried along and not used.
void OpRunner::add_replicated_gradients(const BoundOp& bound, Communicator& group) {
  struct Piece {
    void* gradient;
    std::size_t elements;
  };
  std::vector<Piece> pieces;
  std::size_t total = 0;
  const std::vector<ParameterUnit>& units = parameters_.layout().units;
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const ParameterSlice& slice : units[u].slices) {
      if (!slice.is_norm()) continue;
      pieces.push_back({parameters_.gradients(u, slice.offset), slice.elements()});
      total += slice.elements();
    }
  }
  const std::size_t element = bytes_of(kElement);
  const std::shared_ptr<void> joined = kernels_.allocate(total * element);
  auto* start = static_cast<std::byte*>(joined.get());
  std::byte* next = start;
  for (const Piece& piece : pieces) {
    kernels_.copy(next, piece.gradient, piece.elements * element, bound.queue);
    next += piece.elements * element;
  }
  group.all_reduce(start, total, kElement, Reduction::Sum, bound.queue);
  next = start;
  for (const Piece& piece : pieces) {
    kernels_.copy(piece.gradient, next, piece.elements * element, bound.queue);
    next += piece.elements * element;
  }
}

void OpRunner::add_tied_gradient(const BoundOp& bound, Communicator& group) {
  const std::vector<ParameterUnit>& units = parameters_.layout().units;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (!units[u].token_embedding) continue;
    const ElementRange own = parameters_.own(u);
    group.all_reduce(parameters_.gradients(u, own.begin), own.size(), kElement, Reduction::Sum,
                     bound.queue);
  }
}

void OpRunner::add_gradient_norm(Communicator& group, StepState& state) {
  auto squares = static_cast<float>(state.gradient_squares);
  group.all_reduce(&squares, 1, kElement, Reduction::Sum, nullptr);
  state.gradient_squares = static_cast<double>(squares);
}

}  // namespace shardwright::executor
