#include "cli/output/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"

namespace shardwright::cli {
namespace {

constexpr std::chrono::milliseconds kInterval{100};
constexpr int kBarWidth = 20;
constexpr const char* kEraseLine = "\r\x1b[K";

std::string bar(double share) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  std::string text;
  for (int i = 0; i < kBarWidth; ++i) text += i < filled ? "━" : "╌";
  return text;
}

}  // namespace

ProgressLine::~ProgressLine() {
  if (drawn_) write_to_stderr(kEraseLine);
}

void ProgressLine::show(double share, const std::string& text) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - last_ < kInterval) return;
  last_ = now;
  if (host_ != nullptr) return host_->progress(share, text);
  drawn_ = true;
  write_to_stderr(fmt::format("{}{} {:3.0f} %  {}", kEraseLine, bar(share), 100.0 * share, text));
}

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
