#include "cli/output/infeasible_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/step_page.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {
namespace {

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

// "--gpus 1024 and --global-batch 2048".
std::string options_text(const std::vector<planner::Remedy>& remedies) {
  std::vector<std::string> options;
  for (const planner::Remedy& remedy : remedies) options.push_back(option_text(remedy));
  return fmt::format("{}", fmt::join(options, " and "));
}

}  // namespace

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
  tell(printable(planner::no_plan_text(request, infeasible)));
  if (infeasible.nearest) tell(fmt::format("Smallest plan: {}.", plan_text(*infeasible.nearest)));
  if (infeasible.closes_it.empty()) return tell("No single change was found that helps.");
  std::string changes;
  for (const std::vector<planner::Remedy>& remedies : infeasible.closes_it)
    changes += (changes.empty() ? "" : ", or ") + planner::remedy_text(remedies);
  tell(fmt::format("Closest options: {}.", printable(changes)));
}

}  // namespace shardwright::cli
