#include "calibration/traces/log_line.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <span>

namespace shardwright::calibration {
namespace {

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

enum class Side : std::uint8_t { Behind, Before };

struct Field {
  Logged what;
  std::string_view key;
  double scale = 1.0;
  // Where the number stands, seen from the key.
  Side side = Side::Behind;
};

// Texts are in lower case.
struct LogFormat {
  const char* framework;
  // A line that has both states a step.
  std::string_view mark, other_mark;
  std::span<const Field> fields;
  // A line with this states something else.
  std::string_view unlike{};
  NumberedBy numbered_by = NumberedBy::Run;
};

// Megatron-LM's training_log, and those that were made from it: Megatron-DeepSpeed, GPT-NeoX,
// Primus, Megatron Bridge.
constexpr Field kMegatron[] = {{Logged::Step, "iteration"},
                               {Logged::Time, "elapsed time per iteration (ms)", 1e-3},
                               {Logged::Time, "elapsed_time_per_iteration_ms", 1e-3},
                               {Logged::Time, "elapsed time per iteration (s)"},
                               {Logged::Loss, "lm loss"},
                               {Logged::Loss, "lm_loss"},
                               {Logged::Loss, "| loss"},
                               {Logged::TokensPerGpu, "tokens per gpu per second (tgs)"},
                               {Logged::TokensPerGpu, "tokens per gpu per second(tgs)"},
                               {Logged::TokensPerGpu, "tokens_per_gpu_per_second_tgs"},
                               {Logged::TokensPerGpu, "tokens/s/gpu"},
                               {Logged::TokensPerGpu, "tokens/s/gpu inst/harmonic mean"},
                               {Logged::TokensPerGpu, "tokens/sec/gpu"},
                               {Logged::Samples, "samples per second"},
                               {Logged::Samples, "samples_per_second"},
                               {Logged::Samples, "samples/sec"},
                               {Logged::GlobalBatch, "global batch size"},
                               {Logged::GlobalBatch, "global_batch_size"},
                               {Logged::FlopRate, "tflop/s/gpu", 1e12},
                               {Logged::FlopRate, "tflops", 1e12},
                               {Logged::FlopRate, "approx flops per gpu"},
                               {Logged::Mfu, "mfu"}};
// Megatron Bridge states it in a line of its own before that of the iteration.
constexpr Field kMegatronBridge[] = {{Logged::FlopRate, "gpu utilization:", 1e12}};
// NeMo's progress bar and printer; `iteration_time` is Neuron's.
constexpr Field kNemo[] = {{Logged::Step, "global_step"},
                           {Logged::Time, "train_step_timing in s"},
                           {Logged::Time, "iteration_time"},
                           {Logged::Loss, "reduced_train_loss"},
                           {Logged::TokensPerGpu, "tokens_per_sec_per_gpu"},
                           {Logged::GlobalBatch, "global_batch_size"},
                           {Logged::FlopRate, "tflops_per_gpu", 1e12}};
// "step 0 | epoch 0 | loss 1.5514 | … | tps 6924.50(865.56/gpu)" or "… | time 1.23s".
constexpr Field kNemoAutoModel[] = {{Logged::Step, "step"},
                                    {Logged::Time, "| time"},
                                    {Logged::Loss, "| loss"},
                                    {Logged::TokensPerGpu, "/gpu)", 1.0, Side::Before}};
// torchtitan's MetricsProcessor, and that of its first versions.
constexpr Field kTorchtitan[] = {{Logged::Step, "step:"},
                                 {Logged::Loss, "loss:"},
                                 {Logged::TokensPerGpu, "tps:"},
                                 {Logged::TokensPerGpu, "wps:"},
                                 {Logged::FlopRate, "tflops:", 1e12},
                                 {Logged::Mfu, "mfu:"}};
// DeepSpeed's pipeline engine, its report of the optimizer, and its throughput timer.
constexpr Field kDeepSpeed[] = {{Logged::Step, "steps:"},
                                {Logged::Time, "iter time (s):"},
                                {Logged::Loss, "loss:"},
                                {Logged::Samples, "samples/sec:"}};
constexpr Field kDeepSpeedOptimizer[] = {{Logged::Step, "step="}};
constexpr Field kDeepSpeedTimer[] = {{Logged::Step, "global_step="},
                                     {Logged::Samples, "currsamplespersec="}};
// Before DeepSpeed 0.8: "0/20, SamplesPerSec=232.7", with the epoch and the count of micro-batches.
constexpr Field kFirstDeepSpeedTimer[] = {
    {Logged::Step, ", runningavgsamplespersec=", 1.0, Side::Before},
    {Logged::Step, ", samplespersec=", 1.0, Side::Before},
    {Logged::Samples, "currsamplespersec="},
    {Logged::Samples, "samplespersec="}};

constexpr LogFormat kLogFormats[] = {
    {"GPT-NeoX", "approx flops per gpu:", "iteration", kMegatron},
    {"Megatron-LM", "elapsed time per iteration (ms):", "iteration", kMegatron},
    {"Megatron-DeepSpeed", "elapsed time per iteration (s):", "iteration", kMegatron},
    {"Megatron-DeepSpeed", "elapsed_time_per_iteration_ms=", "iteration=", kMegatron},
    {"Megatron-LM", "step time :", "gpu utilization:", kMegatronBridge, {}, NumberedBy::NextLine},
    {"NeMo AutoModel", "step", "| epoch", kNemoAutoModel, "[val]"},
    {"NeMo", "train_step_timing in s", "global_step", kNemo},
    {"NeMo", "reduced_train_loss", "global_step", kNemo},
    {"torchtitan", "step:", "tps:", kTorchtitan, "validate step:"},
    {"torchtitan", "step:", "wps:", kTorchtitan},
    {"DeepSpeed", "steps:", "iter time (s):", kDeepSpeed},
    {"DeepSpeed", "step=", "skipped=", kDeepSpeedOptimizer},
    {"DeepSpeed", "global_step=", "currsamplespersec=", kDeepSpeedTimer, {}, NumberedBy::Process},
    {"DeepSpeed", "samplespersec=", "/", kFirstDeepSpeedTimer, {}, NumberedBy::MicroBatch},
};

// Where the value of a key begins, behind blanks, marks and a quote; npos at the end of the line.
std::size_t value_at(std::string_view line, std::string_view key, std::size_t at) {
  return line.find_first_not_of(" :=)\"", at + key.size());
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
    std::string_view word = line.substr(begin);
    word.remove_prefix(std::min(word.find_first_not_of("+-"), word.size()));
    if (word.starts_with("nan") || word.starts_with("inf")) return true;
  }
  return false;
}

// What the unit behind a number multiplies it by: 0.01 for "%", 1e12 for "tflops".
double unit_scale(std::string_view unit) {
  constexpr std::string_view kPrefixes = "kmgtp";
  if (unit.starts_with('%')) return 1e-2;
  if (unit.size() < 2 || !unit.substr(1).starts_with("flops")) return 1.0;
  const std::size_t prefix = kPrefixes.find(unit[0]);
  return prefix == std::string_view::npos ? 1.0 : std::pow(1e3, static_cast<double>(prefix + 1));
}

// The number behind a key: "15800.0", "7.9e+00", "12,345", "42.3%"; also "13100.0/13240.9", of
// which the first is the last step's. None where the key is not there as a word.
std::optional<double> number_behind(std::string_view line, std::string_view key) {
  constexpr std::size_t kMostDigits = 40;
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    if (!is_word_at(line, at)) continue;
    std::size_t place = value_at(line, key, at);
    if (place == std::string_view::npos) return std::nullopt;
    std::string digits;
    for (; place < line.size() && digits.size() < kMostDigits; ++place) {
      if (line[place] == ',' && !digits.empty()) continue;
      if (std::string_view("+-.e0123456789").find(line[place]) == std::string_view::npos) break;
      digits += line[place];
    }
    double value = 0.0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && end != digits.data() && std::isfinite(value))
      return value * unit_scale(line.substr(place));
  }
  return std::nullopt;
}

