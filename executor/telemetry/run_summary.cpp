#include "executor/telemetry/run_summary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardwright::executor {
namespace {

struct Part {
  std::string name;
  double seconds = 0.0;
};

// Names the rank that computed far longer than most, which all others wait for.
std::string straggler_of(std::vector<double> seconds) {
  constexpr double kFarLonger = 1.3;
  const auto longest = std::max_element(seconds.begin(), seconds.end());
  const auto rank = longest - seconds.begin();
  const double most = *longest;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() - 1) / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  if (most < kFarLonger * *middle) return "";
  return fmt::format("; rank {} computed {:.2f} times as long as the median rank", rank,
                     most / *middle);
}

}  // namespace

void RunSummary::add(const StepReport& report) {
  ++steps_;
  step_s_ += report.seconds;
  optimizer_s_ += report.phases.optimizer_s;
  rank_compute_s_.resize(report.rank_compute_s.size());
  bool timed = !rank_compute_s_.empty();
  for (std::size_t rank = 0; rank < rank_compute_s_.size(); ++rank) {
    rank_compute_s_[rank] += report.rank_compute_s[rank];
    timed = timed && report.rank_compute_s[rank] > 0.0;
  }
  if (timed) ++timed_steps_;
}

std::string RunSummary::limit(double elapsed_s, double stalled_s) const {
  if (steps_ == 0) return "";
  std::vector<Part> parts;
  const bool timed = timed_steps_ == steps_;
  const bool several = rank_compute_s_.size() > 1;
  if (timed) {
    const auto busiest = std::max_element(rank_compute_s_.begin(), rank_compute_s_.end());
    const std::string rank =
        several ? fmt::format(" (rank {}, the busiest)", busiest - rank_compute_s_.begin()) : "";
    const double computing = std::min(step_s_, *busiest + optimizer_s_);
    parts.push_back({"computing" + rank, computing});
    parts.push_back({several ? "waiting for communication and other ranks" : "issuing ops",
                     step_s_ - computing});
  } else {
    parts.push_back({"the steps", step_s_});
  }
  parts.push_back({"checkpoints", stalled_s});
  parts.push_back({"data, validation and telemetry", elapsed_s - step_s_ - stalled_s});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  const auto percent = [&](const Part& part) { return 100.0 * part.seconds / elapsed_s; };
  std::string text = fmt::format("limited by {}, {:.0f} % of {:.1f} s", parts.front().name,
                                 percent(parts.front()), elapsed_s);
  for (std::size_t i = 1; i < parts.size() && percent(parts[i]) >= 0.5; ++i)
    text += fmt::format("{} {} {:.0f} %", i == 1 ? ";" : ",", parts[i].name, percent(parts[i]));
  return text + (timed && several ? straggler_of(rank_compute_s_) : "");
}

}  // namespace shardwright::executor
