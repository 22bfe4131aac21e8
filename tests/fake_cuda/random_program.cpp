#include "tests/fake_cuda/random_program.hpp"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <map>
#include <utility>

#include "executor/kernels/bfloat16.hpp"
#include "executor/runtime/tensor_plan.hpp"

namespace shardwright::executor {
namespace {

class Generator {
 public:
  Generator(const World& world, std::mt19937_64& random)
      : world_(world), random_(random), ranks_(static_cast<std::size_t>(world.ranks)) {
    timing_ = draw(3);
  }

  RandomProgram make(int steps) {
    for (int step = 0; step < steps; ++step) {
      if (!world_.groups.empty() && draw(3) == 0) {
        exchange();
      } else {
        compute_somewhere();
      }
    }
    for (const Rank& rank : ranks_) {
      program_.arena_bytes.push_back(rank.arena.bytes());
      program_.op_counts.push_back(static_cast<std::uint32_t>(rank.queues.size()));
    }
    return std::move(program_);
  }

 private:
  struct Block {
    Part part;
    std::uint32_t writer = 0;
    Users users;
    // A block is read before it is freed, so that no wrong value goes unseen.
    bool is_read = false;
  };
  struct Rank {
    Arena arena;
    std::vector<Block> blocks;
    // The queue of each op.
    std::vector<std::size_t> queues;
  };

  std::size_t draw(std::size_t below) { return random_() % below; }

  Rank& rank_of(const RankOp& op) { return ranks_[static_cast<std::size_t>(op.rank)]; }

  RankOp begin(int rank) {
    RankOp op;
    op.rank = rank;
    op.queue = draw(world_.queues);
    op.number = static_cast<std::uint32_t>(rank_of(op).queues.size());
    // No op is timed, all are, or every second one.
    op.timed = timing_ == 1 || (timing_ == 2 && draw(2) == 0);
    rank_of(op).queues.push_back(op.queue);
    return op;
  }

  void wait_for(RankOp& op, std::uint32_t on) {
    const bool known = std::find(op.waits.begin(), op.waits.end(), on) != op.waits.end();
    if (on == kNoOp || known || rank_of(op).queues[on] == op.queue) return;
    op.waits.push_back(on);
  }

  void use(const RankOp& op, Block& block) const {
    block.users.resize(world_.queues, kNoOp);
    block.users[op.queue] = op.number;
  }

  void read(RankOp& op, Block& block) {
    wait_for(op, block.writer);
    op.reads.push_back(block.part);
    block.is_read = true;
    use(op, block);
  }

  void overwrite(RankOp& op, Block& block) {
    for (const std::uint32_t user : block.users) wait_for(op, user);
    op.writes.push_back(block.part);
    block.users.clear();
    block.is_read = false;
    block.writer = op.number;
    use(op, block);
  }

  void write_new(RankOp& op, std::size_t elements, Element element) {
    Block block;
    block.part = {0, elements, element};
    Users users;
    block.part.offset = rank_of(op).arena.place(block.part.bytes(), users);
    for (const std::uint32_t user : users) wait_for(op, user);
    op.writes.push_back(block.part);
    block.writer = op.number;
    use(op, block);
    rank_of(op).blocks.push_back(std::move(block));
  }

