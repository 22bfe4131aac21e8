// shardwright network
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/page.hpp"
#include "cli/output/progress.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/jobs_json.hpp"
#include "sim/jobs/job_set.hpp"
#include "sim/jobs/jobs_simulation.hpp"
#include "sim/network/flow_simulation.hpp"
#include "sim/network/scenario_json.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

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

ExitCode simulate_scenario(const NetworkOptions& options, const nlohmann::json& given) {
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

// Jobs that share a network.

const std::vector<std::int64_t>& nodes_of(const sim::JobSet& jobs, std::size_t job) {
  return job < jobs.training.size() ? jobs.training[job].nodes
                                    : jobs.storage[job - jobs.training.size()].nodes;
}

// Without the sign of a difference that is rounding.
std::string slowdown_text(const sim::JobTimes& times) {
  const double slower = times.slowdown() - 1.0;
  return format_percent(std::abs(slower) < 1e-9 ? 0.0 : slower);
}

Table job_table(const sim::JobSet& jobs, const sim::JobsResult& result) {
  Table table({{"job"},
               {"nodes"},
               {"alone", kNumber},
               {"beside the others", kNumber},
               {"longest", kNumber},
               {"slowdown", kNumber, "%"},
               {"steps", kNumber}});
  for (std::size_t job = 0; job < jobs.count(); ++job) {
    const sim::JobTimes& times = result.jobs[job];
    table.add_row({jobs.name(job), node_list_text(nodes_of(jobs, job)), format_time(times.alone),
                   format_time(times.mean), format_time(times.longest), slowdown_text(times),
                   format_count(times.count)});
  }
  return table;
}

Table link_table(const sim::JobSet& jobs, const sim::JobsResult& result) {
  Table table({{"link"}, {"capacity", kNumber}, {"load", kNumber, "%"}, {"taken by"}});
  for (std::size_t i = 0; i < std::min(result.links.size(), kMostRows); ++i) {
    const sim::SharedLink& link = result.links[i];
    std::vector<std::string> takers;
    for (const sim::LinkShare& share : link.shares)
      takers.push_back(fmt::format("{} {}", jobs.name(share.job), format_bandwidth(share.rate)));
    table.add_row({link.name, format_bandwidth(link.capacity),
                   format_percent(link.load() / link.capacity),
                   fmt::format("{}", fmt::join(takers, ", "))});
  }
  return table;
}

bool is_refused(const sim::JobsResult& result, std::size_t job) {
  return std::ranges::find(result.without_reductions, job) != result.without_reductions.end();
}

ordered_json jobs_json(const sim::JobSet& jobs, const sim::JobsResult& result) {
  ordered_json document = new_document("jobs-result");
  document["jobs"] = ordered_json::array();
  for (std::size_t job = 0; job < result.jobs.size(); ++job) {
    const sim::JobTimes& times = result.jobs[job];
    const bool trains = job < jobs.training.size();
    document["jobs"].push_back({{"name", jobs.name(job)},
                                {"kind", trains ? "training" : "storage"},
                                {"nodes", nodes_of(jobs, job)},
                                {"placed", trains && jobs.training[job].is_placed},
                                {"alone_s", times.alone.value()},
                                {"beside_s", times.mean.value()},
                                {"longest_s", times.longest.value()},
                                {"slowdown_ratio", times.slowdown()},
                                {"count", times.count},
                                {"reductions_refused", is_refused(result, job)}});
  }
  document["links"] = ordered_json::array();
  for (const sim::SharedLink& link : result.links) {
    ordered_json shares = ordered_json::array();
    for (const sim::LinkShare& share : link.shares)
      shares.push_back({{"job", jobs.name(share.job)}, {"bytes_per_s", share.rate.value()}});
    document["links"].push_back({{"name", link.name},
                                 {"capacity_bytes_per_s", link.capacity.value()},
                                 {"load_bytes_per_s", link.load().value()},
                                 {"shares", std::move(shares)}});
  }
  document["simulated_s"] = result.simulated.value();
  document["partial"] = result.cancelled;
  return document;
}

void add_jobs(Page& page, const sim::JobSet& jobs, const sim::JobsResult& result) {
  page.paragraph(
      fmt::format("{} on the network of {}, {} simulated. A step of storage traffic is one burst.",
                  format_plural(static_cast<std::int64_t>(jobs.count()), "job"),
                  jobs.cluster().name, format_time(result.simulated)));
  page.table(job_table(jobs, result));
  std::vector<std::string> placed;
  for (const sim::TrainingJob& job : jobs.training) {
    if (job.is_placed) placed.push_back(job.name);
  }
  if (!placed.empty()) {
    page.paragraph(fmt::format("Placed on the nodes that share the fewest links: {}.",
                               fmt::join(placed, ", ")));
  }
  if (!result.without_reductions.empty()) {
    std::vector<std::string> names;
    for (const std::size_t job : result.without_reductions) names.push_back(jobs.name(job));
    page.paragraph(
        fmt::format("Switches reduce for other jobs and have no resources left for {}, whose "
                    "collectives run on rings and trees beside the others.",
                    fmt::join(names, ", ")));
  }
  if (result.links.empty()) {
    page.paragraph("The jobs share no links.");
    return;
  }
  page.paragraph("Links that several jobs use, with the mean rate of each:");
  page.table(link_table(jobs, result));
  if (result.links.size() > kMostRows) {
    page.paragraph(fmt::format("These are the {} fullest of {}; --json lists all.", kMostRows,
                               format_plural(std::ssize(result.links), "link")));
  }
}

ExitCode simulate_shared(const NetworkOptions& options, const nlohmann::json& given) {
  const sim::JobSet jobs = sim::load_job_set(given, options.scenario);
  ProgressLine line(show_progress(options.common));
  const InterruptWatch interrupt;
  const sim::JobsResult result = sim::simulate_jobs(
      jobs, {.progress = [&](double share) { line.show(share, "simulating the jobs' steps"); },
             .stop = interrupt.token()});
  line.finish();
  Page page = new_page(options.common);
  if (result.cancelled)
    page.warning("interrupted before all jobs had made their steps");
  else
    add_jobs(page, jobs, result);
  deliver(options.common, page, jobs_json(jobs, result));
  return result.cancelled ? ExitCode::Interrupted : ExitCode::Ok;
}

ExitCode simulate_network(const NetworkOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const nlohmann::json given = read_json_argument(options.scenario);
  return is_jobs_document(given) ? simulate_shared(options, given)
                                 : simulate_scenario(options, given);
}

}  // namespace

void add_network_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("network", "Simulate jobs, or flows, that share links max-min fairly");
  command->footer(
      "Examples:\n"
      "  shardwright network jobs.json\n"
      "  shardwright network flows.json --json result.json");
  const auto options = std::make_shared<NetworkOptions>();
  add_option(*command, "scenario", options->scenario, "FILE|-",
             "Jobs and their nodes, or links and flows, as JSON; - for standard input")
      ->required();
  add_common_options(*command, options->common);
  command->callback(
      [options, &action] { action = [options] { return simulate_network(*options); }; });
}

}  // namespace shardwright::cli
