#include "gui/models/scenario_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "gui/models/query.hpp"
#include "gui/models/text.hpp"
#include "planner/request_check.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::gui {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct FieldTraits {
  const char* id;
  const char* title;
  const char* tip;
  // The member that holds the field, if it is a text or a count with a range.
  std::string ScenarioChoice::*text = nullptr;
  std::int64_t ScenarioChoice::*count = nullptr;
  Range range{};
};

constexpr EnumArray<Field, FieldTraits> kFieldTraits{{{
    {"model", "Model",
     "A shipped model, or a Hugging Face config.json (File → Open, or drop it here).",
     &ScenarioChoice::model},
    {"cluster", "Cluster",
     "A shipped cluster, a cluster file of your own, or “here”: the machine that this window runs "
     "on, probed first if it never was.",
     &ScenarioChoice::cluster},
    {"accelerator", "Accelerator", "Replaces the cluster's accelerator.",
     &ScenarioChoice::accelerator},
    {"node", "Node", "Replaces the cluster's node: accelerators, NVLink, NICs, host.",
     &ScenarioChoice::node},
    {"fabric", "Fabric", "Replaces the network between nodes.", &ScenarioChoice::fabric},
    {"stack", "Stack",
     "The training software: which kernels it fuses, what it overlaps, how long a launch takes.",
     &ScenarioChoice::stack},
    {"gpus", "GPUs",
     "Accelerators that train together.\nUnit: devices. Range: 1 to 10,000,000, at most what the "
     "cluster has.",
     nullptr, &ScenarioChoice::gpus, kGpusRange},
    {"global_batch", "Global batch",
     "Sequences of one training step.\nUnit: sequences. Range: 1 to 1,000,000,000; 0 is “auto”: "
     "the smallest batch of full throughput.",
     nullptr, &ScenarioChoice::global_batch, kGlobalBatchRange},
    {"seq_len", "Sequence", "Tokens of one sequence.\nUnit: tokens. Range: 1 to 1,000,000,000.",
     nullptr, &ScenarioChoice::seq_len, kSeqLenRange},
    {"precision", "Precision", "Number format of the GEMMs.", &ScenarioChoice::precision},
    {"objective", "Objective",
     "What is best: the fastest tokens, the cheapest, the smallest memory, or the most per joule.",
     &ScenarioChoice::objective},
    {"max_memory", "Memory limit",
     "What a plan may take of each accelerator.\nUnit: GB (1e9 bytes). Range: 0 to 1,000,000; 0: "
     "as much as fits with a probability of 95 %, by the errors of published peaks."},
    {"constraints", "Constraints",
     "What plans must look like, in the language of the filter of Plans: “tp=8, pp>=4, not zero=3, "
     "schedule=1f1b,interleaved”.\nFields: dp, tp, pp, cp, ep, vpp, zero, micro_batch, schedule, "
     "recompute, context_parallel …",
     &ScenarioChoice::constraints},
    {"what_if", "What if",
     "Percent of the profile's figure.\nUnit: %. Range: 10 to 1000; 100 is the hardware as it is."},
}}};

// Keys of fields that are neither a text nor a count.
constexpr const char* kMaxMemoryKey = "max_memory_gb";
constexpr const char* kWhatIfKey = "what_if";

const FieldTraits& traits_of(Field field) {
  return kFieldTraits[field];
}

