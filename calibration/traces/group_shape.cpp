#include "calibration/traces/group_shape.hpp"

#include <charconv>
#include <cstddef>
#include <string_view>

namespace shardwright::calibration {
namespace {

using Ranks = std::vector<std::int64_t>;

// No job has more ranks, or a group more members.
constexpr std::int64_t kMostRanks = 1 << 24;

constexpr std::string_view kLeftOut = "...";

Ranks ranks_in(std::string_view members) {
  Ranks ranks;
  const char* const end = members.data() + members.size();
  for (const char* at = members.data(); at < end;) {
    std::int64_t rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error == std::errc() && 0 <= rank && rank < kMostRanks) ranks.push_back(rank);
    at = error == std::errc() ? next : at + 1;
  }
  return ranks;
}

// How many ranks follow each other at the distance of the first two.
std::size_t run_of(const Ranks& ranks) {
  std::size_t run = 2;
  while (run < ranks.size() && ranks[run] - ranks[run - 1] == ranks[1] - ranks[0]) ++run;
  return run;
}

// True if the ranks are blocks that repeat the first one.
bool repeats(const Ranks& ranks, std::size_t block) {
  for (std::size_t i = block; i < ranks.size(); ++i)
    if (ranks[i] - ranks[i - i % block] != ranks[i % block] - ranks[0]) return false;
  return true;
}

// The shape of a group of so many members that begins with these.
GroupShape shape_that_begins(Ranks ranks, std::int64_t size) {
  if (size < 2 || size > kMostRanks || ranks.size() < 2 || ranks[1] <= ranks[0]) return {};
  const GroupShape evenly = {{size, ranks[1] - ranks[0]}};
  GroupShape shape;
  while (ranks.size() > 1) {
    const std::int64_t stride = ranks[1] - ranks[0];
    const std::size_t run = run_of(ranks);
    const auto count = static_cast<std::int64_t>(run);
    if (stride <= 0) return evenly;
    if (run == ranks.size()) {
      shape.emplace_back(size, stride);
      return shape;
    }
    if (size % count != 0 || !repeats(ranks, run)) return evenly;
    shape.emplace_back(count, stride);
    size /= count;
    Ranks blocks;
    for (std::size_t i = 0; i < ranks.size(); i += run) blocks.push_back(ranks[i]);
    ranks = std::move(blocks);
  }
  return shape;
}

}  // namespace

GroupShape shape_of_group(const std::string& members, std::int64_t size) {
  const std::string_view all = members;
  const std::size_t gap = all.find(kLeftOut);
  const Ranks first = ranks_in(all.substr(0, gap));
  GroupShape shape = shape_that_begins(first, size);
  if (gap == std::string_view::npos || shape.empty()) return shape;
  const Ranks last = ranks_in(all.substr(gap + kLeftOut.size()));
  const bool leads_there = last.empty() || last.back() - first.front() == extent_of(shape);
  return leads_there ? shape : GroupShape();
}

std::int64_t extent_of(const GroupShape& shape) {
  std::int64_t extent = 0;
  for (const auto& [count, stride] : shape) extent += (count - 1) * stride;
  return extent;
}

}  // namespace shardwright::calibration
