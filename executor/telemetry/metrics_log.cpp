#include "executor/telemetry/metrics_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/base/bounded_line.hpp"
#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"
#include "core/lowering/model_flop.hpp"
#include "core/spec/scenario.hpp"
#include "executor/telemetry/earlier_metrics.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{100};

// JSON has no NaN or infinity.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

std::filesystem::path prometheus_beside(std::filesystem::path file) {
  return file.replace_extension(".prom");
}

// Returns the last complete line, or null. Text after the last line feed is a truncated line.
nlohmann::ordered_json last_line(const std::filesystem::path& file) {
  if (!kind_unless_regular(file).empty()) return {};
  // In bytes; a line has about a hundredth of it.
  constexpr std::streamoff kLongest = 1 << 16;
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = stream ? std::streamoff(stream.tellg()) : 0;
  stream.seekg(std::max<std::streamoff>(0, size - kLongest));
  std::string text(std::istreambuf_iterator<char>(stream), {});
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n'));
  // Without a previous line feed this is npos + 1, which is 0.
  auto line = nlohmann::ordered_json::parse(text.substr(text.rfind('\n') + 1), nullptr, false);
  return line.is_object() ? line : nlohmann::ordered_json();
}

}  // namespace

MemoryUse memory_of(const RankTrainer& trainer, const Kernels& kernels) {
  return {Bytes(static_cast<double>(trainer.peak_tensor_bytes())),
          Bytes(static_cast<double>(kernels.memory_used()))};
}

RunFigures figures_of(const Scenario& scenario, const std::string& device) {
  const Plan& plan = scenario.plan;
  RunFigures figures;
  figures.device = device;
  figures.tokens_per_step =
      static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  figures.small_batch_tokens = figures.tokens_per_step / static_cast<double>(plan.dp);
  figures.flop_per_step = model_flop_per_step(scenario.model, plan);
  figures.peak = scenario.cluster.accelerator.matrix.of(plan.precision) *
                 static_cast<double>(plan.world_size());
  figures.program = program_sum(to_json(scenario));
  return figures;
}

MetricsLog::MetricsLog(const std::filesystem::path& file, const RunFigures& figures,
                       std::int64_t first_step, const NoiseMeans& noise)
    : file_(file),
      figures_(figures),
      noise_(figures.small_batch_tokens, figures.tokens_per_step, noise),
      prometheus_(prometheus_beside(file)) {
  // Written beside the earlier file until it holds all lines to keep.
  const std::filesystem::path other = file.string() + ".tmp";
  stream_.open(other);
  if (first_step > 0) {
    std::set<std::int64_t> kept;
    truncated_ = for_each_earlier_step(file, [&](std::int64_t step, const std::string& line) {
      if (step >= first_step) return;
      stream_ << line << '\n';
      kept.insert(step);
    });
    missing_ = missing_steps(kept, first_step);
  }
  std::error_code error;
  if (!stream_.flush()) fail_to_write(other);
  std::filesystem::rename(other, file, error);
  if (error) throw RuntimeFailure(file.string() + ": cannot be written: " + error.message());
}

void MetricsLog::write(const StepReport& report, const MemoryUse& memory,
                       double checkpoint_stall_s) {
  nlohmann::ordered_json line = {{"step", report.step},
                                 {"loss", number(report.loss)},
                                 {"gradient_norm", number(report.gradient_norm)},
                                 {"learning_rate", report.learning_rate},
                                 {"step_s", report.seconds},
                                 {"tokens_per_s", figures_.tokens_per_step / report.seconds}};
  if (figures_.peak > FlopPerSecond(0))
    line["mfu"] = figures_.flop_per_step / Seconds(report.seconds) / figures_.peak;
  line["forward_s"] = report.phases.forward_s;
  line["backward_s"] = report.phases.backward_s;
  line["optimizer_s"] = report.phases.optimizer_s;
  line["communication_s"] = report.phases.communication_s;
  line["tensor_peak_bytes"] = memory.tensor_peak.value();
  if (memory.process_peak > Bytes(0)) line["process_peak_bytes"] = memory.process_peak.value();
  if (checkpoint_stall_s > 0.0) line["checkpoint_stall_s"] = checkpoint_stall_s;
  if (report.small_batch_squares && std::isfinite(report.gradient_norm))
    noise_.add(*report.small_batch_squares, report.gradient_norm * report.gradient_norm);
  if (const auto noise = noise_.value()) line["gradient_noise_scale_tokens"] = *noise;
  if (!figures_.device.empty()) line["device"] = figures_.device;
  if (!figures_.program.empty()) line["program"] = figures_.program;
  stream_ << line.dump() << '\n' << std::flush;
  if (!stream_) fail_to_write(file_);
  prometheus_.update(line);
}

void MetricsLog::finish() {
  prometheus_.write();
}

MetricsLog::~MetricsLog() {
  try {
    finish();
  } catch (const std::exception&) {
    // The failure that ended the run is reported instead.
  }
}

void write_prometheus_of_last_line(const std::filesystem::path& file) {
  const nlohmann::ordered_json line = last_line(file);
  if (line.is_null()) return;
  PrometheusFile prometheus(prometheus_beside(file));
  prometheus.update(line);
  prometheus.write();
}

RunProgress::RunProgress(bool wanted, std::int64_t steps)
    : wanted_(wanted && isatty(STDERR_FILENO) == 1), steps_(steps) {}

RunProgress::~RunProgress() {
  if (shown_) write_to_stderr("\r\033[K");
}

void RunProgress::show(const StepReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || (shown_ && now - last_ < kBetweenLines)) return;
  write_to_stderr(
      fmt::format("\rstep {}/{}  loss {:.4f}\033[K", report.step + 1, steps_, report.loss));
  last_ = now;
  shown_ = true;
}

}  // namespace shardwright::executor
