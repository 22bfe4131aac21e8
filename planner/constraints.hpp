// Constraints of the user on plans: "tp=8", "zero=3", "schedule=1f1b,interleaved".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/plan.hpp"

namespace shardwright::planner {

// A field of a plan that constraints can name.
enum class PlanField : std::uint8_t {
  Dp,
  Tp,
  Pp,
  Cp,
  Ep,
  ExpertTp,
  Vpp,
  ZeroStage,
  ShardGroup,
  MicroBatch,
  GlobalBatch,
  SequenceParallel,
  Schedule,
  Recompute,
  RecomputeModules,
  RecomputeLayers,
  RecomputeInterval,
  RecomputeGroup,
  ContextParallel,
  OptimizerStates,
  OffloadOptimizer,
  OffloadActivations,
  OffloadModules,
};

// "dp", "tp", …, "zero", "micro_batch", …: the names that constraints use.
const char* name_of(PlanField field);

// Those of all fields, in their order.
std::vector<std::string> plan_field_names();

// Returns the field of this name, which may also be that of plan files ("zero_stage").
std::optional<PlanField> plan_field_named(const std::string& name);

// Returns the value of a field as a number; for enumerations and switches that of the enumerator,
// for sets their bits.
std::int64_t value_of(const Plan& plan, PlanField field);

// The names of the values of a field; empty if they are numbers.
std::vector<std::string> value_names_of(PlanField field);

enum class ConstraintRange : std::uint8_t { None, AtLeast, AtMost };

// Requires that the field has one of these values, or at least or at most the only one.
struct Constraint {
  PlanField field = PlanField::Tp;
  std::vector<std::int64_t> values;
  ConstraintRange range = ConstraintRange::None;

  bool holds(const Plan& plan) const;
  // True if the field may have this value.
  bool allows(std::int64_t value) const;

  bool operator==(const Constraint&) const = default;
};

// "tp=8,16", "pp>=4".
std::string to_string(const Constraint& constraint);

// The parts of a text between separators: {"8", "16"} of "8,16".
std::vector<std::string> split_at(std::string_view text, char separator);

// Reads "field=value[,value…]", or a number with <, <=, > or >=: "pp>=4"; the members of a set are
// joined: "moe_act+layernorm". Throws InputError that names `option`, with the nearest field or
// value that exists.
Constraint parse_constraint(const std::string& text, const std::string& option);

struct Constraints {
  // All of these have to hold …
  std::vector<Constraint> fixed;
  // … and none of these.
  std::vector<Constraint> forbidden;

  bool operator==(const Constraints&) const = default;
};

// The number of the first constraint that the plan breaks: fixed ones, then forbidden ones.
std::optional<std::size_t> first_broken_constraint(const Constraints& constraints,
                                                   const Plan& plan);

// Returns the name of the first constraint that the plan breaks ("fix tp=8", "forbid zero=3"), or
// an empty text.
std::string broken_constraint(const Constraints& constraints, const Plan& plan);

}  // namespace shardwright::planner
