#include "calibration/traces/training_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "calibration/traces/log_line.hpp"
#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedLog =
    "a trace (JSON of PyTorch's profiler, SQLite of nsys export); a log with steps of Megatron-LM, "
    "NeMo, torchtitan or DeepSpeed; a record of a job's ops (CSV); a script that launches "
    "Megatron-LM, its checkpoint, or YAML of NeMo or Megatron-Bridge with the sizes of a model; a "
    "memory snapshot of PyTorch; or the output of nccl-tests or of NCCL's Inspector";

// Two lines may state different figures of one step. Of the same figure the first one counts.
void take_missing(LoggedStep& known, const LoggedStep& step) {
  const auto take = [](auto& figure, const auto& other) {
    if (!figure) figure = other;
  };
  take(known.time, step.time);
  take(known.loss, step.loss);
  known.loss_is_lost = known.loss_is_lost || step.loss_is_lost;
  take(known.tokens_per_s_per_gpu, step.tokens_per_s_per_gpu);
  take(known.samples_per_s, step.samples_per_s);
  take(known.global_batch, step.global_batch);
  take(known.flop_rate_per_gpu, step.flop_rate_per_gpu);
  take(known.mfu, step.mfu);
}

// The steps of lines that count them in the same way.
class StepSeries {
 public:
  bool states_times() const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const auto& each) { return each.second.step.time.has_value(); });
  }

  bool empty() const { return steps_.empty(); }

  // The number of figures that all lines state together.
  std::int64_t figures() const {
    std::int64_t count = 0;
    for (const auto& [number, each] : steps_) {
      const LoggedStep& step = each.step;
      count += step.time.has_value() + step.loss.has_value() + step.mfu.has_value() +
               step.tokens_per_s_per_gpu.has_value() + step.samples_per_s.has_value() +
               step.global_batch.has_value() + step.flop_rate_per_gpu.has_value();
    }
    return count;
  }

  void add(const LogLine& line) {
    LoggedStep step = line.step;
    if (starts_again(line)) {
      const auto again = steps_.lower_bound(step.number);
      repeated_steps_ += std::distance(again, steps_.end());
      steps_.erase(again, steps_.end());
      ++attempts_;
      last_of_rank_.clear();
      last_stamp_.reset();
    }
    last_of_rank_[line.rank] = step.number;
    last_stamp_ = std::max(last_stamp_, line.stamp);
    step.attempt = attempts_;
    steps_.try_emplace(step.number, KnownStep{step, line.stamp});
    fill(step);
  }

  void fill(const LoggedStep& step) {
    const auto place = steps_.find(step.number);
    if (place != steps_.end()) take_missing(place->second.step, step);
  }

  void move_to(TrainingLog& log) {
    if (!states_times()) log.times_from = add_times();
    for (auto& [number, each] : steps_) log.steps.push_back(each.step);
    log.attempts = attempts_;
    log.repeated_steps = repeated_steps_;
  }

 private:
  struct KnownStep {
    LoggedStep step;
    // When its first line was written.
    std::optional<double> stamp;
  };

  // Another rank writes of the same step at the same time and with the same loss, though its output
  // may come late. No run starts again as fast as ranks differ.
  bool starts_again(const LogLine& line) const {
    constexpr double kFastestStart = 5.0;
    const LoggedStep& step = line.step;
    const auto last = last_of_rank_.find(line.rank);
    if (last == last_of_rank_.end() || step.number > last->second) return false;
    if (line.bar && step.number == last->second) return false;
    if (line.stamp && last_stamp_ && *line.stamp - *last_stamp_ > kFastestStart) return true;
    if (step.number == last->second) return false;
    const auto known = steps_.find(step.number);
    return !line.stamp || !line.rank.empty() || known == steps_.end() ||
           known->second.step.loss != step.loss;
  }

  // Between two attempts the run stood still, and clocks may be set back.
  StepTimes add_times() {
    StepTimes source = StepTimes::Stated;
    const KnownStep* before = nullptr;
    for (auto& [number, each] : steps_) {
      const KnownStep* const last = std::exchange(before, &each);
      if (last == nullptr || !each.stamp || !last->stamp || each.step.attempt != last->step.attempt)
        continue;
      const double time =
          (*each.stamp - *last->stamp) / static_cast<double>(number - last->step.number);
      if (time <= 0.0) continue;
      each.step.time = Seconds(time);
      source = StepTimes::Stamps;
    }
    return source;
  }

  // By their numbers.
  std::map<std::int64_t, KnownStep> steps_;
  // The attempt's last step of each rank, and its latest stamp.
  std::map<std::string, std::int64_t> last_of_rank_;
  std::optional<double> last_stamp_;
  std::int64_t attempts_ = 1, repeated_steps_ = 0;
};

