#include "executor/runtime/parameter_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>

#include "core/base/error.hpp"
#include "executor/kernels/bfloat16.hpp"
#include "executor/runtime/rank_layout.hpp"

namespace shardwright::executor {
namespace {

// A replica is member 1 of its connection.
constexpr int kReplicaMember = 1, kServerChannel = 0;
constexpr std::int64_t kHasLeft = std::numeric_limits<std::int64_t>::max();

void send(Communicator& connection, const void* data, std::size_t bytes) {
  connection.send(data, bytes, kReplicaMember, kServerChannel, nullptr);
}

void receive(Communicator& connection, void* data, std::size_t bytes) {
  connection.receive(data, bytes, kReplicaMember, kServerChannel, nullptr);
}

ShardPlaces server_shards(const Plan& plan, std::int64_t number) {
  const ShardPlace own{static_cast<std::size_t>(plan.replicas.servers),
                       static_cast<std::size_t>(number), 0};
  return {own, own, true};
}

}  // namespace

std::string server_key(std::int64_t server, std::int64_t replica) {
  return fmt::format("server.{}.{}", server, replica);
}

ParameterServer::ParameterServer(const ModelSpec& model, const Program& program,
                                 std::int64_t number, Kernels& kernels,
                                 const OpenCommunicator& open)
    : agreement_(program.plan.replicas),
      pulls_bf16_(program.plan.precision == Precision::Bf16),
      kernels_(kernels),
      parameters_(rank_layout(program, model, 0), kernels, server_shards(program.plan, number)),
      replicas_(static_cast<std::size_t>(program.plan.dp)) {
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    replicas_[r].connection = open(server_key(number, static_cast<std::int64_t>(r)), 0, 2);
    for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit)
      replicas_[r].pushed.emplace_back(parameters_.own(unit).size());
  }
}

void ParameterServer::serve() {
  std::vector<std::future<void>> threads;
  for (Replica& replica : replicas_) {
    threads.push_back(std::async(std::launch::async, [this, &replica] { serve_replica(replica); }));
  }
  for (std::future<void>& thread : threads) thread.get();
  if (failure_) throw CommunicationError(*failure_);
}

std::int64_t ParameterServer::updates() const {
  const std::lock_guard lock(mutex_);
  return updates_;
}

void ParameterServer::serve_replica(Replica& replica) {
  try {
    ServerRequest request;
    do {
      receive(*replica.connection, &request, sizeof request);
      handle(replica, request);
    } while (request.kind != ServerRequestKind::Leave);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

// The other replicas learn of it by their connections.
void ParameterServer::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = why;
  for (const Replica& replica : replicas_) replica.connection->abort();
  changed_.notify_all();
}

void ParameterServer::handle(Replica& replica, const ServerRequest& request) {
  const auto answer = [&](const auto& value) { send(*replica.connection, &value, sizeof value); };
  switch (request.kind) {
    case ServerRequestKind::Push:
      return push(replica, static_cast<std::size_t>(request.unit));
    case ServerRequestKind::Squares:
      return answer(squares_of_all());
    case ServerRequestKind::Update:
      return answer(agreement_.stale() ? update_alone(replica, request) : update_all(request));
    case ServerRequestKind::Pull:
      return pull(replica);
    case ServerRequestKind::Set:
      set(replica);
      return answer(UpdateCounts());
    case ServerRequestKind::Get:
      return get(replica);
    case ServerRequestKind::Leave:
      const std::lock_guard lock(mutex_);
      replica.steps = kHasLeft;
      return changed_.notify_all();
  }
}

template <class Condition>
void ParameterServer::wait(std::unique_lock<std::mutex>& lock, Condition condition) {
  changed_.wait(lock, [&] { return failure_ || condition(); });
  if (failure_) throw CommunicationError(*failure_);
}

void ParameterServer::push(Replica& replica, std::size_t unit) {
  SHARDWRIGHT_CHECK(unit < replica.pushed.size(), "a push of an unknown unit");
  std::vector<float>& pushed = replica.pushed[unit];
  receive(*replica.connection, pushed.data(), pushed.size() * sizeof(float));
  if (agreement_.stale()) return;
  const std::lock_guard lock(mutex_);
  const ElementRange own = parameters_.own(unit);
  kernels_.accumulate(static_cast<std::int64_t>(own.size()), pushed.data(),
                      parameters_.gradients(unit, own.begin), nullptr);
}

double ParameterServer::squares_of_all() {
  std::unique_lock lock(mutex_);
  if (++arrived_ == replicas_.size()) {
    arrived_ = 0;
    squares_ = 0.0;
    for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit) {
      const ElementRange own = parameters_.own(unit);
      kernels_.add_squares(static_cast<std::int64_t>(own.size()),
                           parameters_.gradients(unit, own.begin), &squares_, nullptr);
    }
    ++sums_;
    changed_.notify_all();
    return squares_;
  }
  wait(lock, [this, sum = sums_] { return sums_ > sum; });
  return squares_;
}

