// The process of a parameter server.
#pragma once

#include "core/spec/scenario.hpp"
#include "executor/launch/heartbeat.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rendezvous.hpp"
#include "executor/launch/run_options.hpp"

namespace shardwright::executor {

// Holds a part of the parameters until the replicas leave. The ranks of servers follow those of the
// plan. Throws CommunicationError.
void serve_parameters(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
                      Rendezvous& rendezvous, Heartbeat& heartbeat);

}  // namespace shardwright::executor
