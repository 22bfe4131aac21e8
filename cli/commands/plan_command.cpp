// shardwright plan
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/commands/plan_runs.hpp"
#include "cli/commands/scale_run.hpp"
#include "cli/options/request_options.hpp"
#include "cli/options/run_options.hpp"
#include "cli/options/settings.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/forecast_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/pool_report.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "planner/compare.hpp"
#include "planner/explain.hpp"
#include "planner/forecast.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/search.hpp"
#include "planner/wording.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

struct PlanOptions {
  CommonOptions common;
  RequestOptions request;
  WholeRunOptions run;
  std::string plan_out;
};

// The whole runs of the plans that a search found.
struct PlannedRuns {
  ChosenRun run;
  planner::ForecastRequest request;
  std::vector<std::optional<planner::Forecast>> forecasts;
};

// The request for runs of the plans; none without --tokens.
std::optional<PlannedRuns> read_runs(const WholeRunOptions& options,
                                     std::vector<std::string>& settings) {
  if (!options.given()) return std::nullopt;
  ProblemList problems("shardwright plan");
  PlannedRuns runs;
  runs.run = read_whole_run(options, take_run_settings(settings), nullptr, problems);
  problems.throw_if_any();
  runs.request = runs.run.request;
  runs.request.gains = false;
  return runs;
}

// Throws InputError if no plan takes the stages of the run profile.
void forecast_plans(PlannedRuns& runs, const planner::PlanRequest& request,
                    const std::vector<planner::PlanCandidate>& plans) {
  runs.request.options.threads = request.threads;
  for (const planner::PlanCandidate& candidate : plans) {
    runs.request.scenario = planner::scenario_of(request, candidate.plan);
    runs.request.tokens = runs.run.tokens_of(runs.request.scenario, false);
    try {
      std::vector<planner::ForecastStage> stages = planner::run_stages(runs.request);
      planner::require_memory(runs.request, stages);
      runs.forecasts.emplace_back(planner::forecast(runs.request, std::move(stages),
                                                    step_spread_of(runs.request.scenario)));
    } catch (const InputError&) {
      runs.forecasts.emplace_back(std::nullopt);
      const bool any =
          std::ranges::any_of(runs.forecasts, [](const auto& each) { return each.has_value(); });
      if (!any && runs.forecasts.size() == plans.size()) throw;
    }
  }
}

ordered_json runs_json(PlannedRuns runs, const planner::PlanRequest& request,
                       const std::vector<planner::PlanCandidate>& plans) {
  ordered_json elements = ordered_json::array();
  for (std::size_t i = 0; i < runs.forecasts.size(); ++i) {
    runs.request.scenario = planner::scenario_of(request, plans[i].plan);
    elements.push_back(runs.forecasts[i] ? forecast_json(runs.request, *runs.forecasts[i])
                                         : ordered_json());
  }
  return elements;
}

std::string machine_text(const planner::PlanRequest& request, const planner::SearchResult& result) {
  if (!result.pools.empty())
    return fmt::format("{} on {}, {}", request.model.name, pools_text(request, result),
                       request.stack.name);
  return fmt::format("{} on {} × {} ({}), {}", request.model.name, format_count(request.gpus),
                     request.cluster.accelerator.name, request.cluster.name, request.stack.name);
}

// The result of a search, and the explanation of its best plan.
struct Answer {
  planner::SearchResult result;
  // Of a plan on several pools it says nothing.
  planner::Explanation best;
  // The plan that the user compares with, simulated.
  std::optional<planner::PlanCandidate> compared;
  bool interrupted = false;
};

// "+3.2".
std::string change_text(double ratio) {
  return format_signed_percent(ratio - 1.0);
}

