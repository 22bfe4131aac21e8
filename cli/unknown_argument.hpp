// "Did you mean" for options and subcommands.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardwright::cli {

// A message about the first argument that is neither an option nor a subcommand where it stands,
// with the nearest name that is; nothing if there is none.
std::optional<std::string> find_unknown_argument(const CLI::App& app,
                                                 const std::vector<std::string>& arguments);

}  // namespace shardwright::cli
