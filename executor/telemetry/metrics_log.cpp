#include "executor/telemetry/metrics_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"
#include "core/base/untrusted_file.hpp"
#include "core/lowering/model_flop.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/scenario.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

// JSON has no NaN or infinity.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

// The limit on a line in bytes.
constexpr std::size_t kLongestLine = std::size_t{1} << 20U;
constexpr std::size_t kMaxProblems = 100;
constexpr const char* kExpected = "an object with a step: repair or remove the line";

std::optional<std::int64_t> step_of(const nlohmann::json& line) {
  const auto step = line.is_object() ? line.find("step") : line.end();
  if (step == line.end() || !step->is_number_integer() || *step < 0) return std::nullopt;
  return step->get<std::int64_t>();
}

// The steps from `first` to `end` - 1.
struct StepRange {
  std::int64_t first = 0, end = 0;
};

std::vector<StepRange> gaps_between(const std::set<std::int64_t>& steps, std::int64_t end) {
  std::vector<StepRange> gaps;
  std::int64_t next = 0;
  for (auto step = steps.lower_bound(0); step != steps.end() && *step < end; ++step) {
    if (*step > next) gaps.push_back({next, *step});
    next = *step + 1;
  }
  if (end > next) gaps.push_back({next, end});
  return gaps;
}

// Returns the steps before `end` that are not in `steps` (MetricsLog::missing).
std::string missing_steps(const std::set<std::int64_t>& steps, std::int64_t end) {
  constexpr std::size_t kMaxGaps = 3;
  const std::vector<StepRange> gaps = gaps_between(steps, end);
  std::string text;
  for (std::size_t i = 0; i < std::min(gaps.size(), kMaxGaps); ++i) {
    const auto [first, behind] = gaps[i];
    text += i == 0 ? "" : ", ";
    text +=
        behind - first == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, behind - 1);
  }
  if (gaps.size() > kMaxGaps) text += " and others after them";
  if (text.empty()) return "";
  const bool is_one = gaps.size() == 1 && gaps.front().end - gaps.front().first == 1;
  return (is_one ? "step " : "steps ") + text;
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
  figures.peak = mean_peak(scenario.cluster, plan) * static_cast<double>(plan.world_size());
  figures.program = program_fingerprint(to_json(scenario));
  return figures;
}

MetricsLog::MetricsLog(const std::filesystem::path& file, const RunFigures& figures,
                       std::int64_t first_step, const NoiseMeans& noise)
    : file_(file),
      figures_(figures),
      noise_(figures.small_batch_tokens, figures.tokens_per_step, noise),
      prometheus_(file) {
  // Written beside the earlier file until it holds all lines to keep.
  const std::filesystem::path other = unfinished_name(file);
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
  bytes_ = static_cast<std::uintmax_t>(stream_.tellp());
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
  if (report.validation_loss) line["validation_loss"] = number(*report.validation_loss);
  if (report.update) {
    line["staleness_updates"] = report.update->staleness;
    line["steps_ahead"] = report.update->ahead;
  }
  if (figures_.peak > FlopPerSecond(0))
    line["mfu"] = figures_.flop_per_step / Seconds(report.seconds) / figures_.peak;
  line["forward_s"] = report.phases.forward_s;
  line["backward_s"] = report.phases.backward_s;
  line["optimizer_s"] = report.phases.optimizer_s;
  line["communication_s"] = report.phases.communication_s;
  line["tensor_peak_bytes"] = memory.tensor_peak.value();
  if (memory.process_peak > Bytes(0)) line["process_peak_bytes"] = memory.process_peak.value();
  if (checkpoint_stall_s > 0.0) line["checkpoint_stall_s"] = checkpoint_stall_s;
  if (report.slowest) {
    line["slowest_rank"] = report.slowest->rank;
    line["slowest_rank_slowdown"] = report.slowest->slowdown;
  }
  if (report.small_batch_squares && std::isfinite(report.gradient_norm))
    noise_.add(*report.small_batch_squares, report.gradient_norm * report.gradient_norm);
  if (const auto noise = noise_.value()) line["gradient_noise_scale_tokens"] = *noise;
  line["unix_time_s"] =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto computed = [](double seconds) { return seconds > 0.0; };
  if (std::ranges::any_of(report.rank_compute_s, computed))
    line["rank_compute_s"] = report.rank_compute_s;
  if (!figures_.device.empty()) line["device"] = figures_.device;
  if (!figures_.program.empty()) line["program"] = figures_.program;
  append(line.dump() + '\n');
  prometheus_.update(line);
}

void MetricsLog::append(const std::string& line) {
  if (!stream_.is_open()) stream_.open(file_, std::ios::app);
  stream_ << line << std::flush;
  if (stream_) {
    bytes_ += line.size();
    return;
  }
  const int reason = errno;
  stream_.close();
  stream_.clear();
  std::error_code error;
  std::filesystem::resize_file(file_, bytes_, error);
  errno = reason;
  fail_to_write(file_);
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

ProgressLine::ProgressLine(bool wanted, std::chrono::milliseconds between)
    : wanted_(wanted && isatty(STDERR_FILENO) == 1), between_(between) {}

ProgressLine::~ProgressLine() {
  if (shown_) write_to_stderr("\r\033[K");
}

void ProgressLine::show(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || (shown_ && now - last_ < between_)) return;
  write_to_stderr(fmt::format("\r{}\033[K", text));
  last_ = now;
  shown_ = true;
}

bool for_each_earlier_step(
    const std::filesystem::path& file,
    const std::function<void(std::int64_t step, const std::string& line)>& take) {
  if (const std::string kind = kind_unless_regular(file); !kind.empty())
    throw InputError(file.string(),
                     {{"", kind, "a regular file with the metrics of a run, or nothing"}});
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return false;
  const bool is_whole = ends_with_line_feed(file);
  ProblemList problems(file.string());
  std::string line;
  for (std::size_t number = 1; problems.size() < kMaxProblems; ++number) {
    const LineRead read = read_bounded_line(stream, kLongestLine, line);
    if (read == LineRead::End) break;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("line {}", number);
    if (read == LineRead::TooLong) {
      problems.add(place, fmt::format("more than {} bytes", kLongestLine), kExpected);
      break;
    }
    const nlohmann::json document = nlohmann::json::parse(line, nullptr, false);
    const bool is_last = stream.rdbuf()->sgetc() == std::char_traits<char>::eof();
    const bool is_truncated = document.is_discarded() && is_last && !is_whole;
    if (is_truncated) {
      problems.throw_if_any();
      return true;
    }
    if (const auto step = step_of(document)) {
      take(*step, line);
    } else {
      problems.add(place, document.is_discarded() ? "no JSON" : "no step", kExpected);
    }
  }
  problems.throw_if_any();
  return false;
}

}  // namespace shardwright::executor
