#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/completion.hpp"
#include "cli/options/options_file.hpp"
#include "cli/output/manual.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/terminal.hpp"
#include "cli/programs/sibling_programs.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"

namespace shardwright::cli {

void add_version_command(CLI::App& app, Action& action) {
  app.add_subcommand("version", "Print version, commit and compiler")->callback([&action] {
    action = [] {
      write_stdout(version_line() + '\n');
      return ExitCode::Ok;
    };
  });
}

namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(subcommand->get_name());
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string message(const std::string& command, const char* what, const std::string& name,
                    const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return fmt::format("{}: unknown {} \"{}\"{}", command, what, name,
                     nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
}

// The command's file that other commands take by an option of this name: "PLAN" of "--plan".
const CLI::Option* file_named_like(const CLI::App& command, const std::string& option) {
  for (const CLI::Option* each : command.get_options()) {
    if (each->get_positional() && "--" + CLI::detail::to_lower(each->get_name(true)) == option)
      return each;
  }
  return nullptr;
}

// Returns a message about the first argument that is neither an option nor a subcommand in its
// place, with the nearest valid name; nothing if there is no such argument.
std::optional<std::string> find_unknown_argument(const CLI::App& app,
                                                 const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  for (const std::string& argument : arguments) {
    if (argument == "--") return std::nullopt;
    if (argument.starts_with("--")) {
      const std::string name = argument.substr(0, argument.find('='));
      if (file_named_like(*command, name) != nullptr)
        return fmt::format("{}: the file stands without \"{}\", as in {} FILE", path, name, path);
      const auto known = option_names(*command);
      if (!contains(known, name)) return message(path, "option", name, known);
    } else if (const auto known = subcommand_names(*command); !known.empty()) {
      if (!contains(known, argument)) return message(path, "subcommand", argument, known);
      command = command->get_subcommand(argument);
      path += " " + argument;
    }
  }
  return std::nullopt;
}

constexpr const char* kAbout =
    "Plans and simulates distributed training of large language models.\n\n"
    "Given a model, a cluster and a batch size, shardwright finds the fastest hybrid-parallel "
    "plan\n"
    "and predicts its step time, its bottleneck and its memory.";

constexpr const char* kExamples = R"(Examples:
  shardwright plan --model llama3-70b --cluster dgx-h100 --gpus 512 \
      --global-batch 1024 --seq-len 8192
  shardwright scale --model llama3-8b --cluster dgx-h100 --gpus 8..1024 \
      --global-batch 1024 --seq-len 8192
  shardwright simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 \
      --global-batch 32 --seq-len 8192
  shardwright export plan.json --format megatron
  shardwright models show ~/models/my-model/config.json

Exit codes: 0 success, 1 failure, 2 wrong usage or input, 4 no plan fits (simulate, explain: the plan does not fit into memory), 5 validation errors above --fail-over, 130 interrupted (run: 128 plus the number of the signal).
An environment variable can set each option except those of run: SHARDWRIGHT_MAX_MEMORY sets --max-memory. SHARDWRIGHT_DATA names the folder of models and hardware profiles.)";

// Folds lines of prose to the terminal; examples, which are indented, stay as they are.
std::string folded_text(const std::string& text, int width) {
  std::istringstream stream(text);
  std::string folded;
  for (std::string line; std::getline(stream, line);)
    folded += (line.starts_with(' ') ? line : wrapped(line, width)) + '\n';
  return folded;
}

// Prints help as wide as the terminal, without the environment variables and defaults that CLI11
// adds to each option.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() : width_(output_width()) {
    const int column = width_ == 0 ? kOptionColumn : std::min(kOptionColumn, width_ / 2);
    column_width(static_cast<std::size_t>(column));
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }

  std::string make_description(const CLI::App* app) const override {
    return folded_text(CLI::Formatter::make_description(app), width_);
  }

  std::string make_footer(const CLI::App* app) const override {
    return folded_text(CLI::Formatter::make_footer(app), width_);
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }

 private:
  static constexpr int kOptionColumn = 32;

  // A name and, in a second column, its meaning.
  std::string entry(const std::string& name, const std::string& meaning) const {
    const int column = static_cast<int>(get_column_width());
    std::string line = "  " + name;
    const int used = display_width(line);
    line += used < column ? std::string(static_cast<std::size_t>(column - used), ' ')
                          : '\n' + std::string(static_cast<std::size_t>(column), ' ');
    std::string text = wrapped(meaning, width_ == 0 ? 0 : std::max(width_ - column, 1));
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at)
      text.insert(at + 1, static_cast<std::size_t>(column), ' ');
    return line + text + '\n';
  }

  // 0: no limit.
  int width_;
};

