#include "sim/step/prices.hpp"

#include "sim/cost/collective_cost.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/slowest_device.hpp"
#include "sim/cost/token_copies.hpp"

namespace shardwright::sim {

Pricer::Pricer(const Plan& plan, const ClusterSpec& cluster, const StackSpec& stack)
    : cluster_(cluster),
      stack_(stack),
      slowest_(slowest_device_factor(cluster.accelerator, plan.world_size())) {
  for (int group = 0; group < kGroups; ++group) {
    placements_.push_back(place(static_cast<Group>(group), plan, cluster));
  }
}

Seconds Pricer::price(const Op& op) const {
  const auto* message = std::get_if<CommunicationWork>(&op.work);
  if (message != nullptr) return price_message(op.kind, *message);
  return kernel(op).time;
}

KernelCost Pricer::kernel(const Op& op) const {
  KernelCost cost = kernel_cost(op.kind, op.work, op.precision, cluster_, stack_, op.phase);
  cost.time = cost.time * slowest_;
  return cost;
}

Seconds Pricer::price_message(OpKind op_kind, const CommunicationWork& message) const {
  const GroupPlacement& placement = placements_[static_cast<std::size_t>(message.group)];
  // A ring shift is one message from each member to the next.
  const OpKind kind = op_kind == OpKind::RingShift ? OpKind::Send : op_kind;
  return collective_time(kind, message.bytes, placement, cluster_, stack_,
                         remote_share(message.copies, message.most_nodes, placement)) *
         (1.0 - message.hidden_share);
}

BlockPrices Pricer::price(const Block& block, BasisTimes* basis) const {
  BlockPrices prices;
  prices.reserve(block.ops.size());
  for (const Op& op : block.ops) {
    if (basis == nullptr || is_communication(op.kind)) {
      prices.push_back(price(op));
      continue;
    }
    const KernelCost cost = kernel(op);
    basis->add(cost.basis, cost.time);
    prices.push_back(cost.time);
  }
  return prices;
}

Seconds launch_time(const StackSpec& stack, const ClusterSpec& cluster) {
  return stack.launch_time / cluster.node.host.speed;
}

Prices price(const Program& program, const ClusterSpec& cluster, const StackSpec& stack) {
  const Pricer pricer(program.plan, cluster, stack);
  Prices prices;
  prices.launch = launch_time(stack, cluster);
  prices.launch_per_call = stack.cuda_graphs;
  prices.interference = stack.overlap_slowdown;
  prices.blocks.reserve(program.blocks.size());
  for (const Block& block : program.blocks) {
    BasisTimes& basis = prices.basis.emplace_back();
    prices.blocks.push_back(pricer.price(block, &basis));
  }
  return prices;
}

}  // namespace shardwright::sim
