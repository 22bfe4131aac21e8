#include "cli/output/infeasible_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/format.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/plan_json.hpp"

namespace shardwright::cli {

using nlohmann::ordered_json;

namespace {

std::string change_text(const planner::Remedy& remedy) {
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
      return fmt::format("--max-memory {:.1f}GB", bytes().value() / 1e9);
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

// What would help, in the words of the command line: "--gpus 1024 and --global-batch 2048".
std::vector<std::string> remedy_texts(const planner::NoFeasiblePlan& infeasible) {
  std::vector<std::string> texts;
  for (const std::vector<planner::Remedy>& remedies : infeasible.closes_it) {
    std::vector<std::string> changes;
    for (const planner::Remedy& remedy : remedies) changes.push_back(change_text(remedy));
    texts.push_back(fmt::format("{}", fmt::join(changes, " and ")));
  }
  return texts;
}

}  // namespace

ordered_json infeasible_json(const planner::NoFeasiblePlan& infeasible) {
  ordered_json json = {{"reason", infeasible.reason},
                       {"shortfall_bytes", infeasible.shortfall.value()},
                       {"needed_bytes", infeasible.needed.value()},
                       {"available_bytes", infeasible.available.value()},
                       {"closes_it", remedy_texts(infeasible)}};
  json["nearest"] = infeasible.nearest ? to_json(*infeasible.nearest) : ordered_json();
  return json;
}

void report_infeasible(const planner::NoFeasiblePlan& infeasible) {
  tell(fmt::format("no feasible plan: {}", printable(infeasible.reason)));
  if (infeasible.nearest) {
    tell(fmt::format("nearest: {}, {} short of the {} that it needs per accelerator",
                     plan_text(*infeasible.nearest), format_bytes(infeasible.shortfall),
                     format_bytes(infeasible.needed)));
  }
  tell(infeasible.closes_it.empty() ? "no single change was found that helps"
                                    : "one of these changes closes it:");
  for (const std::string& change : remedy_texts(infeasible))
    tell(fmt::format("- {}", printable(change)));
}

}  // namespace shardwright::cli
