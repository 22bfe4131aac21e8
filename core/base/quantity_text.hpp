// Numbers and quantities as people read them, in the command and in the window.
//
// Three significant digits, a unit that keeps the number between 1 and 1000, thousands separated by
// commas. Data files hold plain numbers in base units instead.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/units.hpp"

namespace shardwright {

// "1.23 s", "45.6 ms", "7.89 µs", "0 s"; from two hours on "3.5 h", from two days on "12.3 d".
// Seconds and their parts have `digits` significant digits.
std::string format_time(Seconds time, int digits = 3);

// "14.9 to 18.9 s", or with two units where they differ: "900 ms to 1.1 s".
std::string format_time_range(Seconds low, Seconds high);

// Powers of 1000, as datasheets count: "80 GB", "1.5 TB", "512 B".
std::string format_bytes(Bytes bytes);

// "3.35 TB/s".
std::string format_bandwidth(BytesPerSecond bandwidth);

// "989 TFLOP/s".
std::string format_flop_rate(FlopPerSecond rate);

// "1,024"
std::string format_count(std::int64_t count);

// "1 plan", "2 plans", "3 batches".
std::string format_plural(std::int64_t count, const std::string& singular);

// "70.6 B", "768 M": powers of 1000 as models are named.
std::string format_parameters(std::int64_t count);

// "1.5 k", "3.2 M": powers of 1000 as axes show them.
std::string format_short(double value);

// Returns a size in GB of 1e9 bytes without the unit, which the title of a column has: "85.5".
std::string format_gigabytes(Bytes bytes, int decimals = 1);

// A ratio as percentage, without the sign of percent: 0.4567 is "45.7".
std::string format_percent(double ratio, int decimals = 1);

// A relative change as percentage: "+3.2", "-0.5".
std::string format_signed_percent(double ratio);

// Writes this many significant digits and commas, never with an exponent from 1e-6 to 1e15:
// "1,234", "12.3". Trailing zeros of the fraction are left out.
std::string format_number(double value, int digits = 3);

// Writes this many digits after the point: columns of such numbers compare at a glance.
std::string format_fixed(double value, int decimals);

// The number of decimals that shows the largest number of a column with four significant digits.
int decimals_for(double largest);

// Splits a JSON key that names its unit: "memory.bandwidth_bytes_per_s" with a number becomes
// {"memory.bandwidth", "3.35 TB/s"}. A key without a known unit stays as it is, and its number has
// `digits` significant digits.
std::pair<std::string, std::string> with_unit(const std::string& key, double value, int digits = 6);

}  // namespace shardwright
