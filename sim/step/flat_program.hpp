// A priced program as the replays walk it: ops in small records, waits in one array.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/program/program.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::sim {

// What an op needs other stages for.
enum class Rendezvous : std::uint8_t { None, PointToPoint, Collective };

// An op as a replay needs it: one cache line holds several. Times are in seconds.
struct FlatOp {
  double duration = 0.0;
  double launch = 0.0;
  double further_launch = 0.0;   // of the host, behind the op's own
  PortShare port;                // that it fills alone
  std::uint32_t first_wait = 0;  // into FlatProgram::waits
  std::uint16_t waits = 0;
  Stream stream = Stream::Compute;
  Rendezvous rendezvous = Rendezvous::None;
  Group group = Group::Tensor;
  bool collective = false;  // of its group, on one stage or several
  bool kernel = false;      // on the compute stream
  bool sends = false;
  bool gradient = false;
  bool holds_host = false;
  std::int32_t peer_offset = 0;
};

// Time that one call of a block keeps streams and the host busy, in seconds, sorted for the
// breakdown.
struct BlockBusy {
  double gemm = 0.0, attention = 0.0, memory_bound = 0.0, optimizer = 0.0, recompute = 0.0;
  double offloaded = 0.0;  // the optimizer's step on the host, for which the device waits
  std::array<double, kStreams> stream{};
  double launch = 0.0;  // of the host, for all ops

  void add(const Op& op, double duration);
};

struct FlatProgram {
  std::vector<std::vector<FlatOp>> ops;  // by block
  std::vector<std::uint16_t> waits;      // places of earlier ops in the same block
  std::vector<BlockBusy> busy;           // by block
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
