// A jobs document: training jobs and storage traffic that share the network of one cluster.
//
// Nodes are scale-up domains of the cluster and count from 0; lists of them are texts such as
// "0-15,32" (node_list).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"

namespace shardwright {

inline constexpr const char* kJobsSchema = "shardwright/jobs";

struct TrainingJobSpec {
  std::string name;
  // A plan file.
  std::string plan;
  // Empty: nodes that no other job has are chosen.
  std::string nodes;
  Seconds start;

  bool operator==(const TrainingJobSpec&) const = default;
};

enum class StorageDirection : std::uint8_t { Write, Read };
constexpr auto enum_names(StorageDirection) {
  return std::array{"write", "read"};
}

struct StorageTrafficSpec {
  std::string name;
  StorageDirection direction = StorageDirection::Write;
  std::string nodes;
  // Nodes that store; empty: the store lies above all switches.
  std::string servers;
  // The bytes of one burst, and the time from the start of one to that of the next.
  Bytes bytes;
  Seconds every;
  // Zero: no limit but the links.
  BytesPerSecond bandwidth;
  Seconds start;

  bool operator==(const StorageTrafficSpec&) const = default;
};

struct JobsSpec {
  std::vector<TrainingJobSpec> training;
  std::vector<StorageTrafficSpec> storage;
  std::int64_t steps = 4;

  bool operator==(const JobsSpec&) const = default;
};

// The nodes of a list, in its order; nothing if the text is no list or names a node twice or one
// above `most`.
std::optional<std::vector<std::int64_t>> node_list(const std::string& text, std::int64_t most);

// The text of these nodes: "0-15,32".
std::string node_list_text(const std::vector<std::int64_t>& nodes);

}  // namespace shardwright
