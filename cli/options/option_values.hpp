// Values of options, read with messages of their own.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace shardwright::cli {

// An integer from 1 to `most`; "1,024" and "1024" are the same. What else it is becomes a problem
// at `option`, and 1 is returned.
// `or_word` is what else may stand there, which the problem then names.
std::int64_t read_count(const std::string& option, const std::string& text, std::int64_t most,
                        ProblemList& problems, const std::string& or_word = "");

// An integer from 0 to `count` - 1, else a problem at `option` and 0.
std::int64_t read_index(const std::string& option, const std::string& text, std::int64_t count,
                        ProblemList& problems);

// "64..1024", or one count, which is both ends.
std::pair<std::int64_t, std::int64_t> read_count_range(const std::string& option,
                                                       const std::string& text, std::int64_t most,
                                                       ProblemList& problems);

// The memory of an accelerator with its unit, decimal or binary: "70GB", "64 GiB". Less than 0.1 GB
// is a slip.
Bytes read_memory_size(const std::string& option, const std::string& text, ProblemList& problems);

// A ratio above 0 as "0.1" or "10%".
double read_ratio(const std::string& option, const std::string& text, ProblemList& problems);

// The largest absolute errors that `shardwright validate --fail-over` accepts, as ratios.
struct ErrorLimits {
  double median = std::numeric_limits<double>::infinity();
  double p90 = std::numeric_limits<double>::infinity();
};

// Reads two percentages, as in "8,25"; without a value there are no limits. An empty text, such as
// that of a shell variable that is not set, is refused. Throws InputError.
ErrorLimits read_error_limits(const std::optional<std::string>& asked);

}  // namespace shardwright::cli
