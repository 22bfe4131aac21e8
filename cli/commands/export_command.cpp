// shardwright export
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/options/common_options.hpp"
#include "cli/output/output_file.hpp"
#include "cli/programs/sibling_programs.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/scenario.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::cli {
namespace {

struct ExportOptions {
  std::string plan, format, weights, dtype, shard_bytes;
  std::string out = "-";
  bool force = false;
};

const planner::ExportFormat& read_format(const std::string& name) {
  std::vector<std::string> names;
  for (const planner::ExportFormat& format : planner::kExportFormats) {
    if (format.name == name) return format;
    names.emplace_back(format.name);
  }
  throw InputError("--format", {{"", fmt::format("\"{}\"", name), one_of(name, names)}});
}

// Throws InputError unless the options are those of a plan or those of weights.
void check_options(const ExportOptions& options) {
  ProblemList problems("shardwright export");
  const bool weights = !options.weights.empty();
  const auto need = [&](const char* option, bool given, bool wanted, const char* expected) {
    if (given != wanted) problems.add(option, given ? "given" : "missing", expected);
  };
  need("PLAN", !options.plan.empty(), !weights, "a plan file, or --weights with a run");
  need("--format", !options.format.empty(), !weights,
       "megatron, deepspeed or torchtitan with a plan, and nothing with --weights");
  if (weights) {
    need("--out", options.out != "-", true, "a folder for the model");
  } else {
    need("--dtype", !options.dtype.empty(), false, "--weights beside it");
    need("--shard-bytes", !options.shard_bytes.empty(), false, "--weights beside it");
  }
  problems.throw_if_any();
}

[[noreturn]] void export_weights(const ExportOptions& options) {
  std::vector<std::string> arguments = {"export", "--weights", options.weights, "--out",
                                        options.out};
  const auto append = [&](const char* option, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {option, value});
  };
  append("--dtype", options.dtype);
  append("--shard-bytes", options.shard_bytes);
  if (options.force) arguments.emplace_back("--force");
  become_executor(std::move(arguments));
}

ExitCode export_plan(const ExportOptions& options) {
  const planner::ExportFormat& format = read_format(options.format);
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
      "Write a plan as arguments for Megatron-LM, DeepSpeed or torchtitan, with the launch line, "
      "or a run's weights as a model of Hugging Face's");
  command->footer(
      R"(If the format cannot express a part of the plan, that is an error if the run would differ, and a note on stderr otherwise.

Examples:
  shardwright export plan.json --format megatron --out megatron_args.sh
  shardwright export plan.json --format deepspeed --out ds_config.json
  shardwright export --weights run --out model)");
  const auto options = std::make_shared<ExportOptions>();
  add_option(*command, "PLAN", options->plan, "FILE|-", "A plan file");
  add_option(*command, "--format", options->format, "NAME", "megatron, deepspeed or torchtitan");
  add_option(*command, "--weights", options->weights, "FOLDER",
             "Export the last checkpoint of this run, not a plan");
  add_option(*command, "--dtype", options->dtype, "NAME",
             "With --weights: bf16 or fp32 (default bf16)");
  add_option(*command, "--shard-bytes", options->shard_bytes, "N",
             "With --weights: most bytes of a file of several tensors (default 5000000000)");
  add_option(*command, "--out", options->out, "FILE|-",
             "Output file (default -: standard output); with --weights a folder", "Output");
  add_options_file(*command);
  command->add_flag("--force", options->force, "Overwrite existing output files")->group("Output");
  command->callback([options, &action] {
    action = [options] {
      check_options(*options);
      if (!options->weights.empty()) export_weights(*options);
      return export_plan(*options);
    };
  });
}

}  // namespace shardwright::cli
