// "Did you mean" for options and subcommands.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardwright::cli {

// Returns a message about the first argument that is neither an option nor a subcommand in its
// place, with the nearest valid name; nothing if there is no such argument.
std::optional<std::string> find_unknown_argument(const CLI::App& app,
                                                 const std::vector<std::string>& arguments);

}  // namespace shardwright::cli
