#include "planner/constraints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
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

struct FieldDefinition {
  PlanField field;
  const char* name;
  // Another name, such as that of the field in plan files; may be empty.
  const char* alias;
  std::int64_t (*value)(const Plan& plan);
  // The names of the values; empty for numbers.
  std::vector<NamedValue> (*names)();
  // The range of numbers.
  std::int64_t least = 1;
  std::int64_t most = kMaxBatch;
  // A value is a set of the named ones.
  bool is_set = false;
};

template <NamedEnum E>
std::vector<NamedValue> values_of() {
  std::vector<NamedValue> values;
  for (const E value : enumerators<E>())
    values.push_back({name_of(value), static_cast<std::int64_t>(value)});
  return values;
}

std::vector<NamedValue> numbers() {
  return {};
}
std::vector<NamedValue> switches() {
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
std::vector<NamedValue> recompute_modules() {
  return bits_of<RecomputeModule>("default");
}
std::vector<NamedValue> offload_modules() {
  return bits_of<OffloadModule>("all");
}
std::vector<NamedValue> optimizer_offloads() {
  std::vector<NamedValue> values = values_of<OptimizerOffload>();
  values.insert(values.end(), {{"true", static_cast<std::int64_t>(OptimizerOffload::Host)},
                               {"false", static_cast<std::int64_t>(OptimizerOffload::None)}});
  return values;
}

const std::array<FieldDefinition, 23> kFields = {{
    {PlanField::Dp, "dp", "", [](const Plan& p) { return p.dp; }, numbers},
    {PlanField::Tp, "tp", "", [](const Plan& p) { return p.tp; }, numbers},
    {PlanField::Pp, "pp", "", [](const Plan& p) { return p.pp; }, numbers},
    {PlanField::Cp, "cp", "", [](const Plan& p) { return p.cp; }, numbers},
    {PlanField::Ep, "ep", "", [](const Plan& p) { return p.ep; }, numbers},
    {PlanField::ExpertTp, "expert_tp", "", [](const Plan& p) { return p.expert_tp; }, numbers},
    {PlanField::Vpp, "vpp", "", [](const Plan& p) { return p.vpp; }, numbers},
    {PlanField::ZeroStage, "zero", "zero_stage",
     [](const Plan& p) { return static_cast<std::int64_t>(p.zero_stage); }, numbers, 0, 3},
    {PlanField::ShardGroup, "shard_group", "", [](const Plan& p) { return p.shard_group; }, numbers,
     0},
    {PlanField::MicroBatch, "micro_batch", "", [](const Plan& p) { return p.micro_batch; },
     numbers},
    {PlanField::GlobalBatch, "global_batch", "", [](const Plan& p) { return p.global_batch; },
     numbers},
    {PlanField::SequenceParallel, "sequence_parallel", "sp",
     [](const Plan& p) { return std::int64_t{p.sequence_parallel}; }, switches},
    {PlanField::Schedule, "schedule", "",
     [](const Plan& p) { return static_cast<std::int64_t>(p.schedule); }, values_of<ScheduleKind>},
    {PlanField::Recompute, "recompute", "",
     [](const Plan& p) { return static_cast<std::int64_t>(p.recompute); },
     values_of<RecomputePolicy>},
    {PlanField::RecomputeModules, "recompute_modules", "",
     [](const Plan& p) { return std::int64_t{p.recompute_modules.bits()}; }, recompute_modules, 0,
     0, true},
    {PlanField::RecomputeLayers, "recompute_layers", "",
     [](const Plan& p) { return p.recompute_layers; }, numbers, 0},
    {PlanField::RecomputeInterval, "recompute_interval", "",
     [](const Plan& p) { return p.recompute_interval; }, numbers},
    {PlanField::RecomputeGroup, "recompute_group", "",
     [](const Plan& p) { return p.recompute_group; }, numbers},
    {PlanField::ContextParallel, "context_parallel", "",
     [](const Plan& p) { return static_cast<std::int64_t>(p.context_parallel); },
     values_of<ContextParallelKind>},
    {PlanField::OptimizerStates, "optimizer_states", "",
     [](const Plan& p) { return static_cast<std::int64_t>(p.optimizer_states); },
     values_of<OptimizerStates>},
    {PlanField::OffloadOptimizer, "offload_optimizer", "",
     [](const Plan& p) { return static_cast<std::int64_t>(p.offload_optimizer); },
     optimizer_offloads},
    {PlanField::OffloadActivations, "offload_activations", "",
     [](const Plan& p) { return std::int64_t{p.offload_activations}; }, switches},
    {PlanField::OffloadModules, "offload_modules", "",
     [](const Plan& p) { return std::int64_t{p.offload_modules.bits()}; }, offload_modules, 0, 0,
     true},
}};

const FieldDefinition& definition_of(PlanField field) {
  return kFields[static_cast<std::size_t>(field)];
}

[[noreturn]] void refuse(const std::string& option, const std::string& found,
                         const std::string& expected) {
  throw InputError(option, {{"", fmt::format("\"{}\"", found), expected}});
}

const FieldDefinition& find_field(const std::string& name, const std::string& option) {
  std::string spelt = name;
  std::replace(spelt.begin(), spelt.end(), '-', '_');
  if (const auto field = plan_field_named(spelt)) return definition_of(*field);
  std::vector<std::string> names;
  for (const FieldDefinition& field : kFields) names.emplace_back(field.name);
  refuse(option, name, one_of(name, names));
}

std::int64_t parse_value(const FieldDefinition& field, const std::string& text,
                         const std::string& option) {
  if (const std::size_t plus = text.find('+'); field.is_set && plus != std::string::npos) {
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
    if (field.is_set && (named & value) != 0) members += (members.empty() ? "" : "+") + name;
  }
  return members.empty() ? fmt::format("{}", value) : members;
}

}  // namespace

const char* name_of(PlanField field) {
  return definition_of(field).name;
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

bool Constraint::holds(const Plan& plan) const {
  return std::find(values.begin(), values.end(), value_of(plan, field)) != values.end();
}

std::string to_string(const Constraint& constraint) {
  const FieldDefinition& field = definition_of(constraint.field);
  std::string text = fmt::format("{}=", field.name);
  for (std::size_t i = 0; i < constraint.values.size(); ++i) {
    if (i > 0) text += ',';
    text += value_text(field, constraint.values[i]);
  }
  return text;
}

Constraint parse_constraint(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) refuse(option, text, "field=value, as in tp=8");
  const FieldDefinition& field = find_field(text.substr(0, equals), option);
  Constraint constraint{field.field, {}};
  std::string_view rest = std::string_view(text).substr(equals + 1);
  for (;;) {
    const std::size_t comma = rest.find(',');
    constraint.values.push_back(parse_value(field, std::string(rest.substr(0, comma)), option));
    if (comma == std::string_view::npos) return constraint;
    rest.remove_prefix(comma + 1);
  }
}

std::string broken_constraint(const Constraints& constraints, const Plan& plan) {
  for (const Constraint& constraint : constraints.fixed) {
    if (!constraint.holds(plan)) return "fix " + to_string(constraint);
  }
  for (const Constraint& constraint : constraints.forbidden) {
    if (constraint.holds(plan)) return "forbid " + to_string(constraint);
  }
  return {};
}

}  // namespace shardwright::planner
