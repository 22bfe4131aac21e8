// Reading of JSON that programs write: timelines and results may be larger than what people write.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>

namespace shardwright {

// Lets a caller follow the reading of a large file and stop it. Both members may be empty.
struct ReadingWatch {
  // Receives the bytes that were read and parsed since the last call. They add up to the size of a
  // file that was read to its end without a problem.
  std::function<void(std::uintmax_t bytes)> advanced;
  std::stop_token stop;
};

// Thrown when the reading of a file was stopped.
class ReadingStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the reading was stopped"; }
};

// Reads as read_json_file (core/base/json_reader.hpp) does, with a limit of its own. Throws
// InputError, and ReadingStopped if `watch` requests a stop.
nlohmann::json read_large_json_file(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                    const ReadingWatch& watch = {});

}  // namespace shardwright
