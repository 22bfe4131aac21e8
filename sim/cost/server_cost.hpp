// Traffic between workers and parameter servers, and the servers' step (docs/models/replicas.md).
//
// Servers hold equal parts of all parameters, so that each push goes to all of their nodes and each
// pull comes from all of them, at the rate of the slowest on the way.
#pragma once

#include <cstdint>

#include "core/base/enum_names.hpp"
#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/parameter_servers.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::sim {

// What limits a push or a pull.
enum class ServerLimit : std::uint8_t { ServerNics, WorkerNics, ServerMemory, InsideNodes };
constexpr auto enum_names(ServerLimit) {
  return std::array{"server-nics", "worker-nics", "server-memory", "inside-nodes"};
}

struct ServerTransfer {
  Seconds time;
  ServerLimit limit = ServerLimit::ServerNics;
  // The part of it for which it keeps a node of servers busy, in its NICs or its memory.
  Seconds nics, memory;
};

// A push or a pull of `bytes` by each rank of all replicas at once, or where none waits for another
// by each rank of one replica.
ServerTransfer server_transfer(OpKind kind, Bytes bytes, const Plan& plan,
                               const ClusterSpec& cluster);
// Its time in a step.
Seconds server_transfer_time(OpKind kind, Bytes bytes, const Plan& plan, const ClusterSpec& cluster,
                             const StackSpec& stack);

// The servers' step on the parameters of a replica, of which each rank has so much work.
Seconds server_update_time(const MemoryWork& of_rank, const Plan& plan, const ClusterSpec& cluster);

}  // namespace shardwright::sim