void add_commands(CLI::App& app, Action& action) {
  add_plan_command(app, action);
  add_replan_command(app, action);
  add_scale_command(app, action);
  add_sweep_command(app, action);
  add_simulate_command(app, action);
  add_forecast_command(app, action);
  add_run_command(app, action);
  add_tune_command(app, action);
  add_probe_command(app, action);
  add_import_command(app, action);
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
  add_support_command(app, action);
  add_schema_command(app, action);
  add_gui_command(app, action);
  add_version_command(app, action);
}

// Returns "SHARDWRIGHT_MAX_MEMORY" for "--max-memory".
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

// A hidden flag that prints a text made from the whole command line; packages are built with it.
void add_generated_text(CLI::App& app, const std::string& flag,
                        std::string (*text)(const CLI::App&)) {
  app.add_flag_callback(flag, [&app, text] { throw CLI::CallForVersion(text(app), 0); })->group("");
}

void configure(CLI::App& app, Action& action) {
  app.name("shardwright");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", version_line(), "Print version, commit and compiler");
  add_generated_text(app, "--manual", manual_page);
  add_generated_text(app, "--bash-completion", bash_completion);
  add_generated_text(app, "--zsh-completion", zsh_completion);
  app.add_option_function<std::string>(
         "--names", [](const std::string& kind) { throw CLI::CallForVersion(names_text(kind), 0); })
      ->group("");
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_commands(app, action);
  // Subcommands that are added later would show them too.
  app.footer(kExamples);
  for (CLI::App* command : app.get_subcommands({})) add_environment_names(*command);
}

// Returns the chosen subcommand with its parents: "shardwright models show".
std::string chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_name() + (chosen.empty() ? "" : " " + chosen_command(*chosen.front()));
}

// The chosen command's option of an error about the number of its values; none for other errors.
const CLI::Option* mismatched_option(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return nullptr;
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) return mismatched_option(*chosen.front(), error);
  const std::string what = error.what();
  return app.get_option_no_throw(what.substr(0, what.find(':')));
}

// What a usage error says, and on a second line what an option takes that lacks its value.
std::vector<std::string> usage_lines(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::Option* option = mismatched_option(app, error);
  if (option != nullptr && option->count() > 1)
    return {fmt::format("{}: found {} {} times; expected it once", chosen_command(app),
                        option->get_name(), option->count())};
  std::vector<std::string> lines = {fmt::format("{}: {}", chosen_command(app), error.what())};
  if (option != nullptr)
    lines.push_back(fmt::format("{}: {}", option->get_name(), option->get_description()));
  return lines;
}

// Says by which option the chosen command takes a file that was given without one; empty for other
// errors.
std::string help_of_stray_file(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return "";
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) return help_of_stray_file(*chosen.front(), error);
  const std::vector<std::string> stray = app.remaining();
  const bool takes_plan = app.get_option_no_throw("--plan") != nullptr;
  if (stray.empty() || !stray.front().ends_with(".json") || !takes_plan) return "";
  return fmt::format("A plan file is an option: --plan {}", stray.front());
}

