// What all ranks of a run must have alike: told to each other before the first exchange, since
// ranks that train different things would not notice.
//
// Each rank puts its inputs into the table of the rendezvous; the first one compares them with its
// own and says there what it has found, so that all end alike. It is also where the ranks wait for
// each other: who does not come is known by name, and so is who is refused by itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/base/error.hpp"
#include "executor/comm/store.hpp"

namespace shardwright::executor {

// Values by what people call them: an option, "data", a member of the plan ("/plan/micro_batch").
using RunInputs = std::map<std::string, std::string>;

// All ranks call it, with the inputs of each. Throws, on every rank that has come: InputError with
// each rank and input that differ from those of rank 0, `world` among them, which is what a rank's
// launcher has told it, or where two processes come as one rank (at least in the later one);
// RuntimeFailure with the ranks that have not come within `timeout`, which are reported as absent
// (heartbeat.hpp).
//
// `prepare`, unless null, is what rank 0 does where all agree, before the others go on. An
// InputError of it is thrown on all ranks, too.
void agree_on_inputs(Store& store, std::int64_t rank, std::int64_t world, const RunInputs& inputs,
                     std::chrono::milliseconds timeout,
                     const std::function<void()>& prepare = nullptr);

// In place of that, for a rank whose own input is bad, say a file that it alone lacks: the others
// end with its error as with a difference. Rank 0 waits until they have read it, `limit` at the
// most; its process serves the table. Throws CommunicationError.
void report_refusal(Store& store, std::int64_t rank, std::int64_t world, const InputError& error,
                    std::chrono::milliseconds limit);

}  // namespace shardwright::executor
