// The executor's log: plain messages by default, and debug lines with time, level and origin.
#include "executor/telemetry/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright::executor {
namespace {

std::string logged() {
  testing::internal::CaptureStderr();
  log_debug("connected");
  log_info("restart 1 of 2");
  log_warning("100 % {}");
  return testing::internal::GetCapturedStderr();
}

TEST(Log, PrintsMessagesAloneByDefault) {
  EXPECT_EQ(logged(), "restart 1 of 2\n100 % {}\n");
}

TEST(Log, BeginsVerboseLinesWithTimeLevelAndOrigin) {
  start_log(true, "rank 3 on node7");
  const std::string lines = logged();
  start_log(false, "rank 3 on node7");
  const std::string time = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z ";
  const std::string origin = R"( \[rank 3 on node7\] )";
  EXPECT_THAT(lines, testing::MatchesRegex(time + "debug" + origin + "connected\n" + time + "info" +
                                           origin + "restart 1 of 2\n" + time + "warning" + origin +
                                           "100 % [{][}]\n"));
  EXPECT_EQ(logged(), "restart 1 of 2\n100 % {}\n");
}

}  // namespace
}  // namespace shardwright::executor
