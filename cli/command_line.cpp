#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <exception>
#include <memory>
#include <new>
#include <sstream>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/unknown_argument.hpp"
#include "cli/version.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kAbout =
    "Plans and simulates distributed training of large language models.\n\n"
    "Name a model, a cluster and a batch; shardwright finds the fastest hybrid-parallel plan,\n"
    "tells how long its step takes, what limits it and how much memory it needs.";

constexpr const char* kExamples = R"(Examples:
  shardwright plan --model llama3-70b --cluster dgx-h100 --gpus 512 --global-batch 1024 --seq-len 8192
  shardwright scale --model llama3-8b --cluster dgx-h100 --gpus 8..1024 --global-batch 1024 --seq-len 8192
  shardwright simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --global-batch 32 --seq-len 8192
  shardwright export plan.json --format megatron
  shardwright models show ~/models/my-model/config.json

Exit codes: 0 ok, 1 failure, 2 wrong usage or input, 4 no feasible plan, 5 validation outside the
tolerance, 130 interrupted. Each option can also be set by an environment variable: --max-memory by
SHARDWRIGHT_MAX_MEMORY. SHARDWRIGHT_DATA names the folder of models and hardware profiles.)";

// Help without the environment variables and defaults that CLI11 would put behind each option.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kOptionColumn); }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }

 private:
  static constexpr std::size_t kOptionColumn = 32;
};

void add_commands(CLI::App& app, Action& action) {
  add_plan_command(app, action);
  add_scale_command(app, action);
  add_simulate_command(app, action);
  add_run_command(app, action);
  add_probe_command(app, action);
  add_calibrate_command(app, action);
  add_explain_command(app, action);
  add_compare_command(app, action);
  add_export_command(app, action);
  add_validate_command(app, action);
  add_fit_command(app, action);
  add_network_command(app, action);
  add_models_command(app, action);
  add_clusters_command(app, action);
  add_stacks_command(app, action);
  add_gui_command(app, action);
}

// "--max-memory" is SHARDWRIGHT_MAX_MEMORY.
std::string environment_name(const std::string& option) {
  std::string name = "SHARDWRIGHT_" + option;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

void add_environment_names(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty() && option->get_single_name() != "help")
      option->envname(environment_name(option->get_lnames().front()));
  }
  for (CLI::App* command : app.get_subcommands({})) add_environment_names(*command);
}

void configure(CLI::App& app, Action& action) {
  app.name("shardwright");
  app.footer(kExamples);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", version_line(), "Print version, commit and compiler");
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_commands(app, action);
  for (CLI::App* command : app.get_subcommands({})) add_environment_names(*command);
}

// The chosen subcommand with its parents: "shardwright models show".
std::string chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_name() + (chosen.empty() ? "" : " " + chosen_command(*chosen.front()));
}

ExitCode report_usage(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& arguments) {
  // Help and version are "errors" of CLI11 that succeed.
  if (error.get_exit_code() == 0) {
    std::ostringstream text, ignored;
    app.exit(error, text, ignored);
    write_stdout(text.str());
    return ExitCode::Ok;
  }
  const auto unknown = find_unknown_argument(app, arguments);
  fmt::print(stderr, "{}\n",
             unknown ? *unknown : fmt::format("{}: {}", chosen_command(app), error.what()));
  fmt::print(stderr, "See {} --help\n", chosen_command(app));
  return ExitCode::BadInput;
}

ExitCode parse_and_run(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  try {
    // CLI11 takes the arguments from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, arguments);
  }
  return action();
}

}  // namespace

ExitCode run_command_line(const std::vector<std::string>& arguments) {
  try {
    CLI::App app(kAbout);
    Action action;
    configure(app, action);
    return parse_and_run(app, action, arguments);
  } catch (const OutputClosed&) {
    return ExitCode::Failure;
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return ExitCode::BadInput;
  } catch (const RuntimeFailure& error) {
    fmt::print(stderr, "shardwright: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "shardwright: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "shardwright: unexpected failure: {}\n", error.what());
  }
  return ExitCode::Failure;
}

}  // namespace shardwright::cli
