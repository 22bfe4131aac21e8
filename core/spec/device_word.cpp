#include "core/spec/device_word.hpp"

#include <vector>

#include "core/base/nearest_name.hpp"

namespace shardwright {

std::string unless_device(const std::string& word) {
  static const std::vector<std::string> kDevices = {"cpu", "cuda", "auto"};
  return unless_one_of(word, kDevices);
}

}  // namespace shardwright
