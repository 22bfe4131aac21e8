// Parameter servers in a step: what limits them, how busy they are, what they hold.
#pragma once

#include <cstdint>

#include "core/program/program.hpp"
#include "core/spec/parameter_servers.hpp"
#include "core/spec/scenario.hpp"
#include "sim/cost/server_cost.hpp"

namespace shardwright::sim {

struct ServerUse {
  ServerNodes nodes;
  // All gradients of the senders at once, the optimizer's step, and all parameters back to them.
  ServerTransfer push, pull;
  Seconds update;
  // The time of a step for which servers that wait for nothing would be busy.
  Seconds busy;
  // What one node of servers holds, and has; 0: not known.
  Bytes memory, host_memory;
};

// `parameters`: those of one rank of each stage together.
ServerUse server_use(double parameters, const Scenario& scenario);
double served_parameters_of(const Program& program);

// The time for which the pushes, steps and pulls of all replicas keep the servers busy if none
// waits for another: no step is shorter.
Seconds served_step(double parameters, const Plan& plan, const ClusterSpec& cluster,
                    const StackSpec& stack);

}  // namespace shardwright::sim
