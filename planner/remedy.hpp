// The changes of a request that make a plan fit, as values; planner/wording.hpp words them.
#pragma once

#include <cstdint>
#include <variant>

#include "core/base/units.hpp"
#include "planner/constraints.hpp"

namespace shardwright::planner {

// A field of the request that a remedy changes, or the memory of its accelerator.
enum class RemedyField : std::uint8_t {
  Gpus,
  GlobalBatch,
  SeqLen,
  MaxMemory,
  AcceleratorMemory,
  Fixed,         // the constraint of this field has these values instead
  NotFixed,      // this constraint is dropped
  NotForbidden,  // likewise
};

// One field of a request with the value that would help.
struct Remedy {
  RemedyField field = RemedyField::Gpus;
  // Bytes for the two memories, the constraint for the last three fields, otherwise the number.
  std::variant<std::int64_t, Bytes, Constraint> value;

  bool operator==(const Remedy&) const = default;
};

}  // namespace shardwright::planner
