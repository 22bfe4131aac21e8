// Files that have to be whole and to stay: those of a run and its checkpoints, data that is mapped.
#pragma once

#include <filesystem>
#include <string>

namespace shardwright {

// The kind of a file that is not regular ("a folder", "a named pipe", "a device", "a socket"),
// which must be known before it is opened: a pipe would wait for a writer. Empty for a regular
// file, and where nothing can be seen: opening it says why.
std::string kind_unless_regular(const std::filesystem::path& file);

}  // namespace shardwright
