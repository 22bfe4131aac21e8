// How much shorter a job's steps were if all workers were alike, and which of them is to blame.
//
// A worker runs its ops one after the other; those with one start run at once. A message or
// collective ends when the last of its members has come to it, plus its transfer: its end less the
// last arrival, as recorded. In the ideal job each op of a name takes its mean over workers and
// steps, and each transfer the median. What a worker, a stage, a replica or an op costs is the
// slowdown of a job in which nothing else differs from the ideal (Lin et al., Understanding
// Stragglers in Large Model Training Using What-if Analysis, OSDI 2025).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "calibration/traces/job_record.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

struct StragglerAnalysis {
  std::string file;
  std::int64_t steps = 0, stages = 0, replicas = 0;
  // Steps in which some workers compute fewer ops of a name than others: ops are missing.
  std::int64_t incomplete_steps = 0;
  // Means over the steps: from the first start to the last end, as replayed, and ideal.
  Seconds recorded, replayed, ideal;
  // Step times over ideal ones with nothing but these as recorded.
  std::map<std::int64_t, double> by_stage, by_replica;
  std::map<std::string, double> by_op;
  std::map<JobWorker, double> by_worker;

  double slowdown() const { return replayed / ideal; }
};

StragglerAnalysis analyse_stragglers(const JobRecord& record);

nlohmann::ordered_json to_json(const StragglerAnalysis& analysis);

}  // namespace shardwright::calibration
