// shardwright scale, and plan for a range of sizes
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/commands/scale_run.hpp"
#include "cli/options/request_options.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/figures.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/pool_report.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/explain.hpp"
#include "planner/scale.hpp"
#include "planner/wording.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {

namespace {

using nlohmann::ordered_json;

Table point_table(const planner::ScaleResult& result, const ChosenRequest& chosen) {
  const planner::Objective objective = chosen.request.objective;
  std::vector<Column> columns = {{"GPUs", kNumber},     {"step", kNumber, "s"},
                                 {"tokens/s", kNumber}, {"efficiency", kNumber, "%"},
                                 {"MFU", kNumber, "%"}, {"memory", kNumber, "GB"}};
  const std::optional<Column> compared = objective_column(objective);
  if (compared) columns.push_back(*compared);
  const bool grows = !chosen.grow.empty();
  if (grows) columns.push_back({"nodes", ColumnKind::Prose});
  columns.push_back({"plan", ColumnKind::Prose});
  Table table(std::move(columns));
  for (const planner::ScalePoint& point : result.points) {
    if (!point.best) {
      const bool stopped = result.partial && &point == &result.points.back();
      std::vector<std::string> cells(compared ? 7 : 6);
      cells.front() = format_count(point.gpus);
      if (grows) cells.push_back(nodes_text(point.cluster));
      cells.push_back(stopped ? "interrupted before a plan was found" : "no plan fits");
      table.add_row(std::move(cells));
      continue;
    }
    const sim::StepResult& step = point.best->result;
    std::vector<std::string> cells = {format_count(point.gpus),
                                      format_number(step.step.value(), 4),
                                      format_fixed(point.tokens_per_s, 0),
                                      format_percent(point.efficiency),
                                      format_percent(step.throughput.mfu),
                                      format_gigabytes(step.memory().peak)};
    if (compared) cells.push_back(objective_cell(objective, *point.best));
    if (grows) cells.push_back(nodes_text(point.cluster));
    cells.push_back(plan_text(point.best->plan) +
                    (point.on_front ? "" : " (a smaller machine is as fast)"));
    table.add_row(std::move(cells));
  }
  return table;
}

// The search counts of all sizes together.
planner::SearchCounts total_counts(const planner::ScaleResult& result) {
  planner::SearchCounts total;
  for (const planner::ScalePoint& point : result.points) {
    total.space += point.counts.space;
    total.evaluated += point.counts.evaluated;
    total.simulated += point.counts.simulated;
    for (const planner::Rejection& rejection : point.counts.rejected) {
      const auto same = std::find_if(total.rejected.begin(), total.rejected.end(),
                                     [&](const auto& r) { return r.rule == rejection.rule; });
      if (same == total.rejected.end()) {
        total.rejected.push_back(rejection);
      } else {
        same->count += rejection.count;
      }
    }
  }
  return total;
}

// The request for one size.
planner::PlanRequest scaled_request(const ChosenRequest& chosen, const planner::ScalePoint& point) {
  planner::PlanRequest request = chosen.request;
  request.gpus = point.gpus;
  request.cluster = point.cluster;
  return request;
}

Scenario scenario_of(const ChosenRequest& chosen, const planner::ScalePoint& point) {
  return planner::scenario_of(scaled_request(chosen, point), point.best->plan);
}

ordered_json point_json(const planner::ScalePoint& point, const ChosenRequest& chosen) {
  ordered_json json = {{"gpus", point.gpus},
                       {"tokens_per_s", point.tokens_per_s},
                       {"efficiency", point.efficiency},
                       {"on_front", point.on_front},
                       {"search", counts_json(point.counts)}};
  if (!chosen.grow.empty()) {
    for (const std::string& pool : names_of_pools(point.cluster))
      json["nodes"][pool] = pool_cluster(point.cluster, pool)->nodes;
  }
  json["best"] =
      point.best ? candidate_json(*point.best, scenario_of(chosen, point)) : ordered_json();
  return json;
}

// The request for the largest size, which a scaling run without any plan explains.
planner::PlanRequest largest_request(const ChosenRequest& chosen) {
  planner::PlanRequest request = chosen.request;
  request.gpus = chosen.gpus.second;
  request.cluster = chosen.machine_of(request.gpus);
  return request;
}

ordered_json scale_json(const ChosenRequest& chosen, const planner::ScaleResult& result) {
  const planner::PlanRequest request = largest_request(chosen);
  ordered_json document = new_document("scale");
  document["inputs"] = inputs_json(request.model, request.cluster, request.stack);
  document["filled_in"] = chosen.filled_in;
  document["objective"] = name_of(request.objective);
  document["partial"] = result.partial;
  document["search"] = counts_json(total_counts(result));
  document["search"]["wall_s"] = result.wall_s;
  document["points"] = ordered_json::array();
  document["plans"] = ordered_json::array();
  for (const planner::ScalePoint& point : result.points) {
    document["points"].push_back(point_json(point, chosen));
    if (point.best) document["plans"].push_back(document["points"].back()["best"]);
  }
  document["knee"] = result.knee ? ordered_json(result.knee->gpus) : ordered_json();
  document["knee_cause"] = result.knee ? planner::cause_text(result.knee->cause) : "";
  document["notes"] = ordered_json::array();
  if (result.superlinear_cause)
    document["notes"].push_back(planner::cause_text(*result.superlinear_cause));
  if (result.infeasible) document["infeasible"] = infeasible_json(request, *result.infeasible);
  add_parts(document, request.model, request.cluster, request.stack);
  return document;
}

std::string throughput_figure(const planner::ScaleResult& result, const ClusterSpec& cluster) {
  std::vector<CurvePoint> points;
  for (const planner::ScalePoint& point : result.points) {
    if (point.best)
      points.push_back({static_cast<double>(point.gpus), point.tokens_per_s,
                        format_count(point.gpus), format_fixed(point.tokens_per_s, 0)});
  }
  const char* word = planner::accelerator_word(cluster);
  return curve_figure(points, planner::with_accelerator("GPUs", word), "tokens/s");
}

// Null if no plan fits any number of GPUs.
const planner::ScalePoint* fastest(const planner::ScaleResult& result) {
  const planner::ScalePoint* best = nullptr;
  double rate = 0.0;
  for (const planner::ScalePoint& point : result.points) {
    if (!point.best || point.tokens_per_s <= rate) continue;
    best = &point;
    rate = point.tokens_per_s;
  }
  return best;
}

// The drawings of the fastest plan are simulated, and only the page that --html writes has them.
void add_fastest(Page& page, const ChosenRequest& chosen, const planner::ScalePoint& point,
                 bool draws) {
  const planner::PlanCandidate& best = *point.best;
  const std::string gpus = format_count(best.plan.world_size()) + " GPUs";
  const Scenario scenario = scenario_of(chosen, point);
  const validation::Confidence confidence =
      validation::confidence_of(scenario, best.result.step, best.result.memory().peak);
  if (confidence.step) {
    page.heading("The fastest plan, on " + gpus);
    add_confidence(page, "It", best.result.step, confidence);
  }
  if (draws) add_simulated_figures(page, scenario, " on " + gpus);
}

void warn_of_full_memory(Page& page, const ChosenRequest& chosen,
                         const planner::ScaleResult& result) {
  std::vector<std::string> sizes;
  double fullest = 0.0;
  for (const planner::ScalePoint& point : result.points) {
    if (!point.best) continue;
    const Scenario scenario = scenario_of(chosen, point);
    const sim::StepResult& step = point.best->result;
    const double share =
        planner::memory_share(step, stage_cluster(scenario.cluster, scenario.plan, step.fullest));
    if (share > planner::kTightMemory) sizes.push_back(format_count(point.gpus));
    fullest = std::max(fullest, share);
  }
  if (sizes.empty()) return;
  page.warning(
      fmt::format("on {} GPUs the best plan uses up to {} % of the memory; use --max-memory 90% to "
                  "keep a margin",
                  fmt::join(sizes, ", "), format_percent(fullest)));
}

std::ptrdiff_t sizes_that_fit(const planner::ScaleResult& result) {
  return std::count_if(result.points.begin(), result.points.end(),
                       [](const planner::ScalePoint& point) { return point.best.has_value(); });
}

void add_scale(Page& page, const ChosenRequest& chosen, const planner::ScaleResult& result) {
  const planner::PlanRequest& request = chosen.request;
  page.heading(fmt::format("{} on {}, {}", request.model.name, hardware_text(request.cluster),
                           request.stack.name));
  if (const planner::ScalePoint* point = fastest(result))
    page.facts({{"goal", goal_text(request, point->best->plan.global_batch)}});
  if (result.partial) page.warning("interrupted: these are the sizes searched so far");
  page.table(point_table(result, chosen));
  warn_of_full_memory(page, chosen, result);
  if (result.superlinear_cause) {
    page.paragraph(
        fmt::format("Efficiency above 100 %: {}.", planner::cause_text(*result.superlinear_cause)));
  }
  if (result.knee) {
    page.paragraph(fmt::format("Efficiency falls below {} % beyond {} GPUs: {}.",
                               format_number(100.0 * planner::kKneeEfficiency),
                               format_count(result.knee->gpus),
                               planner::cause_text(result.knee->cause)));
  } else if (sizes_that_fit(result) > 1) {
    page.paragraph(fmt::format("Efficiency stays above {} % up to the largest size that {}.",
                               format_number(100.0 * planner::kKneeEfficiency),
                               result.partial ? "was searched" : "fits"));
  }
  add_counts(page, total_counts(result), result.wall_s);
  add_assumptions(page, request, chosen.cluster, chosen.filled_in);
}

struct ScaleOptions {
  CommonOptions common;
  RequestOptions request;
};

ExitCode scale(const ScaleOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  ChosenRequest chosen = choose_request(options.request, "shardwright scale");
  return run_scale(options.common, chosen, "");
}

}  // namespace

