// Random programs of several ranks: ops on the queues of each rank that compute with blocks of the
// rank's arena, exchange them with other ranks, and free them, with the waits that this takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/kernels/element.hpp"

namespace shardwright::executor {

// The ranks of a program. Groups list their members, which rise.
struct World {
  int ranks = 1;
  std::size_t queues = 1;
  std::vector<std::vector<int>> groups;
};

World random_world(std::mt19937_64& random);

// Elements in a rank's arena.
struct Part {
  std::size_t offset = 0, elements = 0;
  Element element = Element::Float32;

  std::size_t bytes() const { return elements * bytes_of(element); }
};

enum class Action : std::uint8_t {
  Compute,
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Send,
  Receive
};

struct RankOp {
  int rank = 0;
  std::size_t queue = 0;
  // Counts the ops of the rank.
  std::uint32_t number = 0;
  std::vector<std::uint32_t> waits;
  Action action = Action::Compute;
  std::vector<Part> reads, writes;
  bool timed = false;
  // These describe an exchange with other ranks: `peer` is the root or the other member, by its
  // place in the group.
  std::size_t exchange = 0, group = 0;
  int peer = 0, channel = 0;
  Reduction reduction = Reduction::Sum;
};

struct RandomProgram {
  // In an order in which one thread can run them. The ops of an exchange stand together.
  std::vector<RankOp> ops;
  // By rank.
  std::vector<std::size_t> arena_bytes;
  std::vector<std::uint32_t> op_counts;
};

// Makes a program of about `steps` ops.
RandomProgram random_program(const World& world, int steps, std::mt19937_64& random);

// Computes what the op writes from what it reads; returns a checksum of what it has read.
std::uint64_t compute(const RankOp& op, std::byte* arena);
// Returns a checksum of what the op's operands hold once it has ended.
std::uint64_t checksum_of_operands(const RankOp& op, const std::byte* arena);

// What each rank has in its arena in the end, and each op's checksum.
struct Results {
  std::vector<std::vector<std::byte>> arenas;
  std::vector<std::vector<std::uint64_t>> checksums;

  bool operator==(const Results&) const = default;
};

// What memory holds that was never written.
inline constexpr std::byte kUnwritten{0xA5};

// Runs the ops one after another in plain memory.
Results run_in_order(const World& world, const RandomProgram& program);

// Returns true if two ops may use the same memory at once, of which one writes.
bool has_race(const World& world, const RandomProgram& program);

}  // namespace shardwright::executor
