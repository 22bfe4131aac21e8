// Reading of JSON that programs write: timelines and results may be larger than what people write.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>

namespace shardwright {

// The caller who waits for a large file: it hears how far the file is read, and may want it no
// more. Both may be left out.
struct ReadingWatch {
  // Bytes that were read and parsed since it was called last. A file that was read to its end
  // without a problem adds up to its size.
  std::function<void(std::uintmax_t bytes)> advanced;
  std::stop_token stop;
};

// A file that was wanted no more.
class ReadingStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the reading was stopped"; }
};

// Reads as read_json_file (core/base/json_reader.hpp), with a limit of its own. Throws InputError,
// and ReadingStopped where `watch` asks for it.
nlohmann::json read_large_json_file(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                    const ReadingWatch& watch = {});

}  // namespace shardwright
