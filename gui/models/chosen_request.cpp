#include "gui/models/chosen_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "gui/models/query.hpp"
#include "gui/models/text.hpp"
#include "planner/placements.hpp"
#include "planner/request_check.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::gui {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Runs `read` and turns its problems into problems of `field`.
template <class Read>
void read_field(Field field, ProblemList& problems, const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) {
      const std::string at =
          problem.where.empty() ? "" : " at " + field_text(problem.where).toStdString();
      problems.add(id_of(field).toStdString(), problem.found + at, problem.expected);
    }
  }
}

fs::path part_file(const std::string& folder, const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return name;
  const auto names = shipped_profiles(folder);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InputError(name, {{"", fmt::format("\"{}\"", name), one_of(name, names)}});
  return data_directory() / "hardware_profiles" / folder / (name + ".json");
}

// Checks a cluster as if it were a file, because its parts may not go together.
ClusterSpec checked(const ClusterSpec& cluster) {
  const json document = json::parse(to_json(cluster).dump());
  return read_cluster(document, cluster.name, PartLibrary{});
}

void replace_parts(const ScenarioChoice& choice, ClusterSpec& cluster, ProblemList& problems) {
  read_field(Field::Accelerator, problems, [&] {
    if (!choice.accelerator.empty()) cluster.accelerator = load_accelerator(choice.accelerator);
  });
  read_field(Field::Node, problems, [&] {
    if (choice.node.empty()) return;
    const fs::path file = part_file("nodes", choice.node);
    cluster.node = read_node(read_json_file(file), file.string());
  });
  read_field(Field::Fabric, problems, [&] {
    if (choice.fabric.empty()) return;
    const fs::path file = part_file("fabrics", choice.fabric);
    cluster.fabric = read_fabric(read_json_file(file), file.string());
  });
  if (!problems.empty()) return;
  cluster.name += " (composed)";
  read_field(Field::Cluster, problems, [&] { cluster = checked(cluster); });
}

void apply_what_ifs(const ScenarioChoice& choice, ClusterSpec& cluster, ProblemList& problems) {
  bool changed = false;
  for (const planner::Resource resource : enumerators<planner::Resource>()) {
    const int percent = choice.what_if[resource];
    if (percent == 100) continue;
    if (percent < kWhatIfRange.least || percent > kWhatIfRange.most) {
      problems.add(id_of(Field::WhatIf).toStdString(), fmt::format("{} %", percent),
                   fmt::format("{} to {} %", kWhatIfRange.least, kWhatIfRange.most));
      continue;
    }
    cluster = planner::improved(cluster, resource, percent / 100.0 - 1.0);
    changed = true;
  }
  if (changed) cluster.name += " (what if)";
}

ClusterSpec cluster_of(const ScenarioChoice& choice, ProblemList& problems) {
  ClusterSpec cluster;
  ProblemList own(problems.source());
  read_field(Field::Cluster, own, [&] { cluster = load_cluster(choice.cluster); });
  const bool replaced =
      !choice.accelerator.empty() || !choice.node.empty() || !choice.fabric.empty();
  if (own.empty() && replaced) replace_parts(choice, cluster, own);
  if (own.empty()) apply_what_ifs(choice, cluster, own);
  try {
    own.throw_if_any();
  } catch (const InputError& error) {
    problems.add_all("", error);
  }
  return cluster;
}

// A constraint as planner::parse_constraint reads it, or refuses it.
struct Term {
  bool forbids = false;
  std::string text;
};

std::vector<Term> terms_of(const std::string& constraints) {
  std::vector<Term> terms;
  const Query query = parse_query(to_qstring(constraints));
  for (QueryTerm term : query.terms) {
    term.field = plan_field_name(term.field);
    const QString text = term.field.isEmpty() ? term.values.join(u',') : term.text();
    terms.push_back({term.negated, text.toStdString()});
  }
  if (!query.unread.isEmpty()) terms.push_back({false, query.unread.toStdString()});
  return terms;
}

planner::Constraints constraints_of(const std::string& text) {
  planner::Constraints constraints;
  ProblemList problems("constraints");
  for (const Term& term : terms_of(text)) {
    auto& list = term.forbids ? constraints.forbidden : constraints.fixed;
    try {
      list.push_back(planner::parse_constraint(term.text, "constraints"));
    } catch (const InputError& error) {
      problems.add_all("", error);
    }
  }
  problems.throw_if_any();
  return constraints;
}

