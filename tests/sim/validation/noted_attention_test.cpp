// What free text says of attention.
#include "sim/validation/noted_attention.hpp"

#include <gtest/gtest.h>

#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

RowScenario with_notes(const std::string& notes) {
  TrainingRow row = shipped_row("titan-8b-h200-g64");
  row.attention_kernel.clear();
  row.notes = notes;
  return scenario_of(row);
}

TEST(NotedAttention, AttentionByItsFormulaIsNotFused) {
  for (const char* notes : {"SDPA math", "PyTorch SDPA (math backend)", "math attention",
                            "naive attention, bf16", "attn_implementation=eager",
                            "unfused attention", "SDPBackend.MATH", "SDPA with the math kernel"})
    EXPECT_FALSE(with_notes(notes).scenario->stack.fusion.flash_attention) << notes;
  for (const char* notes : {"SDPA", "no math attention", "not SDPA math but flash", "GSM8K math",
                            "math data, flash attention", "SDPA flash"})
    EXPECT_TRUE(with_notes(notes).scenario->stack.fusion.flash_attention) << notes;
}

TEST(NotedAttention, AWindowThatTheModelLacksIsListed) {
  for (const auto& [notes, words] :
       {std::pair{"sliding window attention 1024", "sliding window attention 1024"},
        {"with sliding-window attention of 4096 tokens", "sliding-window attention of 4096"},
        {"sliding_window=512", "sliding_window=512"},
        {"trained with a sliding window", "sliding window"},
        {"SWA 4096", "SWA 4096"},
        {"window_size=(4096, 0)", "window_size=(4096"},
        {"local attention", "local attention"}})
    EXPECT_TRUE(any_says(with_notes(notes).filled_in, words)) << notes;
  for (const char* notes :
       {"no sliding window attention", "steps in a window of 100", "local disk", "weights by SWA",
        "mean over a sliding window of 100 steps", "a sliding window average"})
    EXPECT_FALSE(any_says(with_notes(notes).filled_in, "is not simulated, but full")) << notes;
}

}  // namespace
}  // namespace shardwright::sim
