#include "executor/telemetry/run_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.hpp"
#include "core/timeline/timeline_file.hpp"

namespace shardwright::executor {

void fail_to_write(const std::filesystem::path& file) {
  const char* reason = std::strerror(errno);
  throw RuntimeFailure(fmt::format("{}: cannot be written: {}", file.string(), reason));
}

std::filesystem::path unfinished_name(const std::filesystem::path& file) {
  std::filesystem::path other = file.string() + ".tmp";
  std::error_code error;
  std::filesystem::remove(other, error);
  return other;
}

void replace_file(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path other = unfinished_name(file);
  std::ofstream stream(other);
  stream << text;
  stream.close();
  if (stream && std::rename(other.c_str(), file.c_str()) == 0) return;
  const int reason = errno;
  unfinished_name(file);
  errno = reason;
  fail_to_write(file);
}

void write_json(const std::filesystem::path& file, const nlohmann::ordered_json& document,
                int indent) {
  replace_file(file, document.dump(indent) + '\n');
}

void write_timeline(const std::filesystem::path& folder, std::int64_t step, std::int64_t rank,
                    Timeline timeline) {
  timeline.step = step;
  constexpr int kOneLine = -1;
  write_json(folder / name_of(TimelineFile{step, rank}), to_json(timeline), kOneLine);
}

void remove_timelines(const std::filesystem::path& folder, std::int64_t first_step) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto file = parse_timeline_name(entry.path().filename().string());
    if (file && file->step >= first_step) found.push_back(entry.path());
  }
  for (const std::filesystem::path& file : found) std::filesystem::remove(file);
}

}  // namespace shardwright::executor
