#include "cli/unknown_argument.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/base/nearest_name.hpp"

namespace shardwright::cli {
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

}  // namespace

std::optional<std::string> find_unknown_argument(const CLI::App& app,
                                                 const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  for (const std::string& argument : arguments) {
    if (argument == "--") return std::nullopt;
    if (argument.starts_with("--")) {
      const std::string name = argument.substr(0, argument.find('='));
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

}  // namespace shardwright::cli
