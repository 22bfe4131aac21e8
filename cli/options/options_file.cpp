#include "cli/options/options_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cli/output/manual.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kOption = "--options";

YAML::Node read_mapping(const std::string& file) {
  try {
    YAML::Node document = YAML::LoadFile(file);
    if (document.IsMap()) return document;
  } catch (const YAML::BadFile&) {
    throw InputError(file, {{"", "no readable file", "options in YAML or JSON"}});
  } catch (const YAML::ParserException& error) {
    throw InputError(file,
                     {{fmt::format("line {}", error.mark.line + 1), error.msg, "YAML or JSON"}});
  }
  throw InputError(file,
                   {{"", "no mapping", "the names of options with their values, as in gpus: 512"}});
}

// The file that a command line names with --options, and where.
struct StatedFile {
  std::size_t begin = 0, end = 0;
  std::string name;
};

std::optional<StatedFile> find_options_file(const std::vector<std::string>& arguments) {
  const std::string joined = std::string(kOption) + "=";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(joined))
      return StatedFile{i, i + 1, arguments[i].substr(joined.size())};
    if (arguments[i] == kOption && i + 1 < arguments.size())
      return StatedFile{i, i + 2, arguments[i + 1]};
  }
  return std::nullopt;
}

// The command line with words in place of --options.
std::vector<std::string> with_words(const std::vector<std::string>& arguments,
                                    const StatedFile& file, const std::vector<std::string>& words) {
  const auto begin = arguments.begin();
  std::vector<std::string> expanded(begin, begin + static_cast<std::ptrdiff_t>(file.begin));
  expanded.insert(expanded.end(), words.begin(), words.end());
  expanded.insert(expanded.end(), begin + static_cast<std::ptrdiff_t>(file.end), arguments.end());
  return expanded;
}

// "--gpus" of "--gpus" and of "--gpus=8".
std::set<std::string> stated_options(const std::vector<std::string>& arguments) {
  std::set<std::string> stated;
  for (const std::string& word : arguments)
    if (word.starts_with('-')) stated.insert(word.substr(0, word.find('=')));
  return stated;
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_list_of_scalars(const YAML::Node& value) {
  return value.IsSequence() && std::all_of(value.begin(), value.end(),
                                           [](const YAML::Node& item) { return item.IsScalar(); });
}

// A value, or the values of a list with commas between them.
std::string joined_text(const YAML::Node& value) {
  if (value.IsScalar()) return value.Scalar();
  std::vector<std::string> items;
  for (const YAML::Node& item : value) items.push_back(item.Scalar());
  return fmt::format("{}", fmt::join(items, ","));
}

// The options that a file may state, by name without dashes; PLAN and other words without a name as
// "plan".
std::map<std::string, const CLI::Option*> named_options(const CLI::App& command) {
  std::map<std::string, const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) options[CLI::detail::to_lower(option->get_name(true))] = option;
    for (const std::string& name : option->get_lnames()) options[name] = option;
  }
  options.erase("help");
  options.erase("options");
  return options;
}

class OptionsFile {
 public:
  OptionsFile(const std::string& file, const CLI::App& command)
      : options_(named_options(command)), problems_(file) {}

  // The words of a command line, without the options `stated` there.
  std::vector<std::string> words(const YAML::Node& document, const std::set<std::string>& stated) {
    for (const auto& entry : document)
      add(with_dashes(entry.first.as<std::string>()), entry.second, stated);
    problems_.throw_if_any();
    return words_;
  }

  // The words that stand without a name, in the order of the command's help.
  std::vector<std::string> unnamed_words(const CLI::App& command) const {
    std::vector<std::string> words;
    for (const CLI::Option* option : command.get_options())
      if (const auto found = unnamed_.find(option); found != unnamed_.end())
        words.insert(words.end(), found->second.begin(), found->second.end());
    return words;
  }

