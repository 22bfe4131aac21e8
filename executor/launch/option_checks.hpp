// Checks of values on the executor's command lines, with messages for people.
#pragma once

#include <optional>

namespace CLI {
class Validator;
}

namespace shardwright::executor {

// A finite number from `least` on, up to `most` where there is a limit. (CLI::Range lets NaN pass.)
CLI::Validator number_from(double least, std::optional<double> most = std::nullopt);

// An integer from 0 to 2^64 - 1.
CLI::Validator unsigned_integer();

}  // namespace shardwright::executor
