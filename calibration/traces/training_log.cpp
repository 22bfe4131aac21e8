#include "calibration/traces/training_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedLog =
    "a trace (JSON of PyTorch's profiler, SQLite of nsys export) or a log with steps of "
    "Megatron-LM, NeMo, torchtitan or DeepSpeed";

enum class Logged : std::uint8_t {
  Step,
  Time,
  Loss,
  TokensPerGpu,
  Samples,
  GlobalBatch,
  FlopRate,
  Mfu,
};

struct Field {
  Logged what;
  // The text before the number.
  std::string_view key;
  double scale = 1.0;
};

struct LogFormat {
  const char* framework;
  // A line that has both states a step.
  std::string_view mark, other_mark;
  std::span<const Field> fields;
  // A line with this states something else.
  std::string_view unlike{};
};

// Megatron-LM's training_log.
constexpr Field kMegatron[] = {{Logged::Step, "iteration"},
                               {Logged::Time, "elapsed time per iteration (ms):", 1e-3},
                               {Logged::Loss, "lm loss:"},
                               {Logged::TokensPerGpu, "tokens per gpu per second (tgs):"},
                               {Logged::GlobalBatch, "global batch size:"},
                               {Logged::FlopRate, "throughput per GPU (TFLOP/s/GPU):", 1e12},
                               {Logged::FlopRate, "TFLOPs:", 1e12}};
constexpr Field kMegatronDeepSpeed[] = {{Logged::Step, "iteration"},
                                        {Logged::Time, "elapsed time per iteration (s):"},
                                        {Logged::Loss, "lm loss:"},
                                        {Logged::GlobalBatch, "global batch size:"},
                                        {Logged::Samples, "samples per second:"},
                                        {Logged::TokensPerGpu, "tokens per gpu per second (tgs):"},
                                        {Logged::FlopRate, "TFLOPs:", 1e12}};
// NeMo's progress printers.
constexpr Field kNemo[] = {{Logged::Step, "global_step"},
                           {Logged::Time, "train_step_timing in s"},
                           {Logged::Loss, "reduced_train_loss"},
                           {Logged::GlobalBatch, "global_batch_size"},
                           {Logged::FlopRate, "TFLOPS_per_GPU", 1e12}};
// torchtitan's MetricsProcessor, and that of its first versions.
constexpr Field kTorchtitan[] = {{Logged::Step, "step:"},
                                 {Logged::Loss, "loss:"},
                                 {Logged::TokensPerGpu, "tps:"},
                                 {Logged::FlopRate, "tflops:", 1e12},
                                 {Logged::Mfu, "mfu:", 1e-2}};
constexpr Field kFirstTorchtitan[] = {{Logged::Step, "step:"},
                                      {Logged::Loss, "loss:"},
                                      {Logged::TokensPerGpu, "wps:"},
                                      {Logged::Mfu, "mfu:", 1e-2}};
// DeepSpeed's pipeline engine, and its throughput timer.
constexpr Field kDeepSpeed[] = {{Logged::Step, "steps:"},
                                {Logged::Time, "iter time (s):"},
                                {Logged::Loss, "loss:"},
                                {Logged::Samples, "samples/sec:"}};
constexpr Field kDeepSpeedTimer[] = {{Logged::Step, "global_step="},
                                     {Logged::Samples, "CurrSamplesPerSec="}};

constexpr LogFormat kLogFormats[] = {
    {"Megatron-LM", "elapsed time per iteration (ms):", "iteration", kMegatron},
    {"Megatron-DeepSpeed", "elapsed time per iteration (s):", "iteration", kMegatronDeepSpeed},
    {"NeMo", "train_step_timing in s", "global_step", kNemo},
    {"torchtitan", "step:", "tps:", kTorchtitan, "validate step:"},
    {"torchtitan", "step:", "wps:", kFirstTorchtitan},
    {"DeepSpeed", "steps:", "iter time (s):", kDeepSpeed},
    {"DeepSpeed", "global_step=", "CurrSamplesPerSec=", kDeepSpeedTimer},
};

