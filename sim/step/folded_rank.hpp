// The progress of the folded replay on one rank, and the rules of the rank itself: when its ops
// start and end, as far as no other stage takes part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/program/program.hpp"
#include "sim/step/flat_program.hpp"
#include "sim/step/gap_blame.hpp"
#include "sim/step/shared_device.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

// A rank's sums at the beginning or the end of a period.
struct PeriodMark {
  TimeBreakdown time;
  std::array<double, kStreams> busy{};
};

// A receive that was posted ahead, at `host`.
struct PostedReceive {
  std::uint32_t op = 0;
  double host = 0.0;
};

// When an op of a rank may start.
struct RankStart : OpStart {
  // The time from which the op's stream is free.
  double free = 0.0;
  // A collective, not settled yet, that a queued one waits for too.
  std::uint32_t after = kNoOp;
};

// The representative of a stage.
struct FoldedRank {
  // The caller keeps their memory. Those of ops that are not recorded yet have no meaning.
  std::span<OpTime> ops;
  std::array<double, kStreams> stream_free{};
  // The op of each stream that finished last.
  std::array<std::uint32_t, kStreams> stream_last;
  // An op of each stream whose finish is not known yet.
  std::array<std::uint32_t, kStreams> stream_pending;
  double host = 0.0;
  // True while the host waits for the op at hand.
  bool holding = false;
  // True while a collective waits for replicas on other pools.
  bool awaits_replicas = false;
  // The op that the host waited for before the next kernel.
  std::uint32_t held_by = kNoOp;
  std::size_t call = 0;
  // The place of the op at hand in its call.
  std::size_t op = 0;
  TimeBreakdown time;
  std::array<double, kStreams> busy{};
  double last_finish = 0.0;
  // The number of collectives of each group so far.
  std::array<std::uint32_t, kGroups> gatherings{};
  SharedDevice device;
  // The interference of each op, if it is kept.
  std::vector<Seconds> interference;
  // For the comparison of periods: the marks at both ends of the last one, and the last call of
  // which an op started when the host had issued it.
  PeriodMark begin, end;
  std::size_t led_by_host = 0;
  std::vector<PostedReceive> posted;

  FoldedRank(std::span<OpTime> times, const Contention& contention, bool keeps_interference)
      : ops(times), device(contention), interference(keeps_interference ? times.size() : 0) {
    stream_last.fill(kNoOp);
    stream_pending.fill(kNoOp);
  }

  // Finds when the op at hand, of call `of`, may start; false if it depends on something that has
  // not been replayed yet. It writes to `start`, since returning a value copies what has just been
  // written in parts, which costs a third of the replay.
  bool find_start(const FlatProgram& flat, const Call& of, const FlatOp& at_hand,
                  std::span<const Wait> waits, RankStart& start);

  // The host issues the op; returns when.
  double issue(const FlatOp& at_hand);
  // Begins the times of an op, whose finish is unknown from then on.
  void record(const FlatOp& at_hand, std::uint32_t number, std::uint32_t cause);

  // Runs an op that no other stage takes part in, or queues it.
  void run(const FlatOp& at_hand, std::uint32_t number, const RankStart& start);

  // Lets the host go on after a receive that it waits for; false if its end is not known yet.
  bool resume_host(std::uint32_t number);

  void finish_op(std::uint32_t number, double finish);
  void settle_all();

 private:
  bool wait_for(std::uint32_t on, bool queued, RankStart& start);
  void queue(const FlatOp& at_hand, std::uint32_t number, const RankStart& start);
  void run_now(const FlatOp& at_hand, std::uint32_t number, const RankStart& start);
  double finish_of_kernel(const FlatOp& op, std::uint32_t number, double start);
  void settle_collective(std::uint32_t number);
  void settle_collectives(Stream stream);
  void take_ended();
  bool settle_stream(std::size_t stream);
};

}  // namespace shardwright::sim