// The number that ends where a key begins; none where there is none.
std::optional<double> number_before(std::string_view line, std::string_view key) {
  const std::size_t end = line.find(key);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view head = line.substr(0, end);
  const std::string_view digits = head.substr(head.find_last_not_of("0123456789.") + 1);
  double value = 0.0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// The line in lower case, without the codes of colours.
std::string plain_text(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i = std::min(line.find('m', i), line.size() - 1);
    } else {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(line[i])));
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
                                        : c == kForm[i] || (kForm[i] == ' ' && c == 't');
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

// The first key counts where a line states a figure under several.
std::optional<LoggedStep> read_step(const LogFormat& format, const std::string& line) {
  LoggedStep step;
  bool has_number = format.numbered_by == NumberedBy::NextLine;
  const auto take = [](auto& figure, auto value) {
    if (!figure) figure = value;
  };
  for (const Field& field : format.fields) {
    const std::optional<double> number = field.side == Side::Before
                                             ? number_before(line, field.key)
                                             : number_behind(line, field.key);
    if (!number && field.what == Logged::Loss)
      step.loss_is_lost |= is_not_finite_behind(line, field.key);
    if (!number) continue;
    const double value = *number * field.scale;
    switch (field.what) {
      case Logged::Step:
        has_number = value >= 0.0 && value < 1e15;
        if (has_number) step.number = static_cast<std::int64_t>(value);
        break;
      case Logged::Time:
        if (value > 0.0) take(step.time, Seconds(value));
        break;
      case Logged::Loss:
        take(step.loss, value);
        break;
      case Logged::TokensPerGpu:
        take(step.tokens_per_s_per_gpu, value);
        break;
      case Logged::Samples:
        take(step.samples_per_s, value);
        break;
      case Logged::GlobalBatch:
        take(step.global_batch, value);
        break;
      case Logged::FlopRate:
        take(step.flop_rate_per_gpu, FlopPerSecond(value));
        break;
      case Logged::Mfu:
        take(step.mfu, value);
        break;
    }
  }
  step.loss_is_lost = step.loss_is_lost && !step.loss;
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

std::optional<DrawnBar> drawn_bar(std::string_view line) {
  const std::size_t percent = line.find("%|");
  if (percent == std::string_view::npos) return std::nullopt;
  const std::size_t count = line.rfind('|', line.find('[', percent));
  const std::optional<double> step = number_behind(line.substr(count), "|");
  if (!step) return std::nullopt;
  const std::size_t number = line.find("global_step=");
  const std::string_view stated =
      number == std::string_view::npos
          ? ""
          : line.substr(number, line.find_first_of(",]", number) - number);
  return DrawnBar{static_cast<std::int64_t>(std::clamp(*step, 0.0, 1e15)),
                  stated.find("e+") != std::string_view::npos};
}

// The seconds of "27:34" or "9:07:58", which a bar has used so far; none where there is no such
// text behind a bracket.
std::optional<double> elapsed_of_bar(std::string_view line) {
  const std::size_t begin = line.find('[', line.find("%|"));
  if (begin == std::string_view::npos) return std::nullopt;
  std::string_view text = line.substr(begin + 1, line.find('<', begin) - begin - 1);
  double seconds = 0.0;
  while (!text.empty()) {
    int part = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc() || part < 0) return std::nullopt;
    seconds = 60.0 * seconds + part;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty() && text.front() != ':') return std::nullopt;
    text.remove_prefix(std::min<std::size_t>(1, text.size()));
  }
  return seconds;
}

