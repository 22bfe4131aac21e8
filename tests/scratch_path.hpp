// Files that a test writes.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace shardwright {

// A folder that is removed with the object, unless a forked process destroys it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = testing::TempDir() + "shardwright-test-XXXXXX";
    // Canonical, as paths in messages are.
    path_ = std::filesystem::canonical(mkdtemp(pattern.data()));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  pid_t owner_ = getpid();
  std::filesystem::path path_;
};

// Returns a path in a folder of this process, which is removed at its end. Nothing is there: what
// an earlier test has left is removed.
inline std::filesystem::path scratch_path(const std::string& name) {
  static const TemporaryFolder folder;
  std::filesystem::path path = folder.path() / name;
  std::filesystem::remove_all(path);
  return path;
}

// Returns the content of a file; "" if it cannot be read.
inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace shardwright
