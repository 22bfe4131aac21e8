// Timelines as Chrome traces, which Perfetto (https://ui.perfetto.dev) opens.
//
// A rank is a process, a stream a thread; where messages of one stream go to several peers, each
// peer has a thread of its own, so that spans of a thread never overlap. Messages are arrows from
// the send to the receive, memory is a counter of the rank. Times are written in microseconds,
// rounded to nanoseconds at both ends of a span. Format: "Trace Event Format", Google, 2016.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/timeline/timeline.hpp"

namespace shardwright {

// The value of a trace's "otherData/writer".
inline constexpr const char* kTraceWriter = "shardwright";

// Event by event: the text of a large timeline is never held in memory as a whole.
void write_perfetto(const Timeline& timeline, std::ostream& out);

// The timeline of a trace that `write_perfetto` wrote, its times to the nanosecond; hosts and
// clocks of measured ranks are not in a trace. Throws InputError with every problem, also for the
// trace of another program. `source` names the file.
Timeline read_perfetto(const nlohmann::json& document, const std::string& source);

}  // namespace shardwright
