// Bad input that a rank meets while all train, as a token beyond the vocabulary: told to the others
// before this rank leaves its exchanges, so that none takes the closed connections for a failure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "executor/comm/store.hpp"
#include "executor/launch/meeting.hpp"

namespace shardwright::executor {

// The rank's side, before it closes a connection: when it returns, the table has the text, unless
// the table is gone.
void tell_bad_input(Store& store, const std::string& text);

// What was told: in the process that serves the table.
std::optional<std::string> told_bad_input(const LocalStore& table);
// The same at the other ranks. Nothing where the table does not answer within `limit`.
std::optional<std::string> told_bad_input(const Meeting& meeting, std::chrono::milliseconds limit);

}  // namespace shardwright::executor