// Runs `read` and turns its problems into problems of `field`.
template <class Read>
void read_field(Field field, ProblemList& problems, const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) {
      const std::string at = problem.where.empty() ? "" : " at " + problem.where;
      problems.add(traits_of(field).id, problem.found + at, problem.expected);
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
      problems.add(traits_of(Field::WhatIf).id, fmt::format("{} %", percent),
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

}  // namespace

QString id_of(Field field) {
  return to_qstring(traits_of(field).id);
}

QString title_of(Field field) {
  return to_qstring(traits_of(field).title);
}

QString what_if_title(planner::Resource resource) {
  if (resource == planner::Resource::Latency) return u"1 / latency"_s;
  QString title = to_qstring(name_of(resource));
  title[0] = title[0].toUpper();
  return title;
}

QString tip_of(Field field) {
  return to_qstring(traits_of(field).tip);
}

QString value_text(Field field, const ScenarioChoice& choice) {
  const FieldTraits& traits = traits_of(field);
  if (traits.count != nullptr && choice.*traits.count != 0)
    return QString::number(choice.*traits.count);
  if (traits.text != nullptr && !(choice.*traits.text).empty())
    return to_qstring(choice.*traits.text);
  if (field == Field::GlobalBatch) return u"auto"_s;
  if (field == Field::Constraints) return u"none"_s;
  if (field != Field::MaxMemory) return u"the cluster's own"_s;
  return choice.max_memory_gb == 0.0
             ? u"95 % sure to fit"_s
             : QString::number(choice.max_memory_gb, 'f', QLocale::FloatingPointShortest);
}

ClusterSpec load_cluster_of(const ScenarioChoice& choice) {
  ProblemList problems("scenario");
  ClusterSpec cluster = cluster_of(choice, problems);
  problems.throw_if_any();
  return cluster;
}

QStringList constraint_completions() {
  QStringList completions;
  for (const std::string& name : planner::plan_field_names()) {
    completions.append(to_qstring(name) + u'=');
    for (const std::string& value : planner::value_names_of(*planner::plan_field_named(name)))
      completions.append(u"%1=%2"_s.arg(to_qstring(name), to_qstring(value)));
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

ScenarioChoice on_cluster(ScenarioChoice choice, const std::string& cluster) {
  // The user may have chosen another stack since.
  if (choice.cluster == cluster) return choice;
  const std::string former = own_stack_of(choice.cluster);
  choice.cluster = cluster;
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

Field field_of(const std::string& where, Field fallback) {
  for (const Field field : enumerators<Field>())
    if (where == traits_of(field).id) return field;
  return fallback;
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

nlohmann::ordered_json to_json(const ScenarioChoice& choice) {
  nlohmann::ordered_json document;
  for (const FieldTraits& field : kFieldTraits) {
    if (field.text != nullptr) document[field.id] = choice.*field.text;
    if (field.count != nullptr) document[field.id] = choice.*field.count;
  }
  document[kMaxMemoryKey] = choice.max_memory_gb;
  nlohmann::ordered_json& changed = document[kWhatIfKey] = nlohmann::ordered_json::object();
  for (const planner::Resource resource : enumerators<planner::Resource>())
    if (choice.what_if[resource] != 100) changed[name_of(resource)] = choice.what_if[resource];
  return document;
}

namespace {

class SessionReader {
 public:
  SessionReader(const json& document, std::vector<Problem>& replaced)
      : document_(document), replaced_(replaced) {}

  void take(const char* key, std::string& value) {
    const auto found = document_.find(key);
    if (found == document_.end()) return;
    const bool is_line = found->is_string() && is_one_line(found->get_ref<const std::string&>());
    if (!is_line) return replace(key, *found, "a line of text");
    value = found->get<std::string>();
  }

  void take(const char* key, Range range, std::int64_t& value) {
    const auto found = document_.find(key);
    if (found != document_.end()) value = number_of(key, *found, range, value);
  }

  // Returns `value` if `found` is no whole number of the range.
  std::int64_t number_of(const char* key, const json& found, Range range, std::int64_t value) {
    const double number = is_within(found, range) ? found.get<double>() : std::nan("");
    if (std::trunc(number) == number) return static_cast<std::int64_t>(number);
    replace(key, found, fmt::format("a whole number from {} to {}", range.least, range.most));
    return value;
  }

  double amount_of(const char* key, const json& found, Range range, double value) {
    if (is_within(found, range)) return found.get<double>();
    replace(key, found, fmt::format("a number from {} to {}", range.least, range.most));
    return value;
  }

  void replace(const char* key, const json& found, const std::string& expected) {
    replaced_.push_back({key, found.dump(-1, ' ', true, json::error_handler_t::replace), expected});
  }

 private:
  static bool is_within(const json& found, Range range) {
    if (!found.is_number()) return false;
    const auto number = found.get<double>();
    return number >= static_cast<double>(range.least) && number <= static_cast<double>(range.most);
  }

  static bool is_one_line(const std::string& text) {
    return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; });
  }

  const json& document_;
  std::vector<Problem>& replaced_;
};

}  // namespace

ScenarioChoice read_choice(const json& document, std::vector<Problem>& replaced) {
  ScenarioChoice choice;
  if (!document.is_object()) return choice;
  SessionReader reader(document, replaced);
  for (const FieldTraits& field : kFieldTraits) {
    if (field.text != nullptr) reader.take(field.id, choice.*field.text);
    if (field.count != nullptr) reader.take(field.id, field.range, choice.*field.count);
  }
  const auto memory = document.find(kMaxMemoryKey);
  if (memory != document.end())
    choice.max_memory_gb =
        reader.amount_of("max_memory", *memory, kMemoryRange, choice.max_memory_gb);
  const auto what_if = document.find(kWhatIfKey);
  if (what_if == document.end()) return choice;
  if (!what_if->is_object()) {
    reader.replace(kWhatIfKey, *what_if, "an object of resources and percentages");
    return choice;
  }
  for (const planner::Resource resource : enumerators<planner::Resource>()) {
    const auto percent = what_if->find(name_of(resource));
    if (percent == what_if->end()) continue;
    choice.what_if[resource] =
        static_cast<int>(reader.number_of(kWhatIfKey, *percent, kWhatIfRange, 100));
  }
  return choice;
}

namespace {

// Takes the constraint of a remedy out of the text, or puts its values in the place of those of the same
// field. Returns false if the text has no such constraint.
bool take_constraint(const planner::Remedy& remedy, ScenarioChoice& choice) {
  using planner::RemedyField;
  const auto& wanted = std::get<planner::Constraint>(remedy.value);
  std::vector<std::string> kept;
  bool found = false;
  for (const Term& term : terms_of(choice.constraints)) {
    const auto constraint = planner::parse_constraint(term.text, "constraints");
    const bool is_it = term.forbids == (remedy.field == RemedyField::NotForbidden) &&
                       (remedy.field == RemedyField::Fixed ? constraint.field == wanted.field
                                                           : constraint == wanted);
    found = found || is_it;
    if (!is_it) kept.push_back((term.forbids ? "not " : "") + term.text);
  }
  if (!found) return false;
  if (remedy.field == RemedyField::Fixed) kept.push_back(planner::to_string(wanted));
  choice.constraints = fmt::format("{}", fmt::join(kept, "; "));
  return true;
}

}  // namespace

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

nlohmann::ordered_json scenario_file(const ScenarioChoice& choice) {
  nlohmann::ordered_json document;
  document["schema"] = kScenarioSchema;
  document["version"] = 1;
  document.update(to_json(choice));
  return document;
}

namespace {

// Refuses what no member of the format explains, which a session leaves alone.
void refuse_unknown(const json& document, ProblemList& problems) {
  ObjectReader reader(document, "", problems);
  check_schema(reader, kScenarioSchema);
  for (const FieldTraits& field : kFieldTraits)
    if (field.text != nullptr || field.count != nullptr) reader.allow(field.id);
  reader.allow(kMaxMemoryKey);
  reader.allow(kWhatIfKey);
  reader.refuse_unknown_keys();
  const auto what_if = document.find(kWhatIfKey);
  if (what_if == document.end() || !what_if->is_object()) return;
  ObjectReader resources(*what_if, fmt::format("/{}", kWhatIfKey), problems);
  for (const planner::Resource resource : enumerators<planner::Resource>())
    resources.allow(name_of(resource));
  resources.refuse_unknown_keys();
}

}  // namespace

ScenarioChoice read_scenario_file(const json& document, const std::string& file) {
  ProblemList problems(file);
  refuse_unknown(document, problems);
  std::vector<Problem> replaced;
  ScenarioChoice choice = read_choice(document, replaced);
  for (const Problem& problem : replaced) {
    const bool is_memory = problem.where == traits_of(Field::MaxMemory).id;
    problems.add("/" + (is_memory ? kMaxMemoryKey : problem.where), problem.found,
                 problem.expected);
  }
  problems.throw_if_any();
  return choice;
}

}  // namespace shardwright::gui