// All replicas ask for the same step.
UpdateCounts ParameterServer::update_all(const ServerRequest& request) {
  const std::lock_guard lock(mutex_);
  if (applied_ == sums_) return {};
  applied_ = sums_;
  apply(request.adam, request.squares);
  return {};
}

UpdateCounts ParameterServer::update_alone(Replica& replica, const ServerRequest& request) {
  const std::lock_guard lock(mutex_);
  for (std::size_t unit = 0; unit < replica.pushed.size(); ++unit) {
    const std::vector<float>& pushed = replica.pushed[unit];
    std::copy(pushed.begin(), pushed.end(),
              static_cast<float*>(parameters_.gradients(unit, parameters_.own(unit).begin)));
  }
  const UpdateCounts counts{updates_ - replica.pulled, replica.ahead};
  AdamStep adam = request.adam;
  // The moments count updates. Before this run each replica made the steps before its first one.
  const auto all = static_cast<std::int64_t>(replicas_.size());
  adam.step = (request.adam.step - 1 - replica.steps) * all + updates_ + 1;
  apply(adam, request.squares);
  ++replica.steps;
  changed_.notify_all();
  return counts;
}

void ParameterServer::apply(const AdamStep& adam, double squares) {
  for (std::size_t u = 0; u < parameters_.layout().units.size(); ++u) {
    for (const ParameterSlice& slice : parameters_.layout().units[u].slices) {
      const ElementRange range =
          overlap(parameters_.own(u), {slice.offset, slice.offset + slice.elements()});
      if (range.size() > 0) parameters_.apply_adam(u, slice, range, adam, &squares, nullptr);
    }
  }
  parameters_.zero_gradients(nullptr);
  ++updates_;
}

std::int64_t ParameterServer::slowest() const {
  return std::ranges::min_element(replicas_, {}, &Replica::steps)->steps;
}

void ParameterServer::pull(Replica& replica) {
  std::vector<std::vector<float>> weights(parameters_.layout().units.size());
  {
    std::unique_lock lock(mutex_);
    if (agreement_.stale() && agreement_.server_updates == ServerUpdates::BoundedStaleness)
      wait(lock, [&] { return replica.steps - slowest() <= agreement_.staleness; });
    replica.ahead = replica.steps - slowest();
    replica.pulled = updates_;
    for (std::size_t unit = 0; unit < weights.size(); ++unit)
      parameters_.read(OptimizerArray::Weights, unit, parameters_.own(unit), weights[unit]);
  }
  std::vector<std::uint16_t> rounded;
  for (const std::vector<float>& unit : weights) {
    if (!pulls_bf16_) {
      send(*replica.connection, unit.data(), unit.size() * sizeof(float));
      continue;
    }
    rounded.resize(unit.size());
    std::transform(unit.begin(), unit.end(), rounded.begin(), to_bfloat16);
    send(*replica.connection, rounded.data(), rounded.size() * sizeof(std::uint16_t));
  }
}

void ParameterServer::set(Replica& replica) {
  const std::lock_guard lock(mutex_);
  std::vector<float> values;
  for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit) {
    const ElementRange own = parameters_.own(unit);
    values.resize(own.size());
    for (const OptimizerArray array : kServedArrays) {
      receive(*replica.connection, values.data(), values.size() * sizeof(float));
      parameters_.write(array, unit, own.begin, values);
    }
  }
}

void ParameterServer::get(Replica& replica) {
  const std::lock_guard lock(mutex_);
  std::vector<float> values;
  for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit) {
    for (const OptimizerArray array : kServedArrays) {
      parameters_.read(array, unit, parameters_.own(unit), values);
      send(*replica.connection, values.data(), values.size() * sizeof(float));
    }
  }
}

}  // namespace shardwright::executor
