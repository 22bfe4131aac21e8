// How experts are spread over ranks, in the words of notes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Fills in `ep` of a sparse model where its field is empty: "EP 64", "EP=64", "expert parallel 64",
// "64-way EP". A degree that does not divide the ranks of a stage or the experts, and several of
// them, are listed and not taken. Wants the sizes of a complete row (row_sizes.hpp).
void complete_expert_parallel(TrainingRow& row, std::vector<std::string>& filled_in);

// Tokens travel to the ranks of their experts: "DeepEP", "HybridEP", "all-to-all dispatcher",
// "expert parallelism".
bool notes_say_tokens_exchanged(std::string_view notes);

}  // namespace shardwright::sim
