#include "sim/step/flat_program.hpp"

#include <variant>

#include "core/program/group_lattice.hpp"

namespace shardwright::sim {
namespace {

Rendezvous rendezvous_of(const Op& op, const Plan& plan) {
  if (op.kind == OpKind::Send || op.kind == OpKind::Receive) return Rendezvous::PointToPoint;
  const auto* message = std::get_if<CommunicationWork>(&op.work);
  if (message == nullptr) return Rendezvous::None;
  if (joins_pools_of_replicas(message->group, plan)) return Rendezvous::Replicas;
  if (plan.pp == 1) return Rendezvous::None;
  return joins_stages(message->group) ? Rendezvous::Collective : Rendezvous::None;
}

FlatOp flatten(const Op& op, const Plan& plan) {
  FlatOp entry;
  entry.stream = op.stream;
  entry.rendezvous = rendezvous_of(op, plan);
  entry.kernel = is_kernel(op);
  entry.sends = op.kind == OpKind::Send;
  entry.holds_host = op.holds_host;
  entry.gradient = op.stream == Stream::SendGradient || op.stream == Stream::ReceiveGradient;
  if (const auto* message = std::get_if<CommunicationWork>(&op.work)) {
    entry.group = message->group;
    entry.peer_offset = message->peer_offset;
    // A replica that pushes without an agreement waits for no other one.
    const bool alone = is_server_transfer(op.kind) && plan.replicas.stale();
    entry.collective = entry.rendezvous != Rendezvous::PointToPoint && !alone;
  }
  const bool compresses = op.kind == OpKind::Compression;
  if (compresses) entry.group = Group::Data;
  entry.shares_device = entry.collective || compresses || is_server_transfer(op.kind);
  return entry;
}

}  // namespace

bool posts_ahead(const FlatOp& op) {
  return op.rendezvous == Rendezvous::PointToPoint && !op.sends && op.waits == 0 && !op.holds_host;
}

void BlockBusy::add(const Op& op, double duration) {
  stream[static_cast<std::size_t>(op.stream)] += duration;
  if (op.stream != Stream::Compute) return;
  if (op.phase == Phase::Optimizer) {
    (op.kind == OpKind::HostOptimizer ? offloaded : optimizer) += duration;
    return;
  }
  if (op.phase == Phase::Recompute) recompute += duration;
  if (is_matrix_product(op.kind)) {
    gemm += duration;
  } else if (op.kind == OpKind::Attention) {
    attention += duration;
  } else {
    memory_bound += duration;
  }
}

FlatProgram flatten(const Program& program, const Prices& prices) {
  FlatProgram flat;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    std::vector<FlatOp>& ops = flat.ops.emplace_back();
    BlockBusy& busy = flat.busy.emplace_back();
    const std::vector<OpLaunch> launches =
        prices.launch[static_cast<std::size_t>(program.blocks[b].pool)].of(program.blocks[b]);
    for (std::size_t i = 0; i < program.blocks[b].ops.size(); ++i) {
      const Op& op = program.blocks[b].ops[i];
      FlatOp entry = flatten(op, program.plan);
      entry.duration = prices.blocks[b][i].value();
      if (!prices.ports.empty()) entry.port = prices.ports[b][i];
      entry.launch = launches[i].before;
      entry.further_launch = launches[i].behind;
      entry.first_wait = static_cast<std::uint32_t>(flat.waits.size());
      entry.waits = static_cast<std::uint16_t>(op.waits.size());
      flat.waits.insert(flat.waits.end(), op.waits.begin(), op.waits.end());
      busy.add(op, entry.duration);
      busy.launch += entry.launch + entry.further_launch;
      ops.push_back(entry);
    }
  }
  return flat;
}

std::uint64_t message_key(const Call& call, const FlatOp& op) {
  return (static_cast<std::uint64_t>(call.layer) << 33) |
         (static_cast<std::uint64_t>(op.gradient) << 32) |
         static_cast<std::uint32_t>(call.microbatch);
}

}  // namespace shardwright::sim
