#include "planner/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/spec/plan_check.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

constexpr std::array<Resource, 7> kResources = {
    Resource::PeakFlops,        Resource::MemoryBandwidth,   Resource::MemoryCapacity,
    Resource::ScaleUpBandwidth, Resource::ScaleOutBandwidth, Resource::Latency,
    Resource::HostSpeed};

constexpr std::array<const char*, 7> kNames = {
    "peak FLOP/s",          "HBM bandwidth", "HBM capacity", "scale-up bandwidth",
    "inter-node bandwidth", "latency",       "host speed"};

void improve_peaks(AcceleratorSpec& accelerator, double factor) {
  for (FlopPerSecond* peak :
       {&accelerator.matrix.fp32, &accelerator.matrix.tf32, &accelerator.matrix.fp16,
        &accelerator.matrix.bf16, &accelerator.matrix.fp8, &accelerator.vector_fp32})
    *peak *= factor;
}

void improve_latency(ClusterSpec& cluster, double factor) {
  cluster.node.scale_up.latency *= 1.0 / factor;
  cluster.node.scale_up.collective_overhead *= 1.0 / factor;
  cluster.fabric.base_latency *= 1.0 / factor;
  for (FabricLevel& level : cluster.fabric.levels) level.latency *= 1.0 / factor;
}

struct Variant {
  Plan plan;
  std::string change;
};

// Plans that trade memory for time, against the given one.
std::vector<Variant> roomier_variants(const Plan& plan) {
  std::vector<Variant> variants;
  const auto add = [&](const std::string& change, auto alter) {
    Plan other = plan;
    alter(other);
    variants.push_back({std::move(other), change});
  };
  if (plan.recompute == RecomputePolicy::Full) {
    add("no recomputation", [](Plan& p) {
      p.recompute = RecomputePolicy::None;
      p.recompute_layers = 0;
    });
    add("selective recomputation", [](Plan& p) {
      p.recompute = RecomputePolicy::Selective;
      p.recompute_layers = 0;
    });
    for (std::int64_t layers = 1; layers < plan.recompute_layers; ++layers) {
      add(fmt::format("{} recomputed layers per chunk", layers),
          [layers](Plan& p) { p.recompute_layers = layers; });
    }
  }
  if (plan.recompute == RecomputePolicy::Selective)
    add("no recomputation", [](Plan& p) { p.recompute = RecomputePolicy::None; });
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

// The fastest variant that needs the additional memory.
Sensitivity capacity_sensitivity(const Scenario& scenario, const ClusterSpec& larger,
                                 Seconds step) {
  Sensitivity sensitivity;
  sensitivity.resource = Resource::MemoryCapacity;
  sensitivity.step = step;
  for (const Variant& variant : roomier_variants(scenario.plan)) {
    if (first_broken_rule(scenario.model, larger, variant.plan)) continue;
    const sim::StepResult result =
        sim::simulate_step({scenario.model, larger, scenario.stack, variant.plan});
    const Bytes peak = result.memory().peak;
    const bool opened =
        peak <= larger.accelerator.memory && peak > scenario.cluster.accelerator.memory;
    if (!opened || result.step >= sensitivity.step) continue;
    sensitivity.step = result.step;
    sensitivity.through = variant.change;
  }
  return sensitivity;
}

struct Share {
  std::string what;
  Seconds time;
};

std::string limit_of(const sim::StepResult& result, const std::vector<Sensitivity>& sensitivities) {
  const sim::TimeBreakdown& time = result.time();
  std::vector<Share> shares = {{"GEMMs", time.gemm},
                               {"attention", time.attention},
                               {"memory-bound kernels", time.memory_bound},
                               {"the optimizer", time.optimizer},
                               {"collectives that slow the kernels beside them", time.interference},
                               {"the pipeline bubble", time.bubble},
                               {"the host that issues the kernels", time.host}};
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data, Axis::Pipeline}) {
    shares.push_back(
        {fmt::format("exposed {} communication", name_of(axis)), time.exposed_on(axis)});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.time > b.time; });
  const auto most =
      std::max_element(sensitivities.begin(), sensitivities.end(),
                       [](const Sensitivity& a, const Sensitivity& b) { return a.gain < b.gain; });
  return fmt::format("{} take {:.0f} % of the step, then {} with {:.0f} %; more {} would help most",
                     shares[0].what, 100.0 * (shares[0].time / result.step), shares[1].what,
                     100.0 * (shares[1].time / result.step), name_of(most->resource));
}

}  // namespace

const char* name_of(Resource resource) {
  return kNames[static_cast<std::size_t>(resource)];
}

ClusterSpec improved(const ClusterSpec& cluster, Resource resource, double gain) {
  ClusterSpec better = cluster;
  const double factor = 1.0 + gain;
  switch (resource) {
    case Resource::PeakFlops:
      improve_peaks(better.accelerator, factor);
      break;
    case Resource::MemoryBandwidth:
      better.accelerator.memory_bandwidth *= factor;
      break;
    case Resource::MemoryCapacity:
      better.accelerator.memory *= factor;
      break;
    case Resource::ScaleUpBandwidth:
      better.node.scale_up.bandwidth *= factor;
      break;
    case Resource::ScaleOutBandwidth:
      better.node.nic.bandwidth *= factor;
      break;
    case Resource::Latency:
      improve_latency(better, factor);
      break;
    case Resource::HostSpeed:
      better.node.host.speed *= factor;
      break;
  }
  return better;
}

Explanation explain(const Scenario& scenario, double gain) {
  Explanation explanation;
  explanation.result = sim::simulate_step(scenario);
  const Seconds step = explanation.result.step;
  for (const Resource resource : kResources) {
    const ClusterSpec better = improved(scenario.cluster, resource, gain);
    Sensitivity sensitivity;
    if (resource == Resource::MemoryCapacity) {
      sensitivity = capacity_sensitivity(scenario, better, step);
    } else {
      sensitivity.resource = resource;
      sensitivity.step =
          sim::simulate_step({scenario.model, better, scenario.stack, scenario.plan}).step;
    }
    sensitivity.gain = step / sensitivity.step - 1.0;
    explanation.sensitivities.push_back(std::move(sensitivity));
  }
  explanation.limit = limit_of(explanation.result, explanation.sensitivities);
  return explanation;
}

}  // namespace shardwright::planner
