// Options of a command from a file: --options FILE.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardwright::cli {

// Puts the options that the file of --options states in its place. The file is a mapping in YAML or JSON from the names
// of options to their values: `model: llama3-70b`, `gpus: 512`, `fix: {tp: 8}`, `trusted: true`. An option that the
// command line states too is left to it. Throws InputError with all problems of the file.
std::vector<std::string> with_options_file(const CLI::App& app,
                                           const std::vector<std::string>& arguments);

}  // namespace shardwright::cli
