// Live tensors do not overlap, and an op that takes over memory waits for its earlier users.
#include "executor/runtime/tensor_plan.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

// Random blocks on three queues: live blocks do not overlap, and a block names the last user in
// each queue of every byte that it takes over.
TEST(Arena, ReturnsTheEarlierUsersOfMemory) {
  struct Block {
    std::size_t offset, bytes;
    Users users;
  };
  std::mt19937 random(5);
  Arena arena;
  std::vector<Block> alive;
  constexpr std::size_t kGrain = Arena::kAlignment;
  // Keyed by grain.
  std::map<std::size_t, Users> last_users;
  for (std::uint32_t op = 0; op < 3000; ++op) {
    if (!alive.empty() && random() % 2 == 0) {
      std::swap(alive[random() % alive.size()], alive.back());
      const Block block = alive.back();
      alive.pop_back();
      arena.free(block.offset, block.users);
      for (std::size_t at = block.offset; at < block.offset + block.bytes; at += kGrain)
        last_users[at / kGrain] = block.users;
      continue;
    }
    Block block{0, 1 + random() % 2000, Users(3, kNoOp)};
    Users before(3, kNoOp);
    block.offset = arena.place(block.bytes, before);
    EXPECT_EQ(block.offset % kGrain, 0U);
    EXPECT_LE(block.offset + block.bytes, arena.bytes());
    for (const Block& other : alive) {
      const bool apart =
          other.offset + other.bytes <= block.offset || block.offset + block.bytes <= other.offset;
      ASSERT_TRUE(apart);
    }
    for (std::size_t at = block.offset; at < block.offset + block.bytes; at += kGrain) {
      const Users& users = last_users[at / kGrain];
      for (std::size_t queue = 0; queue < users.size(); ++queue) {
        if (users[queue] == kNoOp) continue;
        ASSERT_NE(before[queue], kNoOp);
        ASSERT_GE(before[queue], users[queue]);
      }
    }
    block.users[random() % 3] = op;
    alive.push_back(std::move(block));
  }
}

// The order of ops, if each queue runs in order and ops wait as planned.
class Order {
 public:
  explicit Order(std::size_t queues) : last_(queues, Users(queues, kNoOp)) {}

  void add(std::uint32_t op, std::size_t queue, const std::vector<std::uint32_t>& waits) {
    Users known = last_[queue];
    for (const std::uint32_t on : waits) add_users(known, known_[on]);
    known.resize(last_.size(), kNoOp);
    known[queue] = op;
    last_[queue] = known;
    known_.push_back(std::move(known));
    queue_of_.push_back(queue);
  }
  bool is_before(std::uint32_t first, std::uint32_t second) const {
    const std::uint32_t known = known_[second][queue_of_[first]];
    return known != kNoOp && known >= first;
  }

 private:
  std::vector<Users> last_, known_;
  std::vector<std::size_t> queue_of_;
};

class TensorPlanOf : public testing::TestWithParam<PlanCase> {};

TEST_P(TensorPlanOf, OrdersAllUsersOfTheSameMemory) {
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  const ModelSpec model = GetParam().model();
  const Program program = lower(model, plan, load_stack("shardwright"));
  const Queues queues(program);
  for (const RankProgram& rank : program.stages) {
    const TensorPlan tensors(program, rank, queues, [&](TensorRef ref, const Call&) {
      return static_cast<std::size_t>(program.tensors[ref.tensor].bytes.value());
    });
    EXPECT_LE(tensors.peak_bytes(), tensors.arena_bytes());
    Order order(queues.count());
    // Keyed by address: the last op that wrote it and the ops that have read it since.
    std::map<std::size_t, std::vector<std::uint32_t>> users;
    for_each_op(program, rank, [&](const PlacedOp& placed) {
      const OpMemory& memory = tensors.of(placed.number);
      order.add(placed.number, queues.of(placed.op), memory.waits);
      for (const std::size_t written : memory.writes) {
        for (const std::uint32_t before : users[written]) {
          if (before != placed.number) {
            EXPECT_TRUE(order.is_before(before, placed.number))
                << describe(placed) << " overtakes op " << before;
          }
        }
        users[written] = {placed.number};
      }
      for (const std::size_t read : memory.reads) users[read].push_back(placed.number);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, TensorPlanOf, testing::ValuesIn(plan_cases()),
                         [](const auto& plan) { return plan.param.name; });

}  // namespace
}  // namespace shardwright::executor
