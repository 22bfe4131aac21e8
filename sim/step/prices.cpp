#include "sim/step/prices.hpp"

#include "sim/cost/collective_cost.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/slowest_device.hpp"

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
  if (message == nullptr)
    return kernel_cost(op.kind, op.work, op.precision, cluster_, stack_).time * slowest_;
  const GroupPlacement& placement = placements_[static_cast<std::size_t>(message->group)];
  // A ring shift is one message from each member to the next.
  const OpKind kind = op.kind == OpKind::RingShift ? OpKind::Send : op.kind;
  return collective_time(kind, message->bytes, placement, cluster_, stack_) *
         (1.0 - message->hidden_share);
}

BlockPrices Pricer::price(const Block& block) const {
  BlockPrices prices;
  prices.reserve(block.ops.size());
  for (const Op& op : block.ops) prices.push_back(price(op));
  return prices;
}

Prices price(const Program& program, const ClusterSpec& cluster, const StackSpec& stack) {
  const Pricer pricer(program.plan, cluster, stack);
  Prices prices;
  prices.launch = stack.launch_time / cluster.node.host.speed;
  prices.launch_per_call = stack.cuda_graphs;
  prices.interference = stack.overlap_slowdown;
  prices.blocks.reserve(program.blocks.size());
  for (const Block& block : program.blocks) prices.blocks.push_back(pricer.price(block));
  return prices;
}

}  // namespace shardwright::sim
