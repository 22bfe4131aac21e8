#include "cli/commands/launched_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "calibration/traces/inflated_file.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/scenario_parts.hpp"
#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_text.hpp"
#include "planner/export/plan_export.hpp"
#include "planner/import/nemo_arguments.hpp"
#include "planner/import/shell_script.hpp"

namespace shardwright::cli {
namespace {

// Logs print their arguments at the start.
constexpr std::size_t kMostRead = 4U << 20U;
constexpr const char* kUsualCluster = "dgx-h100";

std::string head_of(const std::string& file) {
  const calibration::ByteSource bytes =
      calibration::open_inflated(file, "a trace, a log or a launch script");
  std::string head(kMostRead, '\0');
  std::size_t known = 0;
  for (std::size_t read = 1; read > 0 && known < head.size(); known += read)
    read = bytes(head.data() + known, head.size() - known);
  head.resize(known);
  return head;
}

// JSON of a trace, or a database.
bool begins_as_trace(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return false;
  return text[first] == '{' || text.find('\0') != std::string_view::npos;
}

// The degrees above one, the schedule and recomputation: "dp 4, tp 8, pp 2, 1f1b".
std::string batch_text(const Plan& plan) {
  return fmt::format("{} sequences of {} tokens, {} in a microbatch",
                     format_count(plan.global_batch), format_count(plan.seq_len),
                     format_count(plan.micro_batch));
}

std::string degrees_text(const Plan& plan) {
  std::string text = fmt::format("dp {}", plan.dp);
  const auto add = [&](const char* name, std::int64_t degree) {
    if (degree > 1) text += fmt::format(", {} {}", name, degree);
  };
  add("tp", plan.tp);
  add("pp", plan.pp);
  add("vpp", plan.vpp);
  add("cp", plan.cp);
  add("ep", plan.ep);
  text += fmt::format(", ZeRO {}", plan.zero_stage);
  if (plan.pp > 1) text += fmt::format(", {}", name_of(plan.schedule));
  if (plan.recompute != RecomputePolicy::None)
    text += fmt::format(", recomputes {}", recompute_text(plan));
  return text;
}

// The folder of the checkpoint that Megatron-LM wrote last: "1200", or "release".
std::filesystem::path last_checkpoint(const std::filesystem::path& folder) {
  std::string tracked;
  std::ifstream(folder / "latest_checkpointed_iteration.txt") >> tracked;
  std::int64_t iteration = -1;
  const auto [end, error] =
      std::from_chars(tracked.data(), tracked.data() + tracked.size(), iteration);
  if (error != std::errc() || end != tracked.data() + tracked.size() || iteration < 0)
    return tracked == "release" ? folder / tracked : folder;
  return folder / fmt::format("iter_{:07}", iteration);
}

std::int64_t gpus_of(const ScenarioOptions& options, ProblemList& problems) {
  return options.gpus.empty() ? 0 : read_count("--gpus", options.gpus, kMaxWorld, problems);
}

}  // namespace

std::optional<std::string> file_of_checkpoint(const std::string& path) {
  const std::filesystem::path given(path);
  std::error_code none;
  const bool is_folder = std::filesystem::is_directory(given, none);
  // What Megatron-LM writes beside the arguments to tell the format.
  if (!is_folder && given.filename() != "metadata.json") return std::nullopt;
  const std::filesystem::path folder = last_checkpoint(is_folder ? given : given.parent_path());
  for (const char* name : {"run_config.yaml", "common.pt", "model_optim_rng.pt",
                           "mp_rank_00/model_optim_rng.pt", "mp_rank_00_000/model_optim_rng.pt"})
    if (std::filesystem::is_regular_file(folder / name, none)) return (folder / name).string();
  return std::nullopt;
}

planner::ScriptParameters script_parameters(const std::string& option, const std::string& text) {
  planner::ScriptParameters parameters{std::nullopt, option};
  if (text.empty()) return parameters;
  parameters.values.emplace();
  for (const planner::ShellCommand& command : planner::read_shell_script(text, option).commands)
    parameters.values->insert(parameters.values->end(), command.begin(), command.end());
  return parameters;
}

std::optional<planner::LaunchArguments> find_launch(const std::string& file,
                                                    const planner::ScriptParameters& parameters) {
  const std::string head = head_of(file);
  if (begins_as_trace(head)) return std::nullopt;
  auto launch = planner::find_launch_arguments(head, file, parameters);
  if (!launch) launch = planner::find_nemo_arguments(head, file);
  if (!launch && planner::states_a_model(head))
    throw InputError(file,
                     {{"", "the arguments of a model, and no command that runs a program with them",
                       "a command such as torchrun … pretrain_gpt.py --num-layers …"}});
  if (!launch && planner::states_a_launch(head))
    throw InputError(file, {{"", "a launch that is not Megatron-LM's",
                             "a script with Megatron-LM's arguments, a configuration of NeMo, or "
                             "the log of the run"}});
  return launch;
}

LaunchedPlan launched_plan(const planner::LaunchArguments& launch, const ScenarioOptions& options) {
  const planner::ExportedNames exported = planner::exported_names(launch);
  const std::string named = options.cluster.empty() ? exported.cluster : options.cluster;
  ProblemList problems("shardwright import");
  const ClusterSpec cluster = read_cluster_option(named.empty() ? kUsualCluster : named, problems);
  const StackSpec stack =
      read_stack_option(options.stack.empty() ? exported.stack : options.stack, cluster, problems);
  const std::int64_t gpus = gpus_of(options, problems);
  problems.throw_if_any();
  LaunchedPlan plan{launch.source,
                    imported_plan(launch, cluster, stack,
                                  gpus > 0 ? std::optional(gpus) : std::nullopt, "--gpus N")};
  if (named.empty())
    plan.imported.assumed.push_back(
        fmt::format("the cluster is {}: --cluster names another one", kUsualCluster));
  return plan;
}

nlohmann::ordered_json to_json(const LaunchedPlan& plan) {
  const Scenario& scenario = plan.imported.scenario;
  return {{"path", plan.file},
          {"run", printable(planner::title_of(scenario))},
          {"layout", degrees_text(scenario.plan)},
          {"batch", batch_text(scenario.plan)},
          {"plan", shardwright::to_json(scenario)},
          {"assumed", plan.imported.assumed},
          {"unread", plan.imported.unread}};
}

void add_launched_plan(Page& page, const LaunchedPlan& plan) {
  const Scenario& scenario = plan.imported.scenario;
  page.heading("Plan of " + printable(std::filesystem::path(plan.file).filename().string()));
  page.facts({{"run", printable(planner::title_of(scenario))},
              {"plan", degrees_text(scenario.plan)},
              {"batch", batch_text(scenario.plan)},
              {"precision", name_of(scenario.plan.precision)}});
  std::vector<std::string> assumed;
  for (const std::string& each : plan.imported.assumed) assumed.push_back(printable(each));
  if (!assumed.empty()) page.bullets(assumed);
  if (!plan.imported.unread.empty())
    page.paragraph(
        printable(fmt::format("Arguments that say nothing about the plan, or are unknown: {}.",
                              fmt::join(plan.imported.unread, ", "))));
}

}  // namespace shardwright::cli
