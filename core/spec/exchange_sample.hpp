// Timings of collectives and messages on a machine, by size and group.
//
//   {"schema": "shardwright/exchanges", "version": 1,
//    "samples": [{"kind": "all_reduce", "members": 4, "stride": 1, "bytes": 65536,
//                 "time_s": 2.1e-4}]}
//
// "hosts" and "groups_per_host" stand beside the stride of a sample that has a `HostSpread`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/op/op.hpp"

namespace shardwright {

inline constexpr const char* kExchangesSchema = "shardwright/exchanges";

// The hosts of a group whose ranks are not numbered as the cluster's; it lies on them evenly.
struct HostSpread {
  // The hosts of the group; for messages, those of all ranks that pass them on.
  std::int64_t hosts = 1;
  // The groups that share a host's network at the same time.
  std::int64_t groups_per_host = 1;

  bool operator==(const HostSpread&) const = default;
};

// All groups of `members` ranks that lie `stride` apart did it at the same time; where a spread is
// known, it says where the members lie, and the stride means nothing.
struct ExchangeSample {
  OpKind kind = OpKind::AllReduce;
  std::int64_t members = 2, stride = 1;
  // The size as `CommunicationWork` counts it.
  Bytes bytes;
  Seconds time;
  std::optional<HostSpread> spread = std::nullopt;

  bool operator==(const ExchangeSample&) const = default;
};

nlohmann::ordered_json to_json(const std::vector<ExchangeSample>& samples);

// Throws InputError with all problems; `source` names the document.
std::vector<ExchangeSample> read_exchanges(const nlohmann::json& document,
                                           const std::string& source);

}  // namespace shardwright
