// A replica's side of parameter servers: what it pushes, and what it pulls (parameter_server.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/program/program.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/runtime/parameter_server.hpp"
#include "executor/runtime/parameter_store.hpp"

namespace shardwright::executor {

struct BoundOp;
struct StepState;

class ServerLinks {
 public:
  // Connects to the servers of the plan, if it has any. `parameters` must outlive this. Throws
  // CommunicationError, as the rest does.
  ServerLinks(const Program& program, std::int64_t replica, const OpenCommunicator& open,
              ParameterStore& parameters);
  // Leaves the servers, if they are still there.
  ~ServerLinks();
  ServerLinks(const ServerLinks&) = delete;
  ServerLinks& operator=(const ServerLinks&) = delete;

  // Runs an op of the program that the servers take part in; pushes carry these units.
  void run(const BoundOp& bound, std::span<const std::size_t> units, StepState& state);

  // Hands this replica's weights and moments to the servers, or takes theirs.
  void share_states();
  void collect_states();
  void abort();

  // The counts that the last update reported.
  const UpdateCounts& counts() const { return counts_; }
  // Bytes of gradients and parameters since the start.
  double carried_bytes() const { return carried_; }

 private:
  ElementRange part_of(std::size_t server, std::size_t unit) const;
  void request(std::size_t server, const ServerRequest& request);
  void send(std::size_t server, const void* data, std::size_t bytes);
  void receive(std::size_t server, void* data, std::size_t bytes);
  void push(std::size_t unit);
  void update(StepState& state);
  void pull();

  const ReplicaAgreement agreement_;
  double replicas_;
  ParameterStore& parameters_;
  std::vector<std::unique_ptr<Communicator>> servers_;
  UpdateCounts counts_;
  double carried_ = 0.0;
};

}  // namespace shardwright::executor