// Where the value of a key begins, behind blanks and marks; npos at the end of the line.
std::size_t value_at(std::string_view line, std::string_view key, std::size_t at) {
  return line.find_first_not_of(" :=", at + key.size());
}

// True if the key is a word of its own there.
bool is_word_at(std::string_view line, std::size_t at) {
  return at == 0 ||
         (std::isalnum(static_cast<unsigned char>(line[at - 1])) == 0 && line[at - 1] != '_');
}

// True if "nan" or "inf" stands behind a key.
bool is_not_finite_behind(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::size_t begin = value_at(line, key, at);
    if (!is_word_at(line, at) || begin == std::string_view::npos) continue;
    std::string word;
    for (const char c : line.substr(begin, 4))
      if (c != '-' && c != '+')
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (word.starts_with("nan") || word.starts_with("inf")) return true;
  }
  return false;
}

// The number behind a key: "15800.0", "7.9E+00", "12,345"; also "13100.0/13240.9", of which the
// first is the last step's. None where the key is not there as a word.
std::optional<double> number_behind(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    if (!is_word_at(line, at)) continue;
    const std::size_t begin = value_at(line, key, at);
    if (begin == std::string_view::npos) return std::nullopt;
    std::string digits;
    for (const char c : line.substr(begin, 40)) {
      if (c == ',' && !digits.empty()) continue;
      if (std::string_view("+-.eE0123456789").find(c) == std::string_view::npos) break;
      digits += c;
    }
    double value = 0.0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && end != digits.data() && std::isfinite(value)) return value;
  }
  return std::nullopt;
}

// The line without the codes of colours.
std::string plain_text(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i = std::min(line.find('m', i), line.size() - 1);
    } else {
      plain += line[i];
    }
  }
  return plain;
}

// The seconds since 1970 of the first "2025-02-05 18:31:35,123" in a line, in the time zone of the
// log; none without one.
std::optional<double> stamp_in(std::string_view line) {
  constexpr std::string_view kForm = "dddd-dd-dd dd:dd:dd";
  const auto has_form_at = [&](std::size_t at) {
    for (std::size_t i = 0; i < kForm.size(); ++i) {
      const char c = line[at + i];
      const bool fits = kForm[i] == 'd' ? std::isdigit(static_cast<unsigned char>(c)) != 0
                                        : c == kForm[i] || (kForm[i] == ' ' && c == 'T');
      if (!fits) return false;
    }
    return true;
  };
  std::size_t at = 0;
  while (at + kForm.size() <= line.size() && !has_form_at(at)) ++at;
  if (at + kForm.size() > line.size()) return std::nullopt;
  const auto number = [&](std::size_t offset, std::size_t digits) {
    int value = 0;
    std::from_chars(line.data() + at + offset, line.data() + at + offset + digits, value);
    return value;
  };
  using std::chrono::sys_days, std::chrono::year, std::chrono::month, std::chrono::day;
  const sys_days date = year(number(0, 4)) / month(static_cast<unsigned>(number(5, 2))) /
                        day(static_cast<unsigned>(number(8, 2)));
  double seconds = 86400.0 * static_cast<double>(date.time_since_epoch().count()) +
                   3600.0 * number(11, 2) + 60.0 * number(14, 2) + number(17, 2);
  std::size_t end = at + kForm.size();
  if (end < line.size() && (line[end] == ',' || line[end] == '.'))
    for (double part = 0.1;
         ++end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0;
         part /= 10)
      seconds += part * (line[end] - '0');
  return seconds;
}

std::optional<LoggedStep> read_step(const LogFormat& format, const std::string& line) {
  LoggedStep step;
  bool has_number = false;
  for (const Field& field : format.fields) {
    const std::optional<double> number = number_behind(line, field.key);
    if (!number && field.what == Logged::Loss)
      step.loss_is_lost = is_not_finite_behind(line, field.key);
    if (!number) continue;
    const double value = *number * field.scale;
    switch (field.what) {
      case Logged::Step:
        has_number = value >= 0.0 && value < 1e15;
        if (has_number) step.number = static_cast<std::int64_t>(value);
        break;
      case Logged::Time:
        if (value > 0.0) step.time = Seconds(value);
        break;
      case Logged::Loss:
        step.loss = value;
        break;
      case Logged::TokensPerGpu:
        step.tokens_per_s_per_gpu = value;
        break;
      case Logged::Samples:
        step.samples_per_s = value;
        break;
      case Logged::GlobalBatch:
        step.global_batch = value;
        break;
      case Logged::FlopRate:
        step.flop_rate_per_gpu = FlopPerSecond(value);
        break;
      case Logged::Mfu:
        step.mfu = value;
        break;
    }
  }
  return has_number ? std::optional(step) : std::nullopt;
}

