// Files of other programs, read piece by piece and inflated on the way where gzip compressed them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/base/large_json_file.hpp"

namespace shardwright::calibration {

// Reports how far a file was read, each byte once.
class ReadBytes {
 public:
  explicit ReadBytes(ReadingWatch watch) : watch_(std::move(watch)) {}

  // Throws ReadingStopped where the watch asks for it.
  void stop_if_asked() const {
    if (watch_.stop.stop_requested()) throw ReadingStopped();
  }
  // The file was read up to this byte.
  void reached(std::uintmax_t bytes) {
    if (bytes <= reported_) return;
    if (watch_.advanced) watch_.advanced(bytes - reported_);
    reported_ = bytes;
  }

 private:
  ReadingWatch watch_;
  std::uintmax_t reported_ = 0;
};

// Writes up to `most` bytes to `to` and returns their number; 0 at the end.
using ByteSource = std::function<std::size_t(char* to, std::size_t most)>;

// Opens a regular file. Throws InputError if it is missing, unreadable, empty or no regular file;
// the source throws one where compressed data break off or are damaged, and ReadingStopped where
// `watch` asks for it. `watch` receives bytes of the file, compressed ones where it is compressed.
// `expected` says what the file should be.
ByteSource open_inflated(const std::string& file, const std::string& expected,
                         const ReadingWatch& watch = {});

// Calls `read` with each line and its number from 1. Progress bars end theirs with a carriage
// return. Throws InputError at a line of more than 1 MiB.
void for_each_line(const ByteSource& bytes, const std::string& source, const std::string& expected,
                   const std::function<void(const std::string& line, std::size_t number)>& read);

}  // namespace shardwright::calibration
