// Bad input that one rank finds during training, as a token beyond the vocabulary. The rank reports
// it to the others before it leaves its collectives, so that none takes the closed connections for
// a failure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "executor/comm/store.hpp"
#include "executor/launch/rendezvous.hpp"

namespace shardwright::executor {

// Called by the rank before it closes a connection. When it returns, the table has the text, unless
// the table is gone.
void report_bad_input(Store& store, const std::string& text);

// What a rank has reported, in the process that serves the table.
std::optional<std::string> reported_bad_input(const LocalStore& table);
// The same in the other ranks. Nothing where the table does not answer within `limit`.
std::optional<std::string> reported_bad_input(const Rendezvous& rendezvous,
                                              std::chrono::milliseconds limit);

}  // namespace shardwright::executor
