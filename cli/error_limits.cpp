#include "cli/error_limits.hpp"

#include "cli/option_values.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {
namespace {

double read_percent(const std::string& text, ProblemList& problems) {
  const std::string percent = text.ends_with("%") ? text : text + "%";
  return read_ratio("--fail-over", percent, problems);
}

}  // namespace

ErrorLimits read_error_limits(const std::string& text) {
  ErrorLimits limits;
  if (text.empty()) return limits;
  ProblemList problems("shardwright validate");
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) {
    problems.add("--fail-over", "\"" + text + "\"", "two percentages as in 8,25");
  } else {
    limits = {read_percent(text.substr(0, comma), problems),
              read_percent(text.substr(comma + 1), problems)};
  }
  problems.throw_if_any();
  return limits;
}

}  // namespace shardwright::cli
