// Files for parsers that open them by their path.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace shardwright::fuzz {

// A folder of this process, which goes with it.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() / ("fuzz-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& file, const std::string& content) const {
    std::ofstream(path_ / file, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
};

// An input that stands for two files: what is before the first line "%%", and what follows it.
struct TwoFiles {
  std::string first, second;

  explicit TwoFiles(const std::string& text) {
    const std::string mark = "\n%%\n";
    const std::size_t end = text.find(mark);
    first = text.substr(0, end);
    if (end != std::string::npos) second = text.substr(end + mark.size());
  }
};

}  // namespace shardwright::fuzz
