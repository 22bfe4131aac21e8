// Compares the state of a checkpoint with that of the run that resumes from it.
#pragma once

#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_folder.hpp"

namespace shardwright::executor {

// Throws InputError if the checkpoint belongs to another model, seed or sequence length.
void check_continues(const RunState& found, const RunState& own);

// Returns a sentence for each other difference that changes the losses: data, which are in
// `data_file` now, and hyperparameters.
std::vector<std::string> changes_since(const RunState& found, const RunState& own,
                                       const std::string& data_file);

}  // namespace shardwright::executor