  void free_some(Rank& rank) {
    for (std::size_t i = rank.blocks.size(); i-- > 0;) {
      if (!rank.blocks[i].is_read || draw(2) == 0) continue;
      rank.arena.free(rank.blocks[i].part.offset, rank.blocks[i].users);
      rank.blocks.erase(rank.blocks.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  Element any_element() {
    return std::array{Element::Float32, Element::Float64, Element::Bfloat16}[draw(3)];
  }

  void compute_somewhere() {
    RankOp op = begin(static_cast<int>(draw(static_cast<std::size_t>(world_.ranks))));
    Rank& rank = rank_of(op);
    for (std::size_t reads = draw(4); reads > 0 && !rank.blocks.empty(); --reads)
      read(op, rank.blocks[draw(rank.blocks.size())]);
    for (Block& block : rank.blocks) {
      if (!block.is_read && draw(2) == 0) read(op, block);
    }
    if (!rank.blocks.empty() && draw(3) == 0) {
      Block& changed = rank.blocks[draw(rank.blocks.size())];
      op.reads.push_back(changed.part);
      overwrite(op, changed);
    } else {
      write_new(op, 1 + draw(kMostElements), any_element());
    }
    program_.ops.push_back(std::move(op));
    free_some(rank);
  }

  // Returns the new block of a rank, which an op of its own writes.
  Block& produce(int rank, std::size_t elements, Element element) {
    RankOp op = begin(rank);
    write_new(op, elements, element);
    program_.ops.push_back(op);
    return rank_of(op).blocks.back();
  }

  void exchange() {
    RankOp like;
    like.action = static_cast<Action>(1 + draw(5));
    like.exchange = ++exchanges_;
    like.group = draw(world_.groups.size());
    like.reduction = draw(2) == 0 ? Reduction::Sum : Reduction::Max;
    const std::vector<int>& members = world_.groups[like.group];
    if (like.action == Action::Send) return transfer(like, members);
    like.peer = static_cast<int>(draw(members.size()));
    const std::size_t each = 1 + draw(kMostElements);
    const Element element = any_element();
    const bool in_place = draw(2) == 0;
    const bool whole =
        like.action == Action::ReduceScatter || (like.action == Action::AllGather && in_place);
    const bool from_one = like.action == Action::Broadcast;
    for (std::size_t place = 0; place < members.size(); ++place) {
      if (!from_one || static_cast<int>(place) == like.peer)
        produce(members[place], whole ? each * members.size() : each, element);
    }
    for (std::size_t place = 0; place < members.size(); ++place) {
      RankOp op = begin_like(like, members[place]);
      if (from_one && static_cast<int>(place) != like.peer) {
        write_new(op, each, element);
        program_.ops.push_back(std::move(op));
        continue;
      }
      Block& block = rank_of(op).blocks.back();
      const Part part{block.part.offset + place * each * bytes_of(element), each, element};
      if (from_one) {
        read(op, block);
      } else if (like.action == Action::AllReduce) {
        op.reads.push_back(block.part);
        overwrite(op, block);
      } else if (in_place) {
        op.reads.push_back(like.action == Action::AllGather ? part : block.part);
        overwrite(op, block);
        if (like.action == Action::ReduceScatter) op.writes.back() = part;
      } else {
        read(op, block);
        write_new(op, like.action == Action::AllGather ? each * members.size() : each, element);
      }
      program_.ops.push_back(std::move(op));
    }
    for (const int rank : members) free_some(ranks_[static_cast<std::size_t>(rank)]);
  }

  void transfer(RankOp like, const std::vector<int>& members) {
    const std::size_t from = draw(members.size());
    const std::size_t to = (from + 1 + draw(members.size() - 1)) % members.size();
    like.channel = static_cast<int>(draw(2));
    const std::size_t elements = 1 + draw(kMostElements);
    const Element element = any_element();
    produce(members[from], elements, element);
    RankOp send = begin_like(like, members[from]);
    send.peer = static_cast<int>(to);
    read(send, rank_of(send).blocks.back());
    RankOp receive = begin_like(like, members[to]);
    receive.action = Action::Receive;
    receive.peer = static_cast<int>(from);
    write_new(receive, elements, element);
    program_.ops.push_back(std::move(send));
    program_.ops.push_back(std::move(receive));
  }

  RankOp begin_like(const RankOp& like, int rank) {
    RankOp op = begin(rank);
    op.action = like.action;
    op.exchange = like.exchange;
    op.group = like.group;
    op.peer = like.peer;
    op.channel = like.channel;
    op.reduction = like.reduction;
    return op;
  }

  static constexpr std::size_t kMostElements = 24;

  const World& world_;
  std::mt19937_64& random_;
  std::vector<Rank> ranks_;
  RandomProgram program_;
  std::size_t exchanges_ = 0, timing_ = 0;
};

double value_at(const std::byte* data, std::size_t index, Element element) {
  switch (element) {
    case Element::Float64:
      return reinterpret_cast<const double*>(data)[index];
    case Element::Bfloat16:
      return from_bfloat16(reinterpret_cast<const std::uint16_t*>(data)[index]);
    case Element::Float32:
      break;
  }
  return reinterpret_cast<const float*>(data)[index];
}

void set_value(std::byte* data, std::size_t index, Element element, double value) {
  switch (element) {
    case Element::Float64:
      reinterpret_cast<double*>(data)[index] = value;
      return;
    case Element::Bfloat16:
      reinterpret_cast<std::uint16_t*>(data)[index] = to_bfloat16(static_cast<float>(value));
      return;
    case Element::Float32:
      reinterpret_cast<float*>(data)[index] = static_cast<float>(value);
  }
}

// FNV-1a.
constexpr std::uint64_t kChecksumOfNothing = 14695981039346656037U;

std::uint64_t add_to_checksum(std::uint64_t checksum, const std::byte* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    checksum = (checksum ^ std::to_integer<std::uint64_t>(data[i])) * 1099511628211U;
  return checksum;
}

// The ops of one exchange in plain memory.
class PlainExchange {
 public:
  PlainExchange(const RankOp* first, std::size_t members, Results& results)
      : first_(first), members_(members), results_(results) {
    for (std::size_t member = 0; member < members; ++member) {
      std::vector<double> values;
      if (!first[member].reads.empty()) {
        const Part& part = first[member].reads.front();
        for (std::size_t i = 0; i < part.elements; ++i)
          values.push_back(value_at(place(member, part), i, part.element));
      }
      read_.push_back(std::move(values));
    }
  }

  void run() {
    for (std::size_t member = 0; member < members_; ++member) {
      if (first_[member].writes.empty()) continue;
      const Part& part = first_[member].writes.front();
      for (std::size_t i = 0; i < part.elements; ++i)
        set_value(place(member, part), i, part.element, value(member, i, part.elements));
    }
  }

 private:
  std::byte* place(std::size_t member, const Part& part) {
    return results_.arenas[static_cast<std::size_t>(first_[member].rank)].data() + part.offset;
  }

  // Element i of the `elements` that a member writes.
  double value(std::size_t member, std::size_t i, std::size_t elements) const {
    const std::size_t each = elements / members_;
    switch (first_[member].action) {
      case Action::AllGather:
        return read_[i / each][i % each];
      case Action::ReduceScatter:
        return reduced(member * elements + i, Reduction::Sum);
      case Action::AllReduce:
        return reduced(i, first_[member].reduction);
      case Action::Broadcast:
        return read_[static_cast<std::size_t>(first_[member].peer)][i];
      default:
        return read_.front()[i];
    }
  }

  double reduced(std::size_t i, Reduction reduction) const {
    double all = read_.front()[i];
    for (std::size_t member = 1; member < members_; ++member) {
      const double one = read_[member][i];
      all = reduction == Reduction::Sum ? all + one : std::max(all, one);
    }
    return all;
  }

  const RankOp* first_;
  std::size_t members_;
  Results& results_;
  std::vector<std::vector<double>> read_;
};

bool overlap(const Part& a, const Part& b) {
  return a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes();
}

bool conflict(const RankOp& a, const RankOp& b) {
  const auto meet = [](const std::vector<Part>& some, const std::vector<Part>& others) {
    return std::any_of(some.begin(), some.end(), [&](const Part& part) {
      return std::any_of(others.begin(), others.end(),
                         [&](const Part& other) { return overlap(part, other); });
    });
  };
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

// The starts (2 i) and ends (2 i + 1) of ops that come before each other's, from the first to the
// last.
class Precedence {
 public:
  static constexpr std::size_t kMostOps = 512;

  Precedence(const World& world, const RandomProgram& program)
      : before_(2 * program.ops.size()), ends_(program.op_counts.size()) {
    std::map<std::pair<int, std::size_t>, std::size_t> of_queue;
    std::map<std::tuple<int, std::size_t, int, int, int>, std::size_t> of_communicator;
    for (std::size_t begin = 0, end = 0; begin < program.ops.size(); begin = end) {
      end = end_of_exchange(program, begin);
      for (std::size_t i = begin; i < end; ++i) {
        const RankOp& op = program.ops[i];
        auto& ends = ends_[static_cast<std::size_t>(op.rank)];
        for (const std::uint32_t on : op.waits) add(ends[on], 2 * i);
        ends.push_back(2 * i + 1);
        const auto follow = [&](auto& last, const auto& key) {
          const auto [found, is_first] = last.try_emplace(key, 2 * i + 1);
          if (!is_first) add(std::exchange(found->second, 2 * i + 1), 2 * i);
        };
        follow(of_queue, std::pair{op.rank, op.queue});
        if (op.exchange != 0) follow(of_communicator, communicator_of(world, op));
      }
      // A receiver waits for its sender, and a sender may not wait.
      for (std::size_t from = begin; from < end; ++from) {
        for (std::size_t to = begin; to < end; ++to) {
          if (from == to || program.ops[from].action != Action::Receive) add(2 * from, 2 * to + 1);
        }
      }
    }
  }

  // True if op `a` has ended before op `b` starts.
  bool orders(std::size_t a, std::size_t b) const { return before_[2 * b][2 * a + 1]; }

  static std::size_t end_of_exchange(const RandomProgram& program, std::size_t begin) {
    std::size_t end = begin + 1;
    const std::size_t exchange = program.ops[begin].exchange;
    while (exchange != 0 && end < program.ops.size() && program.ops[end].exchange == exchange)
      ++end;
    return end;
  }

 private:
  // Earlier events have all that comes before them already.
  void add(std::size_t earlier, std::size_t later) {
    before_[later] |= before_[earlier];
    before_[later].set(earlier);
  }

  static std::tuple<int, std::size_t, int, int, int> communicator_of(const World& world,
                                                                     const RankOp& op) {
    const std::vector<int>& members = world.groups[op.group];
    const auto own =
        static_cast<int>(std::find(members.begin(), members.end(), op.rank) - members.begin());
    if (op.action == Action::Send) return {op.rank, op.group, own, op.peer, op.channel};
    if (op.action == Action::Receive) return {op.rank, op.group, op.peer, own, op.channel};
    return {op.rank, op.group, -1, -1, -1};
  }

  std::vector<std::bitset<2 * kMostOps>> before_;
  // The ends of each rank's ops.
  std::vector<std::vector<std::size_t>> ends_;
};

}  // namespace

World random_world(std::mt19937_64& random) {
  World world;
  world.ranks = static_cast<int>(1 + random() % 4);
  world.queues = 1 + random() % 5;
  if (world.ranks == 1) return world;
  std::vector<int> all(static_cast<std::size_t>(world.ranks));
  for (int rank = 0; rank < world.ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
  world.groups.push_back(all);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(2);
  std::sort(all.begin(), all.end());
  world.groups.push_back(all);
  return world;
}

RandomProgram random_program(const World& world, int steps, std::mt19937_64& random) {
  return Generator(world, random).make(steps);
}

std::uint64_t compute(const RankOp& op, std::byte* arena) {
  std::uint64_t checksum =
      kChecksumOfNothing + 16 * op.number + static_cast<std::uint64_t>(op.rank);
  for (const Part& part : op.reads)
    checksum = add_to_checksum(checksum, arena + part.offset, part.bytes());
  for (const Part& part : op.writes) {
    // Small integers, so that sums of several ranks are exact.
    std::mt19937_64 values(checksum);
    for (std::size_t i = 0; i < part.elements; ++i)
      set_value(arena + part.offset, i, part.element, static_cast<double>(values() % 16));
  }
  return checksum;
}

std::uint64_t checksum_of_operands(const RankOp& op, const std::byte* arena) {
  std::uint64_t checksum = kChecksumOfNothing;
  for (const auto* parts : {&op.reads, &op.writes}) {
    for (const Part& part : *parts)
      checksum = add_to_checksum(checksum, arena + part.offset, part.bytes());
  }
  return checksum;
}

Results run_in_order(const World& world, const RandomProgram& program) {
  Results results;
  for (int rank = 0; rank < world.ranks; ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    results.arenas.emplace_back(std::max<std::size_t>(program.arena_bytes[place], 1), kUnwritten);
    results.checksums.emplace_back(program.op_counts[place], 0);
  }
  for (std::size_t begin = 0, end = 0; begin < program.ops.size(); begin = end) {
    end = Precedence::end_of_exchange(program, begin);
    const RankOp& op = program.ops[begin];
    const auto rank = static_cast<std::size_t>(op.rank);
    if (op.action == Action::Compute) {
      results.checksums[rank][op.number] = compute(op, results.arenas[rank].data());
    } else {
      PlainExchange(&op, end - begin, results).run();
    }
    for (std::size_t i = begin; i < end && op.action != Action::Compute; ++i) {
      const RankOp& member = program.ops[i];
      const auto place = static_cast<std::size_t>(member.rank);
      results.checksums[place][member.number] =
          checksum_of_operands(member, results.arenas[place].data());
    }
  }
  return results;
}

bool has_race(const World& world, const RandomProgram& program) {
  const Precedence precedence(world, program);
  for (std::size_t b = 0; b < program.ops.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      const bool same_rank = program.ops[a].rank == program.ops[b].rank;
      if (same_rank && !precedence.orders(a, b) && conflict(program.ops[a], program.ops[b]))
        return true;
    }
  }
  return false;
}

}  // namespace shardwright::executor
