// Readers of option values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace shardwright::cli {

// Reads an integer from 1 to `most`, in the notations of parse_count (core/base). For any other
// text adds a problem at `option` and returns 1. `or_word` is a word that is allowed too; the
// problem names it.
std::int64_t read_count(const std::string& option, const std::string& text, std::int64_t most,
                        ProblemList& problems, const std::string& or_word = "");

// Reads a number of tokens in the notations of parse_tokens; for any other text adds a problem at
// `option` and returns 1. `or_word` is what is allowed, too.
double read_token_count(const std::string& option, const std::string& text, ProblemList& problems,
                        const std::string& or_word = "");

// Reads an integer from 0 to `count` - 1; otherwise adds a problem at `option` and returns 0.
std::int64_t read_index(const std::string& option, const std::string& text, std::int64_t count,
                        ProblemList& problems);

// Reads a range as "64..1024", or one count, which is both ends.
std::pair<std::int64_t, std::int64_t> read_count_range(const std::string& option,
                                                       const std::string& text, std::int64_t most,
                                                       ProblemList& problems);

// Reads the memory of an accelerator with its unit, decimal or binary, as "70GB" or "64 GiB", or as
// a percentage of `whole`. Sizes below 0.1 GB are refused as slips. `whole` is zero if the
// accelerator is not known yet.
Bytes read_memory_size(const std::string& option, const std::string& text, Bytes whole,
                       ProblemList& problems);

// Reads a ratio above 0, as "0.1" or "10%".
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
