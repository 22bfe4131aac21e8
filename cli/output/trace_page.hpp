// What traces and logs of training runs say, as text.
#pragma once

#include <optional>
#include <vector>

#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace_report.hpp"
#include "calibration/traces/training_log.hpp"
#include "cli/output/page.hpp"

namespace shardwright::cli {

// One trace in detail, or several beside each other. `matching`: the collectives that they share.
void add_traces(Page& page, const std::vector<calibration::TraceReport>& reports,
                const std::optional<calibration::RankMatching>& matching);

// Steps, throughput and loss of each log.
void add_training_logs(Page& page, const std::vector<calibration::TrainingLog>& logs);

}  // namespace shardwright::cli
