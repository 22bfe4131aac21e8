// shardwright export
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/output/output_file.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/scenario.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::cli {
namespace {

struct ExportOptions {
  std::string plan, format;
  std::string out = "-";
  bool force = false;
};

struct ExportFormat {
  const char* name;
  planner::PlanExport (*write)(const Scenario& scenario);
};
constexpr std::array kFormats = {ExportFormat{"megatron", planner::megatron_arguments},
                                 ExportFormat{"deepspeed", planner::deepspeed_json},
                                 ExportFormat{"torchtitan", planner::torchtitan_flags}};

const ExportFormat& read_format(const std::string& name) {
  std::vector<std::string> names;
  for (const ExportFormat& format : kFormats) {
    if (format.name == name) return format;
    names.emplace_back(format.name);
  }
  throw InputError("--format", {{"", fmt::format("\"{}\"", name), one_of(name, names)}});
}

ExitCode export_plan(const ExportOptions& options) {
  const ExportFormat& format = read_format(options.format);
  check_destination("--out", options.out, options.force);
  const planner::PlanExport result = format.write(load_scenario(options.plan));
  if (!result.problems.empty()) throw InputError(options.plan, result.problems);
  write_file(options.out, result.text, options.force);
  for (const std::string& note : result.notes)
    print_message(fmt::format("note: {}", printable(note)));
  if (!result.launch_in_text) {
    print_message(fmt::format("launch: {}", result.launch));
    print_message(fmt::format("launch in a Slurm job: {}", result.slurm_launch));
  }
  return ExitCode::Ok;
}

}  // namespace

void add_export_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "export",
      "Write a plan as arguments for Megatron-LM, DeepSpeed or torchtitan, with the launch line");
  command->footer(
      R"(If the format cannot express a part of the plan, that is an error if the run would differ, and a note on stderr otherwise.

Examples:
  shardwright export plan.json --format megatron --out megatron_args.sh
  shardwright export plan.json --format deepspeed --out ds_config.json)");
  const auto options = std::make_shared<ExportOptions>();
  add_option(*command, "PLAN", options->plan, "FILE|-", "A plan file")->required();
  add_option(*command, "--format", options->format, "NAME", "megatron, deepspeed or torchtitan")
      ->required();
  add_option(*command, "--out", options->out, "FILE|-", "Output file (default -: standard output)",
             "Output");
  add_options_file(*command);
  command->add_flag("--force", options->force, "Overwrite existing output files")->group("Output");
  command->callback([options, &action] { action = [options] { return export_plan(*options); }; });
}

}  // namespace shardwright::cli
