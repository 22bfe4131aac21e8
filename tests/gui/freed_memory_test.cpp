#include "gui/models/freed_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "tests/sanitized.hpp"

namespace shardwright::gui {
namespace {

double resident_megabytes() {
  std::ifstream statm("/proc/self/statm");
  double all = 0.0, resident = 0.0;
  statm >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// The small block lies behind the large one in the heap of the thread, which could not shrink.
TEST(FreedMemory, OfALargeBlockGoesBackThoughASmallOneIsKept) {
#ifndef __GLIBC__
  GTEST_SKIP() << "The allocator is that of another C library.";
#endif
  if (kSanitized) GTEST_SKIP() << "The allocator of a sanitizer keeps freed blocks.";
  return_large_blocks_at_once();
  const double before = resident_megabytes();
  std::unique_ptr<std::vector<char>> small;
  std::thread([&small] {
    for (int round = 0; round < 3; ++round) {
      const std::vector<char> large(24'000'000, 'x');
      small = std::make_unique<std::vector<char>>(100);
    }
  }).join();
  EXPECT_LT(resident_megabytes() - before, 8.0);
}

}  // namespace
}  // namespace shardwright::gui
