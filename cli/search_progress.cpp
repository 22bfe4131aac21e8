#include "cli/search_progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/format.hpp"

namespace shardwright::cli {

SearchProgressLine::SearchProgressLine(bool enabled, planner::PlanRequest& request)
    : request_(request), line_(enabled) {
  if (!enabled) return;
  request.progress = [this](const planner::SearchProgress& progress) {
    std::string text =
        fmt::format("{} GPUs: {} of {}, {} simulated", format_count(request_.gpus),
                    format_count(progress.checked), format_plural(progress.space, "plan"),
                    format_count(progress.simulated));
    if (progress.best_step) text += fmt::format(", best {}", format_time(*progress.best_step));
    const auto space = static_cast<double>(std::max<std::int64_t>(progress.space, 1));
    line_.show(static_cast<double>(progress.checked) / space, text);
  };
}

}  // namespace shardwright::cli
