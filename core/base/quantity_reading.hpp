// Numbers with their units, as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardwright {

// Reads an integer as "8192" or "8,192". Returns nothing for any other text.
std::optional<std::int64_t> parse_integer(std::string text);

// Reads an integer as "8192", "8,192" or "8k": k is 1,024 and M 1,024 k, B is 1e9 and T 1e12.
// Returns nothing for any other text, and for a fraction of one ("0.3k").
std::optional<std::int64_t> parse_count(const std::string& text);

// Reads a number of a run's tokens as "15T", "300B" or "500M", all decimal. Returns nothing as
// parse_count does.
std::optional<std::int64_t> parse_tokens(const std::string& text);

// Reads a percentage as a ratio ("80%" is 0.8), a size in bytes ("80GB", "64GiB"), or a rate in
// bytes per second ("400GB/s"). Returns nothing for any other text.
std::optional<double> parse_quantity(const std::string& text);

// The number at the beginning of a text, and the rest of the text without blanks.
struct NumberAndRest {
  double value = 0.0;
  std::string rest;
};

// Returns nothing for a text that begins with no finite number.
std::optional<NumberAndRest> parse_number(const std::string& text);

// The bytes of "GB", "GiB" and the like; nothing for any other name.
std::optional<double> byte_unit(const std::string& name);

}  // namespace shardwright
