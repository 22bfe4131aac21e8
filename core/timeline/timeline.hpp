// The spans of one training step, predicted or measured.
//
// Both have the same form, so that a measured span lies beside its prediction: same rank, same
// stream, same name, same layer and microbatch.
//
//   {"schema": "shardwright/timeline", "version": 1, "origin": "predicted",
//    "ranks": [{"rank": 0, "label": "stage 0"}], "spans": [{"rank": 0, "stream": "compute", …}],
//    "flows": [{"from": 3, "to": 17}], "memory": [{"rank": 0, "time_s": 0.0, "bytes": 1e9}]}
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/timeline/traced_kernel.hpp"

namespace shardwright {

inline constexpr const char* kTimelineSchema = "shardwright/timeline";

enum class TimelineOrigin : std::uint8_t { Predicted, Measured };
constexpr auto enum_names(TimelineOrigin) {
  return std::array{"predicted", "measured"};
}

// A rank of the cluster that is shown; a predicted timeline shows one of each stage, unless others
// were asked for.
struct TimelineRank {
  std::int32_t rank = 0;
  // "stage 3", for example.
  std::string label;
  // The host of a measured rank, the reading of its monotonic clock at time zero, and the time that
  // issuing the ops took.
  std::string host{};
  Seconds clock{};
  Seconds issue{};

  bool operator==(const TimelineRank&) const = default;
};

// One op. Spans of the same rank, stream and peer do not overlap.
struct Span {
  std::int32_t rank = 0;
  Stream stream = Stream::Compute;
  // The rank at the other end of a send or receive; -1 if it is not point-to-point.
  std::int32_t peer = -1;
  // The name of the op: "attention.qkv".
  std::string name;
  // The time since the step began.
  Seconds start;
  Seconds duration;
  OpKind kind = OpKind::Gemm;
  Phase phase = Phase::Forward;
  // The layer from 0 on; -1 if it is of no layer.
  std::int32_t layer = -1;
  // The microbatch; -1 if it is of none.
  std::int32_t microbatch = -1;
  // The group of a collective.
  std::optional<Group> group;
  // Bytes that a collective or message moves.
  Bytes bytes;
  // FLOP of a matrix product.
  Flop flop;
  // In the trace of another program, which files of timelines do not hold: the index into
  // Timeline::kernels, and the number of the device's stream. Kind and group are then guesses by
  // names, phase, layer and microbatch unknown. Else -1.
  std::int32_t kernel = -1, queue = -1;
  // False in such a trace where no name tells the kind, which then stands for any of its category.
  bool kind_is_known = true;

  Seconds end() const { return start + duration; }
  bool operator==(const Span&) const = default;
};

// A message: indices of its send and its receive into `spans`.
struct Flow {
  std::uint32_t from = 0;
  std::uint32_t to = 0;

  bool operator==(const Flow&) const = default;
};

// Memory that a rank holds from this time on.
struct MemoryLevel {
  std::int32_t rank = 0;
  Seconds time;
  Bytes level;

  bool operator==(const MemoryLevel&) const = default;
};

struct Timeline {
  TimelineOrigin origin = TimelineOrigin::Predicted;
  std::vector<TimelineRank> ranks;
  std::vector<Span> spans;
  std::vector<Flow> flows;
  // Levels ascending in time for each rank.
  std::vector<MemoryLevel> memory;
  // The number of the step in the run that it was measured in, from 0 on; none where it is not
  // known.
  std::optional<std::int64_t> step;
  // The kernels that a trace of another program names; empty for our own timelines.
  std::vector<TracedKernel> kernels{};

  bool operator==(const Timeline&) const = default;
};

nlohmann::ordered_json to_json(const Timeline& timeline);

// Writes the same document with a line for each rank, span, flow and level: as JSON in memory it
// would take eight times as much.
void write_timeline(const Timeline& timeline, std::ostream& stream);

// Throws InputError with every problem of the document: besides wrong types also ranks listed twice
// or not at all and flows between spans that are not there. `source` names the file.
Timeline read_timeline(const nlohmann::json& document, const std::string& source);

}  // namespace shardwright