// Frameworks print lines of what they are built on beside their own, as Megatron-DeepSpeed does.
class LogReader {
 public:
  void read(const std::string& text) {
    std::optional<LogLine> line = read_log_line(text);
    if (!line) return;
    if (line->bar) line->step.number = exact_step(line->step.number, *line->bar);
    Group& group = group_of(line->framework, false);
    if (line->numbered_by == NumberedBy::NextLine) {
      group.of_next_line = line->step;
      return;
    }
    if (group.of_next_line) take_missing(line->step, *std::exchange(group.of_next_line, {}));
    if (line->numbered_by == NumberedBy::Run) {
      group.step_of_run = line->step.number;
    } else if (group.step_of_run) {
      line->step.number = *group.step_of_run;
      group.steps.fill(line->step);
      return;
    }
    if (line->numbered_by == NumberedBy::MicroBatch)
      group_of(line->framework, true).steps.add(*line);
    else
      group.steps.add(*line);
  }

  // The lines that state times, or else a step of the run, say more than the others; then those
  // with more figures.
  void move_to(TrainingLog& log) {
    const auto says_most = std::ranges::max_element(groups_, {}, [](const Group& group) {
      return std::tuple(group.steps.states_times(), !group.steps.empty(), !group.of_micro_batches,
                        group.steps.figures());
    });
    if (says_most == groups_.end()) return;
    log.framework = says_most->framework;
    says_most->steps.move_to(log);
  }

 private:
  struct Group {
    std::string_view framework;
    bool of_micro_batches = false;
    // The step of the last line that numbers it as the run does.
    std::optional<std::int64_t> step_of_run{};
    // What a line has stated of the step of the next one.
    std::optional<LoggedStep> of_next_line{};
    StepSeries steps{};
  };

  // A bar counts the steps of the epoch without rounding; what it began with follows from other
  // lines. Three digits are off by half a per cent at most.
  std::int64_t exact_step(std::int64_t stated, const DrawnBar& bar) {
    const auto contradicts = [&] {
      return std::abs(bar.step + *before_bar_ - stated) > stated / 200;
    };
    if (!bar.rounds || !before_bar_ || contradicts()) before_bar_ = stated - bar.step;
    return bar.step + *before_bar_;
  }

  Group& group_of(std::string_view framework, bool of_micro_batches) {
    const auto known = std::ranges::find_if(groups_, [&](const Group& group) {
      return group.framework == framework && group.of_micro_batches == of_micro_batches;
    });
    return known != groups_.end() ? *known
                                  : groups_.emplace_back(Group{framework, of_micro_batches});
  }

  // The steps before the first one of the bar.
  std::optional<std::int64_t> before_bar_;
  // In the order in which the log begins them.
  std::vector<Group> groups_;
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
  if (times.empty()) {
    const auto last = std::find_if(steps.rbegin(), steps.rend(),
                                   [](const LoggedStep& each) { return each.time.has_value(); });
    return last == steps.rend() ? std::nullopt : last->time;
  }
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
  LogReader reader;
  std::string last_line;
  for_each_line(bytes, source, kExpectedLog, [&](const std::string& line, std::size_t) {
    reader.read(std::exchange(last_line, line));
  });
  // What follows the last end of a line may be cut, as in a log that is still being written: its
  // last word does not count.
  reader.read(last_line.substr(0, last_line.find_last_of(" |") + 1));
  TrainingLog log;
  log.file = source;
  reader.move_to(log);
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
