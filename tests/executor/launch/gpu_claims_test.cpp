
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "executor/comm/communicator.hpp"
#include "executor/launch/rank_backend.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;

// Returns the place of rank `rank` of four on two hosts.
LaunchPlace place_of(std::int64_t rank) {
  LaunchPlace place;
  place.rank = rank;
  place.world = 4;
  place.local_rank = rank % 2;
  place.local_world = 2;
  return place;
}

struct Claim {
  const char* host;
  const char* gpu;
};

// Returns the error of each rank; "" if it continues.
std::vector<std::string> outcomes(const std::vector<Claim>& claims) {
  LocalStore store;
  std::vector<std::future<std::string>> ranks;
  for (std::size_t rank = 0; rank < claims.size(); ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      return thrown_by([&] {
        claim_gpu(store, place_of(static_cast<std::int64_t>(rank)), claims[rank].host,
                  claims[rank].gpu, 5s);
      });
    }));
  }
  std::vector<std::string> reported;
  for (auto& rank : ranks) reported.push_back(rank.get());
  return reported;
}

TEST(GpuClaims, RanksWithOwnGpusContinue) {
  // The second host's GPUs have the same places on its buses.
  EXPECT_THAT(outcomes({{"a", "1b"}, {"a", "43"}, {"b", "1b"}, {"b", "43"}}), testing::Each(""));
}

TEST(GpuClaims, RanksThatWouldShareAGpuAreNamed) {
  const std::vector<std::string> reported =
      outcomes({{"a", "1b"}, {"a", "43"}, {"b", "1b"}, {"b", "1b"}});
  EXPECT_EQ(reported[0], "");
  EXPECT_EQ(reported[1], "");
  for (const std::size_t rank : {2, 3})
    EXPECT_THAT(reported[rank], testing::HasSubstr("ranks 2 and 3 on the GPU 1b of b"));
}

TEST(GpuClaims, AMissingRankIsNoticed) {
  LocalStore store;
  EXPECT_THROW(claim_gpu(store, place_of(1), "a", "1b", 50ms), CommunicationError);
}

// The driver reads them at the first use of CUDA.
TEST(VisibleGpus, SetsWhatTheDriverReadsUnlessTheUserHas) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  std::string why;
  visible_gpus(why);
  if (why == "this build is without CUDA") GTEST_SKIP() << why;
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "LAZY");
  unsetenv("CUDA_MODULE_LOADING");
}

}  // namespace
}  // namespace shardwright::executor
