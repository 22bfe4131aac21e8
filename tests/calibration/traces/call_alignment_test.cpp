// Collectives of two ranks that lack some of each other's, against the pairs that they were drawn
// from.
#include "calibration/traces/call_alignment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

#include "core/base/large_json_file.hpp"

namespace shardwright::calibration {
namespace {

// A rank's calls with their numbers among those that were drawn.
struct DrawnCalls {
  RankCalls calls;
  std::vector<std::size_t> numbers;
};

struct DrawnPair {
  std::deque<CollectiveCall> arguments;
  DrawnCalls first, second;

  std::set<std::pair<std::size_t, std::size_t>> shared() const {
    std::set<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0, j = 0; i < first.numbers.size() && j < second.numbers.size();) {
      if (first.numbers[i] == second.numbers[j])
        pairs.emplace(i++, j++);
      else if (first.numbers[i] < second.numbers[j])
        ++i;
      else
        ++j;
    }
    return pairs;
  }
};

struct DrawnRecording {
  std::size_t calls = 0;
  // 1: all calls are alike.
  int sizes = 1;
  // The part of calls that a rank lacks.
  double lacking = 0.0;
  bool numbered = false;
  // One call a millisecond on equal clocks, with ends that differ by up to 40 µs: no shift is
  // steadier than another.
  bool regular = false;
};

// Ends of all ranks lie within 1 µs on clocks that differ by up to 10 ms; calls end 20 to 300 µs
// apart.
DrawnPair draw_pair(const DrawnRecording& recording, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  DrawnPair pair;
  const double clock = recording.regular ? 0.0 : 20e6 * (uniform(random) - 0.5);
  const std::size_t late = random() % (recording.calls / 4);
  const bool first_is_late = random() % 2 == 0;
  double now = 1e9;
  for (std::size_t number = 0; number < recording.calls; ++number) {
    now += recording.regular ? 1e6 : 20e3 + 280e3 * uniform(random);
    CollectiveCall& call = pair.arguments.emplace_back();
    call.bytes = static_cast<std::int64_t>(
        1'000'000 * (1 + random() % static_cast<std::uint64_t>(recording.sizes)));
    if (recording.numbered) call.sequence = static_cast<std::int64_t>(number);
    for (const bool first : {true, false}) {
      if (number < late && first == first_is_late) continue;
      if (uniform(random) < recording.lacking) continue;
      DrawnCalls& drawn = first ? pair.first : pair.second;
      drawn.calls.push_back(
          {"all_reduce", &call,
           now + (first ? clock : 0.0) + (recording.regular ? 40e3 : 1e3) * uniform(random),
           10'000});
      drawn.numbers.push_back(number);
    }
  }
  return pair;
}

std::set<std::pair<std::size_t, std::size_t>> found_in(const DrawnPair& pair) {
  const CallAlignment alignment = align_calls(pair.first.calls, pair.second.calls);
  return {alignment.pairs.begin(), alignment.pairs.end()};
}

TEST(CallAlignment, FindsAllPairsOfCompleteRecordings) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const DrawnPair pair = draw_pair({.calls = 8 + random() % 600, .sizes = 1 + i % 4}, random);
    EXPECT_EQ(found_in(pair), pair.shared()) << i;
  }
}

TEST(CallAlignment, TakesTheNearestOfRegularCalls) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20; ++i) {
    const DrawnPair pair =
        draw_pair({.calls = 100 + random() % 2000, .sizes = 1, .regular = true}, random);
    EXPECT_EQ(found_in(pair), pair.shared()) << i;
  }
}

// A call between two gaps may be lost.
TEST(CallAlignment, GoesOnBehindCallsThatOneRankLacks) {
  std::mt19937_64 random(2);
  std::size_t shared = 0, right = 0, wrong = 0;
  for (int i = 0; i < 60; ++i) {
    const DrawnPair pair =
        draw_pair({.calls = 60 + random() % 2000, .sizes = 1 + i % 4, .lacking = 0.01}, random);
    const auto expected = pair.shared();
    shared += expected.size();
    for (const auto& each : found_in(pair)) ++(expected.contains(each) ? right : wrong);
  }
  EXPECT_GT(static_cast<double>(right), 0.995 * static_cast<double>(shared));
  EXPECT_LT(static_cast<double>(wrong), 0.001 * static_cast<double>(shared));
}

