#include "sim/step/joint_experts.hpp"

#include <algorithm>
#include <variant>

#include "core/spec/pools.hpp"
#include "sim/step/pool_links.hpp"

namespace shardwright::sim {
namespace {

constexpr Seconds kNoPrice{1e30};

// An exchange of a block: its op, and the time of the kernels since the one before.
struct Exchange {
  std::size_t op = 0;
  Seconds before;
};

std::vector<Exchange> exchanges_of(const Block& block, const BlockPrices& prices) {
  std::vector<Exchange> exchanges;
  Seconds computed;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const auto* message = std::get_if<CommunicationWork>(&block.ops[i].work);
    if (message != nullptr && message->group == Group::Expert) {
      exchanges.push_back({i, computed});
      computed = Seconds();
    } else if (block.ops[i].stream == Stream::Compute) {
      computed += prices[i];
    }
  }
  return exchanges;
}

}  // namespace

struct JointExperts::Part {
  Part(const Scenario& scenario, std::size_t part)
      : plan(plan_of_part(scenario.plan, part)),
        pool(*pool_cluster(scenario.cluster, scenario.plan.replica_pools[part].pool)),
        outside(seen_from_outside(pool, scenario.cluster.between_pools)),
        blocks(make_blocks(scenario.model, plan, scenario.stack).blocks),
        inner(plan, pool, scenario.stack),
        outer(plan, outside, scenario.stack, true) {}

  Plan plan;
  ClusterSpec pool, outside;
  std::vector<Block> blocks;
  // Prices inside of the pool, and of messages to other ones.
  Pricer inner, outer;
};

JointExperts::JointExperts(const Scenario& scenario) {
  for (std::size_t part = 0; part < replica_parts(scenario.plan); ++part)
    parts_.push_back(std::make_unique<Part>(scenario, part));
}

JointExperts::~JointExperts() = default;

void JointExperts::join(std::size_t part, BlockId block, bool waits, BlockPrices& prices) const {
  const std::vector<Exchange> own = exchanges_of(parts_[part]->blocks[block], prices);
  if (own.empty()) return;
  std::vector<Seconds> slowest(own.size()), fastest(own.size(), kNoPrice), latest(own.size());
  for (const std::unique_ptr<Part>& each : parts_) {
    const Block& theirs = each->blocks[block];
    const BlockPrices between = each->outer.price(theirs).times;
    const std::vector<Exchange> exchanges = exchanges_of(theirs, each->inner.price(theirs).times);
    for (std::size_t i = 0; i < own.size(); ++i) {
      slowest[i] = std::max(slowest[i], between[exchanges[i].op]);
      fastest[i] = std::min(fastest[i], between[exchanges[i].op]);
      latest[i] = std::max(latest[i], exchanges[i].before);
    }
  }
  for (std::size_t i = 0; i < own.size(); ++i)
    prices[own[i].op] = waits ? slowest[i] + latest[i] - own[i].before : fastest[i];
}

}  // namespace shardwright::sim
