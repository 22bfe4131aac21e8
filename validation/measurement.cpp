#include "validation/measurement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/data_directory.hpp"
#include "core/base/json_lines.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/open_fields.hpp"

namespace shardwright::validation {
namespace {

constexpr NumberRange kMfuRange{0.0, 1.0, true};

std::optional<double> figure_if(ObjectReader& object, const char* key, NumberRange range) {
  return object.has(key) ? std::optional(object.number(key, range)) : std::nullopt;
}

MeasuredFigures read_measured(ObjectReader object) {
  MeasuredFigures measured;
  measured.step_s = figure_if(object, "step_s", kPositive);
  measured.tokens_per_s_per_gpu = figure_if(object, "tokens_per_s_per_gpu", kPositive);
  measured.tflops_per_gpu = figure_if(object, "tflops_per_gpu", kPositive);
  measured.mfu = figure_if(object, "mfu", kMfuRange);
  if (object.has("peak_memory_bytes"))
    measured.peak_memory = Bytes(object.number("peak_memory_bytes"));
  object.refuse_unknown_keys();
  return measured;
}

ComparedFigure read_figure(ObjectReader object) {
  ComparedFigure figure;
  figure.metric = object.choice<StepMetric>("metric");
  figure.value = object.number("value", figure.metric == StepMetric::Mfu ? kMfuRange : kPositive);
  figure.derived = object.boolean_or("derived", false);
  if (counts_flop(figure.metric)) {
    figure.flops.attention_share = object.number("attention_share", kRatioOrZero);
    figure.flops.recomputation = object.choice<CountedRecomputation>("recompute_counted");
    figure.flops.peak_is_bf16 = object.boolean_or("of_bf16_peak", false);
  }
  object.refuse_unknown_keys();
  return figure;
}

MemoryReading read_memory_reading(ObjectReader object) {
  MemoryReading reading;
  reading.counter = object.choice<MemoryCounter>("counter");
  if (object.has("rank"))
    reading.last_stage = object.choose("rank", std::array{"fullest", "last_stage"}) == 1;
  object.refuse_unknown_keys();
  return reading;
}

std::vector<std::string> read_open_fields(ObjectReader& object) {
  if (!object.has("open")) return {};
  const std::vector<std::string>& fields = planner::searched_fields();
  std::vector<std::string> open = object.texts("open");
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (std::find(fields.begin(), fields.end(), open[i]) != fields.end()) continue;
    Expected expected = one_of(open[i], fields);
    expected.text.insert(0, "a field that a search chooses: ");
    object.problems().add(fmt::format("{}/open/{}", object.pointer(), i),
                          fmt::format("\"{}\"", open[i]), expected);
  }
  return open;
}

// Reads a scenario whose plan has no values of the open fields.
Scenario read_open_scenario(ObjectReader& scenario, const std::vector<std::string>& open) {
  nlohmann::json document = scenario.value();
  const nlohmann::ordered_json defaults = to_json(Plan{});
  const auto plan = document.find("plan");
  if (plan != document.end() && plan->is_object()) {
    for (const std::string& field : planner::with_followers(open)) {
      if (plan->contains(field))
        scenario.problems().add(scenario.pointer() + "/plan/" + field, plan->at(field).dump(),
                                "no value of an open field");
      else if (defaults.contains(field))
        (*plan)[field] = defaults.at(field);
    }
  }
  ObjectReader filled(document, scenario.pointer(), scenario.problems());
  return read_unchecked_members(filled, LeftOut::AsDefault);
}

void read_scenario_of(ObjectReader& object, Measurement& measurement) {
  measurement.open = read_open_fields(object);
  measurement.unsupported = object.text_or("unsupported", "");
  const bool has_scenario = object.has("scenario");
  if (has_scenario == !measurement.unsupported.empty()) {
    object.problem(
        "", has_scenario ? "both scenario and unsupported" : "neither scenario nor unsupported",
        "a scenario, or the reason why there is none in \"unsupported\"");
    return;
  }
  if (!has_scenario) return;
  if (planner::opens_world(measurement.open))
    measurement.gpus = object.integer("gpus", {1, kMaxWorld});
  ObjectReader members = object.object("scenario");
  measurement.scenario = measurement.open.empty() ? read_members(members, LeftOut::AsDefault)
                                                  : read_open_scenario(members, measurement.open);
}

Measurement read_measurement(ObjectReader object) {
  Measurement measurement;
  measurement.id = object.name("id");
  measurement.source = read_published_source(object.object("source"));
  object.boolean_or("verified", false);
  if (object.has("grade")) {
    object.choose("grade", std::array{"A", "B", "C"});
    measurement.grade = object.text_or("grade", "");
  }
  measurement.group = object.text_or("group", "");
  if (auto stated = object.object_if("stated")) {
    measurement.stated_accelerator = stated->text_or("accelerator", "");
    measurement.stated_stack = stated->text_or("stack", "");
    stated->refuse_unknown_keys();
  }
  measurement.stack_stands_in = object.boolean_or("stack_stands_in", false);
  read_scenario_of(object, measurement);
  if (object.has("outcome")) measurement.outcome = object.choice<Outcome>("outcome");
  if (auto measured = object.object_if("measured")) measurement.measured = read_measured(*measured);
  if (auto figure = object.object_if("figure")) measurement.figure = read_figure(*figure);
  if (auto memory = object.object_if("memory")) measurement.memory = read_memory_reading(*memory);
  if (object.has("assumed")) measurement.assumed = object.texts("assumed");
  measurement.notes = object.text_or("notes", "");
  object.refuse_unknown_keys();
  return measurement;
}

}  // namespace

