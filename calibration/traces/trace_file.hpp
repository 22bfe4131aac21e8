// Traces and training logs, in whatever format a file has.
#pragma once

#include <string>
#include <variant>

#include "calibration/traces/job_record.hpp"
#include "calibration/traces/trace.hpp"
#include "calibration/traces/training_log.hpp"
#include "core/base/large_json_file.hpp"

namespace shardwright::calibration {

using Recording = std::variant<Trace, TrainingLog, JobRecord>;

// Tells Nsight Systems' SQLite, Kineto's JSON, records of a job's ops and the logs of frameworks
// apart by their first bytes, each plain or compressed with gzip. A compressed database is inflated
// into the folder for temporary files first. Throws InputError where the file is none of them, and
// ReadingStopped where `watch` asks for it.
Recording read_recording(const std::string& file, const ReadingWatch& watch = {});

}  // namespace shardwright::calibration
