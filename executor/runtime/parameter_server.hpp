// A parameter server: the process that holds a part of all parameters with the optimizer's states,
// adds up or applies the gradients that replicas push, and hands out parameters. On CPUs alone.
//
// Each replica has a connection of its own to each server, and the server a thread for each
// connection. A request goes before its data:
//
//   Push     a unit's gradients follow; of a synchronous server they add to the sum
//   Squares  synchronous: waits until all replicas have pushed; the sum's squares come back
//   Update   Adam's step on the sum, once for all replicas, or on what this replica has pushed;
//            the replica's UpdateCounts come back
//   Pull     all weights come back; with a bound of staleness, once the replica may begin its next
//   step Set      weights and moments follow, and an empty answer comes back
//   Get      weights and moments come back
//   Leave    the replica makes no further steps
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/parameter_store.hpp"

namespace shardwright::executor {

enum class ServerRequestKind : std::int32_t { Push, Squares, Update, Pull, Set, Get, Leave };

struct ServerRequest {
  ServerRequestKind kind = ServerRequestKind::Push;
  // The unit that a push carries.
  std::int32_t unit = 0;
  // The step that an update makes, with the sum of the squares of all gradients.
  AdamStep adam;
  double squares = 0.0;
};

struct UpdateCounts {
  // Updates of other replicas since this one's last pull.
  std::int64_t staleness = 0;
  // Steps that the slowest replica had made fewer than this one when it began the step.
  std::int64_t ahead = 0;
};

// What Set and Get carry of each unit, in this order.
inline constexpr std::array kServedArrays = {OptimizerArray::Weights, OptimizerArray::FirstMoments,
                                             OptimizerArray::SecondMoments};

// The key under which a replica and a server open their communicator, with the server as member 0.
std::string server_key(std::int64_t server, std::int64_t replica);

class ParameterServer {
 public:
  // Server `number` of the plan's. Connects to all replicas. Throws CommunicationError.
  ParameterServer(const ModelSpec& model, const Program& program, std::int64_t number,
                  Kernels& kernels, const OpenCommunicator& open);

  // Serves until all replicas have left. Throws CommunicationError if one is lost.
  void serve();
  // The updates of all replicas together. Any thread may call it.
  std::int64_t updates() const;

 private:
  struct Replica {
    std::unique_ptr<Communicator> connection;
    // What it has pushed since its last update, by unit; of servers that are not synchronous.
    std::vector<std::vector<float>> pushed;
    std::int64_t steps = 0, ahead = 0, pulled = 0;
  };

  void serve_replica(Replica& replica);
  void handle(Replica& replica, const ServerRequest& request);
  void push(Replica& replica, std::size_t unit);
  double squares_of_all();
  UpdateCounts update_all(const ServerRequest& request);
  UpdateCounts update_alone(Replica& replica, const ServerRequest& request);
  void apply(const AdamStep& adam, double squares);
  void pull(Replica& replica);
  void set(Replica& replica);
  void get(Replica& replica);
  void fail(const std::string& why);
  // Waits until `condition` holds; throws if a replica is lost meanwhile.
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition);
  std::int64_t slowest() const;

  const ReplicaAgreement agreement_;
  // The format in which replicas apply parameters, otherwise fp32.
  const bool pulls_bf16_;
  Kernels& kernels_;
  ParameterStore parameters_;
  std::vector<Replica> replicas_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> failure_;
  // Synchronous: replicas that have pushed all of this step, complete sums, those that were
  // applied, and the squares of the last one.
  std::size_t arrived_ = 0;
  std::int64_t sums_ = 0, applied_ = 0;
  double squares_ = 0.0;
  std::int64_t updates_ = 0;
};

}  // namespace shardwright::executor
