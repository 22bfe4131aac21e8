// Mixtures of experts: the router, the moves of tokens to experts and back, and the experts.
//
// A token's output is the sum of its experts' outputs, each times the expert's share in the token.
// The shares travel with the tokens, and the output of the experts' activation function is
// multiplied by them, as in Megatron Core (weighted_bias_swiglu in
// megatron/core/fusions/fused_bias_swiglu.py): so the gradients of the shares follow from what the
// experts keep anyway, and travel back with the tokens'.
#include <algorithm>
#include <variant>

#include "core/program/groups.hpp"
#include "executor/kernels/bfloat16.hpp"
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {
namespace {

// The elements of a row of each tensor that a product of experts reads or writes.
struct RowTensor {
  TensorRef tensor;
  std::int64_t width = 0;
};
std::vector<RowTensor> row_tensors(const Op& op) {
  const auto& work = std::get<GemmWork>(op.work);
  if (op.phase == Phase::BackwardWeight) return {{op.reads[0], work.m}, {op.reads[1], work.n}};
  return {{op.reads[0], work.k}, {op.writes[0], work.n}};
}

std::vector<std::size_t> times(std::vector<std::size_t> counts, std::size_t bytes) {
  for (std::size_t& count : counts) count *= bytes;
  return counts;
}

}  // namespace

bool is_of_experts(const Op& op) {
  return !op.parameters.empty() && op.parameters.front().find("moe.experts.") != std::string::npos;
}

void OpRunner::find_expert_rows() {
  for (const Block& block : program_.blocks) {
    for (const Op& op : block.ops) {
      if (op.kind == OpKind::Router) router_scores_.insert(op.writes.front().tensor);
      if (!is_of_experts(op)) continue;
      for (const RowTensor& rows : row_tensors(op)) expert_rows_[rows.tensor.tensor] = rows.width;
      if (op.phase != Phase::BackwardWeight) expert_results_.insert(op.writes.front().tensor);
    }
  }
  // What lies beyond the gathers of the ranks that split the experts, then what lies beyond the
  // exchange.
  const auto mark = [&](Group group, std::set<TensorId>& beyond) {
    for (const Block& block : program_.blocks) {
      for (const Op& op : block.ops) {
        const auto* work = std::get_if<CommunicationWork>(&op.work);
        if (work == nullptr || work->group != group) continue;
        for (const TensorRef ref : {op.reads.front(), op.writes.front()})
          if (!holds_rows(ref)) beyond.insert(ref.tensor);
      }
    }
  };
  const Plan& plan = program_.plan;
  mark(Group::ExpertTensor, plan.ep > 1 ? received_rows_ : sent_rows_);
  mark(Group::Expert, sent_rows_);
  experts_by_rank_ = experts_by_rank(plan, model_.moe->experts);
  const Communicator* group = communicators_.find(Group::Expert);
  own_experts_ =
      experts_by_rank_.at(group == nullptr ? 0 : static_cast<std::size_t>(group->rank()));
  most_received_ = most_rows(*model_.moe, shape_.residual_tokens, plan.ep, own_experts_);
  row_buffer_ = allocate_elements(most_received_ * plan.expert_tp * shape_.hidden);
}

bool OpRunner::holds_rows(TensorRef ref) const {
  return expert_rows_.contains(ref.tensor) || received_rows_.contains(ref.tensor) ||
         sent_rows_.contains(ref.tensor);
}

std::size_t OpRunner::most_row_elements(TensorRef ref) const {
  const auto found = expert_rows_.find(ref.tensor);
  const std::int64_t elements = found != expert_rows_.end()
                                    ? most_received_ * program_.plan.expert_tp * found->second
                                : received_rows_.contains(ref.tensor)
                                    ? most_received_ * shape_.hidden
                                    : shape_.residual_tokens * model_.moe->top_k * shape_.hidden;
  return static_cast<std::size_t>(elements);
}

std::size_t OpRunner::elements_written(const BoundOp& bound, std::size_t index) {
  const TensorRef ref = bound.op->writes[index];
  if (!holds_rows(ref)) return elements_of(ref);
  const ExpertRouting& routing = routing_of(bound);
  const auto found = expert_rows_.find(ref.tensor);
  return static_cast<std::size_t>(
      found != expert_rows_.end()           ? routing.rows_gathered() * found->second
      : received_rows_.contains(ref.tensor) ? routing.rows_received() * shape_.hidden
                                            : routing.rows_sent() * shape_.hidden);
}

RouterShape OpRunner::router_shape() const {
  return {shape_.residual_tokens, model_.moe->experts, model_.moe->top_k, model_.moe->renormalised};
}

ExpertRouting& OpRunner::routing_of(const BoundOp& bound) {
  return routings_.of(bound.call->layer, bound.call->microbatch);
}

std::shared_ptr<void> OpRunner::allocate_elements(std::int64_t elements) {
  return kernels_.allocate(static_cast<std::size_t>(elements) * bytes_of(kernels_.element()));
}

void OpRunner::router(const BoundOp& bound, const StepState& state) {
  if (is_backward(bound.op->phase)) return router_backward(bound, state.balance_loss);
  ExpertRouting& routing = routing_of(bound);
  const RouterShape shape = router_shape();
  const std::int64_t choices = shape.tokens * shape.top_k;
  routing.chosen.resize(static_cast<std::size_t>(choices));
  routing.shares = allocate_elements(choices);
  kernels_.choose_experts(shape, bound.write(0), routing.chosen.data(), routing.shares.get(),
                          bound.queue);
  lay_out_rows(*model_.moe, shares_on_host(routing), routing);
  routing.row_shares = allocate_elements(routing.rows_sent());
  kernels_.gather_rows(1, routing.choice_of, routing.shares.get(), routing.row_shares.get(),
                       bound.queue);
  // Whether or not ranks split the experts, the rows for them are in the order of experts.
  if (program_.plan.ep > 1) return;
  routing.received = routing.sent;
  if (program_.plan.expert_tp > 1) return;
  routing.rows = routing.sent;
  routing.row_share_gradients = allocate_elements(routing.rows_sent());
}

// Only experts with a capacity ask for the shares.
std::vector<double> OpRunner::shares_on_host(const ExpertRouting& routing) {
  if (model_.moe->capacity_factor == 0.0) return {};
  const auto download = [&](auto zero) {
    std::vector<decltype(zero)> shares(routing.chosen.size(), zero);
    kernels_.download(shares.data(), routing.shares.get(), shares.size() * sizeof zero);
    return shares;
  };
  switch (kernels_.element()) {
    case Element::Float64:
      return download(0.0);
    case Element::Bfloat16: {
      const std::vector<std::uint16_t> bits = download(std::uint16_t{0});
      std::vector<double> shares(bits.size());
      std::transform(bits.begin(), bits.end(), shares.begin(), from_bfloat16);
      return shares;
    }
    case Element::Float32:
      break;
  }
  const std::vector<float> shares = download(0.0F);
  return {shares.begin(), shares.end()};
}

// The gradient by probability, [sequences, experts], of the loss that balances experts, of which
// each sequence of n tokens has one (DeepSeek-V2, arXiv 2405.04434, equations 23 to 25):
//
//   weight * E * sum over experts of f P,   f = choices of the expert / (k n),   P = mean
//   probability
//
// The mean over the sequences of the batch counts. Where the loss is that of a sequence, it is the
// same under every plan.
std::vector<double> OpRunner::balance_gradient(const ExpertRouting& routing, double weight) const {
  if (weight == 0.0) return {};
  const auto experts = static_cast<std::size_t>(model_.moe->experts);
  const auto each = static_cast<std::size_t>(shape_.sequence_tokens * model_.moe->top_k);
  const double one = weight * static_cast<double>(experts) / static_cast<double>(each) /
                     static_cast<double>(shape_.sequence_tokens * program_.plan.global_batch);
  std::vector<double> gradient(routing.chosen.size() / each * experts, 0.0);
  for (std::size_t choice = 0; choice < routing.chosen.size(); ++choice)
    gradient[choice / each * experts + static_cast<std::size_t>(routing.chosen[choice])] += one;
  return gradient;
}

void OpRunner::router_backward(const BoundOp& bound, double balance_loss) {
  ExpertRouting& routing = routing_of(bound);
  const std::vector<double> balance = balance_gradient(routing, balance_loss);
  routing.share_gradients = allocate_elements(static_cast<std::int64_t>(routing.chosen.size()));
  kernels_.gather_rows(1, routing.row_of, routing.row_share_gradients.get(),
                       routing.share_gradients.get(), bound.queue);
  kernels_.choose_experts_backward(router_shape(), bound.read(0), routing.chosen.data(),
                                   routing.share_gradients.get(),
                                   balance.empty() ? nullptr : balance.data(),
                                   shape_.sequence_tokens, bound.write(0), bound.queue);
  // Weight gradients of the experts may follow, which need the rows of each.
  ExpertRouting rest;
  rest.rows = std::move(routing.rows);
  routing = std::move(rest);
}

void OpRunner::permute(const BoundOp& bound) {
  const ExpertRouting& routing = routing_of(bound);
  const TensorRef from = bound.op->reads.front(), to = bound.op->writes.front();
  if (from == to) return sort_rows(bound, routing);
  if (holds_rows(to)) {
    return kernels_.gather_rows(shape_.hidden, routing.token_of, bound.read(0), bound.write(0),
                                bound.queue);
  }
  // After rows and scores, the output of shared experts, or the gradient of their input.
  const void* shared = bound.reads.size() > 2 ? bound.read(2) : nullptr;
  kernels_.sum_rows(shape_.hidden, model_.moe->top_k, routing.row_of, bound.read(0), shared,
                    bound.write(0), bound.queue);
}

// Brings rows from the order of arrival into that of experts, or results of experts back.
void OpRunner::sort_rows(const BoundOp& bound, const ExpertRouting& routing) {
  const bool results = expert_results_.contains(bound.op->writes.front().tensor);
  kernels_.gather_rows(shape_.hidden, results ? routing.sorted_at : routing.arrived_at,
                       bound.read(0), row_buffer_.get(), bound.queue);
  const auto elements = static_cast<std::size_t>(routing.rows_gathered() * shape_.hidden);
  kernels_.copy(bound.write(0), row_buffer_.get(), elements * bytes_of(kernels_.element()),
                bound.queue);
}

void OpRunner::expert_product(const BoundOp& bound) {
  const auto& work = std::get<GemmWork>(bound.op->work);
  const ExpertRouting& routing = routing_of(bound);
  std::vector<const void*> weights;
  std::vector<void*> gradients;
  for (std::size_t i = 0; i < bound.op->parameters.size(); ++i) {
    const Weights each = weights_of(bound, i);
    weights.push_back(each.weight);
    gradients.push_back(each.weight_gradient);
  }
  const auto parts = static_cast<std::int64_t>(weights.size());
  switch (bound.op->phase) {
    case Phase::BackwardInput:
      return kernels_.expert_input_gradient({routing.rows, work.n, work.k / parts}, bound.read(0),
                                            weights, bound.write(0), bound.queue);
    case Phase::BackwardWeight:
      return kernels_.expert_weight_gradient({routing.rows, work.n, work.m / parts}, bound.read(0),
                                             bound.read(1), gradients, bound.queue);
    default:
      return kernels_.expert_product({routing.rows, work.k, work.n / parts}, bound.read(0), weights,
                                     bound.write(0), bound.queue);
  }
}

void OpRunner::expert_activation(const BoundOp& bound) {
  const ExpertRouting& routing = routing_of(bound);
  const bool backward = is_backward(bound.op->phase);
  const TensorRef output = backward ? bound.op->reads[1] : bound.op->writes[0];
  const std::int64_t rows = routing.rows_gathered(), width = expert_rows_.at(output.tensor);
  const ActivationShape shape{model_.mlp.activation, model_.mlp.gated, rows, width};
  kernels_.activation(shape, bound.read(0), bound.write(0), bound.queue);
  if (!backward) {
    return kernels_.scale_rows(rows, width, routing.row_shares.get(), bound.write(0), bound.queue);
  }
  // The output without the shares stands where the gradient of the input is written afterwards. The
  // gradient of the output, which nothing else reads, gets the shares.
  void* output_gradient = bound.reads[1];
  kernels_.multiply_rows(rows, width, output_gradient, bound.write(0),
                         routing.row_share_gradients.get(), bound.queue);
  kernels_.scale_rows(rows, width, routing.row_shares.get(), output_gradient, bound.queue);
  kernels_.activation_backward(shape, bound.read(0), output_gradient, bound.write(0), bound.queue);
}

// (output of shared experts, gate) -> (gated); backward (dgated, output, gate) -> (doutput, dgate)
void OpRunner::shared_gate(const BoundOp& bound) {
  const std::int64_t rows = shape_.residual_tokens, width = shape_.hidden;
  if (!is_backward(bound.op->phase)) {
    return kernels_.gate_rows(rows, width, bound.read(0), bound.read(1), bound.write(0),
                              bound.queue);
  }
  kernels_.gate_rows_backward(rows, width, bound.read(0), bound.read(1), bound.read(2),
                              bound.write(0), bound.write(1), bound.queue);
}

void OpRunner::exchange_rows(const BoundOp& bound, Communicator& group) {
  switch (bound.op->kind) {
    case OpKind::AllGather:
      return gather_split_rows(bound, group);
    case OpKind::ReduceScatter:
      return scatter_split_rows(bound, group);
    default:
      return exchange_sent_rows(bound, group);
  }
}

// To the experts and, backward, to their outputs' gradients; or back. Forward the numbers of rows
// go ahead and the shares follow; backward the gradients of the shares return with those of the
// rows.
void OpRunner::exchange_sent_rows(const BoundOp& bound, Communicator& group) {
  ExpertRouting& routing = routing_of(bound);
  const bool to_experts = sent_rows_.contains(bound.op->reads.front().tensor);
  const bool backward = is_backward(bound.op->phase);
  if (to_experts && !backward) exchange_counts(routing, group, bound.queue);
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto exchange = [&](std::int64_t width, const void* in, void* out) {
    const std::size_t bytes = static_cast<std::size_t>(width) * bytes_of(kernels_.element());
    const auto sent = times(rows_by_rank(routing.sent, experts_by_rank_), bytes);
    const auto received = times(rows_by_rank(routing.received, ranks), bytes);
    group.all_to_all(in, to_experts ? sent : received, out, to_experts ? received : sent,
                     bound.queue);
  };
  exchange(shape_.hidden, bound.read(0), bound.write(0));
  if (to_experts == backward) return;
  const bool splits = program_.plan.expert_tp > 1;
  if (to_experts) {
    const std::shared_ptr<void> arrived = allocate_elements(routing.rows_received());
    exchange(1, routing.row_shares.get(), arrived.get());
    routing.row_shares = arrived;
    if (!splits) sort_shares(routing, bound.queue);
  } else {
    if (!splits) unsort_share_gradients(routing, bound.queue);
    const std::shared_ptr<void> returned = allocate_elements(routing.rows_sent());
    exchange(1, routing.row_share_gradients.get(), returned.get());
    routing.row_share_gradients = returned;
  }
}

void OpRunner::exchange_counts(ExpertRouting& routing, Communicator& group, Queue queue) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto experts = static_cast<std::size_t>(own_experts_);
  std::vector<std::size_t> sent;
  for (const std::int64_t each : experts_by_rank_)
    sent.push_back(static_cast<std::size_t>(each) * sizeof(std::int64_t));
  const std::vector<std::size_t> received(ranks, experts * sizeof(std::int64_t));
  routing.received.resize(ranks * experts);
  group.all_to_all(routing.sent.data(), sent, routing.received.data(), received, queue);
  if (program_.plan.expert_tp > 1) return;
  routing.gathered = routing.received;
  lay_out_gathered(experts, routing);
}

