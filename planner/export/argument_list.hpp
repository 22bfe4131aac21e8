// Command-line arguments as a Bash array, one per line, for a launch script to source:
//
//   # comment
//   NAME=(
//     --flag value
//   )
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::planner {

class ArgumentList {
 public:
  void add(std::string_view flag) { lines_.emplace_back(flag); }
  // Adds "--flag value"; values with a meaning for the shell are quoted.
  void add(std::string_view flag, std::string_view value);
  void add(std::string_view flag, std::int64_t value) { add(flag, std::to_string(value)); }
  // Adds "--flag word word": a flag that takes several words. They have no meaning for the shell.
  void add_words(std::string_view flag, std::string_view words);
  // Adds "--flag=value".
  void assign(std::string_view flag, std::string_view value);
  void assign(std::string_view flag, std::int64_t value) { assign(flag, std::to_string(value)); }

  // `comments` precede the array, one per line.
  std::string text(std::string_view name, const std::vector<std::string>& comments) const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace shardwright::planner
