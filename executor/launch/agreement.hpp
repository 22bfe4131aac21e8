// Checks before the first collective that all ranks of a run have the same inputs: ranks that train
// different models would not notice.
//
// Each rank writes its inputs to the store. Rank 0 compares them with its own and publishes the
// result, so that all ranks end alike. Ranks that do not join, and ranks with errors of their own,
// are reported by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/base/error.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/launch/launch_place.hpp"

namespace shardwright::executor {

// Values by name: an option, "data", or a member of the plan ("/plan/micro_batch").
using RunInputs = std::map<std::string, std::string>;

// All ranks call it with their inputs. Throws on every rank that has joined: InputError with each
// rank and input that differ from those of rank 0 (`world`, the world size that the launcher
// stated, is one of them) or if two processes have the same rank (at least in the later one);
// RuntimeFailure with the ranks that have not joined within `timeout`, which it also reports as
// absent (heartbeat.hpp).
//
// Rank 0 calls `prepare`, unless it is null, when all agree and before the others continue. An
// InputError that it throws is thrown on all ranks.
void agree_on_inputs(Store& store, std::int64_t rank, std::int64_t world, const RunInputs& inputs,
                     std::chrono::milliseconds timeout,
                     const std::function<void()>& prepare = nullptr);

// Replaces agree_on_inputs on a rank whose own input is bad, for instance a missing file: all ranks
// throw its error. Rank 0 waits for the others to read it, at most `limit`, since its process may
// serve the store. Throws CommunicationError.
void report_refusal(Store& store, std::int64_t rank, std::int64_t world, const InputError& error,
                    std::chrono::milliseconds limit);

// Reports the error of a rank that fails before the rendezvous, for instance because of its
// options: joins the rendezvous, or serves it, and calls report_refusal. Gives up after `timeout`,
// at most half a minute, since launchers end the other ranks when this one ends. Does nothing if no
// other rank can be reached: under our own launcher, which ends the others, for a single rank, and
// without the run's secret, `token`.
void report_to_other_ranks(const LaunchPlace& place, const std::string& token,
                           const InputError& error, std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
