#include "cli/options/scenario_parts.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/programs/here_profile.hpp"
#include "core/lowering/modules/expert_load.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/this_machine.hpp"

namespace shardwright::cli {
namespace {

template <class Spec>
Spec load_named(Spec (*load)(const std::string&), const std::string& name, const char* option,
                ProblemList& problems) {
  if (name.empty()) {
    problems.add(option, "nothing", "a name or a file");
    return {};
  }
  return read_part(option, problems, [&] { return load(name); });
}

struct FileAndId {
  std::string file, id;
};

// Ids may contain colons; paths seldom do.
FileAndId read_file_and_id(const std::string& row) {
  const auto colon = row.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == row.size()) {
    throw InputError("--row", {{"", fmt::format("\"{}\"", row),
                                "FILE:ID, as in measurements.jsonl:llama-8-gpus"}});
  }
  return {row.substr(0, colon), row.substr(colon + 1)};
}

}  // namespace

ModelSpec read_model_option(const std::string& name, ProblemList& problems) {
  return load_named(load_model, name, "--model", problems);
}

ClusterSpec read_cluster_option(const std::string& name, ProblemList& problems) {
  if (needs_probe(name) && !problems.empty()) return {};
  return load_named(load_cluster_or_here, name, "--cluster", problems);
}

bool needs_probe(const std::string& cluster) {
  std::error_code unreadable;
  return cluster == kHere && !std::filesystem::exists(cached_profile(), unreadable);
}

StackSpec read_stack_option(const std::string& name, const ClusterSpec& cluster,
                            ProblemList& problems) {
  if (cluster.stack && (name.empty() || name == cluster.stack->name)) return *cluster.stack;
  return load_named(load_stack, name.empty() ? kDefaultStack : name, "--stack", problems);
}

std::optional<validation::PublishedRun> read_published_run_option(const std::string& row) {
  const auto [file, id] = read_file_and_id(row);
  return validation::find_published_run(file, id);
}

validation::Measurement read_row_option(const std::string& row) {
  const auto [file, id] = read_file_and_id(row);
  auto run = validation::find_published_run(file, id);
  validation::Measurement measurement =
      run ? std::move(run->setup) : validation::find_measurement(file, id);
  if (!measurement.scenario) {
    throw InputError(
        file, {{id, fmt::format("a measurement without a scenario: {}", measurement.unsupported),
                "a measurement that can be simulated"}});
  }
  measurement.scenario = validation::resolved_scenario(measurement);
  if (!measurement.open.empty())
    measurement.assumed.push_back(validation::choice_text(measurement, measurement.scenario->plan));
  return measurement;
}

std::vector<std::string> filled_in_by(const ModelSpec& model, const ClusterSpec& cluster,
                                      const StackSpec& stack) {
  std::vector<std::string> lines = cluster.filled_in;
  for (const std::string& line : stack.filled_in) lines.push_back("stack " + line);
  if (const std::string assumed = load_assumption(model); !assumed.empty())
    lines.push_back(assumed);
  for (const std::string& part : model.not_simulated)
    lines.push_back(fmt::format("model {}: not simulated: {}", model.name, part));
  return lines;
}

}  // namespace shardwright::cli
