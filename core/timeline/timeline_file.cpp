#include "core/timeline/timeline_file.hpp"

#include <fmt/format.h>

#include <charconv>

namespace shardwright {
namespace {

constexpr std::string_view kPrefix = "timeline-", kSuffix = ".json";

}  // namespace

std::string name_of(const TimelineFile& file) {
  return fmt::format("{}{}-{}{}", kPrefix, file.step, file.rank, kSuffix);
}

std::optional<TimelineFile> parse_timeline_name(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() < kPrefix.size() + kSuffix.size())
    return std::nullopt;
  TimelineFile file;
  const char* end = name.data() + name.size() - kSuffix.size();
  const auto step = std::from_chars(name.data() + kPrefix.size(), end, file.step);
  if (step.ec != std::errc() || step.ptr == end || *step.ptr != '-') return std::nullopt;
  const auto rank = std::from_chars(step.ptr + 1, end, file.rank);
  if (rank.ec != std::errc() || rank.ptr != end) return std::nullopt;
  // "-1" or "007" are not what `name_of` writes.
  if (name_of(file) != name || file.step < 0 || file.rank < 0) return std::nullopt;
  return file;
}

}  // namespace shardwright
