// Collectives and point-to-point transfers.
#include <vector>

#include "core/base/error.hpp"
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {

std::size_t OpRunner::elements_of(TensorRef ref) const {
  if (router_scores_.contains(ref.tensor))
    return static_cast<std::size_t>(shape_.residual_tokens * model_.moe->experts);
  return static_cast<std::size_t>(program_.tensors[ref.tensor].bytes.value()) /
         bytes_of(kernels_.element());
}

void OpRunner::communicate(const BoundOp& bound, StepState& state) {
  const auto& work = std::get<CommunicationWork>(bound.op->work);
  if (bound.op->kind == OpKind::Send || bound.op->kind == OpKind::Receive)
    return transfer(bound, work);
  const auto group = [&]() -> Communicator& { return communicators_.of(work.group); };
  switch (bound.op->payload) {
    case Payload::Tensors:
      return tensor_collective(bound, work);
    case Payload::SoftmaxStatistics:
      return softmax_statistics(bound, group());
    case Payload::Gradients:
      return reduce_gradients(bound, communicators_.find(work.group), state);
    case Payload::Parameters:
      return gather_parameters(bound, communicators_.find(work.group));
    case Payload::ReplicatedGradients:
      return add_replicated_gradients(bound, group(), state);
    case Payload::TiedGradient:
      return add_tied_gradient(bound, group());
    case Payload::GradientNorm:
      return group().all_reduce(state.gradient_squares, 1, Element::Float64, Reduction::Sum,
                                bound.queue);
    case Payload::CompressedGradients:
    case Payload::LocalSteps:
      SHARDWRIGHT_CHECK(false, "an exchange between replicas runs elsewhere");
  }
}

void OpRunner::transfer(const BoundOp& bound, const CommunicationWork& work) {
  Communicator& pipeline = communicators_.of(work.group);
  const int peer = static_cast<int>(place_[Axis::Pipeline]) + work.peer_offset;
  const auto bytes = static_cast<std::size_t>(work.bytes.value());
  const int channel = channel_of(bound.op->stream);
  if (bound.op->kind == OpKind::Send) {
    pipeline.send(bound.reads.front(), bytes, peer, channel, bound.queue);
  } else {
    pipeline.receive(bound.writes.front(), bytes, peer, channel, bound.queue);
  }
}

void OpRunner::tensor_collective(const BoundOp& bound, const CommunicationWork& work) {
  Communicator& group = communicators_.of(work.group);
  if (work.group == Group::Context) return context_collective(bound, work, group);
  if (work.group == Group::Expert || work.group == Group::ExpertTensor)
    return exchange_rows(bound, group);
  const Element element = kernels_.element();
  const void* in = bound.reads.front();
  void* out = bound.writes.front();
  const std::size_t read = elements_of(bound.op->reads.front());
  const std::size_t written = elements_of(bound.op->writes.front());
  switch (bound.op->kind) {
    case OpKind::AllReduce:
      if (out != in) kernels_.copy(out, in, written * bytes_of(element), bound.queue);
      return group.all_reduce(out, written, element, Reduction::Sum, bound.queue);
    case OpKind::AllGather:
      if (read * static_cast<std::size_t>(group.size()) > written)
        return gather_rotary_key(bound, group);
      return group.all_gather(in, out, read, element, bound.queue);
    case OpKind::ReduceScatter:
      return group.reduce_scatter(in, out, written, element, bound.queue);
    default:
      SHARDWRIGHT_CHECK(false, "no collective for " + bound.op->name);
  }
}

// One op with two reductions: the maxima, then the sums relative to them.
void OpRunner::softmax_statistics(const BoundOp& bound, Communicator& group) {
  const Element state = kernels_.state_element();
  const auto rows = static_cast<std::size_t>(shape_.tokens);
  auto* statistics = static_cast<std::byte*>(bound.writes.front());
  const std::size_t bytes = rows * bytes_of(state);
  kernels_.copy(own_maxima_.get(), statistics, bytes, bound.queue);
  group.all_reduce(statistics, rows, state, Reduction::Max, bound.queue);
  kernels_.loss_rescale(shape_.tokens, own_maxima_.get(), statistics, bound.queue);
  group.all_reduce(statistics + bytes, 2 * rows, state, Reduction::Sum, bound.queue);
}

Group OpRunner::group_of(const BoundOp& bound) const {
  if (const auto* work = std::get_if<CommunicationWork>(&bound.op->work)) return work->group;
  for (const Op& op : program_.blocks[bound.call->block].ops) {
    if (const auto* work = std::get_if<CommunicationWork>(&op.work)) return work->group;
  }
  SHARDWRIGHT_CHECK(false, "no collective beside " + bound.op->name);
}

std::vector<std::size_t> OpRunner::carried_units(const BoundOp& bound) const {
  const Group group = group_of(bound);
  const bool experts = group == Group::ExpertData || group == Group::ExpertShardInner ||
                       group == Group::ExpertShardOuter ||
                       bound.op->name.starts_with("mirrored_expert_gradients");
  const ParameterLayout& layout = parameters_.layout();
  std::vector<std::size_t> units;
  const auto append = [&](PartId part) {
    for (const std::size_t unit : layout.units_of(part))
      if (layout.units[unit].experts == experts) units.push_back(unit);
  };
  if (bound.covered.empty()) {
    const std::vector<TensorRef>& refs = bound.reads.empty() ? bound.op->writes : bound.op->reads;
    append(part_of(refs.front(), *bound.call));
  }
  for (const PartId part : bound.covered) append(part);
  // The two stages that hold the same parts list them in another order.
  const auto part_of_unit = [&](std::size_t unit) { return layout.units[unit].part; };
  if (group == Group::Mirror) std::ranges::stable_sort(units, {}, part_of_unit);
  return units;
}

void OpRunner::reduce_gradients(const BoundOp& bound, Communicator* group, StepState& state) {
  for (const std::size_t unit : carried_units(bound)) {
    if (state.own_squares != nullptr) add_own_squares(unit, state, bound.queue);
    if (!bound.reads.empty()) {
      add_unsharded_gradient(unit, bound, group);
    } else if (bound.op->kind == OpKind::AllReduce) {
      // What is left after a reduction within the shard group, if there was one.
      const ElementRange own = parameters_.own(unit);
      group->all_reduce(parameters_.gradients(unit, own.begin), own.size(),
                        kernels_.state_element(), Reduction::Sum, bound.queue);
    } else {
      scatter_gradients(unit, *group, bound.queue);
    }
  }
}

void OpRunner::scatter_gradients(std::size_t unit, Communicator& group, Queue queue) {
  const Element element = kernels_.state_element();
  const ElementRange own = parameters_.own(unit);
  group.reduce_scatter(parameters_.gradients(unit), parameters_.gradients(unit, own.begin),
                       own.size(), element, queue);
  // ZeRO-2 reduces what each microbatch adds; this rank has handed over the rest.
  if (program_.plan.zero_stage != 2) return;
  const std::size_t end = parameters_.layout().units[unit].elements;
  kernels_.zero(parameters_.gradients(unit), own.begin * bytes_of(element), queue);
  kernels_.zero(parameters_.gradients(unit, own.end), (end - own.end) * bytes_of(element), queue);
}

void OpRunner::add_unsharded_gradient(std::size_t unit, const BoundOp& bound, Communicator* group) {
  const Element element = kernels_.state_element();
  const ElementRange own = parameters_.own(unit);
  void* whole =
      element_at(bound.reads.front(), parameters_.layout().units[unit].offset_in_part, element);
  for (const NormGradient& norm : unsharded_norms_) {
    if (norm.unit != unit) continue;
    kernels_.accumulate(static_cast<std::int64_t>(norm.elements), norm_sum(norm),
                        element_at(whole, norm.offset, element), bound.queue);
    kernels_.zero(norm_sum(norm), norm.elements * bytes_of(element), bound.queue);
  }
  void* part = element_at(whole, own.begin, element);
  if (group != nullptr) group->reduce_scatter(whole, part, own.size(), element, bound.queue);
  kernels_.accumulate(static_cast<std::int64_t>(own.size()), part,
                      parameters_.gradients(unit, own.begin), bound.queue);
}

void OpRunner::gather_parameters(const BoundOp& bound, Communicator* group) {
  const Element element = kernels_.element();
  for (const std::size_t unit : carried_units(bound)) {
    const ElementRange own = parameters_.own(unit);
    void* whole = bound.writes.empty()
                      ? parameters_.weights(unit)
                      : element_at(bound.writes.front(),
                                   parameters_.layout().units[unit].offset_in_part, element);
    const void* part = parameters_.weights(unit, own.begin);
    if (group == nullptr) {
      kernels_.copy(whole, part, own.size() * bytes_of(element), bound.queue);
    } else {
      group->all_gather(part, whole, own.size(), element, bound.queue);
    }
  }
}

// In the models that the executor trains, these are norms, routers, the gates of shared experts,
// latent attention's projections down, and projections of keys and values of which several ranks
// hold the same heads. Their gradients
// are scattered over the units and travel in one buffer. (Each rank has the complete gradients of
// the biases of row-split layers.) With ZeRO-1 and ZeRO-2, the buffer also carries parts that this
// rank does not update.
void OpRunner::add_replicated_gradients(const BoundOp& bound, Communicator& group,
                                        const StepState& state) {
  const Element element = kernels_.state_element();
  auto* buffer = static_cast<std::byte*>(norm_buffer_.get());
  const auto copy_each = [&](auto copy) {
    for (const NormGradient& norm : split_norms_)
      copy(buffer + norm.in_buffer * bytes_of(element),
           parameters_.gradients(norm.unit, norm.offset), norm.elements * bytes_of(element));
  };
  copy_each([&](void* place, const void* gradient, std::size_t bytes) {
    kernels_.copy(place, gradient, bytes, bound.queue);
  });
  const bool with_own = state.own_squares != nullptr;
  group.all_reduce(buffer, (with_own ? 2 : 1) * split_norm_elements_, element, Reduction::Sum,
                   bound.queue);
  copy_each([&](const void* place, void* gradient, std::size_t bytes) {
    kernels_.copy(gradient, place, bytes, bound.queue);
  });
  if (with_own && place_[Axis::Tensor] == 0) {
    kernels_.add_squares(static_cast<std::int64_t>(split_norm_elements_),
                         buffer + split_norm_elements_ * bytes_of(element), state.own_squares,
                         bound.queue);
  }
  kernels_.zero(buffer, 2 * split_norm_elements_ * bytes_of(element), bound.queue);
}

void OpRunner::add_tied_gradient(const BoundOp& bound, Communicator& group) {
  const std::vector<ParameterUnit>& units = parameters_.layout().units;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (!units[u].token_embedding) continue;
    const ElementRange own = parameters_.own(u);
    group.all_reduce(parameters_.gradients(u, own.begin), own.size(), kernels_.state_element(),
                     Reduction::Sum, bound.queue);
  }
}

}  // namespace shardwright::executor
