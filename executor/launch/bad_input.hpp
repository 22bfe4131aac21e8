// Bad input that a rank finds during training, for instance a token beyond the vocabulary. The rank
// reports it before it leaves its collectives, so that no other rank takes the closed connections
// for a failure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "executor/comm/store.hpp"
#include "executor/launch/rendezvous.hpp"

namespace shardwright::executor {

// Writes the text to the store; the rank calls it before it closes a connection. Does nothing if
// the store is gone.
void report_bad_input(Store& store, const std::string& text);

// Returns the reported text, in the process that serves the store.
std::optional<std::string> reported_bad_input(const LocalStore& store);
// The same in other processes. Returns nothing if the store does not answer within `limit`.
std::optional<std::string> reported_bad_input(const Rendezvous& rendezvous,
                                              std::chrono::milliseconds limit);

}  // namespace shardwright::executor
