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
        fmt::format("{} GPUs: {} checked, {} simulated", format_count(request_.gpus),
                    format_plural(progress.checked, "plan"), format_count(progress.simulated));
    if (progress.best_step) text += fmt::format(", best {}", format_time(*progress.best_step));
    line_.show(progress.share, text);
  };
}

}  // namespace shardwright::cli
