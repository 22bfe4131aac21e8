#include "calibration/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/data_directory.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/matrix_peak.hpp"
#include "sim/cost/measured_kernels.hpp"

namespace shardwright::calibration {
namespace {

// Nodes that a group needs, or more where the source says so of single nodes; where several are one
// domain they do not count.
std::int64_t nodes_of(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  const std::int64_t domain = sim::domain_size(cluster);
  const std::int64_t needed = (timing.members + domain - 1) / domain;
  return domain == cluster.node.accelerators ? std::max(needed, timing.nodes) : needed;
}

}  // namespace

std::optional<AcceleratorSpec> benchmarked_accelerator(const std::string& profile) {
  if (profile.empty()) return std::nullopt;
  return sim::at_full_clock(load_accelerator(profile));
}

std::vector<MeasuredKernel> burst_kernels(const std::string& profile) {
  const std::filesystem::path file =
      data_directory() / "hardware_profiles" / "bursts" / (profile + ".csv");
  if (!std::filesystem::exists(file)) return {};
  return sim::read_kernel_table(file.string());
}

Seconds predict(const KernelTiming& timing, const AcceleratorSpec& accelerator,
                const std::vector<MeasuredKernel>& bursts) {
  std::optional<AcceleratorSpec> cool;
  if (timing.burst) cool = sim::in_burst(accelerator);
  const AcceleratorSpec& device = cool ? *cool : accelerator;
  Seconds sum;
  for (const auto& [kind, work, call] : timing.kernels) {
    Seconds kernel = sim::formula_cost(kind, work, timing.precision, device, timing.stack).time;
    if (timing.burst)
      kernel =
          kernel * sim::ratio_near(kind, work, timing.precision, device, timing.stack, 1.0, bursts);
    sum += std::max(kernel, call);
  }
  return sum;
}

std::string gap_on(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  if (timing.nodes > 0 && nodes_of(timing, cluster) > timing.nodes)
    return fmt::format("{} accelerators do not fit {} of {} ({})", timing.members,
                       timing.nodes == 1 ? "a node" : fmt::format("{} nodes", timing.nodes),
                       sim::domain_size(cluster), cluster.name);
  // Reductions in the switch pass what a ring's links would carry, but not twice.
  const BytesPerSecond bus =
      timing.bytes * sim::bus_factor(timing.kind, timing.members) / timing.measured;
  const BytesPerSecond links = cluster.node.scale_up.bandwidth;
  if (links <= BytesPerSecond(0) || bus <= 2.0 * links) return "";
  return fmt::format("{} are more than twice the {} of the accelerator's links",
                     format_bandwidth(bus), format_bandwidth(links));
}

sim::GroupPlacement placement_of(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  const std::int64_t nodes = nodes_of(timing, cluster);
  const std::int64_t per_node = (timing.members + nodes - 1) / nodes;
  const bool pairs = timing.kind == OpKind::Send;
  const bool remote = nodes > 1;
  return {.size = pairs ? 2 : timing.members,
          .per_node = pairs ? (remote ? 1 : 2) : per_node,
          .nodes = pairs && remote ? 2 : nodes,
          .groups_per_node = pairs && remote ? per_node : 1,
          .span = nodes};
}

sim::CollectiveCost cost_of(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  const sim::GroupPlacement placement = placement_of(timing, cluster);
  return sim::collective_cost(timing.kind, timing.bytes, placement, cluster, timing.stack,
                              timing.forced,
                              sim::token_traffic(timing.tokens, timing.copies, 0, placement));
}

Seconds predict(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  return cost_of(timing, cluster).time + timing.call;
}

}  // namespace shardwright::calibration
