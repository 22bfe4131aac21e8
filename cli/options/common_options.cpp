#include "cli/options/common_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "build_info.hpp"
#include "cli/embedding.hpp"
#include "cli/output/output_file.hpp"
#include "core/base/nearest_name.hpp"

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

void add_common_options(CLI::App& command, CommonOptions& options) {
  add_option(command, "--json", options.json, "[FILE|-]",
             "Write the result as JSON to a file; without a file, or with \"-\", print it "
             "instead of the text",
             "Output");
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
  return Page({.width = output_width(),
               .markdown = options.markdown,
               .style = Style(!options.markdown && use_colour(options.colour))});
}

bool show_progress(const CommonOptions& options) {
  if (const Embedding* host = current_embedding()) return host->progress != nullptr;
  return !options.no_progress && stderr_is_terminal();
}

void deliver(const CommonOptions& options, const Page& page, const nlohmann::ordered_json& document,
             bool stdout_taken) {
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
