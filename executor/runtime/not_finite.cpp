#include "executor/runtime/not_finite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardwright::executor {

std::string describe_not_finite(const NotFiniteOp& found) {
  const std::string weights = found.counts.weights == 0.0
                                  ? ""
                                  : fmt::format(" and {} of its weights {}", found.counts.weights,
                                                fmt::join(found.weights, ", "));
  return fmt::format("{}: {} values of its result{} are not finite", found.op, found.counts.results,
                     weights);
}

}  // namespace shardwright::executor
