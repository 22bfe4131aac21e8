// Checks that every op comes to run: executes the program without times.
//
// A queue goes on when all has happened that its next op waits for. Messages and collectives
// between stages go on when their other members have come to them too. Each op is looked at a
// constant number of times: a queue that is stuck is looked at again when the op that it lacks is
// done.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "core/program/group_lattice.hpp"
#include "core/program/program_checks.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

struct QueueId {
  std::int32_t stage = 0;
  std::size_t queue = 0;
};

// An op that takes part in something with other stages: ends of the same message, or members of the
// same collective, have the same key.
using RendezvousKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

struct Arrival {
  QueueId queue;
  std::uint32_t op = 0;
};

class Progress {
 public:
  explicit Progress(const Program& program) : program_(program), queues_(program) {
    for (const RankProgram& rank : program.stages) list(rank);
    count_members();
    for (const Group group : enumerators<Group>())
      joins_replicas_[group] = joins_pools_of_replicas(group, program.plan);
  }

  void run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      for (std::size_t q = 0; q < queues_.count(); ++q)
        runnable_.push_back({static_cast<std::int32_t>(s), q});
    }
    while (!runnable_.empty()) {
      const QueueId queue = runnable_.back();
      runnable_.pop_back();
      while (step(queue)) {
      }
    }
  }

  void report(FindingList& findings) const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Stage& stage = stages_[s];
      for (std::size_t q = 0; q < stage.queues.size(); ++q) {
        if (stage.next[q] == stage.queues[q].size()) continue;
        const std::uint32_t number = stage.queues[q][stage.next[q]];
        findings.add(FindingKind::Deadlock, static_cast<std::int32_t>(s), number,
                     fmt::format("{} never starts", op_at(stage, number).name));
      }
    }
  }

 private:
  struct Stage {
    const RankProgram* rank = nullptr;
    // The ops of each queue in order.
    std::vector<std::vector<std::uint32_t>> queues;
    // The next op of each queue.
    std::vector<std::size_t> next;
    // The call of each op.
    std::vector<std::uint32_t> call_of;
    // The place of each op's first wait in the waits of the rank.
    std::vector<std::uint32_t> first_wait;
    // True by op.
    std::vector<bool> done, arrived;
    // The queues that each op blocks.
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> blocked;
    // The number of collectives between stages so far.
    EnumArray<Group, std::int32_t> turns{};
  };

  void list(const RankProgram& rank) {
    Stage& stage = stages_.emplace_back();
    stage.rank = &rank;
    stage.queues.resize(queues_.count());
    stage.next.assign(queues_.count(), 0);
    stage.done.assign(rank.ops, false);
    stage.arrived.assign(rank.ops, false);
    for_each_op(program_, rank, [&](const PlacedOp& placed) {
      stage.queues[queues_.of(placed.op)].push_back(placed.number);
      stage.call_of.push_back(static_cast<std::uint32_t>(&placed.call - rank.calls.data()));
      stage.first_wait.push_back(
          static_cast<std::uint32_t>(placed.waits.data() - rank.waits.data()));
    });
    stage.first_wait.push_back(static_cast<std::uint32_t>(rank.waits.size()));
  }

  // Members of each group that joins stages.
  void count_members() {
    for (const Stage& stage : stages_) {
      EnumArray<Group, bool> member{};
      for (const Call& call : stage.rank->calls) {
        for (const Op& op : program_.blocks[call.block].ops) {
          if (const auto* work = std::get_if<CommunicationWork>(&op.work))
            member[work->group] = true;
        }
      }
      for (std::size_t g = 0; g < member.size(); ++g) members_[g] += member[g] ? 1 : 0;
    }
  }

  const Op& op_at(const Stage& stage, std::uint32_t number) const {
    return program_.op(stage.rank->calls[stage.call_of[number]], number);
  }

  // The first op that this one still waits for.
  std::optional<std::uint32_t> missing(const Stage& stage, std::uint32_t number) const {
    const std::uint32_t first = stage.rank->calls[stage.call_of[number]].first_op;
    for (const std::uint16_t on : op_at(stage, number).waits) {
      if (!stage.done[first + on]) return first + on;
    }
    for (std::uint32_t w = stage.first_wait[number]; w < stage.first_wait[number + 1]; ++w) {
      if (!stage.done[stage.rank->waits[w].on]) return stage.rank->waits[w].on;
    }
    return std::nullopt;
  }

  // Runs the next op of a queue; false if there is none or it has to wait.
  bool step(QueueId id) {
    Stage& stage = stages_[static_cast<std::size_t>(id.stage)];
    if (stage.next[id.queue] == stage.queues[id.queue].size()) return false;
    const std::uint32_t number = stage.queues[id.queue][stage.next[id.queue]];
    if (const auto on = missing(stage, number)) {
      stage.blocked[*on].push_back(id.queue);
      return false;
    }
    const Op& op = op_at(stage, number);
    const std::size_t members = members_of(op);
    if (members > 1) return arrive(id, stage, op, number, members);
    finish(id, number);
    return true;
  }

  std::size_t members_of(const Op& op) const {
    if (op.kind == OpKind::Send || op.kind == OpKind::Receive) return 2;
    const auto* work = std::get_if<CommunicationWork>(&op.work);
    if (work == nullptr) return 1;
    const std::size_t parts = replica_parts(program_.plan);
    if (joins_replicas_[work->group]) return parts;
    if (!joins_stages(work->group)) return 1;
    return work->group == Group::Mirror ? 2 : members_[work->group] / parts;
  }

  RendezvousKey key_of(QueueId id, Stage& stage, const Op& op, std::uint32_t number) const {
    const auto& work = std::get<CommunicationWork>(op.work);
    if (op.kind != OpKind::Send && op.kind != OpKind::Receive) {
      const Group group = work.group;
      const auto stages = static_cast<std::int32_t>(stages_.size() / replica_parts(program_.plan));
      const std::int32_t in_replica = id.stage % stages;
      const std::int32_t in_pair =
          work.group == Group::Mirror ? std::min(in_replica, stages - 1 - in_replica) : 0;
      const std::int32_t pair =
          joins_replicas_[group] ? in_replica : id.stage - in_replica + in_pair;
      return {-1, static_cast<std::int32_t>(group), stage.turns[group]++, pair};
    }
    const bool gradient = op.stream == Stream::SendGradient || op.stream == Stream::ReceiveGradient;
    const std::int32_t peer = id.stage + work.peer_offset;
    const std::int32_t from = op.kind == OpKind::Send ? id.stage : peer;
    const auto stages = static_cast<std::int32_t>(stages_.size());
    const std::int32_t channel =
        (2 * from + (gradient ? 1 : 0)) * stages + (op.kind == OpKind::Send ? peer : id.stage);
    const Call& call = stage.rank->calls[stage.call_of[number]];
    return {channel, call.layer, call.microbatch, 0};
  }

  // The op has reached its rendezvous; the last member to arrive completes it for all.
  bool arrive(QueueId id, Stage& stage, const Op& op, std::uint32_t number, std::size_t members) {
    if (stage.arrived[number]) return false;
    stage.arrived[number] = true;
    const RendezvousKey key = key_of(id, stage, op, number);
    std::vector<Arrival>& arrivals = rendezvous_[key];
    arrivals.push_back({id, number});
    if (arrivals.size() < members) return false;
    const std::vector<Arrival> all = std::move(arrivals);
    rendezvous_.erase(key);
    for (const Arrival& arrival : all) {
      finish(arrival.queue, arrival.op);
      runnable_.push_back(arrival.queue);
    }
    return false;
  }

  void finish(QueueId id, std::uint32_t number) {
    Stage& stage = stages_[static_cast<std::size_t>(id.stage)];
    stage.done[number] = true;
    ++stage.next[id.queue];
    const auto blocked = stage.blocked.find(number);
    if (blocked == stage.blocked.end()) return;
    for (const std::size_t queue : blocked->second) runnable_.push_back({id.stage, queue});
    stage.blocked.erase(blocked);
  }

  const Program& program_;
  Queues queues_;
  std::vector<Stage> stages_;
  EnumArray<Group, std::size_t> members_{};
  // True for groups with members in replicas on several pools.
  EnumArray<Group, bool> joins_replicas_{};
  // Incomplete rendezvous.
  std::map<RendezvousKey, std::vector<Arrival>> rendezvous_;
  std::vector<QueueId> runnable_;
};

}  // namespace

void check_progress(const Program& program, FindingList& findings) {
  Progress progress(program);
  progress.run();
  progress.report(findings);
}

}  // namespace shardwright
