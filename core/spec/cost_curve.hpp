// The time of kernels and of collectives on a measured machine as a function of their size.
#pragma once

#include <cstdint>

#include "core/op/op.hpp"

namespace shardwright {

// Kernels of one kind and phase on a device that computes without tiles and waves, as a CPU does:
//
//   matrix products:  overhead + flop / rate * (1 + edge_m / m + edge_n / n + edge_k / k)
//   attention:        overhead + flop / rate + scores * score
//   everything else:  overhead * kernels + (read + written) / bandwidth
//
// FLOP and scores of attention are those of the whole square, which is what the CPU computes. The
// edges say from which size on an operand's moving costs less than its products.
struct KernelCurve {
  OpKind kind = OpKind::Gemm;
  // Recomputation counts as forward.
  Phase phase = Phase::Forward;
  // The overhead includes the time from one op of a stream to the next.
  Seconds overhead;
  // The rate of large products.
  FlopPerSecond flop_rate;
  double edge_m = 0.0, edge_n = 0.0, edge_k = 0.0;
  Seconds score;
  BytesPerSecond bandwidth;

  bool operator==(const KernelCurve&) const = default;
};

// A collective or message of one kind within groups of one shape: alpha + skew + bytes / beta. The
// skew is how much later than the mean the last member comes in a training step. The members
// are those of one group, `nodes` hold members, `span` counts the nodes from the first to the last
// of the group, or of the pipeline whose neighbours exchange messages (sim/cost/placement.hpp).
struct ExchangeCurve {
  OpKind kind = OpKind::AllReduce;
  std::int64_t members = 2, nodes = 1, span = 1;
  Seconds alpha;
  BytesPerSecond beta;
  // The range of the sizes that were measured.
  Bytes least{}, most{};
  Seconds skew{};

  bool operator==(const ExchangeCurve&) const = default;
};

}  // namespace shardwright
