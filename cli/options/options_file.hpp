// Options of a command from a file: --options FILE.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace shardwright::cli {

// Puts the options that the file of --options states in its place. The file is a mapping in YAML or
// JSON from the names of options to their values: `model: llama3-70b`, `gpus: 512`, `fix: {tp: 8}`,
// `trusted: true`; files and other words without a name have that of the help in lower case: `plan:
// plan.json`, `files: [a.json, b.json]`. An option that the command line states too is left to it,
// and so are all words without a name if it states any. Throws InputError with all problems of the
// file.
std::vector<std::string> with_options_file(const CLI::App& app,
                                           const std::vector<std::string>& arguments);

// The same for a command whose options another program declares and checks. `unnamed` is the key of
// the word without a name.
std::vector<std::string> with_undeclared_options(const std::vector<std::string>& arguments,
                                                 const std::string& unnamed);

// Combinations of the values of options.
struct OptionGrid {
  // The values of each option, as text, in the order of the file.
  std::vector<std::pair<std::string, std::vector<std::string>>> options;

  struct Point {
    // The index of the value of each option.
    std::vector<std::size_t> at;
    // The words of its command line.
    std::vector<std::string> words;
  };
  // All combinations; the last option varies fastest.
  std::vector<Point> points;
};

inline constexpr std::size_t kMostGridPoints = 100'000;

// Reads a file such as that of --options in which a list stands for several values, each for
// combinations of its own. Throws InputError with all problems of a combination.
OptionGrid read_option_grid(const std::string& file, const CLI::App& command);

}  // namespace shardwright::cli
