#include "cli/options/common_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "build_info.hpp"
#include "cli/output/embedding.hpp"
#include "cli/output/output_file.hpp"
#include "core/base/nearest_name.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {

namespace {

ColourChoice read_colour(const std::string& word) {
  static const std::vector<std::string> kWords = {"auto", "always", "never"};
  constexpr std::array kChoices = {ColourChoice::Auto, ColourChoice::Always, ColourChoice::Never};
  const std::string problem = choice_problem(word, kWords);
  if (!problem.empty()) throw CLI::ValidationError("--color", problem);
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  return kChoices[static_cast<std::size_t>(found - kWords.begin())];
}

PageStyle page_style(const CommonOptions& options) {
  return {.width = output_width(),
          .markdown = options.markdown,
          .style = Style(!options.markdown && use_colour(options.colour))};
}

// Quotes a word as a shell needs it.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string invocation_of(const CLI::App& command) {
  std::string words, positional;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent())
    words = app->get_name() + (words.empty() ? "" : " " + words);
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_group() == "Output") continue;
    for (const std::string& value : option->results()) {
      if (option->get_positional()) {
        positional += ' ' + shell_word(value);
      } else {
        words += ' ' + option->get_name(false, false) +
                 (option->get_expected_max() == 0 ? "" : ' ' + shell_word(value));
      }
    }
  }
  return words + positional;
}

}  // namespace

CLI::Option* add_option(CLI::App& command, const std::string& name, std::string& value,
                        const char* type, const std::string& help, const char* group) {
  return command.add_option(name, value, help)->type_name(type)->group(group);
}

CLI::Option* add_option(CLI::App& command, const std::string& name,
                        std::vector<std::string>& values, const char* type, const std::string& help,
                        const char* group) {
  return command.add_option(name, values, help)->type_name(type)->group(group);
}

void add_options_file(CLI::App& command) {
  // with_options_file() takes it before the command line is parsed.
  command
      .add_option_function<std::string>(
          "--options", [](const std::string&) {},
          "Take options from a file in YAML or JSON, as in gpus: 512; those of the command line go "
          "before them")
      ->type_name("FILE")
      ->group("Options");
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  add_option(command, "--json", options.json, "[FILE|-]",
             "Write the result as JSON to a file; without a file, or with \"-\", print it "
             "instead of the text",
             "Output");
  add_options_file(command);
  add_option(command, "--html", options.html, "FILE",
             "Write the result as one HTML page with charts, which needs no other file", "Output");
  command.parse_complete_callback([&command, &options] {
    if (!options.html.empty()) check_destination("--html", options.html, options.force);
    options.invocation = invocation_of(command);
  });
  command.add_flag("--force", options.force, "Overwrite existing output files")->group("Output");
  command.add_flag("--markdown", options.markdown, "Print Markdown")->group("Output");
  command.add_flag("--no-progress", options.no_progress, "Do not draw a progress line")
      ->group("Output");
  command
      .add_option_function<std::string>(
          "--color", [&options](const std::string& word) { options.colour = read_colour(word); },
          "Color the output: auto, always or never")
      ->type_name("WHEN")
      ->group("Output");
}

Page new_page(const CommonOptions& options) {
  return Page(page_style(options));
}

Page new_page(const CommonOptions& options, const ClusterSpec& cluster) {
  PageStyle style = page_style(options);
  style.accelerator = planner::accelerator_word(cluster);
  return Page(style);
}

bool show_progress(const CommonOptions& options) {
  if (const Embedding* host = current_embedding()) return host->progress != nullptr;
  return !options.no_progress && stderr_is_terminal();
}

void deliver(const CommonOptions& options, const Page& page, const nlohmann::ordered_json& document,
             bool stdout_taken) {
  if (!options.html.empty())
    write_file(options.html, page.html(options.invocation, version()), options.force);
  if (!options.json.empty()) write_file(options.json, json_text(document), options.force);
  if (options.json != "-" && !stdout_taken) write_stdout(page.text());
}

nlohmann::ordered_json new_document(const std::string& name) {
  return {{"schema", "shardwright/" + name}, {"version", 1}, {"tool_version", version()}};
}

std::string version() {
  return kBuildVersion;
}

std::string version_line() {
  return fmt::format("shardwright {} (git {}, {}, {})", kBuildVersion, kBuildCommit, kBuildCompiler,
                     kBuildType);
}

}  // namespace shardwright::cli
