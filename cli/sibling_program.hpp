// The other programs of Shardwright, which this command hands over to.
#pragma once

#include <string>
#include <vector>

namespace shardwright::cli {

// `name` beside this program, where both are installed, or else in `build_folder` of a build tree.
// Empty if it is in neither place.
std::string find_sibling(const std::string& name, const std::string& build_folder);

// The file of this program.
std::string own_program();

// The program takes this process over, with its streams, signals and exit status. Throws
// RuntimeFailure if it cannot be started.
[[noreturn]] void become(const std::string& program, std::vector<std::string> arguments);

}  // namespace shardwright::cli
