// What logs of training runs say, as text.
#pragma once

#include <optional>
#include <vector>

#include "calibration/traces/training_log.hpp"
#include "cli/output/page.hpp"

namespace shardwright::cli {

// Steps, throughput and loss of each log, and its step beside the one that a plan predicts, if
// there is one.
void add_training_logs(Page& page, const std::vector<calibration::TrainingLog>& logs,
                       const std::optional<Seconds>& planned);

}  // namespace shardwright::cli