bool counts_flop(StepMetric metric) {
  return metric == StepMetric::FlopRate || metric == StepMetric::Mfu;
}

std::vector<Measurement> read_measurements(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return read_measurements(stream, file);
}

std::vector<Measurement> read_measurements(std::istream& stream, const std::string& source) {
  std::vector<Measurement> measurements;
  read_typed_lines(stream, source, [&](ObjectReader& object) {
    measurements.push_back(read_measurement(object));
    measurements.back().file = source;
  });
  return measurements;
}

std::vector<Measurement> read_measurements(const std::vector<std::string>& files) {
  std::vector<Measurement> measurements;
  std::vector<InputError> errors;
  std::set<std::filesystem::path> read;
  for (const std::string& file : files) {
    std::error_code unknown;
    // A measurement counts once, however often its file is named.
    const auto path = std::filesystem::weakly_canonical(file, unknown);
    if (!unknown && !read.insert(path).second) continue;
    try {
      std::vector<Measurement> more = read_measurements(file);
      std::move(more.begin(), more.end(), std::back_inserter(measurements));
    } catch (const InputError& error) {
      errors.push_back(error);
    }
  }
  if (errors.size() == 1) throw InputError(errors.front());
  ProblemList problems("measurements");
  for (const InputError& error : errors) problems.add_all(error.source() + " ", error);
  problems.throw_if_any();
  return measurements;
}

std::vector<std::string> shipped_measurements() {
  const std::filesystem::path folder = data_directory() / "measurements";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "training"))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  files.push_back((folder / "out_of_memory.jsonl").string());
  return files;
}

Measurement find_measurement(const std::string& file, const std::string& id) {
  std::vector<Measurement> measurements = read_measurements(file);
  std::vector<std::string> ids;
  for (Measurement& measurement : measurements) {
    if (measurement.id == id) return std::move(measurement);
    ids.push_back(measurement.id);
  }
  throw InputError(file,
                   {{"",
                     fmt::format("no measurement \"{}\"", id),
                     {fmt::format("the id of one of its {}", ids.size()), nearest_name(id, ids)}}});
}

Scenario resolved_scenario(const Measurement& measurement) {
  Scenario scenario = *measurement.scenario;
  if (measurement.open.empty()) return scenario;
  const std::int64_t gpus = measurement.gpus > 0 ? measurement.gpus : scenario.plan.world_size();
  ProblemList problems(measurement.file);
  try {
    const auto plan = planner::choose_open_fields(scenario, measurement.open, gpus);
    if (plan) {
      scenario.plan = *plan;
    } else {
      problems.add(measurement.id + "/open", fmt::format("{}", fmt::join(measurement.open, ", ")),
                   "fields with values that make a plan which the model and the cluster allow");
    }
  } catch (const InputError& error) {
    problems.add_all(measurement.id + "/", error);
  }
  problems.throw_if_any();
  return scenario;
}

nlohmann::ordered_json open_values(const Measurement& measurement, const Plan& plan) {
  const nlohmann::ordered_json all = to_json(plan);
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const std::string& field : planner::with_followers(measurement.open))
    values[field] = all.at(field);
  return values;
}

std::string choice_text(const Measurement& measurement, const Plan& plan) {
  std::vector<std::string> choices;
  const nlohmann::ordered_json values = open_values(measurement, plan);
  for (const auto& [field, value] : values.items())
    choices.push_back(field + " " + (value.is_string() ? value.get<std::string>() : value.dump()));
  return fmt::format("chosen by search: {}", fmt::join(choices, ", "));
}

bool leaves_plan_open(const Measurement& measurement) {
  const auto is_open = [&](const char* field) {
    return std::find(measurement.open.begin(), measurement.open.end(), field) !=
           measurement.open.end();
  };
  const bool cut = is_open("tp") && is_open("pp");
  return is_open("micro_batch") || is_open("vpp") || is_open("recompute") || cut;
}

PublishedSource read_published_source(ObjectReader object) {
  PublishedSource source;
  source.title = object.text_or("title", "");
  source.where = object.text_or("where", "");
  if (object.has("year")) object.integer("year", {1900, 2100});
  object.refuse_unknown_keys();
  return source;
}

}  // namespace shardwright::validation
