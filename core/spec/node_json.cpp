// The fields of node profiles.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr IntegerRange kAcceleratorCount{1, 100'000};
constexpr NumberRange kLinkTime{0.0, 1.0, false};

void describe_scale_up(ScaleUpSpec& links, std::int64_t accelerators, FieldVisitor& fields) {
  fields.choice("kind", links.kind, kRequired,
                "switched: any pair at full speed (NVSwitch); mesh: direct links between pairs "
                "(Infinity Fabric); torus: TPU; pcie: shared PCIe trees and the CPU interconnect");
  fields.text("name", links.name, kOptional, "name of the links, as NVLink 4; else the kind");
  fields.number("bandwidth_bytes_per_s", links.bandwidth, kPositive, kRequired,
                "bandwidth of one accelerator and direction, as the datasheet says");
  fields.number("ring_efficiency_ratio", links.ring_efficiency, kRatio,
                reported("typical of NVLink"),
                "bus bandwidth of large ring collectives over the links' (A100 235/300, H100 "
                "367/450, B200 690/900 GB/s); in-network reduction is modelled apart");
  fields.number("latency_s", links.latency, kLinkTime, reported("typical of NVLink"),
                "latency of a hop, as the sender sees it");
  fields.number("collective_overhead_s", links.collective_overhead, kLinkTime,
                reported("typical of NCCL"),
                "fixed time of a collective on the device with the protocol LL");
  fields.boolean("in_network_reduction", links.in_network_reduction, kOptional,
                 "the switches reduce (NVLS)");
  fields.number("in_network_efficiency_ratio", links.in_network_efficiency, kRatio,
                reported("typical of NVSwitch"),
                "share of the bandwidth that in-switch reductions of large messages reach");
  fields.number("pair_efficiency_ratio", links.pair_efficiency, kRatio,
                reported("typical of NVLink"),
                "share of the bandwidth that all-to-all and point-to-point messages reach "
                "([model](../models/collectives.md#path))");
  fields.integer("domain", links.domain, kAcceleratorCount,
                 derived(kReported, static_cast<double>(accelerators), "the node's accelerators"),
                 "accelerators that the links join: those of a node, or of several whole nodes as "
                 "in a rack (72 of GB200 NVL72)");
  fields.integer("channels", links.channels, {1, 64}, kOmissible,
                 "channels that NCCL opens at most for one collective on the links");
  fields.number("peer_bandwidth_bytes_per_s", links.peer_bandwidth, kNonNegative, kOmissible,
                "what the channels of an all-to-all or a message carry to one peer at most; 0: as "
                "much as the links");
}

void describe_nic(NicSpec& nic, FieldVisitor& fields) {
  fields.integer("per_node", nic.per_node, {0, 10'000}, kRequired, "NICs of a node");
  fields.number("bandwidth_bytes_per_s", nic.bandwidth, kPositive,
                required_if(nic.per_node > 0, "`per_node` is above 0", kOmissible),
                "line rate of one NIC and direction");
  fields.number("efficiency_ratio", nic.efficiency, kRatio, reported("typical of InfiniBand"),
                "share of the line rate that large ring and tree collectives reach (46 to 49 of 50 "
                "GB/s)");
  fields.number(
      "pair_efficiency_ratio", nic.pair_efficiency, kRatioOrZero, kOmissible,
      "share of the line rate that large all-to-all and point-to-point messages reach; 0: "
      "`efficiency_ratio`");
}

void describe_host(HostSpec& host, FieldVisitor& fields) {
  fields.text("cpu", host.cpu, kOptional, "name of the processors");
  fields.integer("cores", host.cores, {1, 100'000}, reported("typical of the field"),
                 "cores of all sockets");
  fields.number("memory_bytes", host.memory, kPositive, reported("typical of the field", 1e12),
                "host memory of a node");
  fields.number("memory_bandwidth_bytes_per_s", host.memory_bandwidth, kPositive,
                reported("two sockets of eight channels of DDR4-3200"),
                "nominal bandwidth of all sockets");
  fields.number("accelerator_link_bytes_per_s", host.accelerator_link, kPositive,
                reported("PCIe 4 x16", 25e9),
                "bandwidth from the host to one accelerator and direction (PCIe, NVLink-C2C)");
  fields.number("nvme_read_bytes_per_s", host.nvme_read, kNonNegative, reported("no disk"),
                "read bandwidth of a node's disks together");
  fields.number("nvme_write_bytes_per_s", host.nvme_write, kNonNegative, reported("no disk"),
                "write bandwidth of a node's disks together");
  fields.number("speed_ratio", host.speed, kPositive, reported("the stacks' reference host"),
                "single-thread speed over that of the host that the stacks' `launch_s` assume, the "
                "Xeon 8480C of a DGX H100");
}

// The domain is a node or several whole ones. Islands inside of a node are not modelled.
void check_domain(const NodeSpec& node, const std::string& pointer, ProblemList& problems) {
  if (node.scale_up.domain % node.accelerators == 0) return;
  problems.add(pointer + "/scale_up/domain", fmt::format("{}", node.scale_up.domain),
               fmt::format("a multiple of the {} accelerators of a node: it is joined as a whole",
                           node.accelerators));
}

}  // namespace

void describe(NodeSpec& node, FieldVisitor& fields) {
  fields.header("shardwright/node", true);
  fields.text("name", node.name, kRequired, "name of the profile");
  fields.integer("accelerators", node.accelerators, kAcceleratorCount, kRequired,
                 "accelerators of a node");
  fields.section("scale_up", kRequired, "links among the accelerators of a node or rack",
                 [&] { describe_scale_up(node.scale_up, node.accelerators, fields); });
  fields.section("nic", kRequired, "network interfaces", [&] { describe_nic(node.nic, fields); });
  fields.section("host", kOptional, "processors, memory and disks",
                 [&] { describe_host(node.host, fields); });
  fields.number("power_overhead_w", node.power_overhead, kNonNegative,
                reported("typical of an 8-way node", 1500.0),
                "power of a node beyond its accelerators: CPUs, fans, NICs, switches");
  fields.text("notes", node.notes, kOmissible, "what a reader of the profile should know");
}

NodeSpec read_node(const json& document, const std::string& pointer, ProblemList& problems,
                   std::vector<std::string>& filled_in) {
  NodeSpec spec;
  const std::size_t known_problems = problems.size();
  read_figures(document, pointer, problems, spec.sources, filled_in,
               [&](FieldVisitor& fields) { describe(spec, fields); });
  if (spec.scale_up.name.empty()) spec.scale_up.name = name_of(spec.scale_up.kind);
  if (problems.size() == known_problems) check_domain(spec, pointer, problems);
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
  ordered_json document = write_spec(spec, spec.sources);
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
