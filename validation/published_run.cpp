#include "validation/published_run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/data_directory.hpp"
#include "core/base/json_lines.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/untrusted_file.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/run_json.hpp"
#include "core/spec/spec_document.hpp"

namespace shardwright::validation {
namespace {

constexpr const char* kUsualRun = "settled-fleet";
constexpr NumberRange kTokens{0.0, 1e18, true};
constexpr NumberRange kDays{0.0, 36'500.0, true};

void describe(MeasuredRun& measured, FieldVisitor& fields) {
  fields.number("gpu_hours", measured.gpu_hours, kPositive, kOmissible,
                "hours of all GPUs; left out: `wall_days` on all of them");
  fields.number("wall_days", measured.wall_days, kDays, kOmissible,
                "days from the first step to the last");
  fields.choice(
      "counted", measured.counted, kOmissible,
      "what the hours contain: the whole run, or its steps alone, as where step times were "
      "added up");
  fields.number("step_s", measured.step_s, kPositive, kOmissible,
                "seconds of a step of the plan, without those of other stages");
  fields.number("tokens_per_s_per_gpu", measured.tokens_per_s_per_gpu, kPositive, kOmissible,
                "the same as tokens of a second and GPU");
  fields.number("goodput_ratio", measured.goodput, kRatio, kOmissible,
                "share of the time that went into steps that were kept");
  fields.number("interruptions", measured.interruptions, kPositive, kOmissible,
                "interruptions of the run, planned ones among them");
  fields.number("interruption_days", measured.interruption_days, kDays,
                required_if(measured.interruptions > 0.0, "there are interruptions", kOmissible),
                "days of the run in which they were counted");
  fields.number("unexpected_interruptions", measured.unexpected, kPositive, kOmissible,
                "those of them that nobody planned");
  fields.number("checkpoint_interval_s", measured.checkpoint_interval_s, kPositive, kOmissible,
                "seconds of training between two checkpoints, which the best interval is held "
                "against");
}

void describe(PublishedRun& row, FieldVisitor& fields) {
  describe_setup(row.setup, fields);
  fields.number("tokens", row.tokens, kTokens,
                required_if(row.setup.unsupported.empty(), "there is a scenario", kOmissible),
                "tokens of the whole run");
  fields.list("stages", row.run.stages, kOmissible,
              "tokens that were trained with other settings than the plan's, as in a "
              "[run profile](hardware_profiles.md#run-profiles); the plan itself trains the rest",
              [&](RunStage& stage) { describe(stage, fields); });
  fields.document("run", nullptr, kOptional,
                  "a [run profile](hardware_profiles.md#run-profiles): a name, a document, or a "
                  "patch; left out: `settled-fleet`. What the source says of its checkpoints, "
                  "evaluation and fleet belongs here");
  fields.section("measured", kOptional, "what the source prints",
                 [&] { describe(row.measured, fields); });
  fields.list("also_published", row.others, kOmissible,
              "other figures that were published for the same run", [&](OtherFigure& other) {
                fields.number("gpu_hours", other.gpu_hours, kPositive, kRequired,
                              "hours of all GPUs");
                fields.text("where", other.where, kRequired, "who says so, and why it differs");
              });
}

// The profile of the row, with the stages that the row has.
RunSpec read_run_of(ObjectReader& object, std::vector<RunStage> stages) {
  RunSpec run = object.peek("run") ? read_given_run(object, "run") : load_run(kUsualRun);
  if (stages.empty()) return run;
  ProblemList problems(object.problems().source());
  check_stages(stages, problems);
  if (!run.stages.empty()) problems.add("/stages", "also stages in run", "one of the two");
  try {
    problems.throw_if_any();
  } catch (const InputError& error) {
    object.problems().add_all(object.pointer(), error);
  }
  run.stages = std::move(stages);
  return run;
}

PublishedRun read_published_run(ObjectReader& object) {
  PublishedRun row;
  read_fields(object, [&](FieldVisitor& fields) { describe(row, fields); });
  read_setup(object, row.setup);
  row.run = read_run_of(object, std::move(row.run.stages));
  if (row.setup.scenario && row.gpu_hours() <= 0.0) {
    object.problem("measured", "neither gpu_hours nor wall_days",
                   "one of them, which the prediction is held against");
  }
  return row;
}

}  // namespace

std::int64_t PublishedRun::gpus() const {
  if (setup.gpus > 0 || !setup.scenario) return setup.gpus;
  return setup.scenario->plan.world_size();
}

double PublishedRun::gpu_hours() const {
  if (measured.gpu_hours > 0.0) return measured.gpu_hours;
  return measured.wall_days * 24.0 * static_cast<double>(gpus());
}

nlohmann::ordered_json published_run_schema() {
  return json_schema([](FieldVisitor& fields) {
    PublishedRun defaults;
    describe(defaults, fields);
  });
}

std::string shipped_runs_file() {
  return (data_directory() / "measurements" / "runs.jsonl").string();
}

std::vector<PublishedRun> read_published_runs(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return read_published_runs(stream, file);
}

bool holds_published_runs(const std::string& file) {
  constexpr std::size_t kLongestLine = 1 << 20;
  std::ifstream stream(file);
  std::string text;
  while (read_bounded_line(stream, kLongestLine, text) == LineRead::Whole) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (line.contains("tokens")) return true;
    if (line.contains("scenario")) return false;
  }
  return false;
}

std::optional<PublishedRun> find_published_run(const std::string& file, const std::string& id) {
  if (!holds_published_runs(file)) return std::nullopt;
  return find_row(read_published_runs(file), file, id, "run",
                  [](const PublishedRun& run) { return run.setup.id; });
}

std::vector<PublishedRun> read_published_runs(std::istream& stream, const std::string& source) {
  std::vector<PublishedRun> runs;
  read_typed_lines(stream, source, [&](ObjectReader& object) {
    runs.push_back(read_published_run(object));
    runs.back().setup.file = source;
  });
  return runs;
}

}  // namespace shardwright::validation