// Takes the constraint of a remedy out of the text, or adds it, in the place of one of the same
// field. Returns false if the text has no such constraint, or forbids values of the field.
bool take_constraint(const planner::Remedy& remedy, ScenarioChoice& choice) {
  using planner::RemedyField;
  const auto& wanted = std::get<planner::Constraint>(remedy.value);
  std::vector<std::string> kept;
  bool found = false, forbids = false;
  for (const Term& term : terms_of(choice.constraints)) {
    const auto constraint = planner::parse_constraint(term.text, "constraints");
    const bool is_it = term.forbids == (remedy.field == RemedyField::NotForbidden) &&
                       (remedy.field == RemedyField::Fixed ? constraint.field == wanted.field
                                                           : constraint == wanted);
    found = found || is_it;
    forbids = forbids || (term.forbids && constraint.field == wanted.field);
    if (!is_it) kept.push_back((term.forbids ? "not " : "") + term.text);
  }
  const bool adds = remedy.field == RemedyField::Fixed;
  if (adds ? forbids : !found) return false;
  if (adds) kept.push_back(planner::to_string(wanted));
  choice.constraints = fmt::format("{}", fmt::join(kept, "; "));
  return true;
}

}  // namespace

ClusterSpec load_cluster_of(const ScenarioChoice& choice) {
  ProblemList problems("scenario");
  ClusterSpec cluster = cluster_of(choice, problems);
  problems.throw_if_any();
  return cluster;
}

std::optional<std::int64_t> most_gpus(const ScenarioChoice& choice) {
  try {
    const ClusterSpec cluster = load_cluster_of(choice);
    if (cluster.pools.empty()) return cluster.most_accelerators();
    return planner::size_of_pools(cluster, kGpusRange.most);
  } catch (const InputError&) {
    return std::nullopt;  // The search reports the problem with its field.
  }
}

QStringList constraint_completions() {
  QStringList completions;
  for (const std::string& name : planner::plan_field_names()) {
    const QString field = figure_name(to_qstring(name));
    completions.append(field + u'=');
    for (const std::string& value : planner::value_names_of(*planner::plan_field_named(name)))
      completions.append(u"%1=%2"_s.arg(field, to_qstring(value)));
  }
  return completions;
}

std::string own_stack_of(const std::string& cluster) {
  try {
    const ClusterSpec spec = load_cluster(cluster);
    return spec.stack ? spec.stack->name : "";
  } catch (const InputError&) {
    return "";  // The search reports the problem with its field.
  }
}

namespace {

// Takes all accelerators of a cluster of several pools that has fewer than the choice asks for.
void fit_into_pools(const std::string& cluster, ScenarioChoice& choice) {
  try {
    const ClusterSpec spec = load_cluster(cluster);
    if (!spec.pools.empty())
      choice.gpus = std::min(choice.gpus, planner::size_of_pools(spec, kGpusRange.most));
  } catch (const InputError&) {
    // The search reports the problem with its field.
  }
}

}  // namespace

ScenarioChoice on_cluster(ScenarioChoice choice, const std::string& cluster) {
  // The user may have chosen another stack since.
  if (choice.cluster == cluster) return choice;
  const std::string former = own_stack_of(choice.cluster);
  choice.cluster = cluster;
  fit_into_pools(cluster, choice);
  const std::string own = own_stack_of(cluster);
  const auto shipped = shipped_stacks();
  const bool is_shipped = std::find(shipped.begin(), shipped.end(), former) != shipped.end();
  if (!own.empty()) {
    choice.stack = own;
  } else if (choice.stack == former && !is_shipped) {
    choice.stack = ScenarioChoice().stack;
  }
  return choice;
}

StackSpec load_stack_on(const ClusterSpec& cluster, const std::string& name) {
  return cluster.stack && cluster.stack->name == name ? *cluster.stack : load_stack(name);
}

