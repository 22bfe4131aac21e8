// Checks of values on the executor's command lines, with messages for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace shardwright::executor {

// A finite number from `least` on, up to `most` where there is a limit. (CLI::Range lets NaN pass.)
CLI::Validator number_from(double least, std::optional<double> most = std::nullopt);

// An integer from `least` on, written in digits, up to `most` or what is beyond any use (10^15).
CLI::Validator integer_from(std::int64_t least, std::optional<std::int64_t> most = std::nullopt);

// Such integers with a comma between each two, which read_integers takes apart.
CLI::Validator integers_from(std::int64_t least);
std::vector<std::int64_t> read_integers(const std::string& list);

// An integer from 0 to 2^64 - 1.
CLI::Validator unsigned_integer();

}  // namespace shardwright::executor
