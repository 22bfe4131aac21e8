#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <stdexcept>
#include <vector>

#include "executor/runtime/op_queues.hpp"

namespace shardwright::executor {
namespace {

QueuedOp op_of(std::uint32_t number, std::vector<std::uint32_t> waits, std::function<void()> work) {
  QueuedOp op;
  op.number = number;
  op.waits = std::move(waits);
  op.run = [work = std::move(work)](Queue /*queue*/) { work(); };
  op.name = [] { return "op"; };
  return op;
}

// Random ops on four queues: each runs after the previous ops of its queue and those that it waits
// for.
TEST(StreamQueues, KeepTheOrderOfQueuesAndWaits) {
  std::mt19937 random(3);
  const auto queues = make_stream_queues(4, {[] {}, nullptr});
  for (int step = 0; step < 20; ++step) {
    constexpr std::uint32_t kOps = 100;
    std::vector<std::uint32_t> order;
    std::vector<std::size_t> queue_of;
    std::vector<std::vector<std::uint32_t>> waits_of;
    std::mutex mutex;
    queues->begin(kOps);
    for (std::uint32_t op = 0; op < kOps; ++op) {
      queue_of.push_back(random() % 4);
      waits_of.emplace_back();
      for (int i = 0; i < 2 && op > 0; ++i) waits_of.back().push_back(random() % op);
      queues->issue(queue_of.back(), op_of(op, waits_of.back(), [&, op] {
                      const std::lock_guard lock(mutex);
                      order.push_back(op);
                    }));
    }
    queues->drain();
    ASSERT_EQ(order.size(), kOps);
    std::vector<std::size_t> place(kOps);
    for (std::size_t i = 0; i < kOps; ++i) place[order[i]] = i;
    for (std::uint32_t op = 0; op < kOps; ++op) {
      for (const std::uint32_t on : waits_of[op]) EXPECT_LT(place[on], place[op]);
      for (std::uint32_t before = 0; before < op; ++before) {
        const bool same_queue = queue_of[before] == queue_of[op];
        EXPECT_TRUE(!same_queue || place[before] < place[op]);
      }
    }
  }
}

TEST(StreamQueues, StopAtTheFirstFailureAndNameIt) {
  int calls = 0;
  bool ran = false;
  const auto queues = make_stream_queues(2, {[&calls] { ++calls; }, nullptr});
  queues->begin(3);
  queues->issue(0, op_of(0, {}, [] { throw std::runtime_error("broken"); }));
  queues->issue(1, op_of(1, {0}, [&ran] { ran = true; }));
  queues->issue(0, op_of(2, {1}, [&ran] { ran = true; }));
  EXPECT_THROW(queues->drain(), OpError);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace shardwright::executor
