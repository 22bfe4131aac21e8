#include "gui/models/freed_memory.hpp"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "gui/models/background_job.hpp"

namespace shardwright::gui {

void return_freed_memory() {
#ifdef __GLIBC__
  static BackgroundTask task;
  task.submit([](const std::stop_token&) { malloc_trim(0); });
#endif
}

void return_large_blocks_at_once() {
#ifdef __GLIBC__
  constexpr int kLarge = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kLarge);
#endif
}

}  // namespace shardwright::gui
