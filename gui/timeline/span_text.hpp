// A span in words: for tool tips, and for files.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "gui/models/table_text.hpp"
#include "gui/timeline/device_limits.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

// Rich text: name, phase, layer, microbatch, start, duration, the op that it waited for last
// (`before`), rates beside what the device can do, and the same op in the other timeline.
QString span_tool_tip(const TimelineTracks& tracks, SpanRef ref, const DeviceLimits& limits = {},
                      std::optional<SpanRef> before = std::nullopt);

// Rich text: what a rank holds at a time, if any, and its peak; of both what is allocated.
QString memory_tool_tip(const MemoryRow& row, std::optional<double> time);
// The peak alone, on a line.
QString memory_line(const MemoryRow& row);

// One line: "attention.qkv · forward · layer 3 · mb 0 · 1.23 ms".
QString span_line(const TimelineTracks& tracks, SpanRef ref);

// Spans that were shown, whatever is shown since then.
struct ShownSpans {
  std::vector<std::shared_ptr<const Timeline>> timelines;
  QStringList files;  // of each; empty unless two timelines of one origin are shown
  std::vector<SpanRef> spans;
};

// Those that overlap [from, to], in seconds, track by track.
ShownSpans shown_spans(const TimelineTracks& tracks, double from, double to);

// A row each, in base units; with a column for the file where files are told apart. Cut short once
// a stop is asked for.
TextTable span_table(const ShownSpans& shown, const std::stop_token& stop = {});

}  // namespace shardwright::gui
