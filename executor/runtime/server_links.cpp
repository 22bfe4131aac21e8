#include "executor/runtime/server_links.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {
namespace {

// A server is member 0 of its connection.
constexpr int kServerMember = 0, kLinkChannel = 0;

ServerRequest request_of(ServerRequestKind kind, std::size_t unit = 0) {
  ServerRequest request;
  request.kind = kind;
  request.unit = static_cast<std::int32_t>(unit);
  return request;
}

}  // namespace

ServerLinks::ServerLinks(const Program& program, std::int64_t replica, const OpenCommunicator& open,
                         ParameterStore& parameters)
    : agreement_(program.plan.replicas),
      replicas_(static_cast<double>(program.plan.dp)),
      parameters_(parameters) {
  if (!agreement_.has_servers()) return;
  SHARDWRIGHT_CHECK(agreement_.servers > 0, "the number of parameter servers is not set");
  for (std::int64_t server = 0; server < agreement_.servers; ++server)
    servers_.push_back(open(server_key(server, replica), 1, 2));
}

ServerLinks::~ServerLinks() {
  try {
    for (std::size_t server = 0; server < servers_.size(); ++server)
      request(server, request_of(ServerRequestKind::Leave));
  } catch (const CommunicationError&) {
    // The run has failed, which its other ranks report.
  }
}

ElementRange ServerLinks::part_of(std::size_t server, std::size_t unit) const {
  const std::size_t each = parameters_.layout().units[unit].elements / servers_.size();
  return {each * server, each * (server + 1)};
}

void ServerLinks::send(std::size_t server, const void* data, std::size_t bytes) {
  servers_[server]->send(data, bytes, kServerMember, kLinkChannel, nullptr);
}

void ServerLinks::receive(std::size_t server, void* data, std::size_t bytes) {
  servers_[server]->receive(data, bytes, kServerMember, kLinkChannel, nullptr);
}

void ServerLinks::request(std::size_t server, const ServerRequest& request) {
  send(server, &request, sizeof request);
}

void ServerLinks::run(const BoundOp& bound, std::span<const std::size_t> units, StepState& state) {
  SHARDWRIGHT_CHECK(bound.queue == nullptr, "parameter servers run on CPUs alone");
  switch (bound.op->kind) {
    case OpKind::Push:
      for (const std::size_t unit : units) push(unit);
      return;
    case OpKind::ServerOptimizer:
      return update(state);
    default:
      return pull();
  }
}

// A gradient is a replica's addend of the mean over the whole batch. Alone it is that over its own
// part.
void ServerLinks::push(std::size_t unit) {
  if (agreement_.stale()) {
    auto* gradient = static_cast<float*>(parameters_.gradients(unit));
    const auto scale = static_cast<float>(replicas_);
    std::for_each_n(gradient, parameters_.layout().units[unit].elements,
                    [scale](float& value) { value *= scale; });
  }
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    const ElementRange part = part_of(server, unit);
    const std::size_t bytes = part.size() * sizeof(float);
    request(server, request_of(ServerRequestKind::Push, unit));
    send(server, parameters_.gradients(unit, part.begin), bytes);
    carried_ += static_cast<double>(bytes);
  }
}

// The squares are those of what the servers apply: of the sum, or of this replica's own gradients.
void ServerLinks::update(StepState& state) {
  if (agreement_.stale()) {
    *state.gradient_squares *= replicas_ * replicas_;
  } else {
    double sum = 0.0;
    for (std::size_t server = 0; server < servers_.size(); ++server)
      request(server, request_of(ServerRequestKind::Squares));
    for (std::size_t server = 0; server < servers_.size(); ++server) {
      double squares = 0.0;
      receive(server, &squares, sizeof squares);
      sum += squares;
    }
    *state.gradient_squares = sum;
  }
  ServerRequest update = request_of(ServerRequestKind::Update);
  update.adam = state.adam;
  update.squares = *state.gradient_squares;
  for (std::size_t server = 0; server < servers_.size(); ++server) request(server, update);
  for (std::size_t server = 0; server < servers_.size(); ++server)
    receive(server, &counts_, sizeof counts_);
  parameters_.zero_gradients(nullptr);
}

void ServerLinks::pull() {
  for (std::size_t server = 0; server < servers_.size(); ++server)
    request(server, request_of(ServerRequestKind::Pull));
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit) {
      const ElementRange part = part_of(server, unit);
      const std::size_t bytes = part.size() * parameters_.applied_bytes();
      receive(server, parameters_.weights(unit, part.begin), bytes);
      carried_ += static_cast<double>(bytes);
    }
  }
}

void ServerLinks::share_states() {
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    request(server, request_of(ServerRequestKind::Set));
    for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit) {
      const ElementRange part = part_of(server, unit);
      for (const OptimizerArray array : kServedArrays)
        send(server, parameters_.updated(array, unit, part.begin), part.size() * sizeof(float));
    }
    UpdateCounts answer;
    receive(server, &answer, sizeof answer);
  }
}

void ServerLinks::collect_states() {
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    request(server, request_of(ServerRequestKind::Get));
    for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit) {
      const ElementRange part = part_of(server, unit);
      for (const OptimizerArray array : kServedArrays)
        receive(server, parameters_.updated(array, unit, part.begin), part.size() * sizeof(float));
    }
  }
}

void ServerLinks::abort() {
  for (const auto& server : servers_) server->abort();
}

}  // namespace shardwright::executor