std::string margin_cost_text(const planner::PlanRequest& request,
                             const planner::PlanCandidate& best,
                             const planner::PlanCandidate& beyond) {
  const Bytes peak = beyond.result.memory().peak;
  return fmt::format(
      ". Without the margin the best plan takes {} ({} %), needs {} and fits with {} % "
      "probability: {}.",
      format_time(beyond.result.step), change_text(beyond.result.step / best.result.step),
      format_bytes(peak),
      format_percent(validation::fit_probability(peak, request.cluster.accelerator.memory)),
      plan_text(beyond.plan));
}

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
    const Scenario scenario = planner::scenario_of(request, best.plan);
    if (!names_pools(scenario.plan))
      answer.best =
          planner::explain(scenario, best.result, planner::kSensitivityStep, request.stop);
  }
  if (request.compared) {
    answer.compared = planner::candidate_of(planner::scenario_of(request, *request.compared));
    // A plan on one of several pools names it.
    answer.compared->plan = *request.compared;
  }
  answer.interrupted = answer.result.partial || answer.best.partial;
  return answer;
}

validation::Confidence confidence_of(const planner::PlanRequest& request,
                                     const planner::PlanCandidate& candidate) {
  const Scenario scenario = planner::scenario_of(request, candidate.plan);
  return validation::confidence_of(scenario, candidate.result.step, candidate.result.memory().peak);
}

void add_best(Page& page, const Answer& answer, const validation::Confidence& confidence) {
  const planner::PlanCandidate& best = answer.result.plans.front();
  if (pools_of(best.plan).size() > 1) {
    page.paragraph(fmt::format(
        "Plan 1 lies on several pools: {}. Too few published runs did for its errors to be known.",
        balance_text(best)));
  } else {
    page.paragraph(planner::limit_text("Plan 1", answer.best));
    if (!confidence.step) return;
    add_confidence(page, "Plan 1", best.result.step, confidence);
  }
  if (!answer.result.best_validated) return;
  const planner::PlanCandidate& validated = *answer.result.best_validated;
  page.paragraph(fmt::format("The best plan inside validated ground takes {} ({} %): {}.",
                             format_time(validated.result.step),
                             change_text(validated.result.step / best.result.step),
                             plan_text(validated.plan)));
}

// The probability that plan 1 fits, and what the margin of memory costs.
void add_margin(Page& page, const ChosenRequest& chosen, const planner::SearchResult& result,
                const validation::Confidence& confidence) {
  const planner::PlanCandidate& best = result.plans.front();
  if (!confidence.fit_probability) return;
  std::string text = fmt::format("Plan 1 fits into memory with {} % probability, by {}.",
                                 format_percent(*confidence.fit_probability),
                                 format_plural(validation::memory_runs(), "published peak"));
  if (chosen.fit_probability) {
    text += fmt::format(" The margin for {} % limits plans to {} of {}",
                        format_number(100.0 * *chosen.fit_probability, 6),
                        format_bytes(planner::available_memory(chosen.request)),
                        format_bytes(planner::whole_memory(chosen.request)));
    text += result.best_beyond ? margin_cost_text(chosen.request, best, *result.best_beyond)
                               : ", which costs no time.";
  }
  page.paragraph(text);
}

// The rank of the compared plan among the plans of the search.
void add_compared(Page& page, const ChosenRequest& chosen, const Answer& answer) {
  if (!answer.compared) return;
  const planner::PlanRequest& request = chosen.request;
  const planner::PlanCandidate& best = answer.result.plans.front();
  page.heading("Your plan");
  page.table(candidate_table({*answer.compared}, request.objective));
  page.paragraph(
      planner::verdict_text(planner::compare(planner::scenario_of(request, best.plan),
                                             planner::scenario_of(request, answer.compared->plan)),
                            "plan 1", "your plan"));
  page.paragraph(
      fmt::format("At the analytic level, {} of {} feasible plans are faster than yours.",
                  format_count(*answer.result.faster_than_compared),
                  format_count(answer.result.counts.evaluated)));
  const validation::Confidence confidence = confidence_of(request, *answer.compared);
  if (confidence.fit_probability) {
    page.paragraph(fmt::format("Your plan fits into memory with {} % probability. {}",
                               format_percent(*confidence.fit_probability),
                               validation::ground_text("Your plan", confidence)));
  }
}

