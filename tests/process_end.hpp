// Whether processes that a test has not started itself are left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

namespace shardwright {

// True once the process has ended; false if it still runs after ten seconds. Who has ended has no
// command line, also before its parent has asked for its status.
inline bool ends_soon(pid_t process) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::ifstream("/proc/" + std::to_string(process) + "/cmdline").get() != EOF) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace shardwright
