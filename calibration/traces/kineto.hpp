// Traces of PyTorch's profiler (Kineto) in Chrome's JSON format.
#pragma once

#include <string>

#include "calibration/traces/inflated_file.hpp"
#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

// Reads event by event, so that memory is needed for what the events say, not for their text. Any
// part but `traceEvents` may be missing. Throws InputError, with the number of the event, where the
// text is no trace, breaks off or is no JSON. `source` names it.
Trace read_kineto(const ByteSource& bytes, const std::string& source);

}  // namespace shardwright::calibration
