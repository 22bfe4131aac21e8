// Timings of collectives and messages on a machine, by size and group.
//
//   {"schema": "shardwright/exchanges", "version": 1,
//    "samples": [{"kind": "all_reduce", "members": 4, "stride": 1, "bytes": 65536,
//                 "time_s": 2.1e-4}]}
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/program/op.hpp"

namespace shardwright {

inline constexpr const char* kExchangesSchema = "shardwright/exchanges";

// All groups of `members` ranks that lie `stride` apart did it at the same time.
struct ExchangeSample {
  OpKind kind = OpKind::AllReduce;
  std::int64_t members = 2, stride = 1;
  Bytes bytes;  // as in `CommunicationWork`
  Seconds time;

  bool operator==(const ExchangeSample&) const = default;
};

nlohmann::ordered_json to_json(const std::vector<ExchangeSample>& samples);

// Throws InputError with all problems; `source` names the document.
std::vector<ExchangeSample> read_exchanges(const nlohmann::json& document,
                                           const std::string& source);

}  // namespace shardwright
