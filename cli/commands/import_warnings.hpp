// What makes imported recordings, or their comparison with a plan, doubtful.
#pragma once

#include <string>
#include <vector>

#include "calibration/traces/trace.hpp"
#include "calibration/traces/training_log.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::cli {

// Of traces whose mean is shown.
std::vector<std::string> warnings_about(const std::vector<calibration::Trace>& traces);

// Returns a warning for each held-out trace of another GPU than all that predict it.
std::vector<std::string> warnings_of_other_gpus(const std::vector<calibration::Trace>& known,
                                                const std::vector<calibration::Trace>& held_out);

// Returns a warning for each log whose last step had another batch than the plan's.
std::vector<std::string> warnings_of_batches(const std::vector<calibration::TrainingLog>& logs,
                                             const Plan& plan);

// Logs that tell no times of steps may state what a GPU, or the job, processes in a second. Returns
// a warning for each log that states neither.
std::vector<std::string> take_times_from_throughput(std::vector<calibration::TrainingLog>& logs,
                                                    const Plan& plan);

}  // namespace shardwright::cli
