// Checks that the ranks of a host use different GPUs. Another launcher may show each process only
// one GPU, which then has the number 0 in each of them.
#pragma once

#include <chrono>
#include <string>

#include "executor/comm/store.hpp"
#include "executor/launch/launch_place.hpp"

namespace shardwright::executor {

// Writes the rank's GPU to the store and compares it with those of the other ranks of its host; all
// of them call it. `gpu` identifies a GPU of the host. Consecutive ranks form a host, as launchers
// number them by default; others are not compared. Throws InputError if two ranks use the same GPU,
// CommunicationError if a rank does not report within `timeout`.
void claim_gpu(Store& store, const LaunchPlace& place, const std::string& host,
               const std::string& gpu, std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
