#include "planner/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/lowering/lowering.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {

namespace {

void scale_edges(KernelCurve& curve, double factor) {
  for (double* edge : {&curve.edge_m, &curve.edge_n, &curve.edge_k}) *edge *= factor;
}

void improve_peaks(AcceleratorSpec& accelerator, double factor) {
  for (FlopPerSecond* peak :
       {&accelerator.matrix.fp32, &accelerator.matrix.tf32, &accelerator.matrix.fp16,
        &accelerator.matrix.bf16, &accelerator.matrix.fp8, &accelerator.matrix.fp4,
        &accelerator.vector_fp32})
    *peak *= factor;
  accelerator.exponentials_per_s *= factor;
  for (KernelCurve& curve : accelerator.kernel_curves) {
    curve.flop_rate *= factor;
    curve.score *= 1.0 / factor;
    // Operands are moved as fast as before: edges are products that take as long.
    scale_edges(curve, factor);
  }
}

void improve_memory_bandwidth(AcceleratorSpec& accelerator, double factor) {
  accelerator.memory_bandwidth *= factor;
  for (KernelCurve& curve : accelerator.kernel_curves) {
    curve.bandwidth *= factor;
    scale_edges(curve, 1.0 / factor);
  }
}

// The latencies of links.
void improve_latency(NodeSpec& node, FabricSpec& fabric, double factor) {
  node.scale_up.latency *= 1.0 / factor;
  node.scale_up.collective_overhead *= 1.0 / factor;
  fabric.base_latency *= 1.0 / factor;
  for (FabricLevel& level : fabric.levels) level.latency *= 1.0 / factor;
}

void improve_host(AcceleratorSpec& accelerator, NodeSpec& node, double factor) {
  node.host.speed *= factor;
  for (KernelCurve& curve : accelerator.kernel_curves) curve.overhead *= 1.0 / factor;
}

// One pool's accelerators, nodes and fabric.
void improve_pool(AcceleratorSpec& accelerator, NodeSpec& node, FabricSpec& fabric,
                  Resource resource, double factor) {
  switch (resource) {
    case Resource::PeakFlops:
      return improve_peaks(accelerator, factor);
    case Resource::MemoryBandwidth:
      return improve_memory_bandwidth(accelerator, factor);
    case Resource::MemoryCapacity:
      accelerator.memory *= factor;
      return;
    case Resource::ScaleUpBandwidth:
      node.scale_up.bandwidth *= factor;
      return;
    case Resource::ScaleOutBandwidth:
      node.nic.bandwidth *= factor;
      return;
    case Resource::Latency:
      return improve_latency(node, fabric, factor);
    case Resource::HostSpeed:
      return improve_host(accelerator, node, factor);
    case Resource::HostLinkBandwidth:
      node.host.accelerator_link *= factor;
      return;
    case Resource::HostMemoryBandwidth:
      node.host.memory_bandwidth *= factor;
      return;
    case Resource::DiskBandwidth:
      node.host.nvme_read *= factor;
      node.host.nvme_write *= factor;
      return;
  }
}

// Changes the curves of exchanges within one node, or of those between nodes.
void improve_exchanges(ClusterSpec& cluster, bool between_nodes, double factor) {
  for (ExchangeCurve& curve : cluster.exchange_curves)
    if ((curve.nodes > 1) == between_nodes) curve.beta *= factor;
}

// What was measured on the network, and the network between pools.
void improve_network(ClusterSpec& cluster, Resource resource, double factor) {
  if (resource == Resource::ScaleUpBandwidth) improve_exchanges(cluster, false, factor);
  if (resource == Resource::ScaleOutBandwidth) {
    improve_exchanges(cluster, true, factor);
    cluster.between_pools.bandwidth *= factor;
  }
  if (resource == Resource::Latency) {
    for (ExchangeCurve& curve : cluster.exchange_curves) curve.alpha *= 1.0 / factor;
    cluster.between_pools.latency *= 1.0 / factor;
  }
}

// True if a step of the plan uses the resource at all.
bool uses(const Plan& plan, Resource resource) {
  switch (resource) {
    case Resource::HostLinkBandwidth:
      return plan.offload_activations || plan.offloads_optimizer() || plan.replicas.has_servers();
    case Resource::HostMemoryBandwidth:
      return plan.offloads_optimizer() || plan.replicas.has_servers();
    case Resource::DiskBandwidth:
      return plan.offload_optimizer == OptimizerOffload::Nvme;
    default:
      return true;
  }
}

struct Variant {
  Plan plan;
  std::string change;
};

// The layers that the largest chunk recomputes.
std::int64_t recomputed_layers(const ModelSpec& model, const Plan& plan) {
  if (!plan.stage_recompute_layers.empty()) return std::ranges::max(plan.stage_recompute_layers);
  if (plan.recompute_layers > 0) return plan.recompute_layers;
  return plan.even_chunk(model.layers) / plan.recompute_interval;
}

// Without intervals and groups.
void recompute_first_layers(Plan& plan, RecomputePolicy policy, std::int64_t layers) {
  plan.recompute = policy;
  plan.recompute_layers = layers;
  plan.recompute_interval = plan.recompute_group = 1;
  plan.stage_recompute_layers.clear();
}

// Plans that trade memory for time, against the given one.
std::vector<Variant> roomier_variants(const ModelSpec& model, const Plan& plan) {
  std::vector<Variant> variants;
  const auto add = [&](const std::string& change, auto alter) {
    Plan other = plan;
    alter(other);
    variants.push_back({std::move(other), change});
  };
  if (plan.recompute == RecomputePolicy::Full) {
    add("no recomputation", [](Plan& p) { recompute_first_layers(p, RecomputePolicy::None, 0); });
    add("selective recomputation",
        [](Plan& p) { recompute_first_layers(p, RecomputePolicy::Selective, 0); });
    for (std::int64_t layers = 1; layers < recomputed_layers(model, plan); ++layers) {
      add(fmt::format("{} recomputed layers per chunk", layers),
          [layers](Plan& p) { recompute_first_layers(p, RecomputePolicy::Full, layers); });
    }
  }
  if (plan.recompute == RecomputePolicy::Selective || plan.recompute == RecomputePolicy::PerOp)
    add("no recomputation", [](Plan& p) {
      p.recompute = RecomputePolicy::None;
      p.recompute_modules = {};
    });
  add("twice the micro-batch", [](Plan& p) { p.micro_batch *= 2; });
  if (plan.tp > 1) {
    add("half the tensor parallelism", [](Plan& p) {
      p.tp /= 2;
      p.dp *= 2;
    });
  }
  if (plan.zero_stage == 3)
    add("ZeRO stage 2", [](Plan& p) {
      p.zero_stage = 2;
      p.shard_group = 0;
    });
  return variants;
}

bool fits(const sim::StepResult& result, const ClusterSpec& cluster, const Plan& plan) {
  for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
    const ClusterSpec pool = stage_cluster(cluster, plan, static_cast<std::int32_t>(stage));
    if (result.stages[stage].memory.peak > pool.accelerator.memory) return false;
  }
  return true;
}