// The shares follow the rows, which have an op of their own that sorts them.
void OpRunner::sort_shares(ExpertRouting& routing, Queue queue) {
  const std::int64_t rows = routing.rows_gathered();
  const std::shared_ptr<void> sorted = allocate_elements(rows);
  kernels_.gather_rows(1, routing.arrived_at, routing.row_shares.get(), sorted.get(), queue);
  routing.row_shares = sorted;
  routing.row_share_gradients = allocate_elements(rows);
}

void OpRunner::unsort_share_gradients(ExpertRouting& routing, Queue queue) {
  const std::shared_ptr<void> arrived = allocate_elements(routing.rows_gathered());
  kernels_.gather_rows(1, routing.sorted_at, routing.row_share_gradients.get(), arrived.get(),
                       queue);
  routing.row_share_gradients = arrived;
}

// Between ranks that split the same experts. Without an exchange before it no op of the program
// sorts what they gather.
void OpRunner::gather_split_rows(const BoundOp& bound, Communicator& group) {
  ExpertRouting& routing = routing_of(bound);
  const auto ranks = static_cast<std::size_t>(group.size());
  const bool backward = is_backward(bound.op->phase), sorts = program_.plan.ep == 1;
  if (!backward) {
    const std::size_t counts = routing.received.size();
    routing.gathered.resize(counts * ranks);
    group.all_gather(routing.received.data(), routing.gathered.data(),
                     counts * sizeof(std::int64_t) / bytes_of(Element::Float32), Element::Float32,
                     bound.queue);
    lay_out_gathered(counts / static_cast<std::size_t>(program_.plan.ep), routing);
  }
  const std::vector<std::size_t> rows = rows_by_rank(routing.gathered, ranks);
  const auto gather = [&](std::int64_t width, const void* in, void* out) {
    const std::size_t bytes = static_cast<std::size_t>(width) * bytes_of(kernels_.element());
    auto* part = static_cast<std::byte*>(out);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::size_t size = rows[rank] * bytes;
      if (static_cast<int>(rank) == group.rank()) kernels_.copy(part, in, size, bound.queue);
      if (size > 0) group.broadcast(part, size, static_cast<int>(rank), bound.queue);
      part += size;
    }
  };
  gather(shape_.hidden, bound.read(0), sorts ? row_buffer_.get() : bound.write(0));
  if (sorts)
    kernels_.gather_rows(shape_.hidden, routing.arrived_at, row_buffer_.get(), bound.write(0),
                         bound.queue);
  if (backward) return;
  const std::shared_ptr<void> shares = allocate_elements(routing.rows_gathered());
  gather(1, routing.row_shares.get(), shares.get());
  routing.row_shares = shares;
  sort_shares(routing, bound.queue);
}

