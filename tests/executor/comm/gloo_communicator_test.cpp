// Collectives over small integers, whose sums are exact in any order.
#include "executor/comm/gloo_communicator.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

namespace shardwright::executor {
namespace {

// Calls `work` concurrently on each of `size` ranks.
void on_ranks(int size, const std::function<void(Communicator&)>& work,
              std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  LocalStore store;
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      GlooDevice device("127.0.0.1", timeout);
      const auto communicator = device.connect(store, "group", rank, size);
      work(*communicator);
    }));
  }
  for (auto& rank : ranks) rank.get();
}

float value_of(int rank, std::size_t index) {
  return static_cast<float>((rank + 3) * static_cast<int>(index % 17) - rank);
}

std::vector<float> rank_values(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

class Gloo : public testing::TestWithParam<int> {};

TEST_P(Gloo, AllReduceAddsAndTakesMaxima) {
  const int size = GetParam();
  on_ranks(size, [size](Communicator& group) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{1000}}) {
      std::vector<float> sum = rank_values(group.rank(), count), most = sum;
      group.all_reduce(sum.data(), count, Element::Float32, Reduction::Sum, nullptr);
      group.all_reduce(most.data(), count, Element::Float32, Reduction::Max, nullptr);
      for (std::size_t i = 0; i < count; ++i) {
        float expected = 0.0F, largest = value_of(0, i);
        for (int rank = 0; rank < size; ++rank) {
          expected += value_of(rank, i);
          largest = std::max(largest, value_of(rank, i));
        }
        ASSERT_EQ(sum[i], expected);
        ASSERT_EQ(most[i], largest);
      }
    }
  });
}

// An all-reduce equals a reduce-scatter and an all-gather.
TEST_P(Gloo, ReduceScatterAndAllGatherInPlaceAreAnAllReduce) {
  on_ranks(GetParam(), [](Communicator& group) {
    const std::size_t each = 33, count = each * static_cast<std::size_t>(group.size());
    std::vector<float> together = rank_values(group.rank(), count), apart = together;
    group.all_reduce(together.data(), count, Element::Float32, Reduction::Sum, nullptr);
    float* own = apart.data() + static_cast<std::size_t>(group.rank()) * each;
    group.reduce_scatter(apart.data(), own, each, Element::Float32, nullptr);
    group.all_gather(own, apart.data(), each, Element::Float32, nullptr);
    EXPECT_EQ(apart, together);
  });
}

// Rank a sends (a + 2 b) mod 4 bytes to rank b, none to some.
TEST_P(Gloo, AllToAllSendsUnevenParts) {
  on_ranks(GetParam(), [](Communicator& group) {
    const auto bytes = [](int from, int to) {
      return static_cast<std::size_t>((from + 2 * to) % 4);
    };
    std::string in, expected;
    std::vector<std::size_t> sent, received;
    for (int peer = 0; peer < group.size(); ++peer) {
      sent.push_back(bytes(group.rank(), peer));
      received.push_back(bytes(peer, group.rank()));
      in.append(sent.back(), static_cast<char>('a' + 8 * group.rank() + peer));
      expected.append(received.back(), static_cast<char>('a' + 8 * peer + group.rank()));
    }
    for (int repetition = 0; repetition < 3; ++repetition) {
      std::string out(expected.size(), '-');
      group.all_to_all(in.data(), sent, out.data(), received, nullptr);
      EXPECT_EQ(out, expected);
    }
  });
}

TEST_P(Gloo, BroadcastGivesAllTheRootsValues) {
  on_ranks(GetParam(), [](Communicator& group) {
    std::vector<float> values = rank_values(group.rank(), 100);
    group.broadcast(values.data(), 400, group.size() - 1, nullptr);
    EXPECT_EQ(values, rank_values(group.size() - 1, 100));
  });
}

TEST_P(Gloo, TransfersOfAChannelKeepTheirOrder) {
  on_ranks(GetParam(), [](Communicator& group) {
    const int next = (group.rank() + 1) % group.size();
    const int before = (group.rank() + group.size() - 1) % group.size();
    auto sending = std::async(std::launch::async, [&] {
      for (int i = 0; i < 20; ++i) {
        const int message = 100 * group.rank() + i;
        group.send(&message, sizeof message, next, 0, nullptr);
      }
    });
    for (int i = 0; i < 20; ++i) {
      int message = 0;
      group.receive(&message, sizeof message, before, 0, nullptr);
      EXPECT_EQ(message, 100 * before + i);
    }
    sending.get();
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Gloo, testing::Values(2, 3, 4));

// After one rank aborts, its waiting operations, those of the other rank, and all later ones fail.
TEST(Gloo, WaitingOperationsFailSoonAfterAnAbort) {
  constexpr std::chrono::seconds kTimeout{20};
  on_ranks(
      2,
      [&](Communicator& group) {
        const auto start = std::chrono::steady_clock::now();
        const auto receive = [&] {
          std::vector<float> values(4);
          EXPECT_THROW(group.receive(values.data(), sizeof(float), 1 - group.rank(), 0, nullptr),
                       CommunicationError);
        };
        const auto waiting = std::async(std::launch::async, receive);
        if (group.rank() == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          group.abort();
        }
        waiting.wait();
        receive();
        float number = 1.0F;
        EXPECT_THROW(group.all_reduce(&number, 1, Element::Float32, Reduction::Sum, nullptr),
                     CommunicationError);
        EXPECT_LT(std::chrono::steady_clock::now() - start, kTimeout / 2);
      },
      kTimeout);
}

TEST(Gloo, AMissingPeerIsAnError) {
  const auto with_a_silent_peer = [](Communicator& group) {
    float value = 1.0F;
    if (group.rank() == 0)
      group.all_reduce(&value, 1, Element::Float32, Reduction::Sum, nullptr);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(800));
  };
  EXPECT_THROW(on_ranks(2, with_a_silent_peer, std::chrono::milliseconds(300)), CommunicationError);
}

}  // namespace
}  // namespace shardwright::executor
