#include "cli/output/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "planner/wording.hpp"

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

void ProgressLine::erase() {
  if (std::exchange(drawn_, false)) write_to_stderr(kEraseLine);
}

void ProgressLine::finish() {
  const std::lock_guard lock(mutex_);
  if (enabled_ && host_ != nullptr && most_ < 1.0) host_->progress(1.0, text_);
  most_ = 1.0;
  erase();
}

void ProgressLine::show(double share, const std::string& text) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const bool ends = share >= 1.0 && most_ < 1.0;
  most_ = std::clamp(share, most_, 1.0);
  text_ = text;
  if (now - last_ < kInterval && !ends) return;
  last_ = now;
  if (host_ != nullptr) return host_->progress(most_, text);
  drawn_ = true;
  write_to_stderr(fmt::format("{}{} {:3.0f} %  {}", kEraseLine, bar(most_), 100.0 * most_, text));
}

SearchProgressLine::SearchProgressLine(bool enabled, planner::PlanRequest& request,
                                       std::size_t searches)
    : request_(request), line_(enabled), searches_(static_cast<double>(searches)) {
  if (!enabled) return;
  request.progress = [this](const planner::SearchProgress& progress) {
    text_ = fmt::format("{} GPUs: {}", format_count(progress.gpus), progress_text(progress));
    line_.show(share_of(progress.share), text_);
  };
}

double SearchProgressLine::share_of(double of_search) const {
  return (done_ + std::min(1.0, of_search)) / searches_;
}

void SearchProgressLine::end_search() {
  done_ += 1.0;
  line_.show(share_of(0.0), text_);
}

}  // namespace shardwright::cli
