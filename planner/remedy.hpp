// What a request may change so that a plan fits: values, which the command line and the window put
// into words of their own.
#pragma once

#include <cstdint>
#include <variant>

#include "core/base/units.hpp"
#include "planner/constraints.hpp"

namespace shardwright::planner {

// A field that a remedy changes: of the request, or the memory of its accelerator.
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
  // Bytes for the two memories, the constraint for the last three, otherwise the number.
  std::variant<std::int64_t, Bytes, Constraint> value;

  bool operator==(const Remedy&) const = default;
};

}  // namespace shardwright::planner
