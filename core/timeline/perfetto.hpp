// Writes a timeline as a Chrome trace, which Perfetto (https://ui.perfetto.dev) opens.
//
// A rank is a process, a stream a thread; where messages of one stream go to several peers, each
// peer has a thread of its own, so that spans of a thread never overlap. Messages are arrows from
// the send to the receive, memory is a counter of the rank. Times are written in microseconds,
// rounded to nanoseconds at both ends of a span. Format: "Trace Event Format", Google, 2016.
#pragma once

#include <iosfwd>

#include "core/timeline/timeline.hpp"

namespace shardwright {

// Event by event: the text of a large timeline is never held in memory as a whole.
void write_perfetto(const Timeline& timeline, std::ostream& out);

}  // namespace shardwright
