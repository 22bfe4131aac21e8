// The event level: replays a program on one representative rank of each stage.
//
// The ranks of a stage run the same ops on data of the same size, so one stands for all; what
// crosses stages (pipeline messages, a tied embedding, the gradient norm) joins the
// representatives, and so do collectives of replicas on several pools. An op starts when
//   - the host has issued it: the host issues one op after another and waits for the device only at
//     a receive that holds it,
//   - the op before it on its stream has finished, and
//   - the ops that it waits for have finished;
// a message starts when both ends have reached it and the message before it on the same channel has
// completed, a collective when all its members have reached it.
//
// Nothing in these rules depends on which event is looked at first, so stages are replayed in issue
// order, each until it needs what another stage has not reached yet: the times are those of an
// event queue, without its cost. (Where all stages wait so, receives that the host has issued by
// then are posted ahead of what they stand behind.) Ops take their prices, and longer where they
// share an accelerator and its port (shared_device.hpp); what resources shared between ranks do to
// each other is the full level's matter (full_replay.hpp).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/program/program.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/steady_state.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

// The time at which each op of a stage finished, by op number.
using FinishTimes = std::vector<Seconds>;

// The time that each period of a steady state adds to a step.
struct PeriodTimes {
  Seconds step;
  // The breakdown of each stage.
  std::vector<TimeBreakdown> time;
  std::vector<std::array<Seconds, kStreams>> busy;
};

struct FoldedReplay {
  // The time until the last stream of the last stage is idle.
  Seconds step;
  // The breakdown of each stage, which adds up to `step`.
  std::vector<TimeBreakdown> time;
  // The finish times of each stage; empty unless asked for.
  std::vector<FinishTimes> finish;
  // The time that others beside it cost each kernel and collective, by stage and op; empty where
  // `finish` is.
  std::vector<std::vector<Seconds>> interference;
  // The busy time of each stream, by stage.
  std::vector<std::array<Seconds, kStreams>> busy;
  // The last of the periods that were asked for, if all of them are alike.
  std::optional<PeriodTimes> period;
  // Stopped before its end: no figure holds.
  bool cancelled = false;
  // True if no stage could go on, which never happens to a program that `validate` accepts.
  bool deadlocked = false;
};

struct ReplayOptions {
  bool keep_finish_times = false;
  std::stop_token stop{};
  // The periods by stage whose times are compared; none if empty.
  std::span<const StagePeriod> periods{};
};

FoldedReplay replay_folded(const Program& program, const Prices& prices,
                           const ReplayOptions& options = {});

}  // namespace shardwright::sim
