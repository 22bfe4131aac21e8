// Numbers as people read them.
//
// Three or four significant digits, a unit that keeps the number between 1 and 1000, thousands set
// apart by commas. Data files hold plain numbers in base units instead.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.hpp"

namespace shardwright::cli {

// "1.23 s", "45.6 ms", "7.89 µs", "0 s"; from two hours on "3.5 h", from two days on "12.3 d".
std::string format_time(Seconds time);

// Powers of 1000, as datasheets count: "80 GB", "1.5 TB", "512 B".
std::string format_bytes(Bytes bytes);

// "3.35 TB/s".
std::string format_bandwidth(BytesPerSecond bandwidth);

// "989 TFLOP/s".
std::string format_flop_rate(FlopPerSecond rate);

// "1,024"
std::string format_count(std::int64_t count);

// "70.6 B", "768 M": powers of 1000 as models are named.
std::string format_parameters(std::int64_t count);

// A share as percentage, without the sign: 0.4567 is "45.7".
std::string format_percent(double ratio);

// With this many significant digits and commas, never with an exponent from 1e-6 to 1e15: "1,234",
// "12.3". Trailing zeros of the fraction are left out.
std::string format_number(double value, int digits = 3);

// With this many digits after the point: columns of such numbers compare at a glance.
std::string format_fixed(double value, int decimals);

// Decimals that show the largest number of a column with four significant digits.
int decimals_for(double largest);

// "1 plan", "2 plans", "3 batches".
std::string format_plural(std::int64_t count, const std::string& singular);

}  // namespace shardwright::cli
