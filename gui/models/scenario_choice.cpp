#include "gui/models/scenario_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/figures.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using nlohmann::json;

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
    {"accelerator", "Accelerator",
     "Replaces the cluster's accelerator, on several pools the first one's.",
     &ScenarioChoice::accelerator},
    {"node", "Node",
     "Replaces the cluster's node: accelerators, NVLink, NICs, host. On several pools it is the "
     "first "
     "one's.",
     &ScenarioChoice::node},
    {"fabric", "Fabric",
     "Replaces the network between nodes, on several pools that of the first one.",
     &ScenarioChoice::fabric},
    {"stack", "Stack",
     "The training software: which kernels it fuses, what it overlaps, how long a launch takes.",
     &ScenarioChoice::stack},
    {"gpus", "GPUs",
     "Accelerators that train together.\nUnit: devices. Range: 1 to 10,000,000, at most what the "
     "cluster has; on several pools a plan may use fewer.",
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

Field field_of(const std::string& where, Field fallback) {
  for (const Field field : enumerators<Field>())
    if (where == traits_of(field).id) return field;
  return fallback;
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
  // `part` names the part of the field that the number is of.
  std::int64_t number_of(const char* key, const json& found, Range range, std::int64_t value,
                         const std::string& part = {}) {
    const double number = is_within(found, range) ? found.get<double>() : std::nan("");
    if (std::trunc(number) == number) return static_cast<std::int64_t>(number);
    replace(key, found, fmt::format("a whole number from {} to {}", range.least, range.most), part);
    return value;
  }

  double amount_of(const char* key, const json& found, Range range, double value) {
    if (is_within(found, range)) return found.get<double>();
    replace(key, found, fmt::format("a number from {} to {}", range.least, range.most));
    return value;
  }

  void replace(const char* key, const json& found, const std::string& expected,
               const std::string& part = {}) {
    const std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace);
    replaced_.push_back({key, part.empty() ? text : fmt::format("{} {}", part, text), expected});
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
    choice.what_if[resource] = static_cast<int>(
        reader.number_of(kWhatIfKey, *percent, kWhatIfRange, 100, name_of(resource)));
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
  for (const Problem& problem : replaced)
    problems.add(title_of(field_of(problem.where, Field::Model)).toStdString(), problem.found,
                 problem.expected);
  problems.throw_if_any();
  return choice;
}

}  // namespace shardwright::gui