 private:
  void add(const std::string& name, const YAML::Node& value, const std::set<std::string>& stated) {
    const auto found = options_.find(name);
    if (found == options_.end()) {
      std::vector<std::string> names;
      for (const auto& option : options_) names.push_back(option.first);
      problems_.add(name, "an unknown option", one_of(name, names));
    } else if (!stated.contains("--" + name) && !value.IsNull()) {
      add_values(*found->second, name, value);
    }
  }

  void add_values(const CLI::Option& option, const std::string& name, const YAML::Node& value) {
    if (option.get_expected_max() == 0) {
      bool is_set = false;
      if (!value.IsScalar() || !YAML::convert<bool>::decode(value, is_set))
        problems_.add(name, "no truth value", "true or false");
      if (is_set) words_.push_back("--" + name);
      return;
    }
    // As on the command line, it prints without a file.
    bool prints = false;
    if (name == "json" && value.IsScalar() && YAML::convert<bool>::decode(value, prints)) {
      if (prints) words_.insert(words_.end(), {"--json", "-"});
      return;
    }
    std::vector<std::string> texts = texts_of(name, value);
    if (option.get_positional()) {
      unnamed_[&option] = std::move(texts);
      return;
    }
    if (!is_repeatable(option)) texts = {fmt::format("{}", fmt::join(texts, ","))};
    for (std::string& text : texts) {
      words_.push_back("--" + name);
      words_.push_back(std::move(text));
    }
  }

  std::vector<std::string> texts_of(const std::string& name, const YAML::Node& value) {
    std::vector<std::string> texts;
    for (const YAML::Node& each : value.IsSequence()
                                      ? std::vector<YAML::Node>(value.begin(), value.end())
                                      : std::vector{value}) {
      if (each.IsMap()) {
        for (const auto& pair : each)
          texts.push_back(pair.first.as<std::string>() + "=" + text_of(name, pair.second));
      } else {
        texts.push_back(text_of(name, each));
      }
    }
    return texts;
  }

  std::string text_of(const std::string& name, const YAML::Node& value) {
    if (value.IsScalar() || is_list_of_scalars(value)) return joined_text(value);
    problems_.add(name, "a nested value", "a value, a list of values, or a mapping to values");
    return {};
  }

  std::map<std::string, const CLI::Option*> options_;
  ProblemList problems_;
  std::vector<std::string> words_;
  std::map<const CLI::Option*, std::vector<std::string>> unnamed_;
};

// True if a command line states words without a name behind those of the command itself.
bool states_unnamed_words(const CLI::App& command, const std::vector<std::string>& arguments,
                          std::size_t first) {
  for (std::size_t i = first; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") return i + 1 < arguments.size();
    if (!word.starts_with('-') || word == "-") return true;
    const CLI::Option* option = command.get_option_no_throw(word.substr(0, word.find('=')));
    const bool takes_next = option != nullptr && option->get_expected_max() > 0 &&
                            word.find('=') == std::string::npos && i + 1 < arguments.size();
    // --json stands alone, too.
    if (takes_next && (option->get_expected_min() > 0 || !arguments[i + 1].starts_with('-'))) ++i;
  }
  return false;
}

// An element of a grid's list, as text.
std::string value_text(const YAML::Node& value) {
  if (value.IsScalar()) return value.Scalar();
  YAML::Emitter text;
  text << YAML::Flow << value;
  return text.c_str();
}

using GridValues = std::vector<std::pair<std::string, std::vector<YAML::Node>>>;

GridValues grid_values(const std::string& file, const YAML::Node& document) {
  GridValues values;
  std::size_t points = 1;
  for (const auto& entry : document) {
    const YAML::Node& value = entry.second;
    std::vector<YAML::Node> each = value.IsSequence()
                                       ? std::vector<YAML::Node>(value.begin(), value.end())
                                       : std::vector{value};
    const auto name = entry.first.as<std::string>();
    if (each.empty()) throw InputError(file, {{name, "an empty list", "at least one value"}});
    points = std::min(points * each.size(), kMostGridPoints + 1);
    values.emplace_back(name, std::move(each));
  }
  if (points > kMostGridPoints) {
    throw InputError(file,
                     {{"", "too many combinations", fmt::format("at most {}", kMostGridPoints)}});
  }
  return values;
}

