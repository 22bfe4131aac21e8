#include "cli/output/candidate_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/batch_knee.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {

namespace {

using nlohmann::ordered_json;
using planner::PlanCandidate;

constexpr std::size_t kMostFrontRows = 10;
// A member of the front is shown if it needs at most this share of the memory of the one before.
constexpr double kNoticeable = 0.98;

// A column for a field of the plan; left out if every plan has the trivial value.
struct PlanColumn {
  Column column;
  std::string trivial;
  std::function<std::string(const Plan&)> cell;
};

std::string zero_cell(const Plan& plan) {
  return plan.shard_group > 0 ? fmt::format("{}/{}", plan.zero_stage, plan.shard_group)
                              : fmt::format("{}", plan.zero_stage);
}

const std::vector<PlanColumn>& plan_columns() {
  using P = const Plan&;
  const auto count = [](std::int64_t value) { return format_count(value); };
  static const std::vector<PlanColumn> kColumns = {
      {{"dp", kNumber}, "", [count](P p) { return count(p.dp); }},
      {{"tp", kNumber}, "", [count](P p) { return count(p.tp); }},
      {{"pp", kNumber}, "", [count](P p) { return count(p.pp); }},
      {{"cp", kNumber}, "1", [count](P p) { return count(p.cp); }},
      {{"cp method"},
       "",
       [](P p) { return std::string(p.cp > 1 ? name_of(p.context_parallel) : ""); }},
      {{"ep", kNumber}, "1", [count](P p) { return count(p.ep); }},
      {{"vpp", kNumber}, "1", [count](P p) { return count(p.vpp); }},
      {{"zero", kNumber}, "", zero_cell},
      {{"mb", kNumber}, "", [count](P p) { return count(p.micro_batch); }},
      {{"schedule"}, "", [](P p) { return std::string(p.pp > 1 ? name_of(p.schedule) : ""); }},
      {{"recompute"}, "none", recompute_text},
      {{"layers"}, "", layer_split_text},
      {{"pools"}, "", [](P p) { return printable(pools_text(p)); }},
      {{"states"},
       name_of(OptimizerStates::OfStack),
       [](P p) { return std::string(name_of(p.optimizer_states)); }},
      {{"offload"},
       "",
       [](P p) {
         const std::string place = name_of(p.offload_optimizer);
         return (p.offloads_optimizer() ? "optimizer to " + place + " " : "") +
                offloaded_activations_text(p);
       }},
  };
  return kColumns;
}

std::vector<PlanColumn> columns_with_news(const std::vector<PlanCandidate>& candidates) {
  std::vector<PlanColumn> columns;
  for (const PlanColumn& column : plan_columns()) {
    const bool is_degree = column.trivial.empty() && column.column.kind == kNumber;
    const bool has_news =
        std::any_of(candidates.begin(), candidates.end(), [&](const PlanCandidate& candidate) {
          return column.cell(candidate.plan) != column.trivial;
        });
    if (is_degree || has_news) columns.push_back(column);
  }
  return columns;
}

// "kv_heads" as "kv heads".
std::string with_blanks(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

int step_decimals(const std::vector<PlanCandidate>& candidates) {
  double slowest = 0.0;
  for (const PlanCandidate& candidate : candidates)
    slowest = std::max(slowest, candidate.result.step.value());
  return decimals_for(slowest);
}

std::vector<std::string> figures(const PlanCandidate& candidate, int decimals) {
  const sim::StepResult& result = candidate.result;
  return {format_fixed(result.step.value(), decimals),
          format_fixed(result.throughput.tokens_per_s_per_gpu, 0),
          format_percent(result.throughput.mfu),
          format_gigabytes(result.memory().peak),
          format_percent(result.time().exposed_total() / result.step),
          format_percent(result.time().bubble / result.step)};
}

// The members of a front that save a noticeable part of the memory of the one before; of many, both
// ends and evenly spaced ones between.
std::vector<std::size_t> shown_of(const std::vector<PlanCandidate>& front) {
  const auto memory = [&front](std::size_t i) { return front[i].result.memory().peak; };
  std::vector<std::size_t> apart;
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (apart.empty() || memory(i) <= memory(apart.back()) * kNoticeable) apart.push_back(i);
  }
  const std::size_t rows = std::min(apart.size(), kMostFrontRows);
  std::vector<std::size_t> shown;
  for (std::size_t row = 0; row < rows; ++row)
    shown.push_back(apart[rows == 1 ? 0 : row * (apart.size() - 1) / (rows - 1)]);
  return shown;
}

using nlohmann::ordered_json;

std::string option_text(const planner::Remedy& remedy) {
  using enum planner::RemedyField;
  const auto number = [&] { return std::get<std::int64_t>(remedy.value); };
  const auto bytes = [&] { return std::get<Bytes>(remedy.value); };
  const auto constraint = [&] { return to_string(std::get<planner::Constraint>(remedy.value)); };
  switch (remedy.field) {
    case Gpus:
      return fmt::format("--gpus {}", number());
    case GlobalBatch:
      return fmt::format("--global-batch {}", number());
    case SeqLen:
      return fmt::format("--seq-len {}", number());
    case MaxMemory:
      return fmt::format("--max-memory {}GB", format_gigabytes(bytes()));
    case AcceleratorMemory:
      return fmt::format("accelerators with {} of memory", format_bytes(bytes()));
    case Fixed:
      return "--fix " + constraint();
    case NotFixed:
      return "without --fix " + constraint();
    case NotForbidden:
      return "without --forbid " + constraint();
  }
  return "";
}

// "--gpus 1024 and --global-batch 2048".
std::string options_text(const std::vector<planner::Remedy>& remedies) {
  std::vector<std::string> options;
  for (const planner::Remedy& remedy : remedies) options.push_back(option_text(remedy));
  return fmt::format("{}", fmt::join(options, " and "));
}

// ", LoRA of rank 16".
std::string lora_words(const planner::PlanRequest& request) {
  Plan plan;
  plan.lora = request.lora;
  return request.lora ? ", " + lora_text(plan) : "";
}

}  // namespace

