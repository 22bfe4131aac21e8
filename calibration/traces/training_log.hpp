// What training frameworks print about their steps.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calibration/traces/inflated_file.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// A line of the log; none is what it does not say.
struct LoggedStep {
  std::int64_t number = 0;
  std::optional<Seconds> time;
  std::optional<double> loss, tokens_per_s_per_gpu, samples_per_s, global_batch;
  // Model FLOP utilisation, of 1.
  std::optional<double> mfu;
  std::optional<FlopPerSecond> flop_rate_per_gpu;
  // True if the line states a loss that is infinite or no number.
  bool loss_is_lost = false;
  // The log may hold several starts of the run: the one that ran this step, counted from 1.
  std::int64_t attempt = 1;
};

// Where the times of the steps come from.
enum class StepTimes : std::uint8_t {
  // The lines state them, or nothing tells them.
  Stated,
  // A step's time is the time since the line before over the steps since then, with all that the
  // run did meanwhile.
  Stamps,
  // The lines state a throughput, and the job says how much a step processes.
  Throughput,
};

struct TrainingLog {
  std::string file;
  // "Megatron-LM", "NeMo", "torchtitan", "DeepSpeed".
  std::string framework;
  // In the order of their numbers. Of a step that several attempts ran, the last one counts; of a
  // figure that several lines of an attempt state, the first one.
  std::vector<LoggedStep> steps;
  StepTimes times_from = StepTimes::Stated;
  // The number of times that the run started.
  std::int64_t attempts = 1;
  // The number of logged steps that a later attempt ran again.
  std::int64_t repeated_steps = 0;

  // The median of the logged times without the first tenth of the steps, which warm up; none if no
  // times are logged.
  std::optional<Seconds> step() const;

  // Takes the times from the throughput of each step, where the log tells no times.
  void take_times_from_throughput(double tokens_per_step_and_gpu, double samples_per_step);
};

// Reads the lines that state a step; colours and what loggers write before them do not matter.
// Where the numbers fall back, the run started again, unless another rank wrote the line at the
// same time. Throws InputError if there are none, or a line has more than 1 MiB. `source` names the
// text.
TrainingLog read_training_log(const ByteSource& bytes, const std::string& source);

nlohmann::ordered_json to_json(const TrainingLog& log);

}  // namespace shardwright::calibration
