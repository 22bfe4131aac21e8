// Every op of the sampled steps of a job, as CSV with a line an op.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/traces/inflated_file.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// A rank of the record: a pipeline stage of a data-parallel replica. One rank stands for its
// tensor-parallel group.
struct JobWorker {
  std::int64_t stage = 0, replica = 0;

  auto operator<=>(const JobWorker&) const = default;
};

struct JobOp {
  // "forward-compute", "backward-recv", "grads-reduce-scatter", …
  std::string op;
  Seconds start, duration;
  // The number among the worker's ops of this name in the step.
  std::int64_t sequence = 0;
};

struct JobRecord {
  std::string file;
  // Ops of each worker by start, for each step.
  std::map<std::int64_t, std::map<JobWorker, std::vector<JobOp>>> steps;
};

// True of a first line that names the columns step, stage, op, start_s and duration_s.
bool is_job_header(std::string_view line);

// Also reads dp_rank, or else rank (one replica where both lack), and seq_id (the order of starts
// where it lacks), in any order of columns, between commas or semicolons. Throws InputError with
// the line of what cannot be read, and where the computations of a worker overlap.
JobRecord read_job_record(const ByteSource& bytes, const std::string& source);

}  // namespace shardwright::calibration
