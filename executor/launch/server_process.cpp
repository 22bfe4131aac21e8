#include "executor/launch/server_process.hpp"

#include <fmt/format.h>

#include "core/lowering/lowering.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/launch/run_signals.hpp"
#include "executor/runtime/parameter_server.hpp"

namespace shardwright::executor {

void serve_parameters(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
                      Rendezvous& rendezvous, Heartbeat& heartbeat) {
  const std::int64_t number = place.rank - scenario.plan.world_size();
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const auto backend = open_backend(Device::Cpu, rendezvous.store(), place, {options.timeout()});
  ParameterServer server(scenario.model, program, number, backend->kernels(),
                         with_log(backend->opener()));
  heartbeat.describe_activity([&] {
    return fmt::format("parameter server {}, after {} updates", number, server.updates());
  });
  // The server ends with its replicas, which save its states.
  if (!scenario.plan.replicas.stale()) listen_for_termination();
  try {
    server.serve();
  } catch (...) {
    heartbeat.describe_activity(nullptr);
    throw;
  }
  heartbeat.describe_activity(nullptr);
}

}  // namespace shardwright::executor
