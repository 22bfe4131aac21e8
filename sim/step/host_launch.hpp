// How long the host needs to issue ops.
#pragma once

#include "core/base/units.hpp"
#include "core/program/program.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::sim {

struct HostLaunch {
  Seconds kernel;         // to issue one
  bool per_call = false;  // a call is issued as a whole (CUDA graphs)

  // Seconds before the op may start, and behind it: for the kernels that an op is cut into which
  // the host issues one by one.
  double of(const Op& op, bool first_of_call) const;
  double further_of(const Op& op) const;
};

HostLaunch host_launch(const StackSpec& stack, const ClusterSpec& cluster);

}  // namespace shardwright::sim
