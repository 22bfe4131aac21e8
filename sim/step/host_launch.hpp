// The time that the host needs to issue ops.
#pragma once

#include <vector>

#include "core/base/units.hpp"
#include "core/program/program.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::sim {

// Seconds before an op may start, and behind it: for the kernels that an op is cut into which the
// host issues one by one.
struct OpLaunch {
  double before = 0.0, behind = 0.0;
};

struct HostLaunch {
  // The time to issue one kernel.
  Seconds kernel;
  // True if a call is issued as a whole (CUDA graphs).
  bool per_call = false;
  // The time to issue a GEMM or an attention kernel, if that is longer.
  Seconds module;
  // What graphs hold of a sparse layer outside of its token exchange.
  EnumSet<GraphModule> graph_modules;

  // Returns the launch of each op of a block that is called.
  std::vector<OpLaunch> of(const Block& block) const;
};

HostLaunch host_launch(const StackSpec& stack, const ClusterSpec& cluster);

}  // namespace shardwright::sim