std::string goal_text(const planner::PlanRequest& request, std::int64_t chosen) {
  return fmt::format("{}{} of {}, {}, optimized for {}", format_plural(chosen, "sequence"),
                     request.global_batch == 0
                         ? fmt::format(" (chosen: the smallest batch with {} % of the best "
                                       "throughput)",
                                       format_percent(planner::kKneeThroughput, 0))
                         : "",
                     format_plural(request.seq_len, "token"),
                     name_of(request.precision) + lora_words(request), name_of(request.objective));
}

std::optional<Column> objective_column(planner::Objective objective) {
  switch (objective) {
    case planner::Objective::Cost:
      return Column{"cost", kNumber, "$ per B tokens"};
    case planner::Objective::TokensPerJoule:
      return Column{"tokens", kNumber, "per joule"};
    case planner::Objective::Time:
    case planner::Objective::Memory:
      break;
  }
  return std::nullopt;
}

std::string objective_cell(planner::Objective objective, const PlanCandidate& candidate) {
  constexpr double kBillion = 1e9;
  if (objective == planner::Objective::TokensPerJoule)
    return format_number(candidate.tokens() / candidate.joules_per_step.value());
  const double dollars = candidate.dollars_per_token();
  return dollars > 0.0 ? format_number(kBillion * dollars) : "";
}

Table candidate_table(const std::vector<PlanCandidate>& candidates, planner::Objective objective) {
  const auto plan_part = columns_with_news(candidates);
  std::vector<Column> columns = {{"#", kNumber}};
  for (const PlanColumn& column : plan_part) columns.push_back(column.column);
  columns.insert(columns.end(), {{"step", kNumber, "s"},
                                 {"tokens/s", kNumber, "per GPU"},
                                 {"MFU", kNumber, "%"},
                                 {"memory", kNumber, "GB"},
                                 {"exposed", kNumber, "%"},
                                 {"bubble", kNumber, "%"}});
  const std::optional<Column> compared = objective_column(objective);
  if (compared) columns.push_back(*compared);
  const bool has_variants =
      std::any_of(candidates.begin(), candidates.end(),
                  [](const PlanCandidate& candidate) { return candidate.variants > 0; });
  if (has_variants) columns.push_back({"variants", kNumber});
  Table table(std::move(columns));
  const int decimals = step_decimals(candidates);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::vector<std::string> cells = {fmt::format("{}", i + 1)};
    for (const PlanColumn& column : plan_part) cells.push_back(column.cell(candidates[i].plan));
    for (std::string& figure : figures(candidates[i], decimals)) cells.push_back(std::move(figure));
    if (compared) cells.push_back(objective_cell(objective, candidates[i]));
    if (has_variants) cells.push_back(format_count(candidates[i].variants));
    table.add_row(std::move(cells));
  }
  return table;
}

Table front_table(const std::vector<PlanCandidate>& front) {
  Table table({{"step", kNumber, "s"}, {"memory", kNumber, "GB"}, {"plan", ColumnKind::Prose}});
  const int decimals = step_decimals(front);
  for (const std::size_t i : shown_of(front)) {
    const PlanCandidate& candidate = front[i];
    table.add_row({format_fixed(candidate.result.step.value(), decimals),
                   format_gigabytes(candidate.result.memory().peak), plan_text(candidate.plan)});
  }
  return table;
}

