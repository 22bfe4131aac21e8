// Validators for values on the executor's command lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace shardwright::executor {

// Accepts finite numbers from `least` on, up to `most` if given. (CLI::Range accepts NaN.)
CLI::Validator number_from(double least, std::optional<double> most = std::nullopt);

// Accepts integers in digits from `least` on, up to `most` or 10^15.
CLI::Validator integer_from(std::int64_t least, std::optional<std::int64_t> most = std::nullopt);

// Accepts such integers separated by commas, which read_integers parses.
CLI::Validator integers_from(std::int64_t least);
std::vector<std::int64_t> read_integers(const std::string& list);

// Accepts integers from 0 to 2^64 - 1.
CLI::Validator unsigned_integer();

}  // namespace shardwright::executor
