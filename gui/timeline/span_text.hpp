// Descriptions of spans for tool tips, labels and exported tables.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/spec/scenario.hpp"
#include "gui/models/table_text.hpp"
#include "gui/models/text.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

// The peak rates and the memory of one accelerator, which the rates of ops are compared with. A
// zero is unknown, as for a timeline without its plan.
struct DeviceLimits {
  Bytes memory;
  // The rate of matrix products in the plan's number format.
  FlopPerSecond matrix_peak;
  // The rate is that of one direction inside of a scale-up domain.
  BytesPerSecond scale_up;
  // The rate is that of one direction of the accelerator's share of the node's NICs.
  BytesPerSecond between_nodes;
};

// The limits of the ranks of a timeline, which on several pools differ by their stages or replicas.
struct RankLimits {
  // One for each stage, or each replica, or one for all ranks; empty if nothing is known.
  std::vector<DeviceLimits> stages;
  std::int64_t ranks_of_stage = 1;

  DeviceLimits of(std::int32_t rank) const;
};

RankLimits limits_of(const Scenario& scenario);

// Returns rich text: name, phase, layer, microbatch, start, duration, the op that the span waited
// for (`before`), its rates with their shares of the device's peaks, and the same op in the other
// timeline.
QString span_tool_tip(const TimelineTracks& tracks, SpanRef ref, const DeviceLimits& limits = {},
                      std::optional<SpanRef> before = std::nullopt);

// Returns rich text: the memory of a rank at a time, if one is given, and at its peak; of each the
// allocated part as well.
// The levels are given as shares of the capacity; of the peak where it is zero.
QString memory_tool_tip(const MemoryRow& row, const TipSource& source, Bytes capacity,
                        std::optional<double> time);
// Returns one line with the peak.
QString memory_line(const MemoryRow& row);

// Returns one line: "attention.qkv · forward · layer 3 · mb 0 · 1.23 ms".
QString span_line(const TimelineTracks& tracks, SpanRef ref);

// A copy of the spans that were shown, which outlives a change of the view.
struct ShownSpans {
  std::vector<std::shared_ptr<const Timeline>> timelines;
  // The file of each; empty unless two timelines of one origin are shown.
  QStringList files;
  std::vector<SpanRef> spans;
};

// Returns the spans that overlap [from, to], in seconds, track by track.
ShownSpans shown_spans(const TimelineTracks& tracks, double from, double to);

// Returns a row for each span, in base units, with a column for the file if there are two. A stop
// ends the table early.
TextTable span_table(const ShownSpans& shown, const std::stop_token& stop = {});

}  // namespace shardwright::gui
