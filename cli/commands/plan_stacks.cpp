// shardwright plan with several stacks
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "cli/commands/interrupt.hpp"
#include "cli/commands/scale_run.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/pool_report.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/wording.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPlanStacks = "shardwright plan";

struct StackPlan {
  std::string stack;
  std::optional<Scenario> scenario;
  std::optional<planner::PlanCandidate> best;
  // Why there is no plan.
  std::string why_not;

  double score() const { return best ? best->score : std::numeric_limits<double>::infinity(); }
};

std::vector<std::string> stack_names(const std::string& text) {
  if (text == "all") return shipped_stacks();
  std::vector<std::string> names;
  std::istringstream stream(text);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

bool is_of_nvidia(Architecture architecture) {
  return Architecture::Volta <= architecture && architecture <= Architecture::RtxBlackwell;
}

// True of accelerators for which every framework has fused attention since they are sold.
bool is_newer_than_fused_attention(Architecture architecture) {
  return architecture >= Architecture::Ada;
}

// Why nobody would train with a stack on an accelerator; empty if somebody would.
std::string reason_to_leave_out(const StackSpec& stack, const AcceleratorSpec& accelerator) {
  const Architecture architecture = accelerator.architecture;
  const bool is_ours = stack.family == "shardwright";
  if (architecture == Architecture::Cpu && !is_ours) return "they do not train on CPUs";
  if (is_ours && architecture != Architecture::Cpu && !is_of_nvidia(architecture))
    return "our executor runs on CPUs and NVIDIA's GPUs";
  if (architecture == Architecture::Tpu && stack.family != "jax" && stack.family != "generic")
    return "TPUs are programmed through JAX";
  if (is_newer_than_fused_attention(architecture) && !stack.fusion.flash_attention)
    return fmt::format("their attention is not fused, and the {} is younger than that",
                       accelerator.name);
  return "";
}

// The names by the reason for which they are left out.
using LeftOut = std::map<std::string, std::vector<std::string>>;

// Removes them from `names`. On several pools a stack is left out if nobody would train with it on
// any of them.
LeftOut leave_out(std::vector<std::string>& names, const ClusterSpec& cluster) {
  LeftOut left_out;
  std::erase_if(names, [&](const std::string& name) {
    const StackSpec stack = load_stack(name);
    std::string reason;
    for (const std::string& pool : names_of_pools(cluster)) {
      reason = reason_to_leave_out(stack, pool_cluster(cluster, pool)->accelerator);
      if (reason.empty()) return false;
    }
    left_out[reason].push_back(name);
    return true;
  });
  return left_out;
}

StackPlan plan_with(const std::string& stack, RequestOptions options, const CommonOptions& common,
                    const std::stop_token& stop) {
  StackPlan found;
  found.stack = stack;
  options.stack = stack;
  options.top = "1";
  try {
    ChosenRequest chosen = choose_request(options, kPlanStacks);
    chosen.request.stop = stop;
    SearchProgressLine progress(show_progress(common), chosen.request);
    const planner::SearchResult result = planner::search(chosen.request);
    if (!result.plans.empty()) {
      found.best = result.plans.front();
      found.scenario = planner::scenario_of(chosen.request, found.best->plan);
    } else {
      found.why_not = result.infeasible ? planner::no_plan_text(chosen.request, *result.infeasible)
                                        : "interrupted";
    }
  } catch (const InputError& error) {
    found.why_not = problems_text(error);
  }
  return found;
}

validation::Confidence confidence_of(const StackPlan& plan) {
  return validation::confidence_of(*plan.scenario, plan.best->result.step,
                                   plan.best->result.memory().peak);
}

// What the table says of a plan behind the name of its stack.
std::vector<std::string> stack_cells(const StackPlan& plan) {
  if (!plan.best) return {"", "", "", "", plan.why_not};
  const sim::StepResult& result = plan.best->result;
  const validation::Confidence confidence = confidence_of(plan);
  return {format_number(result.step.value(), 4),
          confidence.step ? fmt::format("{} to {}", format_number(confidence.step->low.value(), 3),
                                        format_number(confidence.step->high.value(), 3))
                          : "unknown",
          format_percent(result.throughput.mfu), format_gigabytes(result.memory().peak),
          plan_text(plan.best->plan)};
}

// Stacks whose plans are the same in all that the table says share a row, which names the first of
// them; the others stand below.
void add_stacks(Page& page, const std::vector<StackPlan>& plans) {
  std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> rows;
  for (const StackPlan& plan : plans) {
    std::vector<std::string> cells = stack_cells(plan);
    const auto same = std::ranges::find(rows, cells, [](const auto& row) { return row.first; });
    if (same == rows.end())
      rows.push_back({std::move(cells), {plan.stack}});
    else
      same->second.push_back(plan.stack);
  }
  Table table({{"stack"},
               {"step", kNumber, "s"},
               {"80 % interval", kNumber, "s"},
               {"MFU", kNumber, "%"},
               {"memory", kNumber, "GB"},
               {"plan", ColumnKind::Prose}});
  for (const auto& [cells, stacks] : rows) {
    std::vector<std::string> row = {
        stacks.front() + (stacks.size() > 1 ? fmt::format(" + {}", stacks.size() - 1) : "")};
    row.insert(row.end(), cells.begin(), cells.end());
    table.add_row(std::move(row));
  }
  page.table(table);
  for (const auto& [cells, stacks] : rows)
    if (stacks.size() > 1)
      page.paragraph(fmt::format("The same as {}: {}.", stacks.front(),
                                 fmt::join(std::span(stacks).subspan(1), ", ")));
}

ordered_json stacks_json(const ChosenRequest& chosen, const std::vector<StackPlan>& plans,
                         const LeftOut& left_out, bool partial) {
  const planner::PlanRequest& request = chosen.request;
  ordered_json document = new_document("stack_plans");
  document["inputs"] = {{"model", request.model.name}, {"cluster", request.cluster.name}};
  document["model"] = to_json(request.model);
  document["cluster"] = to_json(request.cluster);
  document["objective"] = name_of(request.objective);
  document["partial"] = partial;
  document["stacks"] = ordered_json::array();
  for (const StackPlan& plan : plans) {
    document["stacks"].push_back(
        {{"stack", plan.stack},
         {"best", plan.best ? candidate_json(*plan.best, *plan.scenario) : ordered_json()},
         {"why_not", plan.why_not}});
  }
  document["left_out"] = ordered_json::array();
  for (const auto& [reason, names] : left_out)
    for (const std::string& name : names)
      document["left_out"].push_back({{"stack", name}, {"reason", reason}});
  return document;
}

}  // namespace

