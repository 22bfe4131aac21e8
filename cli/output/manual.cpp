#include "cli/output/manual.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace shardwright::cli {
void walk(const CLI::App& app, const std::string& words,
          const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(app, words);
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) walk(*command, words + ' ' + command->get_name(), visit);
  }
}

bool is_repeatable(const CLI::Option& option) {
  return option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll ||
         option.get_expected_max() > 1;
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app, bool positional) {
  std::vector<const CLI::Option*> shown;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty() && option->get_positional() == positional)
      shown.push_back(option);
  }
  return shown;
}

namespace {

using nlohmann::ordered_json;

// Text in which man finds no request and no hyphen that it may break at or replace.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool starts_line = result.empty() || result.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

// Paragraphs of prose; lines that are indented, which are examples, stay as they are.
std::string paragraphs(const std::string& text) {
  std::istringstream stream(text);
  std::string result;
  bool indented = false;
  for (std::string line; std::getline(stream, line);) {
    const bool example = line.starts_with(' ');
    if (example != indented) result += example ? ".nf\n" : ".fi\n";
    indented = example;
    result += line.empty() ? ".PP\n" : escaped(line) + '\n';
  }
  return result + (indented ? ".fi\n" : "");
}

std::string entries(const std::vector<const CLI::Option*>& options) {
  std::string result;
  for (const CLI::Option* option : options) {
    const std::string value = option->get_type_size() == 0 ? "" : ' ' + option->get_type_name();
    result += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n",
                          escaped(option->get_name(option->get_positional(), true)), escaped(value),
                          escaped(option->get_description()));
  }
  return result;
}

// The examples of a command; CLI11 lends those of its parent to one that has none.
std::string examples(const CLI::App& command) {
  const std::string footer = command.get_footer();
  const bool own = !footer.empty() && footer != command.get_parent()->get_footer();
  return own ? ".PP\n" + paragraphs(footer) : "";
}

ordered_json option_json(const CLI::Option& option) {
  return {{"name", option.get_single_name()},      {"value", option.get_type_name()},
          {"help", option.get_description()},      {"group", option.get_group()},
          {"positional", option.get_positional()}, {"flag", option.get_expected_max() == 0},
          {"repeatable", is_repeatable(option)},   {"required", option.get_required()}};
}

std::string synopsis(const CLI::App& app, const std::string& words) {
  std::string line = escaped(words) + " [OPTION]...";
  for (const CLI::Option* argument : shown_options(app, true)) {
    const std::string name = escaped(argument->get_name(true));
    line += argument->get_required() ? ' ' + name : " [" + name + ']';
  }
  return line + (app.get_require_subcommand_min() > 0 ? " SUBCOMMAND" : "");
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  const std::string about = app.get_description();
  const std::size_t first_line = about.find('\n');
  std::string page = fmt::format(
      ".TH SHARDWRIGHT 1\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n.SH DESCRIPTION\n{}"
      ".SH OPTIONS\n{}.SH SUBCOMMANDS\n",
      app.get_name(), escaped(about.substr(0, first_line)), synopsis(app, app.get_name()),
      paragraphs(about), entries(shown_options(app, false)));
  walk(app, app.get_name(), [&](const CLI::App& command, const std::string& words) {
    if (&command == &app) return;
    page +=
        fmt::format(".SS {}\n{}{}{}{}", synopsis(command, words),
                    paragraphs(command.get_description()), entries(shown_options(command, true)),
                    entries(shown_options(command, false)), examples(command));
  });
  return page + ".SH NOTES\n" + paragraphs(app.get_footer());
}

std::string command_description(const CLI::App& app) {
  ordered_json commands = ordered_json::array();
  walk(app, "", [&](const CLI::App& command, const std::string& words) {
    // Another program has the options of a command that takes them as they are.
    if (command.get_prefix_command() || command.get_require_subcommand_min() > 0) return;
    ordered_json options = ordered_json::array();
    for (const bool positional : {true, false}) {
      for (const CLI::Option* option : shown_options(command, positional))
        options.push_back(option_json(*option));
    }
    commands.push_back({{"words", words.substr(1)},
                        {"about", command.get_description()},
                        {"options", std::move(options)}});
  });
  return ordered_json{{"commands", std::move(commands)}}.dump();
}

}  // namespace shardwright::cli
