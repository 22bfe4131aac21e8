// The ops that wait for pipeline messages besides those that read them.
#pragma once

#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// True if the kernels behind a send wait until it has completed.
bool kernels_wait_for_sends(const StackSpec& stack, const Plan& plan);

// True if the host waits at a receive until the message is there and the device idle. Megatron-LM
// synchronises the device behind each exchange that it does not overlap with compute
// (megatron/core/pipeline_parallel/p2p_communication.py, batch_p2p_sync).
bool host_waits_for_receives(const StackSpec& stack, const Plan& plan);

}  // namespace shardwright
