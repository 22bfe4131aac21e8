// Output of NCCL's Inspector plugin (ext-profiler/inspector): a JSON object a line, with what each
// collective of a rank took.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/exchange_sample.hpp"

namespace shardwright::calibration {

// True of the beginning of such output.
bool is_inspector_output(std::string_view head);

enum class InspectorTimes : std::uint8_t { LowerQuartile, All };

// Samples by kind, size and group: the lower quartile of their times, since a collective's time holds
// the wait for the last rank, or each time. Collectives are those of `coll_perf`, with the ranks and nodes of
// the `header` on the same line or of the last one before it. Times that the plugin did not take on the
// device count only where there are no others. Throws InputError where no line states a collective.
std::vector<ExchangeSample> parse_inspector(const std::string& text, const std::string& source,
                                            InspectorTimes which = InspectorTimes::LowerQuartile);

}  // namespace shardwright::calibration
