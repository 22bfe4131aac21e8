#include "calibration/profile_fit.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "calibration/figure_fit.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/matrix_peak.hpp"

namespace shardwright::calibration {
namespace {

// A figure of the device's kernels: a ratio, or a time.
template <class Value>
Figure<AcceleratorSpec> efficiency(const char* key, Value KernelEfficiency::*member,
                                   double least = 0.05, double most = 1.0) {
  return figure_at<AcceleratorSpec>(
      std::string("/efficiency/") + key, least, most,
      [member](AcceleratorSpec& spec) -> Value& { return spec.efficiency.*member; });
}

Figures<AcceleratorSpec> memory_figures() {
  return {efficiency("memory_ratio", &KernelEfficiency::memory)};
}

// A clock falls to half of its peak at the most, and stream-K leaves no less than nothing.
Figures<AcceleratorSpec> gemm_figures() {
  using E = KernelEfficiency;
  return {efficiency("matrix_main_loop_ratio", &E::matrix_main_loop),
          efficiency("matrix_tf32_ratio", &E::matrix_tf32),
          efficiency("matrix_fp8_ratio", &E::matrix_fp8),
          efficiency("gemm_overhead_s", &E::gemm_overhead, 3e-7, 2e-5),
          efficiency("wave_loss_ratio", &E::wave_loss, 0.02),
          efficiency("operand_bandwidth_ratio", &E::operand_bandwidth_ratio, 1.0, 20.0),
          efficiency("result_exposed_ratio", &E::result_exposed, 0.001),
          efficiency("power_slowdown_ratio", &E::power_slowdown, 0.001),
          efficiency("power_delay_s", &E::power_delay, 1e-5, 5e-3)};
}

// Clocks of bursts may be above those that the peaks assume.
constexpr double kHighestBurstClock = 1.1;

// A figure of bursts, whose fit starts at that of elsewhere where the profile has none.
template <class Value>
Figure<AcceleratorSpec> burst_figure(const char* key, Value BurstEfficiency::*member,
                                     Value KernelEfficiency::*elsewhere, double least,
                                     double most = 1.0) {
  Figure<AcceleratorSpec> figure = figure_at<AcceleratorSpec>(
      std::string("/burst/") + key, least, most,
      [member](AcceleratorSpec& spec) -> Value& { return spec.burst.*member; });
  figure.get = [known = figure.get,
                start = efficiency(key, elsewhere).get](const AcceleratorSpec& spec) {
    const double value = known(spec);
    return value > 0.0 ? value : start(spec);
  };
  return figure;
}

Figures<AcceleratorSpec> burst_figures() {
  using B = BurstEfficiency;
  using E = KernelEfficiency;
  return {burst_figure("matrix_main_loop_ratio", &B::matrix_main_loop, &E::matrix_main_loop, 0.05,
                       kHighestBurstClock),
          burst_figure("gemm_overhead_s", &B::gemm_overhead, &E::gemm_overhead, 3e-7, 2e-5),
          burst_figure("wave_loss_ratio", &B::wave_loss, &E::wave_loss, 0.02),
          burst_figure("operand_bandwidth_ratio", &B::operand_bandwidth_ratio,
                       &E::operand_bandwidth_ratio, 1.0, 20.0),
          burst_figure("result_exposed_ratio", &B::result_exposed, &E::result_exposed, 0.001),
          burst_figure("power_slowdown_ratio", &B::power_slowdown, &E::power_slowdown, 0.001),
          burst_figure("power_delay_s", &B::power_delay, &E::power_delay, 1e-6, 0.1)};
}

Figures<AcceleratorSpec> attention_figures() {
  return {efficiency("attention_forward_ratio", &KernelEfficiency::attention_forward),
          efficiency("attention_backward_ratio", &KernelEfficiency::attention_backward)};
}

template <class Spec, class Timing>
FitStage fit_stage(const std::string& name, Spec& spec, const Figures<Spec>& figures,
                   const std::vector<Timing>& timings) {
  FitStage stage{name, timings.size(), {}, {}};
  for (const Figure<Spec>& figure : figures) stage.pointers.push_back(figure.pointer);
  stage.result = fit_figures<Spec>(spec, figures, [&](const Spec& changed) {
    std::vector<double> residuals;
    for (const Timing& timing : timings)
      residuals.push_back(std::log(predict(timing, changed) / timing.measured));
    return residuals;
  });
  return stage;
}

void label(const FitStage& stage, const std::string& provenance, const std::string& prefix,
           Sources& sources) {
  for (const FittedParameter& fitted : stage.result.parameters) {
    if (!is_determined(fitted.verdict) || fitted.name.rfind(prefix, 0) != 0) continue;
    sources[fitted.name.substr(prefix.size())] = {provenance, Confidence::Fitted};
  }
}

// The timings of nothing but this work. Those of unfused attention, which mix two, are in no stage.
template <class KernelWork>
std::vector<KernelTiming> timings_of(const std::vector<KernelTiming>& timings) {
  std::vector<KernelTiming> found;
  std::ranges::copy_if(timings, std::back_inserter(found), [](const KernelTiming& timing) {
    return std::ranges::all_of(timing.kernels, [](const KernelTiming::Kernel& kernel) {
      return std::holds_alternative<KernelWork>(kernel.work);
    });
  });
  return found;
}

std::vector<KernelTiming> selected(const std::vector<KernelTiming>& timings, bool burst) {
  std::vector<KernelTiming> found;
  std::ranges::copy_if(timings, std::back_inserter(found),
                       [burst](const KernelTiming& timing) { return timing.burst == burst; });
  return found;
}

// Those of products in 8 bits and fewer, with the kernels that cast their operands.
std::vector<KernelTiming> products_in_fp8(const std::vector<KernelTiming>& timings) {
  std::vector<KernelTiming> found;
  std::ranges::copy_if(timings, std::back_inserter(found), [](const KernelTiming& timing) {
    return casts_operands(timing.precision) &&
           std::ranges::any_of(timing.kernels, [](const auto& k) {
             return std::holds_alternative<GemmWork>(k.work);
           });
  });
  return found;
}

std::vector<KernelTiming> of_device(const std::vector<KernelTiming>& timings,
                                    const std::string& name) {
  std::vector<KernelTiming> found;
  for (const KernelTiming& timing : timings) {
    if (timing.unsupported.empty() && timing.accelerator == name) found.push_back(timing);
  }
  return found;
}

// The most that NCCL takes NVLink 4 for: 20.6 of 25 GB/s a link (src/graph/topo.h).
constexpr double kRingCeiling = 0.824;

Figures<ClusterSpec> node_figures() {
  return {
      figure_at<ClusterSpec>(
          "/node/scale_up/ring_efficiency_ratio", 0.05, kRingCeiling,
          [](ClusterSpec& c) -> double& { return c.node.scale_up.ring_efficiency; }),
      figure_at<ClusterSpec>(
          "/node/scale_up/in_network_efficiency_ratio", 0.05, 1.0,
          [](ClusterSpec& c) -> double& { return c.node.scale_up.in_network_efficiency; }),
      figure_at<ClusterSpec>(
          "/node/scale_up/pair_efficiency_ratio", 0.05, 1.0,
          [](ClusterSpec& c) -> double& { return c.node.scale_up.pair_efficiency; }),
      figure_at<ClusterSpec>("/node/scale_up/latency_s", 5e-7, 2e-5,
                             [](ClusterSpec& c) -> Seconds& { return c.node.scale_up.latency; }),
      figure_at<ClusterSpec>(
          "/node/scale_up/collective_overhead_s", 1e-6, 2e-4,
          [](ClusterSpec& c) -> Seconds& { return c.node.scale_up.collective_overhead; })};
}

// Messages have a figure of their own where the profile says so.
Figures<ClusterSpec> fabric_figures(const ClusterSpec& cluster) {
  Figures<ClusterSpec> figures = {
      figure_at<ClusterSpec>("/node/nic/efficiency_ratio", 0.05, 1.0,
                             [](ClusterSpec& c) -> double& { return c.node.nic.efficiency; }),
      figure_at<ClusterSpec>("/fabric/base_latency_s", 2e-7, 2e-4,
                             [](ClusterSpec& c) -> Seconds& { return c.fabric.base_latency; })};
  if (cluster.node.nic.pair_efficiency > 0.0)
    figures.push_back(figure_at<ClusterSpec>(
        "/node/nic/pair_efficiency_ratio", 0.05, 1.0,
        [](ClusterSpec& c) -> double& { return c.node.nic.pair_efficiency; }));
  return figures;
}

}  // namespace

std::vector<FitStage> fit_kernels(AcceleratorSpec& accelerator,
                                  const std::vector<KernelTiming>& timings,
                                  const std::string& provenance) {
  return fit_own_kernels(accelerator, of_device(timings, accelerator.name), provenance);
}

std::vector<FitStage> fit_own_kernels(AcceleratorSpec& accelerator,
                                      const std::vector<KernelTiming>& timings,
                                      const std::string& provenance) {
  const AcceleratorSpec sustained = accelerator;
  accelerator = sim::at_full_clock(std::move(accelerator));
  std::vector<FitStage> stages;
  const auto run = [&](const std::string& name, const std::vector<KernelTiming>& rows,
                       const Figures<AcceleratorSpec>& figures) {
    if (rows.empty()) return;
    stages.push_back(fit_stage(name, accelerator, figures, rows));
    label(stages.back(), provenance, "", accelerator.sources);
  };
  run("memory", timings_of<MemoryWork>(timings), memory_figures());
  const std::vector<KernelTiming> gemms = timings_of<GemmWork>(timings);
  run("gemm", selected(gemms, false), gemm_figures());
  run("gemm in bursts", selected(gemms, true), burst_figures());
  run("fp8 in bursts", products_in_fp8(selected(timings, true)),
      {burst_figure("matrix_fp8_ratio", &BurstEfficiency::matrix_fp8, &KernelEfficiency::matrix_fp8,
                    0.05, kHighestBurstClock)});
  const std::vector<KernelTiming> attentions = timings_of<AttentionWork>(timings);
  run("attention", selected(attentions, false), attention_figures());
  run("attention in bursts", selected(attentions, true),
      {burst_figure("attention_forward_ratio", &BurstEfficiency::attention_forward,
                    &KernelEfficiency::attention_forward, 0.05)});
  accelerator.sustained_clock_ratio = sustained.sustained_clock_ratio;
  accelerator.sustained_fp8_clock_ratio = sustained.sustained_fp8_clock_ratio;
  return stages;
}

std::vector<FitStage> fit_collectives(ClusterSpec& cluster,
                                      const std::vector<CollectiveTiming>& timings,
                                      const std::string& provenance) {
  std::vector<CollectiveTiming> inside, across;
  for (const CollectiveTiming& timing : timings) {
    if (!timing.unsupported.empty()) continue;
    if (timing.cluster->name != cluster.name || !gap_on(timing, cluster).empty()) continue;
    (placement_of(timing, cluster).nodes > 1 ? across : inside).push_back(timing);
  }
  std::vector<FitStage> stages;
  if (!inside.empty()) stages.push_back(fit_stage("in a node", cluster, node_figures(), inside));
  if (!across.empty()) {
    // The rows between nodes speak for both, if there are none of a single node.
    Figures<ClusterSpec> figures = fabric_figures(cluster);
    if (inside.empty())
      for (Figure<ClusterSpec>& each : node_figures()) figures.push_back(std::move(each));
    stages.push_back(fit_stage("across nodes", cluster, figures, across));
  }
  for (const FitStage& stage : stages) {
    label(stage, provenance, "/node", cluster.node.sources);
    label(stage, provenance, "/fabric", cluster.fabric.sources);
  }
  return stages;
}

}  // namespace shardwright::calibration
