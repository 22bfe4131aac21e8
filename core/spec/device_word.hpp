// What ranks compute on, in the words of the option --device of `run` and `probe`.
#pragma once

#include <string>

namespace shardwright {

// Nothing if `word` is cpu, cuda or auto, else what is wrong with it (unless_one_of).
std::string unless_device(const std::string& word);

}  // namespace shardwright
