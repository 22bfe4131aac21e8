#include "core/base/stop_signals.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace shardwright {
namespace {

constexpr std::chrono::milliseconds kAtOnce{0};

TEST(StopSignalsHeld, AreTakenOnce) {
  for (const int signal : kStopSignals) std::signal(signal, SIG_DFL);
  const StopSignalsHeld held;
  EXPECT_EQ(held.take(kAtOnce), 0);
  for (const int signal : kStopSignals) {
    std::raise(signal);
    EXPECT_EQ(held.take(kAtOnce), signal);
    EXPECT_EQ(held.take(kAtOnce), 0);
  }
}

TEST(StopSignalsHeldDeathTest, EndTheProcessAfterWhatWasToBeTidiedUp) {
  std::signal(SIGTERM, SIG_DFL);
  const auto tidy_up = [] {
    const StopSignalsHeld held;
    std::raise(SIGTERM);
    std::fputs("tidied up", stderr);
  };
  EXPECT_EXIT(
      {
        tidy_up();
        std::exit(0);
      },
      testing::KilledBySignal(SIGTERM), "tidied up");
}

// SIGHUP is ignored under nohup: held it would be pending, and taken.
TEST(StopSignalsHeld, AreNotThoseThatAreIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignalsHeld held;
    std::raise(SIGHUP);
    EXPECT_EQ(held.take(kAtOnce), 0);
  }
  std::signal(SIGHUP, SIG_DFL);
}

}  // namespace
}  // namespace shardwright
