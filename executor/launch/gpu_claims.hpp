// Whether the ranks of a host use GPUs of their own, where another launcher has started them: it
// may let each process see one GPU only, which then is the first one to each.
#pragma once

#include <chrono>
#include <string>

#include "executor/comm/store.hpp"
#include "executor/launch/launch_place.hpp"

namespace shardwright::executor {

// Says in the table which GPU the rank takes, and looks at what the other ranks of its host take;
// all of them call it. `gpu`: what tells the GPUs of a host apart. Ranks of a host are those that
// follow each other, as launchers number them by default; others are not compared. Throws
// InputError if two take the same one, CommunicationError if a rank does not come within `timeout`.
void claim_gpu(Store& store, const LaunchPlace& place, const std::string& host,
               const std::string& gpu, std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
