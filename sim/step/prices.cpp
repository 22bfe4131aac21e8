#include "sim/step/prices.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "core/program/group_lattice.hpp"
#include "core/spec/pools.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/placement.hpp"
#include "sim/cost/server_cost.hpp"
#include "sim/cost/slowest_device.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/pool_links.hpp"

namespace shardwright::sim {
namespace {

std::int64_t times(std::int64_t size, double load) {
  return static_cast<std::int64_t>(std::llround(static_cast<double>(size) * load));
}

// The work of the member of the group that has the most to do.
struct Loaded {
  double load;

  Work operator()(GemmWork work) const {
    std::int64_t& rows = work.groups_share_k ? work.k : work.m;
    rows = times(rows, load);
    return work;
  }
  Work operator()(MemoryWork work) const {
    return MemoryWork{work.read * load, work.written * load, work.flop * load, work.kernels};
  }
  Work operator()(CommunicationWork work) const {
    work.bytes = work.bytes * load;
    return work;
  }
  Work operator()(const AttentionWork& work) const { return work; }
  Work operator()(const HostUpdateWork& work) const { return work; }
};

Work work_of(const Op& op) {
  return op.load == 1.0 ? op.work : std::visit(Loaded{op.load}, op.work);
}

double partner_share(const Op& op) {
  const auto* message = std::get_if<CommunicationWork>(&op.work);
  return message == nullptr ? 0.0 : message->partner_share;
}

// All-to-alls hide behind the kernels of another microbatch, of which there are as many as in the
// block itself: while forward and backward pass of two microbatches alternate, the ones of the one
// run beside the kernels of the other.
void hide_exchanges(const Block& block, BlockPrices& prices) {
  Seconds computing, exchanging;
  double share = 0.0;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    if (block.ops[i].stream == Stream::Compute) computing += prices[i];
    if (partner_share(block.ops[i]) == 0.0) continue;
    exchanging += prices[i];
    share = partner_share(block.ops[i]);
  }
  if (exchanging <= Seconds(0)) return;
  const double hidden = share * std::min(1.0, computing / exchanging);
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    if (partner_share(block.ops[i]) > 0.0) prices[i] = prices[i] * (1.0 - hidden);
  }
}

// The prices of the pools that a plan names.
class PoolPricers {
 public:
  PoolPricers(const Plan& plan, const ClusterSpec& cluster, const StackSpec& stack)
      : plan_(plan), pools_(pool_clusters(cluster, plan)) {
    for (const ClusterSpec& pool : pools_) {
      outside_.push_back(seen_from_outside(pool, cluster.between_pools));
      launch_.push_back(host_launch(stack, pool));
    }
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      inner_.emplace_back(plan, pools_[i], stack);
      outer_.emplace_back(plan, outside_[i], stack, true);
    }
    if (!pools_.empty()) return;
    inner_.emplace_back(plan, cluster, stack);
    launch_.push_back(host_launch(stack, cluster));
  }

  // A message between pools takes as long as it would between nodes of the slowest one.
  PricedBlock price(const Block& block) const {
    const auto pool = static_cast<std::size_t>(block.pool);
    PricedBlock priced = inner_[pool].price(block);
    const std::vector<std::size_t> leaving = leaving_ops(block);
    if (leaving.empty()) return priced;
    const PricedBlock own = outer_[pool].price(block);
    for (const std::size_t i : leaving) {
      priced.ports[i] = own.ports[i];
      priced.times[i] = own.times[i];
    }
    for (std::size_t other = 0; other < outer_.size(); ++other) {
      const auto reaches_it = [&](std::size_t op) {
        return std::ranges::count(pools_reached(block, op), static_cast<std::int32_t>(other)) > 0;
      };
      if (other == pool || std::ranges::none_of(leaving, reaches_it)) continue;
      const BlockPrices times = outer_[other].price(block).times;
      for (const std::size_t i : leaving)
        if (reaches_it(i)) priced.times[i] = std::max(priced.times[i], times[i]);
    }
    return priced;
  }

  const std::vector<HostLaunch>& launch() const { return launch_; }

 private:
  // The pools that an op's message reaches; none where it is no message or stays on the pool.
  std::span<const std::int32_t> pools_reached(const Block& block, std::size_t op) const {
    const auto* message = std::get_if<CommunicationWork>(&block.ops[op].work);
    if (message == nullptr) return {};
    return joins_pools_of_replicas(message->group, plan_) ? block.replica_pools : block.stage_pools;
  }

  std::vector<std::size_t> leaving_ops(const Block& block) const {
    std::vector<std::size_t> leaving;
    if (block.stage_pools.empty() && block.replica_pools.empty()) return leaving;
    for (std::size_t i = 0; i < block.ops.size(); ++i)
      if (!pools_reached(block, i).empty()) leaving.push_back(i);
    return leaving;
  }

  const Plan& plan_;
  std::vector<ClusterSpec> pools_, outside_;
  // By pool: what stays inside of it, and messages to other pools.
  std::vector<Pricer> inner_, outer_;
  std::vector<HostLaunch> launch_;
};

}  // namespace

bool is_kernel(const Op& op) {
  return op.stream == Stream::Compute && !is_communication(op.kind) &&
         op.kind != OpKind::HostOptimizer;
}

