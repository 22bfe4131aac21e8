#include "executor/telemetry/metrics_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{100};

// JSON has no NaN.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

// A last line that was cut off is dropped.
std::string lines_before(const std::filesystem::path& file, std::int64_t first_step) {
  std::ifstream earlier(file);
  std::string kept, line;
  while (std::getline(earlier, line)) {
    const nlohmann::json read = nlohmann::json::parse(line, nullptr, false);
    if (read.is_object() && read.value("step", first_step) < first_step) kept += line + '\n';
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& file, std::int64_t tokens_per_step,
                       std::int64_t first_step)
    : file_(file), tokens_per_step_(static_cast<double>(tokens_per_step)) {
  const std::string kept = lines_before(file, first_step);
  stream_.open(file);
  stream_ << kept << std::flush;
  if (!stream_) throw RuntimeFailure(file.string() + " cannot be written");
}

void MetricsLog::write(const StepReport& report, Bytes tensor_peak) {
  const nlohmann::ordered_json line = {{"step", report.step},
                                       {"loss", number(report.loss)},
                                       {"gradient_norm", number(report.gradient_norm)},
                                       {"learning_rate", report.learning_rate},
                                       {"step_s", report.seconds},
                                       {"tokens_per_s", tokens_per_step_ / report.seconds},
                                       {"tensor_peak_bytes", tensor_peak.value()}};
  stream_ << line.dump() << '\n' << std::flush;
  if (!stream_) throw RuntimeFailure(file_.string() + " cannot be written");
}

RunProgress::RunProgress(bool wanted, std::int64_t steps)
    : wanted_(wanted && isatty(STDERR_FILENO) == 1), steps_(steps) {}

RunProgress::~RunProgress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void RunProgress::show(const StepReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || (shown_ && now - last_ < kBetweenLines)) return;
  fmt::print(stderr, "\rstep {}/{}  loss {:.4f}\033[K", report.step + 1, steps_, report.loss);
  last_ = now;
  shown_ = true;
}

}  // namespace shardwright::executor
