#include "cli/infeasible_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/format.hpp"
#include "cli/step_page.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/plan_json.hpp"

namespace shardwright::cli {

using nlohmann::ordered_json;

ordered_json infeasible_json(const planner::NoFeasiblePlan& infeasible) {
  ordered_json json = {{"reason", infeasible.reason},
                       {"shortfall_bytes", infeasible.shortfall.value()},
                       {"needed_bytes", infeasible.needed.value()},
                       {"available_bytes", infeasible.available.value()},
                       {"closes_it", infeasible.closes_it}};
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
  for (const std::string& change : infeasible.closes_it)
    tell(fmt::format("- {}", printable(change)));
}

}  // namespace shardwright::cli
