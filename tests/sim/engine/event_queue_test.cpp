#include "sim/engine/event_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <tuple>

namespace shardwright::sim {
namespace {

struct Mark {
  std::uint32_t number;
};
using Queue = EventQueue<Mark>;
using Random = std::mt19937_64;

std::vector<std::uint32_t> drained(Queue& queue) {
  std::vector<std::uint32_t> numbers;
  queue.run([&](const Queue::Event& event) { numbers.push_back(event.payload.number); });
  return numbers;
}

TEST(EventQueue, EqualTimesGoByPriorityAndThenFirstInFirstOut) {
  Queue queue;
  const Seconds time(1.0);
  queue.schedule_at(time, EventPriority::Stop, {0});
  queue.schedule_at(time, EventPriority::Start, {1});
  queue.schedule_at(time, EventPriority::Completion, {2});
  queue.schedule_at(time, EventPriority::Start, {3});
  queue.schedule_at(time, EventPriority::Sample, {4});
  EXPECT_EQ(drained(queue), (std::vector<std::uint32_t>{2, 1, 3, 4, 0}));
}

// A plain list with the same operations; the next event is searched for.
class SlowQueue {
 public:
  void schedule(double time, EventPriority priority, std::uint32_t number) {
    entries_.push_back({time, priority, sequence_++, number});
  }
  bool cancel(std::uint32_t number) {
    return std::erase_if(entries_, [&](const Entry& e) { return std::get<3>(e) == number; }) > 0;
  }
  bool reschedule(std::uint32_t number, double time) {
    for (Entry& entry : entries_) {
      if (std::get<3>(entry) != number) continue;
      entry = {time, std::get<1>(entry), sequence_++, number};
      return true;
    }
    return false;
  }
  std::uint32_t pop() {
    const auto least = std::ranges::min_element(entries_);
    const std::uint32_t number = std::get<3>(*least);
    entries_.erase(least);
    return number;
  }
  bool empty() const { return entries_.empty(); }

 private:
  using Entry = std::tuple<double, EventPriority, std::uint64_t, std::uint32_t>;
  std::vector<Entry> entries_;
  std::uint64_t sequence_ = 0;
};

RC_GTEST_PROP(EventQueue, RandomOperationsMatchASearchedList, (std::uint32_t seed)) {
  Random random(seed);
  Queue queue;
  SlowQueue slow;
  std::vector<EventId> ids;
  const auto below = [&](std::size_t count) { return random() % count; };
  for (int step = 0; step < 400; ++step) {
    // Few distinct times, so that ties are common.
    const double time = queue.now().value() + static_cast<double>(below(4));
    const auto choice = below(8);
    if (choice < 4) {
      const auto priority = static_cast<EventPriority>(below(4));
      const auto number = static_cast<std::uint32_t>(ids.size());
      slow.schedule(time, priority, number);
      ids.push_back(queue.schedule_at(Seconds(time), priority, {number}));
    } else if (choice == 4 && !ids.empty()) {
      const std::size_t victim = below(ids.size());
      RC_ASSERT(queue.cancel(ids[victim]) == slow.cancel(static_cast<std::uint32_t>(victim)));
    } else if (choice == 5 && !ids.empty()) {
      const std::size_t moved = below(ids.size());
      RC_ASSERT(queue.reschedule(ids[moved], Seconds(time)) ==
                slow.reschedule(static_cast<std::uint32_t>(moved), time));
    } else if (!slow.empty()) {
      RC_ASSERT(queue.pop().payload.number == slow.pop());
    }
    RC_ASSERT(queue.empty() == slow.empty());
  }
  while (!slow.empty()) RC_ASSERT(queue.pop().payload.number == slow.pop());
  RC_ASSERT(queue.pending() == 0U);
}

TEST(EventQueue, CancellingLateOrTwiceIsAHarmlessFalse) {
  Queue queue;
  const EventId first = queue.schedule_at(Seconds(1.0), EventPriority::Start, {1});
  queue.pop();
  EXPECT_FALSE(queue.cancel(first));
  // The slot is used again; the old id must not touch the new event.
  const EventId second = queue.schedule_at(Seconds(2.0), EventPriority::Start, {2});
  EXPECT_FALSE(queue.cancel(first));
  EXPECT_EQ(queue.pending(), 1U);
  EXPECT_TRUE(queue.cancel(second));
  EXPECT_FALSE(queue.cancel(second));
  EXPECT_FALSE(queue.cancel(EventId{}));
  EXPECT_TRUE(queue.empty());
}

std::uint64_t signature_of_a_run(std::uint64_t seed) {
  Random random(seed);
  Queue queue;
  for (std::uint32_t i = 0; i < 100; ++i)
    queue.schedule_at(Seconds(static_cast<double>(random() % 50)), EventPriority::Start, {i});
  std::uint64_t signature = 0;
  queue.run([&](const Queue::Event& event) {
    signature = signature * 6364136223846793005ULL + event.payload.number + 1;
    if (queue.executed() < 5000)
      queue.schedule_at(event.time + Seconds(static_cast<double>(random() % 9)),
                        EventPriority::Completion, {static_cast<std::uint32_t>(random() % 1000)});
  });
  return signature;
}

TEST(EventQueue, ManyQueuesInThreadsGiveWhatEachGivesAlone) {
  std::vector<std::uint64_t> together(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < together.size(); ++i)
      threads.emplace_back([&together, i] { together[i] = signature_of_a_run(i); });
  }
  for (std::size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i], signature_of_a_run(i));
}

TEST(EventQueueDeathTest, ThePastIsRefused) {
  Queue queue;
  queue.schedule_at(Seconds(2.0), EventPriority::Start, {});
  queue.pop();
  EXPECT_DEATH(queue.schedule_at(Seconds(1.0), EventPriority::Start, {}), "past");
}

}  // namespace
}  // namespace shardwright::sim