ExitCode run_scale(const CommonOptions& options, ChosenRequest& chosen,
                   const std::string& plan_out) {
  planner::ScaleResult result;
  {
    const InterruptWatch interrupt;
    SearchProgressLine progress(show_progress(options), chosen.request, chosen.sizes.size());
    chosen.request.stop = interrupt.token();
    std::function<ClusterSpec(std::int64_t)> machine;
    if (!chosen.grow.empty()) machine = [&](std::int64_t gpus) { return chosen.machine_of(gpus); };
    result = planner::scale(
        chosen.request, chosen.sizes, [&](const planner::ScalePoint&) { progress.end_search(); },
        machine);
  }
  const planner::ScalePoint* best = fastest(result);
  if (best != nullptr && !plan_out.empty())
    write_file(plan_out, json_text(to_json(scenario_of(chosen, *best))), options.force);
  if (result.infeasible) {
    report_infeasible(largest_request(chosen), *result.infeasible);
  }
  Page page = new_page(options, chosen.request.cluster);
  add_scale(page, chosen, result);
  page.figure("Throughput over the number of GPUs",
              throughput_figure(result, chosen.request.cluster));
  if (best != nullptr) add_fastest(page, chosen, *best, !options.html.empty());
  deliver(options, page, scale_json(chosen, result), best != nullptr && plan_out == "-");
  if (result.partial) return ExitCode::Interrupted;
  return best == nullptr ? ExitCode::NoFeasiblePlan : ExitCode::Ok;
}

void add_scale_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "scale", "Find the best plan for each number of GPUs, and how far training scales");
  command->footer(R"(Example:
  shardwright scale --model llama3-8b --cluster dgx-h100 --gpus 8..1024 \
      --global-batch 1024 --seq-len 8192)");
  const auto options = std::make_shared<ScaleOptions>();
  add_request_options(*command, options->request);
  add_option(*command, "--grow", options->request.grow, "POOL|all",
             "On a cluster of several pools, add nodes to this pool, or to all in proportion to "
             "their nodes, until there are --gpus accelerators; without it, --gpus is the most "
             "accelerators of the cluster that a plan may use",
             "Scenario");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return scale(*options); }; });
}

}  // namespace shardwright::cli
