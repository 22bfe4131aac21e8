// What the ops of a block do on a rank on which nothing else goes on, from the start of the first
// op on: their ends, what is still queued then, and what they add to the rank's sums.
//
// A step calls the same few blocks thousands of times, and mostly so: the first op starts when all
// before it has ended, and each further op waits for an op of the block. All of their times then
// move with that start, and the replay need not find them again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/program/program.hpp"
#include "sim/step/flat_program.hpp"
#include "sim/step/folded_rank.hpp"
#include "sim/step/shared_device.hpp"

namespace shardwright::sim {

// Where the host stands when a block's first op starts.
enum class HostPlace : std::uint8_t {
  // It has issued the block long before.
  Ahead,
  // It has just issued the first op: its launches may hold up further ones.
  AtFirstOp,
};

// Times are in seconds from the start of the block's first op; ops are numbered within the block.
class BlockTrace {
 public:
  BlockTrace(const FlatProgram& flat, BlockId block, HostPlace host, const Contention& contention);
  BlockTrace(const BlockTrace&) = delete;
  BlockTrace& operator=(const BlockTrace&) = delete;

  // Replays a call of the block whose first op may start at `start`; false, with nothing done, if
  // the rank's state has a say in the times of further ops.
  bool repeat(const Call& call, std::span<const Wait> waits, const RankStart& start,
              FoldedRank& rank) const;

 private:
  void run(const FlatProgram& flat, const Call& call, const FlatOp& op, std::uint32_t number);
  bool is_alone(std::span<const Wait> waits, double start, const FoldedRank& rank) const;
  void repeat_ops(const Call& call, const RankStart& start, FoldedRank& rank) const;
  void repeat_sums(const Call& call, double start, FoldedRank& rank) const;

  HostPlace host_;
  std::vector<OpTime> times_;
  // The rank after the block; its ops' times are `times_`.
  FoldedRank end_;
  // Streams of its ops.
  std::vector<std::size_t> streams_;
  // The host's time for all ops.
  double launch_ = 0.0;
  // The most time from the start of an op but the first to the time at which a host that begins
  // with the block has issued it.
  double lead_;
  // The first kernel and when it starts; kNoOp: there is none. The breakdown of `end_` is without
  // what the compute stream waits before it.
  std::uint32_t first_kernel_ = kNoOp;
  double kernel_start_ = 0.0;
  // The parts of that breakdown that are not zero.
  std::vector<std::pair<StepPart, Seconds>> parts_;
  // True if the first op may end after the others: its start then decides more than their times.
  bool first_goes_on_ = false;
  // Ops up to the first kernel, but the first one, that start when the host has issued them.
  std::vector<std::uint32_t> led_by_host_;
};

// The traces of a program's blocks, found when they are first asked for.
class BlockTraces {
 public:
  BlockTraces(const FlatProgram& flat, const Contention& contention);

  // True for blocks of which each op but the first waits for an op of the block, and that neither
  // need another stage nor hold the host.
  bool has(BlockId block) const { return known_[block].is_traced; }
  const BlockTrace& of(BlockId block, HostPlace host);

 private:
  struct Known {
    bool is_traced = false;
    // By place of the host.
    std::array<std::unique_ptr<const BlockTrace>, 2> traces;
  };

  const FlatProgram& flat_;
  Contention contention_;
  std::vector<Known> known_;
};

}  // namespace shardwright::sim
