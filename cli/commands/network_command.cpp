// shardwright network
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/output/output_file.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/quantity_text.hpp"
#include "sim/network/flow_simulation.hpp"
#include "sim/network/scenario_json.hpp"

namespace shardwright::cli {
namespace {

constexpr std::size_t kMostRows = 20;

struct NetworkOptions {
  CommonOptions common;
  std::string scenario;
};

// The flows that end last, which determine the makespan.
std::vector<sim::FlowIndex> last_flows(const sim::FlowResult& result) {
  std::vector<sim::FlowIndex> flows(result.flows.size());
  std::iota(flows.begin(), flows.end(), sim::FlowIndex{0});
  std::stable_sort(flows.begin(), flows.end(), [&](sim::FlowIndex a, sim::FlowIndex b) {
    return result.flows[a].finish > result.flows[b].finish;
  });
  flows.resize(std::min(flows.size(), kMostRows));
  return flows;
}

Table flow_table(const sim::FlowScenario& scenario, const sim::FlowResult& result) {
  Table table({{"flow"},
               {"size", kNumber},
               {"start", kNumber},
               {"finish", kNumber},
               {"average rate", kNumber}});
  for (const sim::FlowIndex flow : last_flows(result)) {
    const sim::FlowTimes& times = result.flows[flow];
    const Seconds length = times.finish - times.start;
    table.add_row({scenario.id(flow), format_bytes(scenario.bytes(flow)), format_time(times.start),
                   format_time(times.finish),
                   length.value() > 0.0 ? format_bandwidth(scenario.bytes(flow) / length) : ""});
  }
  return table;
}

ExitCode simulate_network(const NetworkOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const nlohmann::json given = read_json_argument(options.scenario);
  const sim::FlowScenario scenario =
      sim::read_flow_scenario(given, argument_source(options.scenario));
  const auto begin = std::chrono::steady_clock::now();
  const sim::FlowResult result = sim::simulate_flows(scenario);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;

  Page page = new_page(options.common);
  const auto flows = static_cast<std::int64_t>(scenario.flow_count());
  page.paragraph(
      fmt::format("{} over {} finish after {}.", format_plural(flows, "flow"),
                  format_plural(static_cast<std::int64_t>(scenario.links().size()), "link"),
                  format_time(result.makespan)));
  page.table(flow_table(scenario, result));
  if (flows > static_cast<std::int64_t>(kMostRows)) {
    page.paragraph(fmt::format("These are the last {} of {} to finish; --json lists all.",
                               kMostRows, format_plural(flows, "flow")));
  }
  nlohmann::ordered_json document = new_document("flow-result");
  document.update(sim::write_flow_result(given, result, Seconds(wall.count())));
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

}  // namespace

void add_network_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("network", "Simulate network flows that share links max-min fairly");
  command->footer("Example:\n  shardwright network flows.json --json result.json");
  const auto options = std::make_shared<NetworkOptions>();
  add_option(*command, "scenario", options->scenario, "FILE|-",
             "Links and flows as JSON; - for standard input")
      ->required();
  add_common_options(*command, options->common);
  command->callback(
      [options, &action] { action = [options] { return simulate_network(*options); }; });
}

}  // namespace shardwright::cli
