// A second, slow implementation of the event level: one event for each op that is issued and for
// each that ends, on queues per stream and channel. Shares no code with the folded replay.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "core/program/program.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::sim {

class NaiveReplay {
 public:
  NaiveReplay(const Program& program, const Prices& prices) : program_(program) {
    for (const RankProgram& rank : program.stages) issue_all(rank, prices);
  }

  // The end of the last op.
  Seconds run() {
    issue_after(kNone);
    events_.run([this](const auto& event) {
      NaiveOp& op = ops_[event.payload.op];
      (event.payload.issued ? op.is_issued : op.is_done) = true;
      if (!event.payload.issued && op.is_hold) issue_after(event.payload.op);
      start_what_can();
    });
    return events_.now();
  }

  bool all_done() const {
    return std::ranges::all_of(ops_, [](const NaiveOp& op) { return op.is_done; });
  }

 private:
  struct NaiveOp {
    // Both count from the end of `hold` on, if there is one.
    double duration = 0.0, issued = 0.0;
    std::size_t hold = kNone;
    // The op before it on its queue, and those that it waits for.
    std::vector<std::size_t> needs;
    std::size_t rendezvous = kNone;
    // True for a hold of the host, which is no op of the program.
    bool is_hold = false;
    bool is_issued = false, is_started = false, is_done = false;
  };
  struct Event {
    std::size_t op;
    bool issued;
  };
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void issue_after(std::size_t hold) {
    for (std::size_t id = 0; id < ops_.size(); ++id) {
      if (ops_[id].hold == hold)
        events_.schedule_after(Seconds(ops_[id].issued), EventPriority::Completion, {id, true});
    }
  }

  void issue_all(const RankProgram& rank, const Prices& prices) {
    std::vector<std::size_t> ids;
    std::size_t hold = kNone, last_kernel = kNone;
    std::map<std::tuple<Stream, std::int32_t>, std::size_t> last_of_queue;
    std::array<int, kGroups> turns{};
    double host = 0.0, launched = 0.0;
    for (const Call& call : rank.calls) {
      const Block& block = program_.blocks[call.block];
      for (std::size_t i = 0; i < block.ops.size(); ++i) {
        const Op& op = block.ops[i];
        NaiveOp made;
        made.duration = prices.blocks[call.block][i].value();
        const auto* memory = std::get_if<MemoryWork>(&op.work);
        const double launches = prices.launch.per_call ? (i == 0 ? 1.0 : 0.0)
                                : memory != nullptr    ? static_cast<double>(memory->kernels)
                                                       : 1.0;
        const double launch = launches * prices.launch.kernel.value();
        const double further =
            prices.launch.per_call ? 0.0 : op.further_launches * prices.launch.kernel.value();
        // A receive that waits for nothing is posted whatever the host waited for before.
        const bool posted = op.kind == OpKind::Receive && i == 0 && !op.holds_host &&
                            op.waits.empty() && !waits(rank, call);
        made.issued = (posted ? launched : host) + launch;
        made.hold = posted ? kNone : hold;
        host += launch + further;
        launched += launch + further;
        for (const std::uint16_t on : op.waits) made.needs.push_back(ids[call.first_op + on]);
        const auto* work = std::get_if<CommunicationWork>(&op.work);
        const std::tuple queue{op.stream, work == nullptr ? 0 : work->peer_offset};
        if (last_of_queue.count(queue) > 0) made.needs.push_back(last_of_queue[queue]);
        last_of_queue[queue] = ops_.size();
        if (work != nullptr) made.rendezvous = rendezvous_of(rank.stage, call, op, *work, turns);
        if (made.rendezvous != kNone) rendezvous_[made.rendezvous].push_back(ops_.size());
        ids.push_back(ops_.size());
        if (op.stream == Stream::Compute) last_kernel = ops_.size();
        ops_.push_back(made);
        if (!op.holds_host) continue;
        hold = hold_host(ids.back(), last_kernel, hold);
        host = further;
      }
    }
    for (const Wait& wait : rank.waits) ops_[ids[wait.op]].needs.push_back(ids[wait.on]);
  }

  // True if an op of the call waits for another call.
  bool waits(const RankProgram& rank, const Call& call) const {
    const std::size_t end = call.first_op + program_.blocks[call.block].ops.size();
    return std::ranges::any_of(
        rank.waits, [&](const Wait& wait) { return wait.op >= call.first_op && wait.op < end; });
  }

  std::size_t hold_host(std::size_t receive, std::size_t last_kernel, std::size_t before) {
    NaiveOp made;
    made.is_hold = true;
    made.hold = before;
    made.needs.push_back(receive);
    if (last_kernel != kNone) made.needs.push_back(last_kernel);
    ops_.push_back(made);
    return ops_.size() - 1;
  }

  std::size_t rendezvous_of(std::int32_t stage, const Call& call, const Op& op,
                            const CommunicationWork& work, std::array<int, kGroups>& turns) {
    const bool message = op.kind == OpKind::Send || op.kind == OpKind::Receive;
    const bool joins = work.group == Group::EmbeddingTie || work.group == Group::ModelParallel;
    if (!message && (!joins || program_.stages.size() == 1)) return kNone;
    std::tuple<int, int, int, int> key{-1, static_cast<int>(work.group),
                                       turns[static_cast<std::size_t>(work.group)], 0};
    if (message) {
      const std::int32_t sender = op.kind == OpKind::Send ? stage : stage + work.peer_offset;
      key = {sender, call.layer, call.microbatch, op.phase == Phase::Forward ? 0 : 1};
    } else {
      ++turns[static_cast<std::size_t>(work.group)];
    }
    const auto [found, is_new] = rendezvous_ids_.try_emplace(key, rendezvous_.size());
    if (is_new) rendezvous_.emplace_back();
    return found->second;
  }

  bool is_ready(const NaiveOp& op) const {
    return op.is_issued && !op.is_started &&
           std::ranges::all_of(op.needs, [this](std::size_t need) { return ops_[need].is_done; });
  }

  void start(std::size_t id) {
    ops_[id].is_started = true;
    events_.schedule_after(Seconds(ops_[id].duration), EventPriority::Completion, {id, false});
  }

  void start_what_can() {
    for (std::size_t id = 0; id < ops_.size(); ++id) {
      if (!is_ready(ops_[id])) continue;
      if (ops_[id].rendezvous == kNone) {
        start(id);
        continue;
      }
      const std::vector<std::size_t>& members = rendezvous_[ops_[id].rendezvous];
      if (std::ranges::all_of(members,
                              [this](std::size_t member) { return is_ready(ops_[member]); })) {
        for (const std::size_t member : members) start(member);
      }
    }
  }

  const Program& program_;
  std::vector<NaiveOp> ops_;
  std::map<std::tuple<int, int, int, int>, std::size_t> rendezvous_ids_;
  std::vector<std::vector<std::size_t>> rendezvous_;
  EventQueue<Event> events_;
};

}  // namespace shardwright::sim
