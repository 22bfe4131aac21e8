// shardwright clusters list | show
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/spec_table.hpp"
#include "cli/programs/here_profile.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/wording.hpp"
#include "sim/network/topology.hpp"

namespace shardwright::cli {
namespace {

struct ClustersOptions {
  CommonOptions common;
  std::string name;
};

std::string in_gigabytes_per_second(BytesPerSecond bandwidth) {
  return bandwidth > BytesPerSecond(0) ? format_number(bandwidth / gigabytes_per_second(1.0)) : "";
}

// The bandwidth between nodes, divided among the accelerators of a node.
BytesPerSecond scale_out_share(const NodeSpec& node) {
  return node.nic.bandwidth *
         (static_cast<double>(node.nic.per_node) / static_cast<double>(node.accelerators));
}

std::vector<std::string> list_row(const ClusterSpec& cluster) {
  const AcceleratorSpec& accelerator = cluster.accelerator;
  const FlopPerSecond peak = std::max(accelerator.matrix.bf16, accelerator.matrix.fp16);
  return {cluster.name,
          accelerator.name,
          format_number(accelerator.memory / gigabytes(1.0)),
          format_number(peak / teraflops(1.0)),
          format_count(cluster.node.accelerators),
          format_count(cluster.node.scale_up.domain),
          in_gigabytes_per_second(cluster.node.scale_up.bandwidth),
          in_gigabytes_per_second(scale_out_share(cluster.node)),
          cluster.fabric.name};
}

ExitCode list_clusters(const ClustersOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  Table table({{"cluster"},
               {"accelerator"},
               {"memory", kNumber, "GB"},
               {"16-bit", kNumber, "TFLOP/s"},
               {"per node", kNumber},
               {"domain", kNumber},
               {"scale-up", kNumber, "GB/s"},
               {"scale-out", kNumber, "GB/s"},
               {"fabric"}});
  nlohmann::ordered_json document = new_document("clusters");
  document["clusters"] = nlohmann::ordered_json::array();
  for (const ClusterSpec& cluster : shipped_cluster_specs()) {
    table.add_row(list_row(cluster));
    document["clusters"].push_back(to_json(cluster));
  }
  Page page = new_page(options.common);
  page.table(table);
  page.paragraph(
      "Bandwidths are per accelerator and direction. A domain is what scale-up links (NVLink and "
      "its like) join.");
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

// Bisection bandwidths of jobs of whole nodes, up to a size at which the cut takes no time to find.
void add_bisections(Page& page, const ClusterSpec& cluster) {
  constexpr std::int64_t kMostAccelerators = 1024;
  const std::int64_t most =
      std::min(kMostAccelerators, cluster.most_accelerators().value_or(kMostAccelerators));
  Table table({{"accelerators", kNumber},
               {"bisection", kNumber, "GB/s"},
               {"per accelerator", kNumber, "GB/s"}});
  bool any = false;
  for (std::int64_t nodes = 1; nodes * cluster.node.accelerators <= most; nodes *= 2) {
    const sim::Topology topology = sim::Topology::build(cluster, nodes);
    if (topology.accelerators() < 2) continue;
    if (!topology.is_connected()) break;
    const BytesPerSecond cut = topology.bisection_bandwidth();
    table.add_row(
        {format_count(topology.accelerators()), in_gigabytes_per_second(cut),
         in_gigabytes_per_second(2.0 * cut / static_cast<double>(topology.accelerators()))});
    any = true;
  }
  if (!any) return;
  page.heading("Bisection bandwidth");
  page.paragraph(planner::kBisectionMeaning);
  page.table(table);
}

ExitCode show_cluster(const ClustersOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const ClusterSpec cluster = load_cluster_or_here(options.name);
  const nlohmann::ordered_json document = to_json(cluster);
  Page page = new_page(options.common);
  nlohmann::ordered_json first_pool = document;
  first_pool.erase("pools");
  add_spec(page, first_pool);
  if (!cluster.pools.empty()) {
    for (nlohmann::ordered_json pool : document["pools"]) {
      // Its figures name the sources of the cluster.
      if (document.contains("sources")) pool["sources"] = document["sources"];
      add_spec(page, pool);
    }
  }
  add_bisections(page, cluster);
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

}  // namespace

void add_clusters_command(CLI::App& app, Action& action) {
  CLI::App* clusters =
      app.add_subcommand("clusters", "List the shipped clusters, or show any cluster");
  clusters->require_subcommand(1);
  clusters->footer(R"(Examples:
  shardwright clusters list
  shardwright clusters show dgx-h100
  shardwright clusters show my-cluster.json
This machine, as shardwright probe measured it:
  shardwright clusters show here)");
  const auto options = std::make_shared<ClustersOptions>();

  CLI::App* list =
      clusters->add_subcommand("list", "List all shipped clusters with their main figures");
  list->footer("Example:\n  shardwright clusters list --json -");
  add_common_options(*list, options->common);
  list->callback([options, &action] { action = [options] { return list_clusters(*options); }; });

  CLI::App* show = clusters->add_subcommand(
      "show", "Show every figure of a cluster with its source and confidence");
  add_option(*show, "cluster", options->name, "NAME|FILE|here",
             "A shipped cluster, a JSON file, or \"here\": this machine")
      ->required();
  show->footer(R"(Examples:
  shardwright clusters show dgx-h100
  shardwright clusters show my-cluster.json --json -)");
  add_common_options(*show, options->common);
  show->callback([options, &action] { action = [options] { return show_cluster(*options); }; });
}

}  // namespace shardwright::cli
