#include "cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

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
  if (drawn_) fmt::print(stderr, "{}", kEraseLine);
}

void ProgressLine::show(double share, const std::string& text) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - last_ < kInterval) return;
  last_ = now;
  drawn_ = true;
  fmt::print(stderr, "{}{} {:3.0f} %  {}", kEraseLine, bar(share), 100.0 * share, text);
  std::fflush(stderr);
}

}  // namespace shardwright::cli
