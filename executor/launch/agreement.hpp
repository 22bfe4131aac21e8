// What all ranks of a run must have alike: told to each other before the first exchange, since
// ranks that train different things would not notice.
//
// Each rank puts its inputs into the table of the rendezvous; the first one compares them with its
// own and says there what it has found, so that all end alike. It is also where the ranks wait for
// each other: who does not come is known by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "executor/comm/store.hpp"

namespace shardwright::executor {

// Values by what people call them: an option, "data", a member of the plan ("/plan/micro_batch").
using RunInputs = std::map<std::string, std::string>;

// All ranks call it, with the inputs of each. Throws, on every rank that has come: InputError with
// each rank and input that differ from those of rank 0, or where two processes come as one rank (at
// least in the later one); RuntimeFailure with the ranks that have not
// come within `timeout`, which are reported as absent (heartbeat.hpp).
void agree_on_inputs(Store& store, std::int64_t rank, std::int64_t world, const RunInputs& inputs,
                     std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
