#include "cli/output/pool_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/output/candidate_report.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/objective.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/pool_search.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;
using planner::PlanCandidate;

// The best of the plans that lie on one pool alone; none if no pool has one.
const planner::PoolAlone* best_alone(const planner::SearchResult& result) {
  const planner::PoolAlone* best = nullptr;
  for (const planner::PoolAlone& pool : result.pools) {
    if (pool.best && (best == nullptr || pool.best->score < best->best->score)) best = &pool;
  }
  return best;
}

Table alone_table(const planner::SearchResult& result) {
  Table table({{"pool", ColumnKind::Prose},
               {"GPUs", kNumber},
               {"step", kNumber, "s"},
               {"tokens/s", kNumber, "per GPU"},
               {"memory", kNumber, "GB"},
               {"plan", ColumnKind::Prose}});
  for (const planner::PoolAlone& pool : result.pools) {
    std::vector<std::string> cells = {printable(pool.pool) + " alone", format_count(pool.gpus)};
    if (pool.best) {
      const sim::StepResult& step = pool.best->result;
      cells.insert(cells.end(), {format_number(step.step.value(), 4),
                                 format_fixed(step.throughput.tokens_per_s_per_gpu, 0),
                                 format_gigabytes(step.memory().peak), plan_text(pool.best->plan)});
    } else {
      cells.insert(cells.end(), {"", "", "", "no plan"});
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// What the pools beside the best one are worth.
std::string verdict(const planner::SearchResult& result) {
  const planner::PoolAlone* alone = best_alone(result);
  const std::optional<PlanCandidate>& placed = result.placed->best;
  if (!placed) return "No plan on several pools obeys the rules and fits: leave the others out.";
  if (alone == nullptr) return "No plan of one pool alone fits.";
  const double ratio = placed->score / alone->best->score;
  const std::string name = printable(alone->pool);
  const std::string text = plan_text(placed->plan);
  if (ratio < 1.0)
    return fmt::format("The best plan on several pools is {} % better than that of {} alone: {}.",
                       format_percent(1.0 - ratio), name, text);
  return fmt::format(
      "Leave the other pools out: the best plan on several pools is {} % worse than that of {} "
      "alone: "
      "{}.",
      format_percent(ratio - 1.0), name, text);
}

std::string looked_at(const planner::PlacementSearch& placed) {
  const std::string placements =
      placed.all_placements
          ? fmt::format("all {} of stages", format_plural(placed.placements, "placement"))
          : fmt::format("{} of stages that fill the pools",
                        format_plural(placed.placements, "placement"));
  const char* splits =
      placed.all_splits
          ? "each with every split of the layers"
          : "with layers in proportion to the pools' speeds, moved one by one for the best plans";
  const std::string replicas =
      placed.all_shares
          ? fmt::format("all {} of replicas, each with every way to share the batch",
                        format_plural(placed.replica_placements, "placement"))
          : fmt::format(
                "{} of replicas that fill the pools, with shares of the batch near the "
                "pools' speeds",
                format_plural(placed.replica_placements, "placement"));
  const std::string joint =
      fmt::format("{} with stages and replicas, or groups of experts, on several pools, {}",
                  format_plural(placed.joint_plans, "plan"),
                  placed.all_joint ? "which are all that fit"
                                   : "with layers, shares and experts near the pools' speeds");
  return fmt::format(
      "The search compared plans on several pools at the analytic level: {}, {}; {}; and {}. It "
      "simulated those near the best.",
      placements, splits, replicas, joint);
}

}  // namespace

std::string pools_text(const planner::PlanRequest& request, const planner::SearchResult& result) {
  std::vector<std::string> texts;
  for (const planner::PoolAlone& pool : result.pools)
    texts.push_back(fmt::format("up to {} × {} ({})", format_count(pool.gpus),
                                pool_cluster(request.cluster, pool.pool)->accelerator.name,
                                printable(pool.pool)));
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::string hardware_text(const ClusterSpec& cluster) {
  std::vector<std::string> texts;
  for (const std::string& name : names_of_pools(cluster))
    texts.push_back(fmt::format("{} ({})", pool_cluster(cluster, name)->accelerator.name,
                                cluster.pools.empty() ? name : printable(name)));
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::string hardware_text(const ClusterSpec& cluster, std::int64_t gpus) {
  return fmt::format("{}{} × {}", cluster.pools.empty() ? "" : "up to ", format_count(gpus),
                     hardware_text(cluster));
}

std::string nodes_text(const ClusterSpec& cluster) {
  std::vector<std::string> texts;
  for (const std::string& name : names_of_pools(cluster))
    texts.push_back(
        fmt::format("{} {}", printable(name), format_count(pool_cluster(cluster, name)->nodes)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string balance_text(const PlanCandidate& candidate) {
  const std::vector<Seconds> computing = planner::computing_times(candidate.result);
  std::vector<std::string> texts;
  for (const std::string& pool : pools_of(candidate.plan)) {
    Seconds sum;
    double stages = 0.0;
    for (std::size_t stage = 0; stage < computing.size(); ++stage) {
      if (pool_name_of_stage(candidate.plan, stage) != pool) continue;
      sum += computing[stage];
      stages += 1.0;
    }
    texts.push_back(fmt::format("{} % of the step on {}",
                                format_percent(sum / (candidate.result.step * stages)),
                                printable(pool)));
  }
  return fmt::format("accelerators compute for {}", fmt::join(texts, " and "));
}

void add_pools(Page& page, const planner::SearchResult& result) {
  page.heading("Each pool alone");
  page.table(alone_table(result));
  // Of an interrupted search it is not known which plans are the best.
  if (result.partial) return;
  if (!result.placed) {
    page.paragraph("Plans on several pools were left out: no published run covers them.");
    return;
  }
  page.paragraph(verdict(result));
  page.paragraph(looked_at(*result.placed));
}

void add_pools(ordered_json& document, const planner::PlanRequest& request,
               const planner::SearchResult& result) {
  const auto one = [&](const std::optional<PlanCandidate>& candidate) {
    return candidate ? candidate_json(*candidate, planner::scenario_of(request, candidate->plan))
                     : ordered_json();
  };
  document["pools"] = ordered_json::array();
  for (const planner::PoolAlone& pool : result.pools) {
    const planner::PlanRequest own = planner::request_on_pool(request, pool.pool);
    document["pools"].push_back({{"pool", pool.pool},
                                 {"gpus", pool.gpus},
                                 {"limit_bytes", planner::available_memory(own).value()},
                                 {"best", one(pool.best)}});
  }
  if (!result.placed) {
    document["placed"] = nullptr;
    return;
  }
  document["placed"] = {{"placements", result.placed->placements},
                        {"all_placements", result.placed->all_placements},
                        {"all_splits", result.placed->all_splits},
                        {"replica_placements", result.placed->replica_placements},
                        {"all_shares", result.placed->all_shares},
                        {"joint_plans", result.placed->joint_plans},
                        {"all_joint", result.placed->all_joint},
                        {"best", one(result.placed->best)}};
}

}  // namespace shardwright::cli