std::string front_title(const planner::SearchResult& result) {
  const std::string title = "Pareto front of step time and memory";
  const auto shown = static_cast<std::int64_t>(shown_of(result.front).size());
  if (shown >= result.trade_offs) return title;
  return fmt::format("{}: {} of about {} plans shown", title, shown,
                     format_count(result.trade_offs));
}

ordered_json candidate_json(const PlanCandidate& candidate, const Scenario& scenario) {
  const sim::StepResult& result = candidate.result;
  const validation::Confidence confidence =
      validation::confidence_of(scenario, result.step, result.memory().peak);
  ordered_json json = step_json(scenario, result, confidence);
  if (names_pools(candidate.plan)) json["pools"] = pools_of(candidate.plan);
  json["analytic_s"] = candidate.analytic.value();
  json["bound_s"] = candidate.bound.value();
  json["dollars_per_step"] = candidate.dollars_per_step.value();
  json["joules_per_step"] = candidate.joules_per_step.value();
  json["score"] = candidate.score;
  json["variants"] = candidate.variants;
  return json;
}

ordered_json counts_json(const planner::SearchCounts& counts) {
  ordered_json rejected = ordered_json::object();
  for (const planner::Rejection& rejection : counts.rejected)
    rejected[rejection.rule] = rejection.count;
  return {{"space", counts.space},
          {"rejected", std::move(rejected)},
          {"evaluated", counts.evaluated},
          {"simulated", counts.simulated}};
}

void add_counts(Page& page, const planner::SearchCounts& counts, double wall_s) {
  page.paragraph(fmt::format("Searched {} in {}: {} rejected, {} evaluated, {} simulated.",
                             format_plural(counts.space, "plan"), format_time(Seconds(wall_s)),
                             format_count(counts.rejected_total()), format_count(counts.evaluated),
                             format_count(counts.simulated)));
  if (counts.rejected.empty()) return;
  std::vector<planner::Rejection> rejected = counts.rejected;
  std::stable_sort(rejected.begin(), rejected.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  std::vector<std::string> parts;
  for (const planner::Rejection& rejection : rejected)
    parts.push_back(
        fmt::format("{} {}", with_blanks(rejection.rule), format_count(rejection.count)));
  page.facts({{"rejected by", fmt::format("{}", fmt::join(parts, ", "))}});
}

void add_assumptions(Page& page, const planner::PlanRequest& request, const std::string& cluster,
                     const std::vector<std::string>& filled_in) {
  const planner::FigureCounts counts = planner::figure_counts(request.cluster, request.stack);
  // `clusters show` includes the stack that was measured on the cluster.
  const bool own_stack = request.cluster.stack && request.cluster.stack->name == request.stack.name;
  const bool stack_estimates =
      !own_stack && planner::figure_counts(ClusterSpec(), request.stack).estimates > 0;
  const std::string shown = fmt::format(
      "`shardwright clusters show {}`{}", cluster,
      stack_estimates ? fmt::format(" and `shardwright stacks show {}` list", request.stack.name)
                      : " lists");
  page.paragraph(fmt::format("{}; {} them.", planner::estimates_text(counts), shown));
  add_filled_in(page, filled_in);
}

ordered_json infeasible_json(const planner::PlanRequest& request,
                             const planner::NoFeasiblePlan& infeasible) {
  ordered_json json = {{"reason", planner::no_plan_text(request, infeasible)},
                       {"shortfall_bytes", infeasible.shortfall.value()},
                       {"needed_bytes", infeasible.needed.value()},
                       {"available_bytes", infeasible.available.value()},
                       {"closes_it", ordered_json::array()}};
  for (const std::vector<planner::Remedy>& remedies : infeasible.closes_it)
    json["closes_it"].push_back(options_text(remedies));
  json["nearest"] = infeasible.nearest ? to_json(*infeasible.nearest) : ordered_json();
  return json;
}

void report_infeasible(const planner::PlanRequest& request,
                       const planner::NoFeasiblePlan& infeasible) {
  print_message(printable(planner::no_plan_text(request, infeasible)));
  if (infeasible.nearest)
    print_message(fmt::format("Smallest plan: {}.", plan_text(*infeasible.nearest)));
  if (infeasible.closes_it.empty()) return print_message("No single change was found that helps.");
  std::string changes;
  for (const std::vector<planner::Remedy>& remedies : infeasible.closes_it)
    changes += (changes.empty() ? "" : ", or ") + planner::remedy_text(remedies, request.cluster);
  print_message(fmt::format("Closest options: {}.", printable(changes)));
}

}  // namespace shardwright::cli
