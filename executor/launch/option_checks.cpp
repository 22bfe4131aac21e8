#include "executor/launch/option_checks.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace shardwright::executor {

CLI::Validator number_from(double least, std::optional<double> most) {
  // What an integer can hold, so that no conversion overflows.
  constexpr double kMost = 1e15;
  const std::string expected = most ? fmt::format("a number from {} to {}", least, *most)
                                    : fmt::format("a number of at least {}", least);
  const auto check = [least, most, limit = most.value_or(kMost),
                      expected](const std::string& text) {
    double value = 0.0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool holds = read.ec == std::errc() && read.ptr == end && std::isfinite(value) &&
                       value >= least && value <= limit;
    if (holds) return std::string();
    return fmt::format("found {}; expected {}", text,
                       !most && value > limit ? fmt::format("at most {}", limit) : expected);
  };
  return {check, ""};
}

CLI::Validator unsigned_integer() {
  const auto check = [](const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end) return std::string();
    return fmt::format("found {}; expected an integer from 0 to 2^64 - 1", text);
  };
  return {check, ""};
}

}  // namespace shardwright::executor
