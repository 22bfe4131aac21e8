// Texts as the system's calls that start programs take them.
#pragma once

#include <string>
#include <vector>

namespace shardwright {

// Arguments or an environment for execv and posix_spawn: a pointer to each, ended by null. They
// point into `texts`.
inline std::vector<char*> argument_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace shardwright
