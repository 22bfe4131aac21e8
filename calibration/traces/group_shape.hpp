// How the members of a process group lie among the ranks of a job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardwright::calibration {

// Counts and strides, inner ones first: {{8, 1}} are neighbours, {{8, 8}} every eighth rank, {{4,
// 1}, {2, 8}} two blocks of four. Groups of one shape are translations of each other. Empty if it
// is not known.
using GroupShape = std::vector<std::pair<std::int64_t, std::int64_t>>;

// `members` as PyTorch writes them, "[0, 8, 16, 24]", of long lists the beginning and the last one:
// "[0, 1, ..., 63]". `size` is the number of members. Members that lie in no such pattern count as
// evenly spread, by the distance of the first two. Empty, too, where members are left out and those
// before them do not lead to the last one.
GroupShape shape_of_group(const std::string& members, std::int64_t size);

// The distance of the last member from the first one.
std::int64_t extent_of(const GroupShape& shape);

}  // namespace shardwright::calibration
