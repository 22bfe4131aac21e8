// What free text says of attention's kernel and of what its queries see.
#pragma once

#include <string>
#include <string_view>

namespace shardwright::sim {

// Attention ran as the matrix products and the softmax that its formula has ("SDPA math", "math
// attention", "naive attention", `attn_implementation=eager`), which writes the scores to memory.
bool says_attention_by_formula(std::string_view text);

// The words for a window that queries see ("sliding window attention 1024"); empty without.
std::string attention_window_in(const std::string& text);

}  // namespace shardwright::sim
