// Reading and writing node profiles.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr IntegerRange kAcceleratorCount{1, 100'000};
constexpr NumberRange kLatency{0.0, 1.0, false};

const EnumNames<ScaleUpKind>& scale_up_names() {
  static const EnumNames<ScaleUpKind> kNames = {{"switched", ScaleUpKind::Switched},
                                                {"mesh", ScaleUpKind::Mesh},
                                                {"torus", ScaleUpKind::Torus},
                                                {"pcie", ScaleUpKind::Pcie}};
  return kNames;
}

// The domain is a node or several whole ones. Islands inside of a node are not modelled.
void check_domain(ObjectReader& object, std::int64_t domain, std::int64_t accelerators) {
  if (domain % accelerators == 0) return;
  object.problem("domain", fmt::format("{}", domain),
                 fmt::format("a multiple of the {} accelerators of a node: it is joined as a whole",
                             accelerators));
}

ScaleUpSpec read_scale_up(ObjectReader object, FillIn& fill, std::int64_t accelerators) {
  ScaleUpSpec spec;
  spec.kind = object.choice("kind", scale_up_names());
  spec.name = object.text_or("name", name_of(spec.kind));
  spec.bandwidth = BytesPerSecond(object.number("bandwidth_bytes_per_s"));
  spec.ring_efficiency = fill.number(object, "ring_efficiency_ratio", spec.ring_efficiency, kRatio,
                                     "typical of NVLink");
  spec.latency = Seconds(
      fill.number(object, "latency_s", spec.latency.value(), kLatency, "typical of NVLink"));
  spec.collective_overhead =
      Seconds(fill.number(object, "collective_overhead_s", spec.collective_overhead.value(),
                          kLatency, "typical of NCCL"));
  spec.in_network_reduction = object.boolean_or("in_network_reduction", false);
  spec.in_network_efficiency =
      fill.number(object, "in_network_efficiency_ratio", spec.in_network_efficiency, kRatio,
                  "typical of NVSwitch");
  spec.pair_efficiency = fill.number(object, "pair_efficiency_ratio", spec.pair_efficiency, kRatio,
                                     "typical of NVLink");
  spec.domain =
      fill.integer(object, "domain", accelerators, kAcceleratorCount, "the node's accelerators");
  check_domain(object, spec.domain, accelerators);
  spec.channels = object.integer_or("channels", spec.channels, {1, 64});
  object.refuse_unknown_keys();
  return spec;
}

NicSpec read_nic(ObjectReader object, FillIn& fill) {
  NicSpec spec;
  spec.per_node = object.integer("per_node", {0, 10'000});
  if (spec.per_node > 0 || object.peek("bandwidth_bytes_per_s"))
    spec.bandwidth = BytesPerSecond(object.number("bandwidth_bytes_per_s"));
  spec.efficiency =
      fill.number(object, "efficiency_ratio", spec.efficiency, kRatio, "typical of InfiniBand");
  object.refuse_unknown_keys();
  return spec;
}

HostSpec read_host(ObjectReader object, FillIn& fill) {
  HostSpec spec;
  spec.cpu = object.text_or("cpu", "");
  spec.cores = fill.integer(object, "cores", spec.cores, {1, 100'000}, "typical of the field");
  spec.memory = Bytes(fill.number(object, "memory_bytes", 1e12, kPositive, "typical of the field"));
  spec.memory_bandwidth = BytesPerSecond(fill.number(object, "memory_bandwidth_bytes_per_s",
                                                     spec.memory_bandwidth.value(), kPositive,
                                                     "two sockets of eight channels of DDR4-3200"));
  spec.accelerator_link = BytesPerSecond(
      fill.number(object, "accelerator_link_bytes_per_s", 25e9, kPositive, "PCIe 4 x16"));
  spec.nvme_read =
      BytesPerSecond(fill.number(object, "nvme_read_bytes_per_s", 0.0, kNonNegative, "no disk"));
  spec.nvme_write =
      BytesPerSecond(fill.number(object, "nvme_write_bytes_per_s", 0.0, kNonNegative, "no disk"));
  spec.speed = fill.number(object, "speed_ratio", 1.0, kPositive, "the stacks' reference host");
  object.refuse_unknown_keys();
  return spec;
}

ordered_json scale_up_json(const ScaleUpSpec& spec) {
  ordered_json section = {{"kind", name_of(spec.kind)},
                          {"name", spec.name},
                          {"bandwidth_bytes_per_s", spec.bandwidth.value()},
                          {"ring_efficiency_ratio", spec.ring_efficiency},
                          {"latency_s", spec.latency.value()},
                          {"collective_overhead_s", spec.collective_overhead.value()},
                          {"in_network_reduction", spec.in_network_reduction},
                          {"in_network_efficiency_ratio", spec.in_network_efficiency},
                          {"pair_efficiency_ratio", spec.pair_efficiency},
                          {"domain", spec.domain}};
  // What a profile may leave out without a word.
  if (spec.channels != ScaleUpSpec{}.channels) section["channels"] = spec.channels;
  return section;
}

ordered_json nic_json(const NicSpec& spec) {
  ordered_json result = {{"per_node", spec.per_node}};
  if (spec.bandwidth.value() > 0.0) result["bandwidth_bytes_per_s"] = spec.bandwidth.value();
  result["efficiency_ratio"] = spec.efficiency;
  return result;
}

ordered_json host_json(const HostSpec& spec) {
  return {{"cpu", spec.cpu},
          {"cores", spec.cores},
          {"memory_bytes", spec.memory.value()},
          {"memory_bandwidth_bytes_per_s", spec.memory_bandwidth.value()},
          {"accelerator_link_bytes_per_s", spec.accelerator_link.value()},
          {"nvme_read_bytes_per_s", spec.nvme_read.value()},
          {"nvme_write_bytes_per_s", spec.nvme_write.value()},
          {"speed_ratio", spec.speed}};
}

}  // namespace

NodeSpec read_node(const json& document, const std::string& pointer, ProblemList& problems,
                   std::vector<std::string>& filled_in) {
  NodeSpec spec;
  const json plain = separate_figures(document, pointer, problems, spec.sources);
  ObjectReader object(plain, pointer, problems);
  FillIn fill(pointer, spec.sources, filled_in);
  object.allow("sources");
  check_schema(object, "shardwright/node");
  spec.name = object.name("name");
  spec.accelerators = object.integer("accelerators", kAcceleratorCount);
  spec.scale_up = read_scale_up(object.object("scale_up"), fill, spec.accelerators);
  spec.nic = read_nic(object.object("nic"), fill);
  spec.host = read_host(section(object, "host"), fill);
  spec.power_overhead = Watts(
      fill.number(object, "power_overhead_w", 1500.0, kNonNegative, "typical of an 8-way node"));
  spec.notes = object.text_or("notes", "");
  object.refuse_unknown_keys();
  return spec;
}

NodeSpec read_node(const json& document, const std::string& source) {
  ProblemList problems(source);
  std::vector<std::string> filled_in;
  NodeSpec spec = read_node(document, "", problems, filled_in);
  problems.throw_if_any();
  return spec;
}

ordered_json to_json(const NodeSpec& spec) {
  ordered_json document = {{"schema", "shardwright/node"},
                           {"version", 1},
                           {"name", spec.name},
                           {"accelerators", spec.accelerators},
                           {"scale_up", scale_up_json(spec.scale_up)},
                           {"nic", nic_json(spec.nic)},
                           {"host", host_json(spec.host)},
                           {"power_overhead_w", spec.power_overhead.value()}};
  if (!spec.notes.empty()) document["notes"] = spec.notes;
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
