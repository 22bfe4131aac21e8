#include "planner/run_wording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/base/quantity_text.hpp"

namespace shardwright::planner {

std::string part_text(sim::RunPart part) {
  constexpr EnumArray<sim::RunPart, const char*> kTexts{
      {"steps that were kept", "steps waiting for input", "steps slowed by stragglers",
       "evaluation", "stalls for checkpoints", "work lost to failures", "detecting failures",
       "restarting", "waiting for spare nodes", "starting up"}};
  return kTexts[part];
}

std::string contract_text(Contract contract) {
  constexpr EnumArray<Contract, const char*> kTexts{{"on demand", "reserved", "spot"}};
  return kTexts[contract];
}

std::string cause_text(FailureCause cause) {
  constexpr EnumArray<FailureCause, const char*> kTexts{
      {"GPU", "GPU memory", "network adapter", "link", "switch", "host", "storage", "software",
       "silent data corruption", "planned maintenance", "preemption", "a rack's power or cooling"}};
  return kTexts[cause];
}

std::string gain_text(const std::string& name) {
  constexpr std::string_view kFailures = "failures_";
  if (name.starts_with(kFailures)) {
    for (const FailureCause cause : enumerators<FailureCause>()) {
      if (name.substr(kFailures.size()) == name_of(cause))
        return fmt::format("interruptions by {}", cause_text(cause));
    }
  }
  if (name == "failures") return "all interruptions";
  if (name == name_of(sim::RunPart::Startup)) return "starting up";
  std::string text = name;
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::vector<std::string> recovery_without_effect(const RecoverySpec& recovery, const Plan& plan,
                                                 const sim::RunModel& model) {
  std::vector<std::string> notes;
  if (recovery.from_replicas && !model.from_replicas) {
    notes.push_back(fmt::format(
        "recovery.from_replicas has no effect: with ZeRO-{} and {} the only copy of some "
        "states, or all of their copies, lie on one node, so that failures go back to the "
        "last checkpoint",
        plan.zero_stage, format_plural(plan.dp * plan.cp, "data-parallel rank")));
  }
  if (recovery.spare_replicas > model.spare_replicas) {
    notes.push_back(
        "recovery.spare_replicas adds spare nodes only: the replicas of the plan share their "
        "states or a node, so that none of them can take the place of another");
  }
  return notes;
}

std::optional<double> parse_loss(const std::string& text) {
  constexpr double kMostLoss = 100.0;
  double loss = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), loss);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(loss > 0.0 && loss <= kMostLoss)) return std::nullopt;
  return loss;
}

std::string money_text(Dollars dollars) {
  return "$" + format_parameters(static_cast<std::int64_t>(std::llround(dollars.value())));
}

std::string tokens_text(double tokens) {
  return format_parameters(static_cast<std::int64_t>(std::llround(tokens)));
}

}  // namespace shardwright::planner
