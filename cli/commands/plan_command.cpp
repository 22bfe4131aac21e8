// shardwright plan
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/commands/scale_run.hpp"
#include "cli/options/request_options.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/explain.hpp"
#include "planner/search.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

struct PlanOptions {
  CommonOptions common;
  RequestOptions request;
  std::string plan_out;
};

std::string machine_text(const planner::PlanRequest& request) {
  return fmt::format("{} on {} × {} ({}), {}", request.model.name, format_count(request.gpus),
                     request.cluster.accelerator.name, request.cluster.name, request.stack.name);
}

// The result of a search, and the explanation of its best plan.
struct Answer {
  planner::SearchResult result;
  planner::Explanation best;
  bool interrupted = false;
};

Answer find_answer(const PlanOptions& options, ChosenRequest& chosen) {
  const InterruptWatch interrupt;
  planner::PlanRequest& request = chosen.request;
  request.stop = interrupt.token();
  Answer answer;
  {
    SearchProgressLine progress(show_progress(options.common), request);
    answer.result = planner::search(request);
  }
  if (!answer.result.plans.empty()) {
    const planner::PlanCandidate& best = answer.result.plans.front();
    answer.best = planner::explain(planner::scenario_of(request, best.plan), best.result,
                                   planner::kSensitivityStep, request.stop);
  }
  answer.interrupted = answer.result.partial || answer.best.partial;
  return answer;
}

void add_best(Page& page, const planner::PlanRequest& request, const planner::PlanCandidate& best,
              const planner::Explanation& explanation) {
  page.paragraph(planner::limit_text("Plan 1", explanation));
  const auto ground = validation::ground_of(request.cluster.accelerator, request.stack);
  if (const auto interval = validation::step_interval(best.result.step, ground)) {
    page.paragraph(fmt::format("Expected step time: {}; 80 % interval {}.",
                               format_time(best.result.step), interval_text(*interval)));
  }
  const double share = planner::memory_share(best.result, request.cluster);
  if (share > planner::kTightMemory) {
    page.warning(
        fmt::format("plan 1 uses {} % of the memory; use --max-memory 90% to keep a margin",
                    format_percent(share)));
  }
}

void add_answer(Page& page, const ChosenRequest& chosen, const Answer& answer) {
  const planner::PlanRequest& request = chosen.request;
  const planner::SearchResult& result = answer.result;
  page.heading(machine_text(request));
  page.facts({{"goal", goal_text(request, result.plans.front().plan.global_batch)}});
  if (result.partial) {
    page.warning("interrupted: these are the best plans found so far");
  } else if (answer.interrupted) {
    page.warning("interrupted: the search is complete, but not the gain from each resource");
  }
  page.table(candidate_table(result.plans));
  add_best(page, request, result.plans.front(), answer.best);
  add_counts(page, result.counts, result.wall_s);
  if (result.front.size() > 1) {
    page.heading(front_title(result));
    page.table(front_table(result.front));
  }
  add_assumptions(page, request, chosen.cluster, chosen.filled_in);
}

ordered_json plan_json(const ChosenRequest& chosen, const planner::SearchResult& result) {
  const planner::PlanRequest& request = chosen.request;
  ordered_json document = new_document("plans");
  document["inputs"] = inputs_json(request.model, request.cluster, request.stack);
  document["filled_in"] = chosen.filled_in;
  document["objective"] = name_of(request.objective);
  document["partial"] = result.partial;
  document["search"] = counts_json(result.counts);
  document["search"]["wall_s"] = result.wall_s;
  const auto list = [&](const std::vector<planner::PlanCandidate>& candidates) {
    ordered_json elements = ordered_json::array();
    for (const planner::PlanCandidate& candidate : candidates)
      elements.push_back(candidate_json(candidate, request.cluster, request.stack));
    return elements;
  };
  document["plans"] = list(result.plans);
  document["front"] = list(result.front);
  document["trade_offs"] = result.trade_offs;
  if (result.infeasible) document["infeasible"] = infeasible_json(request, *result.infeasible);
  add_parts(document, request.model, request.cluster, request.stack);
  return document;
}

ExitCode deliver_none(const PlanOptions& options, const ChosenRequest& chosen,
                      const planner::SearchResult& result) {
  Page page = new_page(options.common);
  if (result.infeasible) report_infeasible(chosen.request, *result.infeasible);
  if (result.partial) page.warning("interrupted before a plan was found");
  add_counts(page, result.counts, result.wall_s);
  deliver(options.common, page, plan_json(chosen, result));
  return result.partial ? ExitCode::Interrupted : ExitCode::NoFeasiblePlan;
}

ExitCode plan_one_size(const PlanOptions& options, ChosenRequest& chosen) {
  const Answer answer = find_answer(options, chosen);
  const planner::SearchResult& result = answer.result;
  if (result.plans.empty()) return deliver_none(options, chosen, result);
  if (!options.plan_out.empty()) {
    const Scenario scenario = planner::scenario_of(chosen.request, result.plans.front().plan);
    write_file(options.plan_out, json_text(to_json(scenario)), options.common.force);
  }
  Page page = new_page(options.common);
  add_answer(page, chosen, answer);
  deliver(options.common, page, plan_json(chosen, result), options.plan_out == "-");
  return answer.interrupted ? ExitCode::Interrupted : ExitCode::Ok;
}

ExitCode plan(const PlanOptions& options) {
  check_destinations({{"--json", options.common.json}, {"--out", options.plan_out}},
                     options.common.force);
  ChosenRequest chosen = choose_request(options.request, "shardwright plan");
  if (chosen.gpus.first == chosen.gpus.second) return plan_one_size(options, chosen);
  return run_scale(options.common, chosen, options.plan_out);
}

}  // namespace

void add_plan_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("plan", "Find the best hybrid-parallel plans for a model and a cluster");
  command->footer(R"(Examples:
  shardwright plan --model llama3-70b --cluster dgx-h100 --gpus 512 --global-batch 1024 --seq-len 8192
  shardwright plan --model ./my-model --cluster dgx-h100 --gpus 64 --global-batch auto --seq-len 8192 \
      --fix tp=8 --forbid zero=3 --max-memory 70GB --out plan.json
  shardwright plan … --gpus 64..1024     the best plan of each size, and the scaling efficiency)");
  const auto options = std::make_shared<PlanOptions>();
  add_request_options(*command, options->request);
  add_option(*command, "--out", options->plan_out, "FILE|-", "Write the best plan as a plan file",
             "Output");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return plan(*options); }; });
}

}  // namespace shardwright::cli
