#include "sim/step/layer_costs.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "core/program/op_start.hpp"
#include "sim/cost/slowest_device.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/flat_program.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/shared_device.hpp"

namespace shardwright::sim {
namespace {

using Launches = std::vector<OpLaunch>;

constexpr double kBefore = -std::numeric_limits<double>::infinity();
constexpr double kUnknown = std::numeric_limits<double>::infinity();

bool reads(const Op& op, TensorId tensor) {
  return std::any_of(op.reads.begin(), op.reads.end(),
                     [tensor](TensorRef ref) { return ref.tensor == tensor; });
}

class CostBuilder {
 public:
  CostBuilder(const BlockSet& set, const Plan& cut, const ClusterSpec& cluster,
              const StackSpec& stack, const PriceChange& change)
      : set_(set),
        stack_(stack),
        change_(change),
        pricer_(cut, cluster, stack),
        launch_(host_launch(stack, cluster)) {}

  PartCost part(const PartBlocks& blocks, const PartParameters& parameters) const {
    return cost_of(blocks, parameters, blocks.recomputed ? block(blocks.recompute) : BlockCost{});
  }

  std::vector<PartCost> grouped(const std::vector<PartBlocks>& parts) const {
    std::vector<PartCost> costs;
    for (std::size_t kind = 0; kind < parts.size(); ++kind) {
      costs.push_back(cost_of(parts[kind], set_.layer_parameters[kind], {}));
      costs.back().rerun = block(parts[kind].recompute);
    }
    return costs;
  }

 private:
  // `recompute`: what the backward slots begin with.
  PartCost cost_of(const PartBlocks& blocks, const PartParameters& parameters,
                   const BlockCost& recompute) const {
    PartCost part;
    part.slot[SlotPhase::Forward] = block(blocks.forward);
    part.slot[SlotPhase::Backward] = recompute + block(blocks.backward);
    part.slot[SlotPhase::BackwardInput] = recompute + block(blocks.backward_input);
    part.slot[SlotPhase::BackwardWeight] = block(blocks.backward_weight);
    part.parameters = parameters;
    for (const SlotPhase phase : enumerators<SlotPhase>())
      part.gathers[phase] = gathers_parameters(set_, blocks, phase);
    part.gathered_bytes = set_.tensors[blocks.parameters].bytes.value();
    part.gradient_bytes = set_.tensors[blocks.parameter_gradient].bytes.value();
    part.offloads = blocks.offloads;
    if (blocks.offloads) {
      part.offloaded_bytes = -block(blocks.store).net;
      part.store_time = pricer_.price(set_.blocks[blocks.store]).times.front().value();
      part.fetch_time = pricer_.price(set_.blocks[blocks.fetch]).times.front().value();
    }
    return part;
  }

  BlockCost block(BlockId id) const {
    const Block& block = set_.blocks[id];
    PricedBlock priced = pricer_.price(block);
    if (change_) change_(id, priced.times);
    const BlockPrices& prices = priced.times;
    BlockCost cost;
    const Launches launches = launch_.of(block);
    cost.time = cost.passing = replay(block.ops, prices, launches);
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      if (block.ops[i].stream == Stream::Compute) cost.compute += prices[i].value();
    }
    const double shared = replay(block.ops, prices, launches, contention_of(stack_), priced.ports);
    cost.interference = std::max(0.0, shared - cost.time);
    if (stack_.overlap.slowdown > 0.0) cost.stalled = stalled(block, prices, launches);
    for (const OpLaunch& launch : launches) cost.launch += launch.before + launch.behind;
    if (!launches.empty()) cost.launch_behind = launches.back().behind;
    cost.behind_its_kind = behind_its_kind(block, prices, launches, cost.time);
    const BlockMemory memory = replay_block(block, set_.tensors);
    cost.rise = memory.rise;
    cost.net = memory.net;
    return cost;
  }

  // The host has issued the last op of a block that it waits inside of some time before that op
  // ends, and then comes to the kernel of the next block that it waits for.
  double behind_its_kind(const Block& block, const BlockPrices& prices, const Launches& launches,
                         double time) const {
    double issued = 0.0, before = 0.0, held = -1.0;
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      issued += launches[i].before;
      if (block.ops[i].holds_host) {
        before = issued;
        issued = held = finish_of(block, prices, launches, i);
        before -= held - prices[i].value();
      }
      issued += launches[i].behind;
    }
    return held < 0.0 ? 0.0 : std::max(0.0, before - (time - issued));
  }

  // The finish of an op in the block alone.
  double finish_of(const Block& block, const BlockPrices& prices, const Launches& launches,
                   std::size_t op) const {
    return replay(std::span(block.ops).first(op + 1), prices, launches);
  }

