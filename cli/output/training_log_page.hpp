// What logs of training runs say, as text.
#pragma once

#include <vector>

#include "calibration/traces/training_log.hpp"
#include "cli/output/page.hpp"

namespace shardwright::cli {

// Steps, throughput and loss of each log.
void add_training_logs(Page& page, const std::vector<calibration::TrainingLog>& logs);

}  // namespace shardwright::cli