// The fastest variant that needs the additional memory. Of a search among variants that was cut
// short there is none.
std::optional<Sensitivity> capacity_sensitivity(const Scenario& scenario, const ClusterSpec& larger,
                                                Seconds step, const std::stop_token& stop) {
  Sensitivity sensitivity;
  sensitivity.resource = Resource::MemoryCapacity;
  sensitivity.step = step;
  for (const Variant& variant : roomier_variants(scenario.model, scenario.plan)) {
    if (stop.stop_requested()) return std::nullopt;
    if (first_broken_rule(scenario.model, larger, variant.plan)) continue;
    const Scenario roomier{scenario.model, larger, scenario.stack, variant.plan};
    // The memory alone rules most variants of one pool out.
    const Bytes peak = sim::estimate_step(roomier).memory;
    const bool opened =
        peak <= larger.accelerator.memory && peak > scenario.cluster.accelerator.memory;
    if (!opened && !names_pools(scenario.plan)) continue;
    const auto result = sim::simulate_step(roomier, stop);
    if (!result) return std::nullopt;
    const bool is_new =
        fits(*result, larger, variant.plan) && !fits(*result, scenario.cluster, variant.plan);
    if (!is_new || result->step >= sensitivity.step) continue;
    sensitivity.step = result->step;
    sensitivity.through = variant.change;
  }
  return sensitivity;
}

// Nothing once `stop` is requested.
std::optional<Sensitivity> sensitivity_to(Resource resource, const Scenario& scenario, double gain,
                                          Seconds step, const std::stop_token& stop) {
  const ClusterSpec better = improved(scenario.cluster, resource, gain);
  std::optional<Sensitivity> sensitivity;
  if (resource == Resource::MemoryCapacity) {
    sensitivity = capacity_sensitivity(scenario, better, step, stop);
  } else if (const auto result = sim::simulate_step(
                 {scenario.model, better, scenario.stack, scenario.plan}, stop)) {
    sensitivity = Sensitivity{resource, result->step, 0.0, {}};
  }
  if (sensitivity) sensitivity->gain = step / sensitivity->step - 1.0;
  return sensitivity;
}