void OpRunner::scatter_split_rows(const BoundOp& bound, Communicator& group) {
  ExpertRouting& routing = routing_of(bound);
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::int64_t own = routing.rows_received(), size = group.size();
  // The addends of each of this rank's rows in what the ranks send it.
  std::vector<std::int32_t> addends;
  for (std::int64_t row = 0; row < own; ++row)
    for (std::int64_t rank = 0; rank < size; ++rank)
      addends.push_back(static_cast<std::int32_t>(rank * own + row));
  const auto scatter = [&](std::int64_t width, const void* in, void* out) {
    const std::size_t bytes = static_cast<std::size_t>(width) * bytes_of(kernels_.element());
    const std::shared_ptr<void> parts = allocate_elements(own * size * width);
    const std::vector<std::size_t> received(ranks, static_cast<std::size_t>(own) * bytes);
    group.all_to_all(in, times(rows_by_rank(routing.gathered, ranks), bytes), parts.get(), received,
                     bound.queue);
    kernels_.sum_rows(width, size, addends, parts.get(), nullptr, out, bound.queue);
  };
  const void* rows = bound.read(0);
  if (program_.plan.ep == 1) {
    kernels_.gather_rows(shape_.hidden, routing.sorted_at, rows, row_buffer_.get(), bound.queue);
    rows = row_buffer_.get();
  }
  scatter(shape_.hidden, rows, bound.write(0));
  if (!is_backward(bound.op->phase)) return;
  unsort_share_gradients(routing, bound.queue);
  const std::shared_ptr<void> sums = allocate_elements(own);
  scatter(1, routing.row_share_gradients.get(), sums.get());
  routing.row_share_gradients = sums;
}

}  // namespace shardwright::executor
