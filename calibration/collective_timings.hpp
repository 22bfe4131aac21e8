// Timings of single collectives, from nccl-tests or NCCL's Inspector, in figures.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "calibration/nccl_inspector.hpp"
#include "core/base/units.hpp"
#include "core/op/op.hpp"

namespace shardwright::calibration {

// Collectives of one kind, size and group size.
struct CollectiveTimings {
  OpKind kind = OpKind::AllReduce;
  // As nccl-tests counts them.
  Bytes bytes;
  std::int64_t group_size = 0;
  // The timings: calls of a rank in Inspector's output, rows of nccl-tests, each a mean of
  // iterations.
  std::int64_t count = 0;
  Seconds median;
  // By the median.
  BytesPerSecond bus_bandwidth;
  // Times of the host, since Inspector took none of this kind on the device.
  bool by_host = false;
};

struct CollectiveFile {
  std::string file;
  // Of Inspector's output alone.
  std::vector<InspectorProcess> processes;
  // By kind, group size and bytes.
  std::vector<CollectiveTimings> collectives;
  // Programs of nccl-tests whose timings are left out: no plan uses such a collective.
  std::set<std::string> left_out{};
  // True if nccl-tests found wrong data.
  bool has_wrong_data = false;
};

// True of a regular file whose beginning is that of nccl-tests or of Inspector.
bool is_collective_file(const std::string& file);

// The collectives and messages of processes, each of which counts its own calls.
std::vector<CollectiveTimings> timings_of(const std::vector<InspectorProcess>& processes);

// Throws InputError as read_nccl_tests does, and ReadingStopped where `watch` asks for it.
CollectiveFile read_collective_file(const std::string& file, const ReadingWatch& watch = {});

// An object with the names of a trace's, null where such a file does not tell.
nlohmann::ordered_json to_json(const CollectiveFile& file);

}  // namespace shardwright::calibration