TimeShare share_of(TimeUse use, const sim::StepResult& result) {
  TimeShare share{use, 0.0, std::nullopt, 0.0};
  std::int64_t used = 0;
  for (const sim::StepPart part : enumerators<sim::StepPart>()) {
    if (use_of(part) != use) continue;
    const double of_step = result.time().of(part) / result.step;
    share.share += of_step;
    used += of_step > 0.0 ? 1 : 0;
    if (of_step <= share.mainly_share) continue;
    share.mainly = part;
    share.mainly_share = of_step;
  }
  if (used < 2) share.mainly.reset();
  return share;
}

}  // namespace

TimeUse use_of(sim::StepPart part) {
  using enum TimeUse;
  constexpr EnumArray<sim::StepPart, TimeUse> kUses{
      {Compute, Compute, MemoryBound, MemoryBound, Interference, Communication, Communication,
       Communication, Communication, Communication, Offload, Bubble, Host, Stall}};
  return kUses[part];
}

ClusterSpec improved(const ClusterSpec& cluster, Resource resource, double gain) {
  ClusterSpec better = cluster;
  const double factor = 1.0 + gain;
  improve_pool(better.accelerator, better.node, better.fabric, resource, factor);
  for (PoolSpec& pool : better.pools)
    improve_pool(pool.accelerator, pool.node, pool.fabric, resource, factor);
  improve_network(better, resource, factor);
  return better;
}

std::vector<TimeShare> time_shares(const sim::StepResult& result) {
  std::vector<TimeShare> shares;
  for (const TimeUse use : enumerators<TimeUse>()) shares.push_back(share_of(use, result));
  std::stable_sort(shares.begin(), shares.end(),
                   [](const TimeShare& a, const TimeShare& b) { return a.share > b.share; });
  return shares;
}

Explanation explain(const Scenario& scenario, double gain, const std::stop_token& stop) {
  return explain(scenario, sim::simulate_step(scenario), gain, stop);
}

Explanation explain(const Scenario& scenario, const sim::StepResult& result, double gain,
                    const std::stop_token& stop) {
  Explanation explanation;
  explanation.result = result;
  explanation.shares = time_shares(result);
  explanation.gain = gain;
  for (const Resource resource : enumerators<Resource>()) {
    if (!uses(scenario.plan, resource)) continue;
    auto sensitivity = sensitivity_to(resource, scenario, gain, result.step, stop);
    explanation.partial = !sensitivity;
    if (explanation.partial) break;
    explanation.sensitivities.push_back(*std::move(sensitivity));
  }
  return explanation;
}

std::optional<PeakMoment> peak_moment(const Scenario& scenario, const sim::StepResult& result) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const RankProgram& rank = program.stages[static_cast<std::size_t>(result.fullest)];
  const std::uint32_t number = result.memory().op;
  const auto after =
      std::upper_bound(rank.calls.begin(), rank.calls.end(), number,
                       [](std::uint32_t op, const Call& call) { return op < call.first_op; });
  if (after == rank.calls.begin()) return std::nullopt;
  const Call& call = *(after - 1);
  if (number - call.first_op >= program.blocks[call.block].ops.size()) return std::nullopt;
  const Op& op = program.op(call, number);
  return PeakMoment{op.name, op.phase, call.layer, call.microbatch};
}

double memory_share(const sim::StepResult& result, const ClusterSpec& cluster) {
  return result.memory().peak / cluster.accelerator.memory;
}

FigureCounts figure_counts(const ClusterSpec& cluster, const StackSpec& stack) {
  FigureCounts counts;
  std::vector<const Sources*> all = {&cluster.accelerator.sources, &cluster.node.sources,
                                     &cluster.fabric.sources, &cluster.sources, &stack.sources};
  for (const PoolSpec& pool : cluster.pools)
    all.insert(all.end(), {&pool.accelerator.sources, &pool.node.sources, &pool.fabric.sources});
  for (const Sources* sources : all) {
    for (const auto& [pointer, provenance] : *sources) {
      // No step is a burst.
      if (pointer.starts_with("/burst/")) continue;
      ++counts.all;
      if (provenance.confidence == Confidence::Assumed) ++counts.estimates;
    }
  }
  return counts;
}

}  // namespace shardwright::planner