bool names_several_stacks(const std::string& stack) {
  return stack == "all" || stack.find(',') != std::string::npos;
}

ExitCode plan_stacks(const CommonOptions& common, const RequestOptions& options,
                     const std::string& plan_out) {
  // Problems that no stack would mend.
  RequestOptions without = options;
  without.stack.clear();
  const ChosenRequest chosen = choose_request(without, kPlanStacks);
  require_one_size(chosen, options, kPlanStacks, "several stacks");
  const InterruptWatch interrupt;
  std::vector<std::string> names = stack_names(options.stack);
  LeftOut left_out;
  if (options.stack == "all") left_out = leave_out(names, chosen.request.cluster);
  std::vector<StackPlan> plans;
  for (const std::string& stack : names) {
    if (!interrupt.interrupted())
      plans.push_back(plan_with(stack, options, common, interrupt.token()));
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const StackPlan& a, const StackPlan& b) { return a.score() < b.score(); });
  const bool any = !plans.empty() && plans.front().best;
  if (any && !plan_out.empty())
    write_file(plan_out, json_text(to_json(*plans.front().scenario)), common.force);
  Page page = new_page(common, chosen.request.cluster);
  page.heading(fmt::format("{} on {}", chosen.request.model.name,
                           hardware_text(chosen.request.cluster, chosen.request.gpus)));
  if (interrupt.interrupted()) page.warning("interrupted: these are the stacks searched so far");
  add_stacks(page, plans);
  page.paragraph(
      "Each plan is the best of its stack. Where the intervals of two stacks overlap, the order of "
      "the two is not "
      "certain.");
  for (const auto& [reason, each] : left_out)
    page.paragraph(fmt::format("Left out, as {}: {}.", reason, fmt::join(each, ", ")));
  deliver(common, page, stacks_json(chosen, plans, left_out, interrupt.interrupted()),
          plan_out == "-");
  if (interrupt.interrupted()) return ExitCode::Interrupted;
  return any ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace shardwright::cli
