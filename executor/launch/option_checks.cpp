#include "executor/launch/option_checks.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardwright::executor {
namespace {

// A double represents it exactly, so that no conversion overflows.
constexpr std::int64_t kMaxOfAll = 1'000'000'000'000'000;

template <class Integer>
std::optional<Integer> integer_in(std::string_view text) {
  Integer value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; (comma = list.find(',')) != std::string_view::npos;
       list.remove_prefix(comma + 1))
    parts.push_back(list.substr(0, comma));
  parts.push_back(list);
  return parts;
}

}  // namespace

CLI::Validator integer_from(std::int64_t least, std::optional<std::int64_t> most) {
  const auto check = [least, most](const std::string& text) {
    const auto value = integer_in<std::int64_t>(text);
    if (value && *value >= least && *value <= most.value_or(kMaxOfAll)) return std::string();
    const bool too_many = value && *value > least && !most;
    return fmt::format("found {}; expected {}", text,
                       too_many ? fmt::format("at most {}", kMaxOfAll)
                       : most   ? fmt::format("an integer from {} to {}", least, *most)
                                : fmt::format("an integer of at least {}", least));
  };
  return {check, ""};
}

CLI::Validator integers_from(std::int64_t least) {
  const auto check = [least](const std::string& list) {
    for (const std::string_view part : parts_of(list)) {
      const auto value = integer_in<std::int64_t>(part);
      if (value && *value >= least && *value <= kMaxOfAll) continue;
      return fmt::format("found \"{}\" in {}; expected integers of at least {} with commas between",
                         part, list, least);
    }
    return std::string();
  };
  return {check, ""};
}

std::vector<std::int64_t> read_integers(const std::string& list) {
  std::vector<std::int64_t> values;
  for (const std::string_view part : parts_of(list))
    values.push_back(integer_in<std::int64_t>(part).value_or(0));
  return values;
}

CLI::Validator number_from(double least, std::optional<double> most) {
  constexpr auto kMax = static_cast<double>(kMaxOfAll);
  const std::string expected = most ? fmt::format("a number from {} to {}", least, *most)
                                    : fmt::format("a number of at least {}", least);
  const auto check = [least, most, limit = most.value_or(kMax), expected](const std::string& text) {
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
    if (integer_in<std::uint64_t>(text)) return std::string();
    return fmt::format("found {}; expected an integer from 0 to 2^64 - 1", text);
  };
  return {check, ""};
}

}  // namespace shardwright::executor
