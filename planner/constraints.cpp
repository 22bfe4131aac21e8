#include "planner/constraints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright::planner {
namespace {

struct NamedValue {
  std::string name;
  std::int64_t value;
};

template <NamedEnum E>
std::vector<NamedValue> values_of(E) {
  std::vector<NamedValue> values;
  for (const E value : enumerators<E>())
    values.push_back({name_of(value), static_cast<std::int64_t>(value)});
  return values;
}
template <std::integral I>
std::vector<NamedValue> values_of(I) {
  return {};
}
std::vector<NamedValue> values_of(bool) {
  return {{"true", 1}, {"false", 0}, {"on", 1}, {"off", 0}, {"1", 1}, {"0", 0}};
}
// The bit of each enumerator, and a name for none of them.
template <NamedEnum E>
std::vector<NamedValue> bits_of(const char* none) {
  std::vector<NamedValue> values = {{none, 0}};
  for (const E member : enumerators<E>())
    values.push_back({name_of(member), EnumSet<E>{member}.bits()});
  return values;
}
std::vector<NamedValue> values_of(RecomputeModuleSet) {
  return bits_of<RecomputeModule>("default");
}
std::vector<NamedValue> values_of(OffloadModuleSet) {
  return bits_of<OffloadModule>("all");
}
std::vector<NamedValue> values_of(OptimizerOffload) {
  std::vector<NamedValue> values = values_of<OptimizerOffload>({});
  values.insert(values.end(), {{"true", static_cast<std::int64_t>(OptimizerOffload::Host)},
                               {"false", static_cast<std::int64_t>(OptimizerOffload::None)}});
  return values;
}

template <class T>
std::int64_t as_number(T value) {
  return static_cast<std::int64_t>(value);
}
template <NamedEnum E>
std::int64_t as_number(EnumSet<E> set) {
  return set.bits();
}

struct FieldDefinition {
  PlanField field;
  const char* name;
  // Another name, such as that of the field in plan files; may be empty.
  const char* alias;
  std::int64_t (*value)(const Plan& plan);
  // The names of the values; empty for numbers.
  std::vector<NamedValue> (*names)();
  // The range of numbers.
  std::int64_t least = 0, most = 3;
};

template <auto kMember>
FieldDefinition definition(PlanField field, const char* name, const char* alias = "") {
  return {field, name, alias, [](const Plan& plan) { return as_number(plan.*kMember); },
          [] { return values_of(Plan().*kMember); }};
}

template <std::int64_t Plan::*kMember>
FieldDefinition number(PlanField field) {
  const PlanNumber& number = plan_number(kMember);
  FieldDefinition numbered = definition<kMember>(field, number.key);
  numbered.least = number.least;
  numbered.most = number.most;
  return numbered;
}

const std::array<FieldDefinition, 23> kFields = {{
    number<&Plan::dp>(PlanField::Dp),
    number<&Plan::tp>(PlanField::Tp),
    number<&Plan::pp>(PlanField::Pp),
    number<&Plan::cp>(PlanField::Cp),
    number<&Plan::ep>(PlanField::Ep),
    number<&Plan::expert_tp>(PlanField::ExpertTp),
    number<&Plan::vpp>(PlanField::Vpp),
    definition<&Plan::zero_stage>(PlanField::ZeroStage, "zero", "zero_stage"),
    number<&Plan::shard_group>(PlanField::ShardGroup),
    number<&Plan::micro_batch>(PlanField::MicroBatch),
    number<&Plan::global_batch>(PlanField::GlobalBatch),
    definition<&Plan::sequence_parallel>(PlanField::SequenceParallel, "sequence_parallel", "sp"),
    definition<&Plan::schedule>(PlanField::Schedule, "schedule"),
    definition<&Plan::recompute>(PlanField::Recompute, "recompute"),
    definition<&Plan::recompute_modules>(PlanField::RecomputeModules, "recompute_modules"),
    number<&Plan::recompute_layers>(PlanField::RecomputeLayers),
    number<&Plan::recompute_interval>(PlanField::RecomputeInterval),
    number<&Plan::recompute_group>(PlanField::RecomputeGroup),
    definition<&Plan::context_parallel>(PlanField::ContextParallel, "context_parallel"),
    definition<&Plan::optimizer_states>(PlanField::OptimizerStates, "optimizer_states"),
    definition<&Plan::offload_optimizer>(PlanField::OffloadOptimizer, "offload_optimizer"),
    definition<&Plan::offload_activations>(PlanField::OffloadActivations, "offload_activations"),
    definition<&Plan::offload_modules>(PlanField::OffloadModules, "offload_modules"),
}};

const FieldDefinition& definition_of(PlanField field) {
  return kFields[static_cast<std::size_t>(field)];
}

[[noreturn]] void refuse(const std::string& option, const std::string& found,
                         const Expected& expected) {
  throw InputError(option, {{"", fmt::format("\"{}\"", found), expected}});
}

const FieldDefinition& find_field(const std::string& name, const std::string& option) {
  std::string spelt = name;
  std::replace(spelt.begin(), spelt.end(), '-', '_');
  if (const auto field = plan_field_named(spelt)) return definition_of(*field);
  refuse(option, name, one_of(name, plan_field_names()));
}

bool is_set(const FieldDefinition& field) {
  return field.field == PlanField::RecomputeModules || field.field == PlanField::OffloadModules;
}

std::int64_t parse_value(const FieldDefinition& field, const std::string& text,
                         const std::string& option) {
  if (const std::size_t plus = text.find('+'); is_set(field) && plus != std::string::npos) {
    return parse_value(field, text.substr(0, plus), option) |
           parse_value(field, text.substr(plus + 1), option);
  }
  const std::vector<NamedValue> named = field.names();
  std::vector<std::string> names;
  for (const NamedValue& each : named) {
    if (each.name == text) return each.value;
    names.push_back(each.name);
  }
  if (!named.empty()) refuse(option, text, one_of(text, names));
  if (text.find('=') != std::string::npos) {
    refuse(option, text,
           fmt::format("values of {} alone; {} once more for another field", field.name, option));
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool is_number = !text.empty() && error == std::errc{} && stop == end;
  if (!is_number || value < field.least || value > field.most) {
    refuse(option, text,
           fmt::format("a number from {} to {} for {}", field.least, field.most, field.name));
  }
  return value;
}

std::string value_text(const FieldDefinition& field, std::int64_t value) {
  std::string members;
  for (const auto& [name, named] : field.names()) {
    if (named == value) return name;
    if (is_set(field) && (named & value) != 0) members += (members.empty() ? "" : "+") + name;
  }
  return members.empty() ? fmt::format("{}", value) : members;
}

// Reads ">=4", ">3", "<=8" or "<9".
Constraint parse_range(const FieldDefinition& field, const std::string& text,
                       const std::string& option) {
  const std::vector<NamedValue> named = field.names();
  if (!named.empty())
    refuse(option, field.name + text,
           fmt::format("= and a name for {}, as in {}={}", field.name, field.name,
                       named.front().name));
  const bool includes = text.size() > 1 && text[1] == '=';
  const std::int64_t bound = parse_value(field, text.substr(includes ? 2 : 1), option);
  return text[0] == '>'
             ? Constraint{field.field, {includes ? bound : bound + 1}, ConstraintRange::AtLeast}
             : Constraint{field.field, {includes ? bound : bound - 1}, ConstraintRange::AtMost};
}

}  // namespace

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts = {""};
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

const char* name_of(PlanField field) {
  return definition_of(field).name;
}

std::vector<std::string> plan_field_names() {
  std::vector<std::string> names;
  for (const FieldDefinition& field : kFields) names.emplace_back(field.name);
  return names;
}

std::optional<PlanField> plan_field_named(const std::string& name) {
  for (const FieldDefinition& field : kFields) {
    if (name == field.name || (*field.alias != '\0' && name == field.alias)) return field.field;
  }
  return std::nullopt;
}

std::int64_t value_of(const Plan& plan, PlanField field) {
  return definition_of(field).value(plan);
}

std::vector<std::string> value_names_of(PlanField field) {
  std::vector<std::string> names;
  for (const NamedValue& each : definition_of(field).names()) names.push_back(each.name);
  return names;
}

bool Constraint::allows(std::int64_t value) const {
  if (range == ConstraintRange::AtLeast) return value >= values.front();
  if (range == ConstraintRange::AtMost) return value <= values.front();
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool Constraint::holds(const Plan& plan) const {
  return allows(value_of(plan, field));
}

std::string to_string(const Constraint& constraint) {
  const FieldDefinition& field = definition_of(constraint.field);
  const char* const sign = constraint.range == ConstraintRange::AtLeast  ? ">="
                           : constraint.range == ConstraintRange::AtMost ? "<="
                                                                         : "=";
  std::string text = fmt::format("{}{}", field.name, sign);
  for (std::size_t i = 0; i < constraint.values.size(); ++i) {
    if (i > 0) text += ',';
    text += value_text(field, constraint.values[i]);
  }
  return text;
}

Constraint parse_constraint(const std::string& text, const std::string& option) {
  const std::size_t sign = text.find_first_of("=<>");
  if (sign == std::string::npos) refuse(option, text, "field=value, as in tp=8");
  const FieldDefinition& field = find_field(text.substr(0, sign), option);
  if (text[sign] != '=') return parse_range(field, text.substr(sign), option);
  Constraint constraint{field.field, {}};
  for (const std::string& value : split_at(text.substr(sign + 1), ','))
    constraint.values.push_back(parse_value(field, value, option));
  return constraint;
}

std::optional<std::size_t> first_broken_constraint(const Constraints& constraints,
                                                   const Plan& plan) {
  for (std::size_t i = 0; i < constraints.fixed.size(); ++i) {
    if (!constraints.fixed[i].holds(plan)) return i;
  }
  for (std::size_t i = 0; i < constraints.forbidden.size(); ++i) {
    if (constraints.forbidden[i].holds(plan)) return constraints.fixed.size() + i;
  }
  return std::nullopt;
}

std::string broken_constraint(const Constraints& constraints, const Plan& plan) {
  const auto broken = first_broken_constraint(constraints, plan);
  if (!broken) return {};
  const std::size_t fixed = constraints.fixed.size();
  return *broken < fixed ? "fix " + to_string(constraints.fixed[*broken])
                         : "forbid " + to_string(constraints.forbidden[*broken - fixed]);
}

}  // namespace shardwright::planner
