// Loads a library with NVML's names (tests/fake_nvml).
#include "executor/kernels/nvml.hpp"

#include <gtest/gtest.h>

namespace shardwright::executor {
namespace {

constexpr const char* kGpu = "0000:1b:00.0";

TEST(Nvml, ReturnsTheMemoryOfAProcess) {
  const Nvml nvml(SHARDWRIGHT_FAKE_NVML);
  EXPECT_EQ(nvml.memory_of(kGpu, 41), 1000U);
  EXPECT_EQ(nvml.memory_of(kGpu, 42), std::size_t{7} << 32U);
}

TEST(Nvml, ReturnsNothingForUnknownFigures) {
  const Nvml nvml(SHARDWRIGHT_FAKE_NVML);
  // The process does not use the GPU.
  EXPECT_FALSE(nvml.memory_of(kGpu, 40));
  // The process runs in a container.
  EXPECT_FALSE(nvml.memory_of(kGpu, 43));
  // NVML_VALUE_NOT_AVAILABLE.
  EXPECT_FALSE(nvml.memory_of(kGpu, 44));
  EXPECT_FALSE(nvml.memory_of("0000:1c:00.0", 42));
  EXPECT_FALSE(Nvml("libno-such-library.so.1").memory_of(kGpu, 42));
  EXPECT_FALSE(Nvml("libc.so.6").memory_of(kGpu, 42));
}

}  // namespace
}  // namespace shardwright::executor
