// Where a test writes its files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace shardwright {

// A path of this process alone: tests of one program run beside each other.
inline std::string scratch_path(const std::string& name) {
  return testing::TempDir() + std::to_string(getpid()) + "-" + name;
}

}  // namespace shardwright