TEST(CallAlignment, GoesOnBehindALongGap) {
  std::mt19937_64 random(3);
  for (const std::size_t gap : {1U, 2U, 10U, 40U, 300U}) {
    DrawnPair pair = draw_pair({.calls = 2000}, random);
    const auto at = static_cast<std::ptrdiff_t>(700);
    auto& [calls, numbers] = gap % 2 == 0 ? pair.first : pair.second;
    calls.erase(calls.begin() + at, calls.begin() + at + static_cast<std::ptrdiff_t>(gap));
    numbers.erase(numbers.begin() + at, numbers.begin() + at + static_cast<std::ptrdiff_t>(gap));
    EXPECT_EQ(found_in(pair), pair.shared()) << gap;
  }
}

// Numbers tell whatever sizes and times do not.
TEST(CallAlignment, TakesNumbersWhereTracesHaveThem) {
  std::mt19937_64 random(4);
  DrawnPair pair = draw_pair({.calls = 3000, .lacking = 0.2, .numbered = true}, random);
  for (RankCall& call : pair.second.calls) call.end = 0.0;
  EXPECT_EQ(found_in(pair), pair.shared());
  // Those that were launched before the recording began have none.
  pair = draw_pair({.calls = 400, .sizes = 2, .numbered = true}, random);
  const std::size_t first = std::max(pair.first.numbers.front(), pair.second.numbers.front());
  for (std::size_t i = first; i < first + 5; ++i) pair.arguments[i].sequence.reset();
  EXPECT_EQ(found_in(pair), pair.shared());
}

// Equal calls on clocks that say nothing: marked steps tell where the lists belong, also where a
// rank lacks a call of one of them.
TEST(CallAlignment, TakesStepsThatBothRanksMark) {
  constexpr std::size_t kOfStep = 48;
  std::mt19937_64 random(8);
  for (int i = 0; i < 20; ++i) {
    DrawnPair pair = draw_pair({.calls = 400, .regular = true}, random);
    const std::size_t first = std::max(pair.first.numbers.front(), pair.second.numbers.front());
    for (DrawnCalls* drawn : {&pair.first, &pair.second})
      for (std::size_t j = 0; j < drawn->calls.size(); ++j)
        if (drawn->numbers[j] >= (first / kOfStep + 1) * kOfStep)
          drawn->calls[j].step = static_cast<std::int64_t>(drawn->numbers[j] / kOfStep);
    for (RankCall& call : pair.second.calls) call.end += 7.3e6;
    if (i % 2 == 1) {
      pair.second.calls.erase(pair.second.calls.end() - 60);
      pair.second.numbers.erase(pair.second.numbers.end() - 60);
    }
    const auto found = found_in(pair), shared = pair.shared();
    for (const auto& each : found) EXPECT_TRUE(shared.contains(each)) << i << ": " << each.first;
    for (const auto& each : shared) EXPECT_TRUE(found.contains(each)) << i << ": " << each.first;
  }
}

TEST(CallAlignment, PairsRecordingsOfTheSameCallsOneByOne) {
  std::mt19937_64 random(9);
  std::uniform_real_distribution<double> uniform;
  for (const double clock : {0.0, 0.4e6, 5.2e6, 100e6, 1e9}) {
    DrawnPair pair = draw_pair({.calls = 192, .regular = true}, random);
    pair.second = pair.first;
    for (RankCall& call : pair.second.calls) call.end += clock + 40e3 * uniform(random);
    EXPECT_EQ(found_in(pair), pair.shared()) << clock;
  }
}

TEST(CallAlignment, PairsNoCallsOfOtherKindsOrSizes) {
  std::mt19937_64 random(5);
  DrawnPair pair = draw_pair({.calls = 100}, random);
  for (RankCall& call : pair.second.calls) call.kind = "all_gather";
  EXPECT_THAT(found_in(pair), testing::IsEmpty());
}

TEST(CallAlignment, CanBeStopped) {
  std::mt19937_64 random(6);
  std::stop_source source;
  source.request_stop();
  for (const bool numbered : {true, false}) {
    const DrawnPair pair = draw_pair({.calls = 100, .numbered = numbered}, random);
    EXPECT_THROW(align_calls(pair.first.calls, pair.second.calls, source.get_token()),
                 ReadingStopped);
  }
}

}  // namespace
}  // namespace shardwright::calibration
