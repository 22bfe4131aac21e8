#include "planner/run_wording.hpp"

#include <fmt/format.h>

#include <algorithm>
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

std::string cause_text(FailureCause cause) {
  constexpr EnumArray<FailureCause, const char*> kTexts{
      {"GPU", "GPU memory", "network adapter", "link", "switch", "host", "storage", "software",
       "silent data corruption", "planned maintenance", "preemption"}};
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
  if (name == "failures") return "interruptions of all causes";
  std::string text = name;
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::string money_text(Dollars dollars) {
  return "$" + format_parameters(static_cast<std::int64_t>(std::llround(dollars.value())));
}

std::string tokens_text(double tokens) {
  return format_parameters(static_cast<std::int64_t>(std::llround(tokens)));
}

}  // namespace shardwright::planner
