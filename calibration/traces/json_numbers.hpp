// Numbers of JSON as profilers write them: also in quotation marks, and times with more digits than
// a double has.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardwright::calibration {

// `token` begins with the number; what follows it behind a comma, a bracket or a blank does not
// count. None where it is no number, or out of range.
std::optional<std::int64_t> integer_in(std::string_view token);

// Returns microseconds as nanoseconds, to the nearest one. `least` and `most` are microseconds.
std::optional<std::int64_t> nanoseconds_in(std::string_view token, double least, double most);

}  // namespace shardwright::calibration
