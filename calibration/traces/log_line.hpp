// A line of a training log that states a step, in the formats of the frameworks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "calibration/traces/training_log.hpp"

namespace shardwright::calibration {

// What the numbers of lines count.
enum class NumberedBy : std::uint8_t {
  // The steps of the run, also where it goes on from a checkpoint.
  Run,
  // The steps since the process started.
  Process,
  // The forward passes, of which a step may have several.
  MicroBatch,
  // Nothing: the line belongs to the step of the framework's next line.
  NextLine,
};

// What a progress bar draws: it may draw a step again, and states large numbers with three digits.
struct DrawnBar {
  // How many steps of the epoch are done, as in "| 1005/3000 [".
  std::int64_t step = 0;
  // True if the number of the line is "1.01e+3".
  bool rounds = false;
};

struct LogLine {
  // The name of the framework, as in TrainingLog.
  std::string_view framework;
  NumberedBy numbered_by = NumberedBy::Run;
  // Its attempt is not known.
  LoggedStep step;
  // When the line was written, in seconds since 1970 in the time zone of the log.
  std::optional<double> stamp;
  // What a launcher writes before the lines of a rank; empty without it.
  std::string rank;
  std::optional<DrawnBar> bar;
};

// Colours and what loggers write before a line do not matter; none if it states no step.
std::optional<LogLine> read_log_line(std::string_view text);

}  // namespace shardwright::calibration
