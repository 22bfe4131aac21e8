#include "planner/tuning/study_file.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"

namespace shardwright::planner {
namespace {

constexpr std::int64_t kMostTrials = 1'000'000;

StudyRules read_rules(ObjectReader study, ProblemList& problems) {
  StudyRules rules;
  for (const std::string& text : study.texts("vary"))
    rules.parameters.push_back(read_tuned_parameter("/study/vary", text, problems));
  rules.search = study.choice<TuningSearch>("search");
  rules.rungs = study.numbers("rungs");
  if (rules.rungs.empty()) study.problem_with("rungs", "at least one share of the budget");
  return rules;
}

// `reached` has the number of rungs that each trial has reached so far.
StudyResult read_result(ObjectReader object, std::size_t parameters,
                        std::vector<std::size_t>& reached) {
  StudyResult result;
  result.trial = static_cast<std::size_t>(object.integer("trial", {0, kMostTrials}));
  result.rung = static_cast<std::size_t>(object.integer("rung", {0, kMostTrials}));
  result.values = object.numbers("values", kNonNegative);
  result.steps = object.integer("steps");
  result.loss = object.number_or("loss", std::numeric_limits<double>::infinity(), kNonNegative);
  if (result.values.size() != parameters)
    object.problem_with("values", "a value for each of /study/vary");
  if (reached.size() <= result.trial) reached.resize(result.trial + 1);
  if (result.rung != reached[result.trial]++)
    object.problem_with("rung", "the one after those of the trial before it");
  return result;
}

}  // namespace

StudyRecord read_study_file(const std::string& file) {
  ProblemList problems(file);
  const nlohmann::json read = read_json_file(file);
  ObjectReader document(read, "", problems);
  if (document.text("schema") != kStudySchema) document.problem_with("schema", kStudySchema);
  StudyRecord record;
  record.rules = read_rules(document.object("study"), problems);
  std::vector<std::size_t> reached;
  for (const ObjectReader& result : document.objects("results"))
    record.results.push_back(read_result(result, record.rules.parameters.size(), reached));
  problems.throw_if_any();
  return record;
}

std::string trial_folder(std::size_t trial) {
  return fmt::format("trial-{:04}", trial);
}

}  // namespace shardwright::planner
