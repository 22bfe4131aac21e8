#include "cli/output/full_replay_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/program/rank_grid.hpp"
#include "sim/step/simulate.hpp"
#include "sim/step/step_result_json.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

// Shorter delays, as a part of the step, are not reported.
constexpr double kLeastDelay = 1e-6;

Table rank_table(const RankGrid& grid, const sim::StepResult& result,
                 const sim::FullReplay& replay) {
  std::vector<Column> columns = time_columns();
  columns.insert(columns.begin(), {{"rank", kNumber}, {"stage", kNumber}});
  columns.insert(columns.end(), {{"stalled", kNumber, "s"}, {"memory", kNumber, "GB"}});
  Table table(std::move(columns));
  const int decimals = decimals_for(replay.step.value());
  for (const sim::WatchedRank& watched : replay.watched) {
    const std::int64_t stage = grid.locate(watched.rank).stage;
    const Bytes memory = result.stages[static_cast<std::size_t>(stage)].memory.peak;
    std::vector<std::string> row = time_cells(watched.time, decimals);
    row.insert(row.begin(), {format_count(watched.rank), format_count(stage)});
    row.insert(row.end(), {format_fixed(watched.time.stall.value(), decimals),
                           format_fixed(memory.value() / 1e9, 1)});
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace

void add_ranks(Page& page, const Plan& plan, const sim::StepResult& result,
               const sim::FullReplay& replay) {
  const auto least =
      std::min_element(replay.ranks.begin(), replay.ranks.end(),
                       [](const auto& a, const auto& b) { return a.compute() < b.compute(); });
  const auto slowest = static_cast<std::size_t>(replay.slowest);
  std::string text =
      fmt::format("Rank {} computes longest ({}), rank {} shortest ({}).",
                  format_count(replay.slowest), format_time(replay.ranks[slowest].compute()),
                  format_count(least - replay.ranks.begin()), format_time(least->compute()));
  if (replay.contention_delay > kLeastDelay * replay.step) {
    text += fmt::format(" Sharing links delays transfers by {}, summed over all of them.",
                        format_time(replay.contention_delay));
  }
  page.table(rank_table(RankGrid(plan), result, replay));
  page.paragraph(text);
}

ordered_json full_replay_json(const Plan& plan, const sim::StepResult& result,
                              const sim::FullReplay& replay) {
  const RankGrid grid(plan);
  ordered_json ranks = ordered_json::array();
  for (std::size_t i = 0; i < replay.ranks.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(i);
    const std::int64_t stage = grid.locate(rank).stage;
    const Bytes memory = result.stages[static_cast<std::size_t>(stage)].memory.peak;
    ranks.push_back({{"rank", rank},
                     {"stage", stage},
                     {"finish_s", replay.ranks[i].finish.value()},
                     {"streams", streams_json(sim::stream_uses(replay.ranks[i].busy, replay.step))},
                     {"memory_bytes", memory.value()}});
  }
  for (const sim::WatchedRank& watched : replay.watched)
    ranks[static_cast<std::size_t>(watched.rank)]["time"] = sim::time_json(watched.time);
  return {{"slowest_rank", replay.slowest},
          {"contention_delay_s", replay.contention_delay.value()},
          {"ranks", std::move(ranks)}};
}

}  // namespace shardwright::cli
