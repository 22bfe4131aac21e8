// A part of the events of a trace by PyTorch's profiler. Threads read several at once; put together
// in their order they are what one thread would have read.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/traces/host_record.hpp"
#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

// The JSON of consecutive events.
struct KinetoText {
  // The index of the first event in the trace.
  std::size_t first = 0;
  // The events one after the other, and where each of them ends. Of those that nobody uses the text
  // is empty.
  std::string text;
  std::vector<std::size_t> ends;

  void append(std::string_view event);
};

// Names and threads are numbered in the order in which the part has them first.
struct KinetoPart {
  Trace trace;
  HostRecord record;
  // Everything lies between these times; the first is the later one if there is nothing.
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();

  // Events on devices whose end is an event of its own.
  std::int64_t begin_events = 0;

  // Adds what follows this part.
  void append(KinetoPart next);
};

// Throws InputError, with the index of the event, where one is no JSON. `source` names the file.
KinetoPart read_kineto_part(KinetoText events, const std::string& source);

}  // namespace shardwright::calibration
