// shardwright plan with several ways in which replicas agree
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands/interrupt.hpp"
#include "cli/commands/scale_run.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/pool_report.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/plan_text.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/search.hpp"
#include "planner/varied_agreements.hpp"
#include "planner/wording.hpp"
#include "validation/convergence.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kAgreementsCommand = "shardwright plan";

bool varies(const RequestOptions& options, const char* choice) {
  return std::find(options.vary.begin(), options.vary.end(), choice) != options.vary.end();
}

// The best plan of one agreement.
struct AgreedPlan {
  ReplicaAgreement replicas;
  std::optional<planner::PlanCandidate> best;
  validation::ConvergenceCost cost;
  // Why there is no plan.
  std::string why_not;
};

std::string agreement_text(const ReplicaAgreement& replicas) {
  Plan plan;
  plan.replicas = replicas;
  const std::string text = replicas_text(plan);
  return text.empty() ? "all-reduce" : text;
}

AgreedPlan plan_agreeing(const ReplicaAgreement& replicas, planner::PlanRequest request,
                         const CommonOptions& common, const std::stop_token& stop) {
  AgreedPlan found;
  found.replicas = replicas;
  request.limits.replicas = replicas;
  request.stop = stop;
  request.top = 1;
  request.advice = false;
  SearchProgressLine progress(show_progress(common), request);
  const planner::SearchResult result = planner::search(request);
  if (!result.plans.empty()) {
    found.best = result.plans.front();
    found.cost = validation::convergence_cost(request.model, found.best->plan);
  } else {
    found.why_not = result.partial ? "interrupted"
                                   : fmt::format("none: {} runs none, or none fits into memory",
                                                 request.stack.name);
  }
  return found;
}

// The steps of the all-reduce in the time of a step: above 1, more tokens may be needed by as much.
double gain(const AgreedPlan& plan, const AgreedPlan& all_reduce) {
  return all_reduce.best->result.step / plan.best->result.step;
}

std::string verdict(const AgreedPlan& plan, const AgreedPlan& all_reduce) {
  const double more = gain(plan, all_reduce) - 1.0;
  if (more <= 0.0) return "no";
  if (!plan.cost.known()) return fmt::format("below {} % more tokens", format_percent(more));
  if (plan.cost.high < more) return "yes";
  return plan.cost.low < more ? "perhaps" : "no";
}

Table agreement_table(const std::vector<AgreedPlan>& plans) {
  Table table({{"replicas agree by"},
               {"step", kNumber, "s"},
               {"faster", kNumber, "%"},
               {"more tokens", kNumber, "%"},
               {"pays"},
               {"plan", ColumnKind::Prose}});
  const AgreedPlan& all_reduce = plans.front();
  for (const AgreedPlan& plan : plans) {
    const std::string name = agreement_text(plan.replicas);
    if (!plan.best) {
      table.add_row({name, "", "", "", "", plan.why_not});
      continue;
    }
    const std::string step = format_number(plan.best->result.step.value(), 4);
    const bool compares = &plan != &all_reduce && all_reduce.best;
    table.add_row({name, step, compares ? format_signed_percent(gain(plan, all_reduce) - 1.0) : "",
                   validation::cost_cell(plan.cost), compares ? verdict(plan, all_reduce) : "",
                   plan_text(plan.best->plan)});
  }
  return table;
}

ordered_json agreements_json(const planner::PlanRequest& request,
                             const std::vector<AgreedPlan>& plans, bool partial) {
  ordered_json document = new_document("agreement_plans");
  document["inputs"] = inputs_json(request.model, request.cluster, request.stack);
  document["partial"] = partial;
  document["agreements"] = ordered_json::array();
  for (const AgreedPlan& plan : plans) {
    document["agreements"].push_back(
        {{"name", agreement_text(plan.replicas)},
         {"best", plan.best
                      ? candidate_json(*plan.best, planner::scenario_of(request, plan.best->plan))
                      : ordered_json()},
         {"convergence", plan.best ? validation::cost_json(plan.cost) : ordered_json()},
         {"why_not", plan.why_not}});
  }
  return document;
}

void add_notes(Page& page, const std::vector<AgreedPlan>& plans) {
  page.paragraph(
      "An agreement pays if it is faster by more than the tokens that it needs in addition for the "
      "same loss. These are known only where they were measured; elsewhere the table says up to "
      "how many it would pay.");
  const bool serves = std::any_of(plans.begin(), plans.end(), [](const AgreedPlan& plan) {
    return plan.best && plan.replicas.has_servers();
  });
  if (serves)
    page.paragraph(
        "Each rank pushes all of its gradients to parameter servers, where an all-reduce adds them "
        "up within nodes first. Servers pay where a node has few ranks, where they have nodes of "
        "their own (data_parallel.server_place in a plan) with network cards that workers do not "
        "use, or where replicas are unequally fast.");
  std::vector<std::string> sources;
  for (const AgreedPlan& plan : plans) {
    if (!plan.cost.known() || plan.cost.source.empty()) continue;
    if (std::find(sources.begin(), sources.end(), plan.cost.source) == sources.end())
      sources.push_back(plan.cost.source);
  }
  if (!sources.empty()) page.bullets(sources);
}

}  // namespace

ExitCode plan_agreements(const CommonOptions& common, const RequestOptions& options,
                         const std::string& plan_out) {
  const ChosenRequest chosen = choose_request(options, kAgreementsCommand);
  require_one_size(chosen, options, kAgreementsCommand, "several agreements");
  const InterruptWatch interrupt;
  std::vector<AgreedPlan> plans;
  for (const ReplicaAgreement& replicas :
       planner::varied_agreements(varies(options, "sync"), varies(options, "compression"))) {
    // The others are compared with the first, which says so itself if it was interrupted.
    if (plans.empty() || !interrupt.interrupted())
      plans.push_back(plan_agreeing(replicas, chosen.request, common, interrupt.token()));
  }
  const auto best = std::find_if(plans.begin(), plans.end(),
                                 [](const AgreedPlan& plan) { return plan.best.has_value(); });
  // A plan is written whose tokens are known to be those of the request: the all-reduce's.
  if (best != plans.end() && !plan_out.empty()) {
    const Scenario scenario = planner::scenario_of(chosen.request, best->best->plan);
    write_file(plan_out, json_text(to_json(scenario)), common.force);
  }
  Page page = new_page(common, chosen.request.cluster);
  page.heading(fmt::format("{} on {}, {}", chosen.request.model.name,
                           hardware_text(chosen.request.cluster, chosen.request.gpus),
                           chosen.request.stack.name));
  if (interrupt.interrupted())
    page.warning("interrupted: these are the agreements searched so far");
  page.table(agreement_table(plans));
  add_notes(page, plans);
  add_assumptions(page, chosen.request, chosen.cluster, chosen.filled_in);
  deliver(common, page, agreements_json(chosen.request, plans, interrupt.interrupted()),
          plan_out == "-");
  if (interrupt.interrupted()) return ExitCode::Interrupted;
  return best != plans.end() ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace shardwright::cli