void add_answer(Page& page, const ChosenRequest& chosen, const Answer& answer) {
  const planner::PlanRequest& request = chosen.request;
  const planner::SearchResult& result = answer.result;
  page.heading(machine_text(request, result));
  page.facts({{"goal", goal_text(request, result.plans.front().plan.global_batch)}});
  if (result.partial) {
    page.warning("interrupted: these are the best plans found so far");
  } else if (answer.interrupted) {
    page.warning("interrupted: the search is complete, but not the gain from each resource");
  }
  page.table(candidate_table(result.plans, request.objective));
  if (request.one_per_layout) {
    page.paragraph(
        "Each plan is the best of its layout (tp, pp, cp, ep, ZeRO-3 or not); variants are other "
        "plans of the layout within 1 % of its time, which --all-variants lists.");
  }
  const validation::Confidence confidence = confidence_of(request, result.plans.front());
  add_best(page, answer, confidence);
  if (result.pools.empty())
    add_margin(page, chosen, result, confidence);
  else
    add_pools(page, result);
  add_compared(page, chosen, answer);
  add_counts(page, result.counts, result.wall_s);
  if (result.front.size() > 1) {
    page.heading(front_title(result));
    page.table(front_table(result.front));
  }
  add_assumptions(page, request, chosen.cluster, chosen.filled_in);
}

ordered_json plan_json(const ChosenRequest& chosen, const planner::SearchResult& result,
                       const std::optional<planner::PlanCandidate>& compared) {
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
      elements.push_back(candidate_json(candidate, planner::scenario_of(request, candidate.plan)));
    return elements;
  };
  const auto one = [&](const std::optional<planner::PlanCandidate>& candidate) {
    return candidate ? candidate_json(*candidate, planner::scenario_of(request, candidate->plan))
                     : ordered_json();
  };
  document["plans"] = list(result.plans);
  document["best_validated"] = one(result.best_validated);
  document["memory"] = {
      {"fit_probability",
       chosen.fit_probability ? ordered_json(*chosen.fit_probability) : ordered_json()},
      {"limit_bytes", planner::available_memory(request).value()},
      {"best_without_margin", one(result.best_beyond)}};
  document["compared"] = one(compared);
  document["faster_than_compared"] =
      result.faster_than_compared ? ordered_json(*result.faster_than_compared) : ordered_json();
  document["front"] = list(result.front);
  document["trade_offs"] = result.trade_offs;
  if (!result.pools.empty()) add_pools(document, request, result);
  if (result.infeasible) {
    document["infeasible"] = infeasible_json(request, *result.infeasible);
  }
  add_parts(document, request.model, request.cluster, request.stack);
  return document;
}

ExitCode deliver_none(const PlanOptions& options, const ChosenRequest& chosen,
                      const planner::SearchResult& result) {
  Page page = new_page(options.common, chosen.request.cluster);
  if (result.infeasible) report_infeasible(chosen.request, *result.infeasible);
  if (result.partial) page.warning("interrupted before a plan was found");
  add_counts(page, result.counts, result.wall_s);
  deliver(options.common, page, plan_json(chosen, result, std::nullopt));
  return result.partial ? ExitCode::Interrupted : ExitCode::NoFeasiblePlan;
}