Prices Prices::without_shared_nics() const {
  Prices prices = *this;
  for (BlockPorts& block : prices.ports) {
    for (PortShare& share : block) share.nic = 0.0F;
  }
  return prices;
}

Pricer::Pricer(const Plan& plan, const ClusterSpec& cluster, const StackSpec& stack, bool apart)
    : plan_(plan),
      cluster_(cluster),
      stack_(stack),
      slowest_(slowest_device_factor(cluster.accelerator, plan.world_size())),
      sharers_(cluster.ranks_per_node(plan.world_size())) {
  const auto placed = apart ? place_between_pools : place;
  for (const Group group : enumerators<Group>())
    placements_.push_back(placed(group, plan, cluster));
}

KernelCost Pricer::kernel(const Op& op) const {
  if (const auto* update = std::get_if<HostUpdateWork>(&op.work))
    return host_update_cost(*update, cluster_.node.host, cluster_.accelerator, sharers_);
  if (op.kind == OpKind::ServerOptimizer)
    return {server_update_time(std::get<MemoryWork>(op.work), plan_, cluster_)};
  KernelCost cost = kernel_cost(op.kind, work_of(op), op.precision, cluster_, stack_, op.phase);
  cost.time = cost.time * slowest_;
  return cost;
}

void Pricer::price_message(OpKind op_kind, const CommunicationWork& message,
                           PricedBlock& priced) const {
  const GroupPlacement& placement = placement_of(message);
  if (is_server_transfer(op_kind)) {
    priced.times.push_back(server_transfer_time(op_kind, message.bytes, plan_, cluster_, stack_));
    priced.ports.push_back(
        port_share(op_kind, message.bytes, placement, cluster_, priced.times.back()));
    return;
  }
  // A ring shift is one message from each member to the next.
  const OpKind kind = op_kind == OpKind::RingShift ? OpKind::Send : op_kind;
  const TokenTraffic tokens =
      token_traffic(message.tokens, message.copies, message.most_nodes, placement);
  const Seconds alone = collective_time(kind, message.bytes, placement, cluster_, stack_, tokens);
  priced.times.push_back(alone * (1.0 - message.hidden_share));
  priced.ports.push_back(port_share(op_kind, message.bytes, placement, cluster_, alone, tokens));
}

PricedBlock Pricer::price(const Block& block) const {
  PricedBlock priced;
  priced.times.reserve(block.ops.size());
  priced.ports.reserve(block.ops.size());
  for (const Op& op : block.ops) {
    if (is_communication(op.kind)) {
      price_message(op.kind, std::get<CommunicationWork>(work_of(op)), priced);
    } else {
      const KernelCost cost = kernel(op);
      if (is_kernel(op)) priced.basis.add(cost.basis, cost.time);
      priced.times.push_back(cost.time);
      priced.ports.emplace_back();
    }
    if (op.every > 1) priced.times.back() = priced.times.back() / static_cast<double>(op.every);
  }
  hide_exchanges(block, priced.times);
  return priced;
}

Contention contention_of(const StackSpec& stack) {
  return {stack.overlap.slowdown, stack.overlap.collective_slowdown};
}

namespace {

// Reduces the price of exchanges that run beside further steps to the part that these steps do not
// hide. Each of these steps takes as long as a step without such exchanges. The exchanges of a
// fragment, those of its dense parameters and of its experts, follow each other.
void hide_behind_steps(const Program& program, Prices& prices) {
  if (program.plan.replicas.overlap_steps == 0) return;
  const std::vector<BlockPrices> whole = prices.blocks;
  const auto for_each_hidden = [&](const RankProgram& rank, const auto& visit) {
    for (const Call& call : rank.calls) {
      const std::vector<Op>& ops = program.blocks[call.block].ops;
      for (std::size_t i = 0; i < ops.size(); ++i)
        if (ops[i].beside_steps > 0)
          visit(ops[i], whole[call.block][i], prices.blocks[call.block][i]);
    }
  };
  for (const RankProgram& rank : program.stages)
    for_each_hidden(rank, [](const Op&, Seconds, Seconds& left) { left = Seconds(); });
  const Seconds step = replay_folded(program, prices, {}).step;
  for (const RankProgram& rank : program.stages) {
    // By the step in which a fragment is sent first.
    std::map<std::int64_t, Seconds> used;
    for_each_hidden(rank, [&](const Op& op, Seconds mean, Seconds& left) {
      const auto every = static_cast<double>(op.every);
      const Seconds alone = mean * every;
      const Seconds free = step * static_cast<double>(op.beside_steps) - used[op.first];
      const Seconds hidden = std::min(alone, free);
      used[op.first] += hidden;
      left = std::max(left, (alone - hidden) / every);
    });
  }
}

}  // namespace

Prices price(const Program& program, const ClusterSpec& cluster, const StackSpec& stack) {
  const PoolPricers pricers(program.plan, cluster, stack);
  Prices prices;
  prices.launch = pricers.launch();
  prices.contention = contention_of(stack);
  prices.blocks.reserve(program.blocks.size());
  for (const Block& block : program.blocks) {
    PricedBlock priced = pricers.price(block);
    prices.blocks.push_back(std::move(priced.times));
    prices.ports.push_back(std::move(priced.ports));
    prices.basis.push_back(priced.basis);
  }
  hide_behind_steps(program, prices);
  return prices;
}

}  // namespace shardwright::sim