ScenarioChoice choice_of(const Scenario& scenario, const std::string& cluster) {
  ScenarioChoice choice;
  choice.model = scenario.model.name;
  choice.cluster = cluster;
  choice.stack = scenario.stack.name;
  choice.gpus = scenario.plan.world_size();
  choice.global_batch = scenario.plan.global_batch;
  choice.seq_len = scenario.plan.seq_len;
  choice.precision = name_of(scenario.plan.precision);
  choice.lora = scenario.plan.lora;
  return choice;
}

std::optional<ScenarioChoice> shipped_choice_of(const Scenario& scenario) {
  const ScenarioChoice choice = choice_of(scenario, scenario.cluster.name);
  try {
    const planner::PlanRequest request = load_request(choice);
    const bool is_all = request.model == scenario.model && request.cluster == scenario.cluster &&
                        request.stack == scenario.stack;
    return is_all ? std::optional(choice) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

planner::PlanRequest load_request(const ScenarioChoice& choice) {
  ProblemList problems("scenario");
  planner::PlanRequest request;
  read_field(Field::Model, problems, [&] { request.model = load_model(choice.model); });
  request.cluster = cluster_of(choice, problems);
  read_field(Field::Stack, problems,
             [&] { request.stack = load_stack_on(request.cluster, choice.stack); });
  read_field(Field::Precision, problems,
             [&] { request.precision = parse_name<Precision>(choice.precision, "precision"); });
  read_field(Field::Objective, problems, [&] {
    request.objective = parse_name<planner::Objective>(choice.objective, "objective");
  });
  read_field(Field::Constraints, problems,
             [&] { request.constraints = constraints_of(choice.constraints); });
  if (!std::isfinite(choice.max_memory_gb) || choice.max_memory_gb < 0.0)
    problems.add("max_memory", fmt::format("{}", choice.max_memory_gb), "0 or more GB");
  problems.throw_if_any();
  request.takes_pools = true;
  request.gpus = choice.gpus;
  request.global_batch = choice.global_batch;
  request.seq_len = choice.seq_len;
  request.lora = choice.lora;
  request.max_memory = gigabytes(choice.max_memory_gb);
  if (choice.max_memory_gb == 0.0 && validation::has_published_errors(request.stack))
    request.memory_share = validation::memory_share(validation::kFitProbability);
  planner::check_request(request);
  return request;
}

std::vector<std::string> shipped_profiles(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(data_directory() / "hardware_profiles" / folder, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<ScenarioChoice> with_remedies(ScenarioChoice choice,
                                            const std::vector<planner::Remedy>& remedies,
                                            Bytes accelerator_memory) {
  using planner::RemedyField;
  for (const planner::Remedy& remedy : remedies) {
    const auto* count = std::get_if<std::int64_t>(&remedy.value);
    const auto* bytes = std::get_if<Bytes>(&remedy.value);
    switch (remedy.field) {
      case RemedyField::Gpus:
        choice.gpus = *count;
        break;
      case RemedyField::GlobalBatch:
        choice.global_batch = *count;
        break;
      case RemedyField::SeqLen:
        choice.seq_len = *count;
        break;
      case RemedyField::MaxMemory:
        choice.max_memory_gb = *bytes / gigabytes(1.0);
        break;
      case RemedyField::AcceleratorMemory: {
        int& percent = choice.what_if[planner::Resource::MemoryCapacity];
        percent = static_cast<int>(std::ceil(percent * (*bytes / accelerator_memory)));
        if (percent > kWhatIfRange.most) return std::nullopt;
        break;
      }
      case RemedyField::Fixed:
      case RemedyField::NotFixed:
      case RemedyField::NotForbidden:
        if (!take_constraint(remedy, choice)) return std::nullopt;
    }
  }
  return choice;
}

bool describes(const ScenarioChoice& choice, const Scenario& scenario) {
  try {
    const planner::PlanRequest request = load_request(choice);
    const Plan& plan = scenario.plan;
    return request.model == scenario.model && request.cluster == scenario.cluster &&
           request.stack == scenario.stack && request.gpus == plan.world_size() &&
           (request.global_batch == 0 || request.global_batch == plan.global_batch) &&
           request.seq_len == plan.seq_len && request.precision == plan.precision;
  } catch (const InputError&) {
    return false;  // The search reports the problem with its field.
  }
}

}  // namespace shardwright::gui