  // A collective at the block's start that takes nothing over from the block before may have run
  // already.
  bool may_run_before(const Op& op) const {
    return op.stream != Stream::Compute && !reads(op, set_.hidden.tensor) &&
           !reads(op, set_.hidden_gradient.tensor);
  }

  // The least time that the compute stream stands still. Slower kernels end the block later, but by
  // no more than they take longer: it stands still the least where all of them take the longest.
  double stalled(const Block& block, BlockPrices prices, const Launches& launches) const {
    double computing = 0.0;
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      if (block.ops[i].stream != Stream::Compute) continue;
      prices[i] = prices[i] * (1.0 + stack_.overlap.slowdown);
      computing += prices[i].value();
    }
    return std::max(0.0, replay(block.ops, prices, launches) - computing);
  }

  // The time from the start of a block to the end of its first ops, if its kernels and collectives
  // share the device so (shared_device.hpp). `ports`: empty if no port is shared.
  double replay(std::span<const Op> ops, const BlockPrices& prices, const Launches& launches,
                const Contention& contention = {}, const BlockPorts& ports = {}) const {
    SharedDevice device(contention);
    std::vector<double> finish(ops.size(), kUnknown);
    const auto finish_of = [&](std::size_t i) {
      if (finish[i] == kUnknown) {
        device.settle(static_cast<std::uint32_t>(i));
        for (const SharedDevice::Ended& ended : device.ended()) finish[ended.op] = ended.finish;
        device.ended().clear();
      }
      return finish[i];
    };
    EnumArray<Stream, bool> used{};
    // The host is as far ahead as it likes, until it waits for a kernel.
    double host = kBefore;
    double computed = 0.0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      const bool kernel = op.stream == Stream::Compute;
      host += launches[i].before;
      OpStart start{std::max(host, kernel || (i == 0 && !may_run_before(op)) ? computed : kBefore)};
      for (const std::uint16_t on : op.waits) start.wait_for(finish_of(on), on);
      bool& stream_is_used = used[op.stream];
      if (kernel) {
        finish[i] = computed = device.run_kernel(start.ready, prices[i].value());
      } else if (start.ready == kBefore && !stream_is_used) {
        // The op has run before this block.
        finish[i] = kBefore;
      } else {
        stream_is_used = true;
        device.queue(op.stream, {.op = static_cast<std::uint32_t>(i),
                                 .start = start,
                                 .duration = prices[i].value(),
                                 .port = ports.empty() ? PortShare() : ports[i]});
      }
      if (op.holds_host) host = finish_of(i);
      host += launches[i].behind;
    }
    return ops.empty() ? 0.0 : std::max({finish_of(ops.size() - 1), computed, 0.0});
  }

  const BlockSet& set_;
  const StackSpec& stack_;
  const PriceChange& change_;
  Pricer pricer_;
  HostLaunch launch_;
};

}  // namespace

BlockCost operator+(const BlockCost& first, const BlockCost& second) {
  return {first.time + second.time,       first.passing + second.passing,
          first.compute + second.compute, first.launch + second.launch,
          second.launch_behind,           std::max(first.rise, first.net + second.rise),
          first.net + second.net,         first.interference + second.interference,
          first.stalled + second.stalled, first.sharding + second.sharding};
}

LayerCosts layer_costs(const ModelSpec& model, const Plan& cut, const ClusterSpec& cluster,
                       const StackSpec& stack, const PriceChange& change) {
  const BlockSet set = make_blocks(model, cut, stack);
  const CostBuilder builder(set, cut, cluster, stack, change);
  LayerCosts costs;
  costs.kind_of_layer = set.kind_of_layer;
  for (std::size_t kind = 0; kind < set.layer_parameters.size(); ++kind) {
    const PartParameters& parameters = set.layer_parameters[kind];
    if (!set.kept.empty()) costs.kept.push_back(builder.part(set.kept[kind], parameters));
    if (!set.recomputed.empty())
      costs.recomputed.push_back(builder.part(set.recomputed[kind], parameters));
  }
  costs.grouped = {builder.grouped(set.grouped.first), builder.grouped(set.grouped.middle),
                   builder.grouped(set.grouped.last)};
  costs.embedding = builder.part(set.embedding, set.embedding_parameters);
  costs.head = builder.part(set.head, set.head_parameters);
  if (set.recomputed_head)
    costs.recomputed_head = builder.part(*set.recomputed_head, set.head_parameters);
  costs.boundary_bytes = set.boundary_bytes.value();
  costs.message_bytes = set.message_bytes.value();
  costs.slowest_device = slowest_device_factor(cluster.accelerator, cut.world_size());
  return costs;
}

}  // namespace shardwright::sim
