// The functions of a shell script, whose commands count where they are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace shardwright::planner {

struct ShellFunction {
  // What stands between its braces, and the line of the script in which that begins.
  std::string body;
  std::int64_t line = 1;
  bool is_called = false;
};

struct ShellFunctions {
  std::map<std::string, ShellFunction> by_name;
  // Those that were followed, of which there are at most `kMostCalls`: functions may call each
  // other in a circle.
  int calls = 0;

  static constexpr int kMostCalls = 1000;
};

// The place of the brace that closes a body, which begins at `begin`, behind its first brace; npos
// if none does. Braces within quotes, comments, expansions and words close nothing.
std::size_t end_of_body(std::string_view script, std::size_t begin);

}  // namespace shardwright::planner
