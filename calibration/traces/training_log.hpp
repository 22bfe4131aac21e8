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
};

struct TrainingLog {
  std::string file;
  // "Megatron-LM", "NeMo", "torchtitan", "DeepSpeed".
  std::string framework;
  // In the order of the file. Of a figure of a step that several lines state, the first one.
  std::vector<LoggedStep> steps;
  // True if the lines state no step times but when they were written: a step's time is then the time since the line
  // before over the steps since then, with all that the run did meanwhile.
  bool times_from_stamps = false;

  // The median of the logged times without the first tenth of the steps, which warm up; none if no
  // times are logged.
  std::optional<Seconds> step() const;
};

// Reads the lines that state a step; colours and what loggers write before them do not matter.
// Throws InputError if there are none, or a line has more than 1 MiB. `source` names the text.
TrainingLog read_training_log(const ByteSource& bytes, const std::string& source);

nlohmann::ordered_json to_json(const TrainingLog& log);

}  // namespace shardwright::calibration
