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
#include "core/spec/field_json.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/open_fields.hpp"

namespace shardwright::validation {
namespace {

constexpr NumberRange kMfuRange{0.0, 1.0, true};

void describe(PublishedSource& source, FieldVisitor& fields) {
  std::int64_t year = 0;
  fields.text("title", source.title, kOptional, "title of the publication");
  fields.text("where", source.where, kOptional, "its address, with the table or the section");
  fields.integer("year", year, {1900, 2100}, kOmissible, "year of the publication");
}

void describe(MeasuredFigures& measured, FieldVisitor& fields) {
  fields.number("step_s", measured.step_s, kPositive, kOmissible, "seconds of a step");
  fields.number("tokens_per_s_per_gpu", measured.tokens_per_s_per_gpu, kPositive, kOmissible,
                "tokens of a second and accelerator");
  fields.number("tflops_per_gpu", measured.tflops_per_gpu, kPositive, kOmissible,
                "TFLOP/s of an accelerator");
  fields.number("mfu", measured.mfu, kMfuRange, kOmissible, "model FLOPs utilisation");
  fields.number("peak_memory_bytes", measured.peak_memory, kPositive, kOmissible,
                "peak of an accelerator's memory");
}

void describe(ComparedFigure& figure, FieldVisitor& fields) {
  fields.choice("metric", figure.metric, kRequired, "the measured quantity");
  fields.number("value", figure.value, figure.metric == StepMetric::Mfu ? kMfuRange : kPositive,
                kRequired, "its value");
  fields.boolean("derived", figure.derived, kOptional,
                 "it follows from other figures of the source");
  fields.only_where("metric", figure.metric, {StepMetric::FlopRate, StepMetric::Mfu}, [&] {
    FlopsConvention& flops = figure.flops;
    fields.number("attention_share", flops.attention_share, kRatioOrZero, kRequired,
                  "share of the attention scores that [the source counts]"
                  "(../models/flop_and_mfu.md#conventions-of-published-figures)");
    fields.choice("recompute_counted", flops.recomputation, kRequired,
                  "whether the source counts recomputed passes");
    fields.boolean("of_bf16_peak", flops.peak_is_bf16, kOptional,
                   "MFU is of the bf16 peak, whatever format was multiplied in");
  });
}

void describe(MemoryReading& reading, FieldVisitor& fields) {
  fields.choice("counter", reading.counter, kRequired,
                "counter of the figure ([memory](../models/memory.md#peak))");
  fields.choice("rank", reading.rank, kOptional, "rank whose peak it is");
}

void describe(Measurement& row, FieldVisitor& fields) {
  describe_setup(row, fields);
  fields.text(
      "group", row.group, kOptional,
      "measurements of one group have the same source, model, accelerators and sequence, and "
      "can be ranked against each other");
  fields.choice("outcome", row.outcome, kOptional, "how the run ended");
  fields.section("measured", kOptional, "what the source prints",
                 [&] { describe(row.measured, fields); });
  fields.optional_section("figure", row.figure, "what a prediction is held against",
                          [&](ComparedFigure& figure) { describe(figure, fields); });
  std::optional<MemoryReading> memory;
  fields.optional_section("memory", memory, "how `measured.peak_memory_bytes` was read",
                          [&](MemoryReading& reading) { describe(reading, fields); });
  if (memory) row.memory = *memory;
}

void check_open_fields(ObjectReader& object, const std::vector<std::string>& open) {
  const std::vector<std::string>& fields = planner::searched_fields();
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (std::find(fields.begin(), fields.end(), open[i]) != fields.end()) continue;
    Expected expected = one_of(open[i], fields);
    expected.text.insert(0, "a field that a search chooses: ");
    object.problems().add(fmt::format("{}/open/{}", object.pointer(), i),
                          fmt::format("\"{}\"", open[i]), expected);
  }
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
  const bool has_scenario = object.has("scenario");
  if (has_scenario == !measurement.unsupported.empty()) {
    object.problem(
        "", has_scenario ? "both scenario and unsupported" : "neither scenario nor unsupported",
        "a scenario, or the reason why there is none in \"unsupported\"");
    return;
  }
  if (!has_scenario) return;
  ObjectReader members = object.object("scenario");
  measurement.scenario = measurement.open.empty() ? read_members(members, LeftOut::AsDefault)
                                                  : read_open_scenario(members, measurement.open);
}

Measurement read_measurement(ObjectReader object) {
  Measurement measurement;
  read_fields(object, [&](FieldVisitor& fields) { describe(measurement, fields); });
  read_setup(object, measurement);
  return measurement;
}

}  // namespace

void describe_setup(Measurement& row, FieldVisitor& fields) {
  bool verified = false;
  fields.text("id", row.id, kRequired, "unique in its file");
  fields.section("source", kRequired, "publication", [&] { describe(row.source, fields); });
  fields.boolean("verified", verified, kOptional, "somebody compared the figures with the source");
  fields.text(
      "grade", row.grade, kOptional,
      "`A`: plan and figure are known; `B`: something is inferred; `C`: the configuration is "
      "incomplete. Runs out of memory have none");
  fields.section("stated", kOptional,
                 "hardware and software as the source names them; printed only", [&] {
                   fields.text("accelerator", row.stated_accelerator, kOptional, "accelerator");
                   fields.text("stack", row.stated_stack, kOptional, "software");
                 });
  fields.boolean(
      "stack_stands_in", row.stack_stands_in, kOptional,
      "no profile describes the software, and the scenario's stack stands in for it; its "
      "interval is that of generic stacks");
  fields.document(
      "scenario", nullptr, kOptional,
      "a [plan file](plan.md): `model`, `cluster` and `stack` are names, documents, or "
      "[patches](plan.md#patches) on shipped ones. Habits of a software, a recipe or a "
      "release belong to a [stack profile](hardware_profiles.md#stacks), not to a patch. "
      "Overlap that the plan does not state is off");
  fields.text("unsupported", row.unsupported, kOptional,
              "in place of a scenario: why Shardwright cannot simulate what ran");
  fields.texts("open", row.open, kOptional,
               "fields of the plan that the source leaves open; the plan has no value for them "
               "([open fields](#open-fields))");
  fields.integer("gpus", row.gpus, {1, kMaxWorld},
                 required_if(planner::opens_world(row.open),
                             "`open` names `dp`, `tp`, `pp` or `cp`", kOmissible),
                 "number of GPUs");
  fields.texts("assumed", row.assumed, kOptional,
               "what else stands in the scenario without being stated by the source, in words");
  fields.text("notes", row.notes, kOptional, "for people");
}

void read_setup(ObjectReader& object, Measurement& row) {
  const std::string& grade = row.grade;
  if (!grade.empty() && grade != "A" && grade != "B" && grade != "C")
    object.problem_with("grade", "A, B or C");
  check_open_fields(object, row.open);
  read_scenario_of(object, row);
}

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
  return find_row(read_measurements(file), file, id, "measurement", &Measurement::id);
}

void throw_unknown_row(const std::string& file, const char* what, const std::string& id,
                       const std::vector<std::string>& ids) {
  throw InputError(file,
                   {{"",
                     fmt::format("no {} \"{}\"", what, id),
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
  read_fields(object, [&](FieldVisitor& fields) { describe(source, fields); });
  return source;
}

nlohmann::ordered_json measurement_schema() {
  return json_schema([](FieldVisitor& fields) {
    Measurement defaults;
    describe(defaults, fields);
  });
}

}  // namespace shardwright::validation