// The rank that a launcher writes before a line: "[rank0]", "[default7]", "3:"; empty without one.
std::string_view rank_label(std::string_view line) {
  const std::size_t end = line.find_first_of("]:");
  if (end == std::string_view::npos || end == 0 ||
      std::isdigit(static_cast<unsigned char>(line[end - 1])) == 0)
    return "";
  const std::string_view label = line.substr(0, end);
  return label.find(' ') == std::string_view::npos ? label : "";
}

class LogReader {
 public:
  explicit LogReader(const std::string& source) { log_.file = source; }

  void read(const std::string& text) {
    const std::string line = plain_text(text);
    for (const LogFormat& format : kLogFormats) {
      if (line.find(format.mark) == std::string::npos ||
          line.find(format.other_mark) == std::string::npos ||
          (!format.unlike.empty() && line.find(format.unlike) != std::string::npos))
        continue;
      const std::optional<LoggedStep> step = read_step(format, line);
      if (!step) continue;
      if (log_.framework.empty()) log_.framework = format.framework;
      if (log_.framework == format.framework)
        add(*step, {stamp_in(line), std::string(rank_label(line))});
      return;
    }
  }

  TrainingLog take() {
    const bool states_times = std::any_of(steps_.begin(), steps_.end(), [](const auto& each) {
      return each.second.step.time.has_value();
    });
    if (!states_times) add_times();
    for (auto& [number, each] : steps_) log_.steps.push_back(each.step);
    return std::move(log_);
  }

 private:
  // When a line was written, and by which rank; empty where it does not tell.
  struct Written {
    std::optional<double> stamp;
    std::string rank;
  };

  struct KnownStep {
    LoggedStep step;
    // When its first line was written.
    std::optional<double> stamp;
  };

  // Another rank writes of the same step at the same time and with the same loss, though its output
  // may come late. No run starts again as fast as ranks differ.
  bool starts_again(const LoggedStep& step, const Written& line) const {
    constexpr double kFastestStart = 5.0;
    const auto last = last_of_rank_.find(line.rank);
    if (last == last_of_rank_.end() || step.number > last->second) return false;
    if (line.stamp && last_stamp_ && *line.stamp - *last_stamp_ > kFastestStart) return true;
    if (step.number == last->second) return false;
    const auto known = steps_.find(step.number);
    return !line.stamp || !line.rank.empty() || known == steps_.end() ||
           known->second.step.loss != step.loss;
  }

  // Two lines may state different figures of one step. Of the same figure the first one counts.
  void add(LoggedStep step, const Written& line) {
    if (starts_again(step, line)) {
      const auto again = steps_.lower_bound(step.number);
      log_.repeated_steps += std::distance(again, steps_.end());
      steps_.erase(again, steps_.end());
      ++log_.attempts;
      last_of_rank_.clear();
      last_stamp_.reset();
    }
    last_of_rank_[line.rank] = step.number;
    last_stamp_ = std::max(last_stamp_, line.stamp);
    step.attempt = log_.attempts;
    const auto [place, is_new] = steps_.try_emplace(step.number, KnownStep{step, line.stamp});
    if (is_new) return;
    LoggedStep& known = place->second.step;
    const auto fill = [](auto& figure, const auto& other) {
      if (!figure) figure = other;
    };
    fill(known.time, step.time);
    fill(known.loss, step.loss);
    known.loss_is_lost = known.loss_is_lost || step.loss_is_lost;
    fill(known.tokens_per_s_per_gpu, step.tokens_per_s_per_gpu);
    fill(known.samples_per_s, step.samples_per_s);
    fill(known.global_batch, step.global_batch);
    fill(known.flop_rate_per_gpu, step.flop_rate_per_gpu);
    fill(known.mfu, step.mfu);
  }