// The required options and files of the chosen command that the command line lacks.
std::vector<Problem> missing_options(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) return missing_options(*chosen.front());
  std::vector<Problem> missing;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && option->count() == 0)
      missing.push_back({option->get_name(), "missing", option->get_description()});
  }
  return missing;
}

ExitCode report_usage(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& arguments) {
  // CLI11 reports help and version as errors that succeed.
  if (error.get_exit_code() == 0) {
    std::ostringstream text, ignored;
    app.exit(error, text, ignored);
    write_stdout(text.str());
    return ExitCode::Ok;
  }
  const auto unknown = find_unknown_argument(app, arguments);
  if (!unknown && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::vector<Problem> missing = missing_options(app);
    if (!missing.empty()) throw InputError(chosen_command(app), missing);
  }
  for (const std::string& line : unknown ? std::vector{*unknown} : usage_lines(app, error))
    print_message(printable(line));
  if (const std::string help = help_of_stray_file(app, error); !help.empty())
    print_message(printable(help));
  print_message(fmt::format("See {} --help", chosen_command(app)));
  return ExitCode::BadInput;
}

// Adds "-" after a "--json" without a file, so that it prints, and leaves out an option before -h,
// which would be its value. The arguments of `run` are the executor's and stay as they are.
std::vector<std::string> with_values(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() == "run") return arguments;
  std::vector<std::string> complete;
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    const auto next = std::next(argument);
    const bool asks_for_help = next != arguments.end() && (*next == "-h" || *next == "--help");
    if (asks_for_help && argument->starts_with("--")) continue;
    complete.push_back(*argument);
    const bool has_value = next != arguments.end() && (*next == "-" || !next->starts_with('-'));
    if (*argument == "--json" && !has_value) complete.emplace_back("-");
  }
  return complete;
}

ExitCode parse_and_run(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  try {
    // CLI11 expects the arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, arguments);
  }
  return action();
}

// As in a file of options, true prints the result and false does not.
void read_truth_of_json() {
  const std::string name = environment_name("json");
  const char* value = std::getenv(name.c_str());
  const std::string word = value == nullptr ? "" : CLI::detail::to_lower(value);
  if (word == "true" || word == "yes" || word == "1") ::setenv(name.c_str(), "-", 1);
  if (word == "false" || word == "no" || word == "0") ::unsetenv(name.c_str());
}

ExitCode run(const std::vector<std::string>& arguments) {
  read_truth_of_json();
  CLI::App app(kAbout);
  Action action;
  configure(app, action);
  return parse_and_run(app, action, with_options_file(app, with_values(arguments)));
}

// Reports the exception that is being handled.
ExitCode report_exception() {
  try {
    throw;
  } catch (const OutputClosed&) {
    return ExitCode::Failure;
  } catch (const ExecutorRefused&) {
    return ExitCode::BadInput;
  } catch (const InputError& error) {
    print_message(error.what());
    return ExitCode::BadInput;
  } catch (const RuntimeFailure& error) {
    print_message(fmt::format("shardwright: {}", printable(error.what())));
  } catch (const std::bad_alloc&) {
    print_message("shardwright: out of memory");
  } catch (const std::exception& error) {
    print_message(fmt::format("shardwright: unexpected failure: {}", printable(error.what())));
  }
  return ExitCode::Failure;
}

}  // namespace

ExitCode run_command_line(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (...) {
    return report_exception();
  }
}

EmbeddedResult run_embedded(const std::vector<std::string>& arguments, const Embedding& host) {
  EmbeddedResult result;
  StreamCapture capture;
  const EmbeddingScope scope(host);
  try {
    result.code = run(arguments);
  } catch (const InputError& error) {
    result.source = error.source();
    result.problems = error.problems();
    result.code = report_exception();
  } catch (...) {
    result.code = report_exception();
  }
  result.output = std::move(capture.output);
  result.messages = std::move(capture.messages);
  return result;
}

std::string command_description() {
  CLI::App app(kAbout);
  Action action;
  configure(app, action);
  return command_description(app);
}

}  // namespace shardwright::cli
