// Command-line arguments as a Bash array, one a line, that a launch script sources:
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
  // "--flag value"; values that the shell would read otherwise are quoted.
  void add(std::string_view flag, std::string_view value);
  void add(std::string_view flag, std::int64_t value) { add(flag, std::to_string(value)); }
  // "--flag=value".
  void assign(std::string_view flag, std::string_view value);
  void assign(std::string_view flag, std::int64_t value) { assign(flag, std::to_string(value)); }

  // `comments` go before the array, a line each.
  std::string text(std::string_view name, const std::vector<std::string>& comments) const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace shardwright::planner
