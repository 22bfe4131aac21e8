#include "executor/telemetry/metrics_log.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// A run that goes on drops what it writes again, and lines that are none of a run.
TEST(MetricsLog, KeepsTheWholeLinesOfEarlierSteps) {
  const std::filesystem::path file = scratch_path("metrics.jsonl");
  std::ofstream(file) << "{\"step\":0,\"loss\":5.5}\n"
                         "{\"step\":\"one\"}\n"
                         "{\"step\":null}\n"
                         "[1,2]\n"
                         "null\n"
                         "\x7f\xff\n"
                         "{\"loss\":3}\n"
                         "{\"step\":1,\"loss\":5.4}\n"
                         "{\"step\":2,\"loss\":5.3}\n"
                         "{\"step\":1,\"lo";
  const MetricsLog log(file, {}, 2);
  EXPECT_EQ(content_of(file), "{\"step\":0,\"loss\":5.5}\n{\"step\":1,\"loss\":5.4}\n");
}

}  // namespace
}  // namespace shardwright::executor