  // Between two attempts the run stood still, and clocks may be set back.
  void add_times() {
    const KnownStep* before = nullptr;
    for (auto& [number, each] : steps_) {
      const KnownStep* const last = std::exchange(before, &each);
      if (last == nullptr || !each.stamp || !last->stamp || each.step.attempt != last->step.attempt)
        continue;
      const double time =
          (*each.stamp - *last->stamp) / static_cast<double>(number - last->step.number);
      if (time <= 0.0) continue;
      each.step.time = Seconds(time);
      log_.times_from = StepTimes::Stamps;
    }
  }

  TrainingLog log_;
  // By their numbers.
  std::map<std::int64_t, KnownStep> steps_;
  // The attempt's last step of each rank, and its latest stamp.
  std::map<std::string, std::int64_t> last_of_rank_;
  std::optional<double> last_stamp_;
};

template <class T>
nlohmann::ordered_json figure_or_null(const std::optional<T>& figure) {
  if (!figure) return nullptr;
  if constexpr (std::is_same_v<T, double>)
    return *figure;
  else
    return figure->value();
}

}  // namespace

std::optional<Seconds> TrainingLog::step() const {
  std::vector<Seconds> times;
  for (std::size_t i = (steps.size() + 9) / 10; i < steps.size(); ++i)
    if (steps[i].time) times.push_back(*steps[i].time);
  if (times.empty() && !steps.empty()) return steps.back().time;
  if (times.empty()) return std::nullopt;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (times.size() % 2 == 1) return *middle;
  return (*std::max_element(times.begin(), middle) + *middle) / 2.0;
}

void TrainingLog::take_times_from_throughput(double tokens_per_step_and_gpu,
                                             double samples_per_step) {
  if (step()) return;
  for (LoggedStep& each : steps) {
    double time = 0.0;
    if (each.tokens_per_s_per_gpu)
      time = tokens_per_step_and_gpu / *each.tokens_per_s_per_gpu;
    else if (each.samples_per_s)
      time = samples_per_step / *each.samples_per_s;
    if (!std::isfinite(time) || time <= 0.0) continue;
    each.time = Seconds(time);
    times_from = StepTimes::Throughput;
  }
}

TrainingLog read_training_log(const ByteSource& bytes, const std::string& source) {
  LogReader reader(source);
  for_each_line(bytes, source, kExpectedLog,
                [&](const std::string& line, std::size_t) { reader.read(line); });
  TrainingLog log = reader.take();
  if (log.steps.empty())
    throw InputError(source, {{"", "no line that states a step", kExpectedLog}});
  return log;
}

nlohmann::ordered_json to_json(const TrainingLog& log) {
  auto steps = nlohmann::ordered_json::array(), lost = nlohmann::ordered_json::array();
  for (const LoggedStep& each : log.steps)
    if (each.loss_is_lost) lost.push_back(each.number);
  for (const LoggedStep& each : log.steps)
    steps.push_back({{"number", each.number},
                     {"attempt", each.attempt},
                     {"time_s", figure_or_null(each.time)},
                     {"loss", figure_or_null(each.loss)},
                     {"tokens_per_s_per_gpu", figure_or_null(each.tokens_per_s_per_gpu)},
                     {"samples_per_s", figure_or_null(each.samples_per_s)},
                     {"global_batch", figure_or_null(each.global_batch)},
                     {"flop_per_s_per_gpu", figure_or_null(each.flop_rate_per_gpu)},
                     {"mfu_ratio", figure_or_null(each.mfu)}});
  return {{"path", printable(log.file)},
          {"framework", log.framework},
          {"step_s", figure_or_null(log.step())},
          {"times_from_stamps", log.times_from == StepTimes::Stamps},
          {"times_from_throughput", log.times_from == StepTimes::Throughput},
          {"attempts", log.attempts},
          {"repeated_steps", log.repeated_steps},
          {"steps_without_finite_loss", std::move(lost)},
          {"steps", std::move(steps)}};
}

}  // namespace shardwright::calibration