// The mean time of a bar's steps, as in "| 795/77225 [9:07:58<878:01:48, 41.36s/it" or, with a
// rate, "1.52it/s". Lightning rounds rates to two decimals, so that those of long steps say less
// than the elapsed time, which is in whole seconds. A bar that goes on in the middle of an epoch
// counts steps that its time does not have.
std::optional<Seconds> time_of_bar(std::string_view line, std::int64_t steps) {
  constexpr double kRounding = 0.005;
  if (const auto time = number_before(line, "s/it"); time && *time > 0.0) return Seconds(*time);
  const std::optional<double> rate = number_before(line, "it/s"), elapsed = elapsed_of_bar(line);
  if (!rate) return std::nullopt;
  if (elapsed && *elapsed > 0.0 && steps > 0) {
    const double mean = static_cast<double>(steps) / *elapsed;
    const bool counts_its_steps = std::abs(mean - *rate) <= kRounding + mean / *elapsed;
    if (counts_its_steps && *rate < kRounding * *elapsed) return Seconds(1.0 / mean);
  }
  return *rate > 0.0 ? std::optional(Seconds(1.0 / *rate)) : std::nullopt;
}

}  // namespace

std::optional<LogLine> read_log_line(std::string_view text) {
  const std::string line = plain_text(text);
  for (const LogFormat& format : kLogFormats) {
    if (line.find(format.mark) == std::string::npos ||
        line.find(format.other_mark) == std::string::npos ||
        (!format.unlike.empty() && line.find(format.unlike) != std::string::npos))
      continue;
    std::optional<LoggedStep> step = read_step(format, line);
    if (!step) continue;
    const std::optional<DrawnBar> bar = drawn_bar(line);
    if (bar && !step->time) step->time = time_of_bar(line, bar->step);
    return LogLine{format.framework,
                   format.numbered_by,
                   *step,
                   stamp_in(line),
                   std::string(rank_label(line)),
                   bar};
  }
  return std::nullopt;
}

}  // namespace shardwright::calibration