// The next combination; false after the last.
bool advance(const GridValues& values, std::vector<std::size_t>& at) {
  for (std::size_t i = at.size(); i-- > 0;) {
    if (++at[i] < values[i].second.size()) return true;
    at[i] = 0;
  }
  return false;
}

}  // namespace

OptionGrid read_option_grid(const std::string& file, const CLI::App& command) {
  const GridValues values = grid_values(file, read_mapping(file));
  OptionGrid grid;
  for (const auto& [name, each] : values) {
    std::vector<std::string> texts;
    for (const YAML::Node& value : each) texts.push_back(value_text(value));
    grid.options.emplace_back(name, std::move(texts));
  }
  std::vector<std::size_t> at(values.size(), 0);
  do {
    YAML::Node point;
    for (std::size_t i = 0; i < values.size(); ++i)
      point[values[i].first] = values[i].second[at[i]];
    OptionsFile options(file, command);
    std::vector<std::string> words = options.words(point, {});
    for (std::string& word : options.unnamed_words(command)) words.push_back(std::move(word));
    grid.points.push_back({at, std::move(words)});
  } while (advance(values, at));
  return grid;
}

std::vector<std::string> with_options_file(const CLI::App& app,
                                           const std::vector<std::string>& arguments) {
  const std::optional<StatedFile> stated_file = find_options_file(arguments);
  if (!stated_file) return arguments;
  const CLI::App* command = &app;
  std::size_t words_of_command = 0;
  for (const std::string& word : arguments) {
    if (word.starts_with('-')) break;
    for (const CLI::App* each :
         command->get_subcommands([&](const CLI::App* a) { return a->get_name() == word; })) {
      command = each;
      ++words_of_command;
    }
  }
  if (command->get_option_no_throw(kOption) == nullptr) return arguments;
  OptionsFile options(stated_file->name, *command);
  const std::vector<std::string> words =
      options.words(read_mapping(stated_file->name), stated_options(arguments));
  std::vector<std::string> expanded = with_words(arguments, *stated_file, words);
  if (states_unnamed_words(*command, arguments, words_of_command)) return expanded;
  const std::vector<std::string> unnamed = options.unnamed_words(*command);
  if (!unnamed.empty() && std::ranges::find(arguments, "--") == arguments.end())
    expanded.emplace_back("--");
  expanded.insert(expanded.end(), unnamed.begin(), unnamed.end());
  return expanded;
}

std::vector<std::string> with_undeclared_options(const std::vector<std::string>& arguments,
                                                 const std::string& unnamed) {
  const std::optional<StatedFile> stated_file = find_options_file(arguments);
  if (!stated_file) return arguments;
  const std::set<std::string> stated = stated_options(arguments);
  std::vector<std::string> words;
  for (const auto& entry : read_mapping(stated_file->name)) {
    const std::string name = with_dashes(entry.first.as<std::string>());
    const YAML::Node& value = entry.second;
    bool is_set = false;
    if (value.IsNull() || stated.contains("--" + name)) continue;
    if (!value.IsScalar() && !is_list_of_scalars(value))
      throw InputError(stated_file->name,
                       {{name, "a nested value", "a value or a list of values"}});
    if (value.IsScalar() && YAML::convert<bool>::decode(value, is_set)) {
      if (is_set) words.push_back("--" + name);
      continue;
    }
    if (name != unnamed) words.push_back("--" + name);
    words.push_back(joined_text(value));
  }
  return with_words(arguments, *stated_file, words);
}

}  // namespace shardwright::cli
