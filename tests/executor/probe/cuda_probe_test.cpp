// A probe of GPUs with two ranks, which share a single one. Skipped without a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/exchange_sample.hpp"
#include "core/spec/profile_library.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/probe/communication_probe.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

namespace fs = std::filesystem;

int run_program(const std::string& file, const std::string& arguments, const fs::path& log) {
  const std::string command = fmt::format("'{}' {} > '{}' 2>&1", file, arguments, log.string());
  return WEXITSTATUS(std::system(command.c_str()));
}

TEST(CudaProbe, MakesAProfileOfTheGpus) {
  std::string why;
  if (visible_gpus(why) == 0) GTEST_SKIP() << "no CUDA device: " << why;
  const fs::path folder = scratch_path("cuda-probe"), log = scratch_path("cuda-probe.log");
  ASSERT_EQ(
      run_program(program("SHARDWRIGHT_EXECUTOR", SHARDWRIGHT_EXECUTOR),
                  fmt::format("probe --device cuda --share-gpu --ranks 2 --steps 4 --out '{}'",
                              folder.string()),
                  log),
      0)
      << content_of(log);
  const ClusterSpec machine = load_cluster((folder / "machine.json").string());
  EXPECT_EQ(machine.accelerator.vendor, "nvidia");
  EXPECT_EQ(machine.node.accelerators, 2);
  const std::string file = (folder / "exchanges.json").string();
  const auto samples = read_exchanges(read_json_file(file), file);
  // Five kinds among both ranks; more bytes never take less time than the smallest.
  const std::size_t sizes = transfer_sizes(Device::Cuda).size();
  ASSERT_EQ(samples.size(), 5 * sizes);
  for (std::size_t kind = 0; kind < 5; ++kind) {
    EXPECT_GT(samples[kind * sizes].time, Seconds(0));
    EXPECT_GT(samples[(kind + 1) * sizes - 1].time, samples[kind * sizes].time);
  }
  const std::string profile = scratch_path("cuda-here.json");
  ASSERT_EQ(run_program(
                program("SHARDWRIGHT_COMMAND", SHARDWRIGHT_COMMAND),
                fmt::format("probe --from '{}' --out '{}' --force", folder.string(), profile), log),
            0)
      << content_of(log);
  // Kernels were timed, and determine some of the device's efficiencies; what streams through
  // memory has curves.
  const AcceleratorSpec device = load_cluster(profile).accelerator;
  int measured = 0;
  for (const char* figure : {"matrix_main_loop_ratio", "attention_forward_ratio"})
    measured +=
        device.sources.at(std::string("/efficiency/") + figure).confidence == Confidence::Measured
            ? 1
            : 0;
  EXPECT_GT(measured, 0);
  EXPECT_FALSE(device.kernel_curves.empty());
  for (const KernelCurve& curve : device.kernel_curves) EXPECT_NE(curve.kind, OpKind::Gemm);
}

TEST(CudaProbe, IsRefusedWithoutAGpu) {
  std::string why;
  if (visible_gpus(why) > 0) GTEST_SKIP() << "there is a GPU";
  const fs::path log = scratch_path("no-gpu-probe.log"), folder = scratch_path("no-gpu-probe");
  EXPECT_EQ(run_program(program("SHARDWRIGHT_EXECUTOR", SHARDWRIGHT_EXECUTOR),
                        fmt::format("probe --device cuda --out '{}'", folder.string()), log),
            2);
  EXPECT_NE(content_of(log).find("--device: found no CUDA device"), std::string::npos)
      << content_of(log);
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace shardwright::executor