ExitCode plan_one_size(const PlanOptions& options, ChosenRequest& chosen,
                       std::optional<PlannedRuns> runs) {
  chosen.request.look_beyond_margin = chosen.fit_probability.has_value();
  const Answer answer = find_answer(options, chosen);
  const planner::SearchResult& result = answer.result;
  if (result.plans.empty()) return deliver_none(options, chosen, result);
  if (!options.plan_out.empty()) {
    const Scenario scenario = planner::scenario_of(chosen.request, result.plans.front().plan);
    write_file(options.plan_out, json_text(to_json(scenario)), options.common.force);
  }
  if (runs) forecast_plans(*runs, chosen.request, result.plans);
  Page page = new_page(options.common, chosen.request.cluster);
  add_answer(page, chosen, answer);
  // Only the page that --html writes has drawings, for which the best plan is simulated once more.
  if (!options.common.html.empty())
    add_simulated_figures(page, planner::scenario_of(chosen.request, result.plans.front().plan),
                          " of plan 1");
  ordered_json document = plan_json(chosen, result, answer.compared);
  if (runs) {
    add_runs(page, runs->request, runs->forecasts);
    const std::vector<std::string> laws = runs->run.laws_of(chosen.request.model, false);
    add_laws(page, laws);
    document["laws"] = laws;
    document["runs"] = runs_json(*runs, chosen.request, result.plans);
  }
  deliver(options.common, page, document, options.plan_out == "-");
  return answer.interrupted ? ExitCode::Interrupted : ExitCode::Ok;
}

ExitCode plan(const PlanOptions& options) {
  check_destinations({{"--json", options.common.json}, {"--out", options.plan_out}},
                     options.common.force);
  RequestOptions asked = options.request;
  std::optional<PlannedRuns> runs = read_runs(options.run, asked.settings);
  if (varies_agreements(asked)) {
    if (runs || names_several_stacks(asked.stack))
      throw InputError("shardwright plan",
                       {{"--vary",
                         runs ? "sync or compression with the tokens of a run"
                              : "sync or compression with several stacks",
                         "one stack and no --tokens, which depend on the agreement"}});
    return plan_agreements(options.common, asked, options.plan_out);
  }
  if (names_several_stacks(asked.stack)) {
    if (runs)
      throw InputError("shardwright plan", {{"--stack", fmt::format("\"{}\"", asked.stack),
                                             "one stack, for the forecast of a whole run"}});
    return plan_stacks(options.common, asked, options.plan_out);
  }
  ChosenRequest chosen = choose_request(asked, "shardwright plan");
  const bool one_size = chosen.gpus.first == chosen.gpus.second;
  if (runs && (!one_size || chosen.request.global_batch == 0))
    return plan_runs(options.common, chosen, runs->run, options.plan_out);
  if (one_size) return plan_one_size(options, chosen, std::move(runs));
  return run_scale(options.common, chosen, options.plan_out);
}

}  // namespace

void add_plan_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("plan", "Find the best hybrid-parallel plans for a model and a cluster");
  command->footer(R"(Examples:
  shardwright plan --model llama3-70b --cluster dgx-h100 --gpus 512 \
      --global-batch 1024 --seq-len 8192
  shardwright plan --model ./my-model --cluster dgx-h100 --gpus 64 \
      --global-batch auto --seq-len 8192 --fix tp=8 --forbid zero=3 \
      --max-memory 70GB --out plan.json
GPUs, batch and plan of the cheapest run to a loss:
  shardwright plan … --target-loss 1.95 --gpus 256..2048 \
      --global-batch auto --objective cost
Also the days and dollars of the best plans' whole runs:
  shardwright plan … --tokens 15T
The best plan of each size, and the scaling efficiency:
  shardwright plan … --gpus 64..1024
The best plan with each stack (all: with every shipped one):
  shardwright plan … --stack megatron-core,fsdp2-compile)");
  const auto options = std::make_shared<PlanOptions>();
  add_request_options(*command, options->request);
  add_whole_run_options(*command, options->run);
  add_option(*command, "--compare", options->request.compare, "FILE",
             "Rank the plan of a plan file among those found; its model, cluster, stack and batch "
             "are the request, unless other options replace them",
             "Search");
  command
      ->add_flag("--all-variants", options->request.all_variants,
                 "List the best plans even if several have one layout: the same tp, pp, cp, ep and "
                 "kind of data parallelism")
      ->group("Search");
  add_option(*command, "--out", options->plan_out, "FILE|-", "Write the best plan as a plan file",
             "Output");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return plan(*options); }; });
}

}  // namespace shardwright::cli
