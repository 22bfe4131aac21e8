// A priced program as the replays walk it: ops in small records, waits in one array.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/program/program.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::sim {

// The kind of rendezvous with other stages that an op needs.
enum class Rendezvous : std::uint8_t {
  None,
  PointToPoint,
  // The op joins several stages of a replica.
  Collective,
  // The op joins the same stage of replicas on several pools.
  Replicas,
};

// True if the op and those beside it on the stage's own accelerators decide how long it takes, once
// it has started.
constexpr bool stays_on_stage(Rendezvous rendezvous) {
  return rendezvous == Rendezvous::None || rendezvous == Rendezvous::Replicas;
}

// An op as a replay needs it: one cache line holds several. Times are in seconds.
struct FlatOp {
  double duration = 0.0;
  double launch = 0.0;
  // The host's time after its launch.
  double further_launch = 0.0;
  // The shares of the ports that it fills alone.
  PortShare port;
  // The place of its first wait in FlatProgram::waits.
  std::uint32_t first_wait = 0;
  std::uint16_t waits = 0;
  Stream stream = Stream::Compute;
  Rendezvous rendezvous = Rendezvous::None;
  Group group = Group::Tensor;
  // True for a collective of its group, on one stage or several.
  bool collective = false;
  // True for what slows the kernels beside it: collectives, and the compression of what they carry.
  bool shares_device = false;
  // True for a kernel on the compute stream.
  bool kernel = false;
  bool sends = false;
  bool gradient = false;
  bool holds_host = false;
  std::int32_t peer_offset = 0;
};

// Time that one call of a block keeps streams and the host busy, in seconds, sorted for the
// breakdown.
struct BlockBusy {
  double gemm = 0.0, attention = 0.0, memory_bound = 0.0, optimizer = 0.0, recompute = 0.0;
  // The optimizer's step on the host, for which the device waits.
  double offloaded = 0.0;
  std::array<double, kStreams> stream{};
  // The host's time for all ops.
  double launch = 0.0;

  void add(const Op& op, double duration);
};

struct FlatProgram {
  // The ops of each block.
  std::vector<std::vector<FlatOp>> ops;
  // Places of earlier ops in the same block.
  std::vector<std::uint16_t> waits;
  // The busy times of each block.
  std::vector<BlockBusy> busy;
};

// A receive that holds no host and waits for nothing inside of its block. Where it is the first op
// of a call that waits for nothing either, it is posted as if the host had not waited for kernels
// before it: stages that wait for each other's messages would lock otherwise.
bool posts_ahead(const FlatOp& op);

FlatProgram flatten(const Program& program, const Prices& prices);

// Names a pipeline message: the boundary is named by the layer behind it; microbatch and direction
// make it unique. Both ends have the same key.
std::uint64_t message_key(const Call& call, const FlatOp& op);

}  // namespace shardwright::sim
