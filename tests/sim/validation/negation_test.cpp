// Notes that say a thing, and notes that say that it is not so.
#include "sim/validation/negation.hpp"

#include <gtest/gtest.h>

#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

TEST(Negation, AMentionAffirms) {
  for (const char* text :
       {"DeepEP", "dispatcher flex/deepep;", "DeepEP, not stated elsewhere",
        "no recompute with DeepEP", "no recompute, DeepEP", "DeepEP (no recompute)",
        "not given. DeepEP dispatcher; EP overlap off", "HybridEP off; DeepEP on",
        "DeepEP and CUDA graphs off", "use_deepep=True"}) {
    EXPECT_TRUE(affirms_any(text, {"deepep"})) << text;
    EXPECT_FALSE(denies_any(text, {"deepep"})) << text;
  }
}

TEST(Negation, ItsOwnClauseDeniesIt) {
  for (const char* text :
       {"no DeepEP; NCCL all-to-all", "DeepEP was not used", "DeepEP off", "DeepEP=False",
        "DeepEP: off", "DeepEP (not used)", "w/o DeepEP", "without the DeepEP dispatcher",
        "NCCL instead of DeepEP", "DeepEP isn't enabled", "--no-deepep", "no HybridEP or DeepEP",
        "DeepEP dispatcher turned off", "DeepEP did not exist then"}) {
    EXPECT_FALSE(affirms_any(text, {"deepep"})) << text;
    EXPECT_TRUE(denies_any(text, {"deepep"})) << text;
  }
}

TEST(Negation, WhatIsLeftOpenIsNeither) {
  for (const char* text :
       {"does not say whether DeepEP was used", "DeepEP unknown", "DeepEP is not mentioned",
        "unclear if DeepEP", "DeepEP not stated", "DeepEP: unspecified"}) {
    EXPECT_FALSE(affirms_any(text, {"deepep"})) << text;
    EXPECT_FALSE(denies_any(text, {"deepep"})) << text;
  }
}

TEST(Negation, ZeroDeniesWhatItIsTheValueOf) {
  EXPECT_TRUE(denies_any("deepep=0", {"deepep"}));
  EXPECT_TRUE(denies_any("DeepEP: 0, HybridEP: 1", {"deepep"}));
  EXPECT_TRUE(affirms_any("deepep=0.5", {"deepep"}));
  EXPECT_TRUE(affirms_any("deepep=08", {"deepep"}));
}

TEST(Negation, OneAffirmedMentionIsEnough) {
  EXPECT_TRUE(affirms_any("no DeepEP in the first run. DeepEP in the second", {"deepep"}));
  EXPECT_TRUE(affirms_any("HybridEP instead of DeepEP", {"deepep", "hybridep"}));
  EXPECT_FALSE(affirms_any("", {"deepep"}));
  EXPECT_FALSE(denies_any("", {"deepep"}));
}

TEST(Negation, APhraseBeginsAWord) {
  EXPECT_FALSE(affirms_any("unbalanced", {"balanced"}));
  EXPECT_FALSE(denies_any("no unbalanced", {"balanced"}));
  EXPECT_TRUE(affirms_any("(balanced)", {"balanced)"}));
}

TEST(RowNotes, WhatIsDeniedIsNotRead) {
  EXPECT_FALSE(notes_say_balanced_routing("router not force-balanced"));
  EXPECT_FALSE(notes_say_balanced_routing("force-balanced router=False"));
  EXPECT_FALSE(notes_say_expert_overlap("EP overlap off"));
  EXPECT_FALSE(notes_say_expert_overlap("no 1F1B overlap of all-to-all"));
  EXPECT_FALSE(notes_say_dropped_tokens("dropless: no token dropping"));
  EXPECT_FALSE(notes_say_dropped_tokens("no capacity factor (dropless)"));
  EXPECT_FALSE(notes_say_cuda_graphs("no CUDA graphs full_iteration"));
  EXPECT_FALSE(notes_say_interleaved("non-interleaved 1F1B"));
  EXPECT_FALSE(notes_say_distributed_optimizer("distributed optimizer did not exist"));
  EXPECT_TRUE(notes_say_no_fused_attention("No FlashAttention (Megatron fused softmax)"));
  EXPECT_TRUE(notes_say_not_compiled("FSDP (full shard), torch.compile off. seq 4096"));
  EXPECT_FALSE(notes_say_not_compiled("torch.compile on"));
  EXPECT_TRUE(notes_say_no_further_tokens("(table label: w/o MTP). WITHOUT MTP layer"));
  EXPECT_FALSE(notes_say_no_further_tokens("(table label: w/ MTP)"));
  EXPECT_EQ(expert_tensor_parallel_in("tuned with BETP12"), std::nullopt);
}

TEST(RowNotes, OffloadIsWholeOrAPart) {
  EXPECT_EQ(activation_offload_in("activations offloaded to CPU"), OffloadNote::Whole);
  EXPECT_EQ(activation_offload_in("activation CPU offloading of 20 layers; zero_stage=3"),
            OffloadNote::Part);
  EXPECT_EQ(activation_offload_in("activation offload ratio to host alpha=0.276 (PCIe 5)"),
            OffloadNote::Part);
  EXPECT_EQ(activation_offload_in("Activation offload ratio 0. Plan from the run scripts."),
            OffloadNote::None);
  EXPECT_EQ(activation_offload_in("recompute/offload/graph settings"), OffloadNote::None);
  EXPECT_EQ(optimizer_offload_in("optimizer states offloaded to CPU"), OffloadNote::Whole);
  EXPECT_EQ(optimizer_offload_in("no optimizer offload"), OffloadNote::None);
}

TEST(RowNotes, AdaptersAreNoLatentAttention) {
  EXPECT_TRUE(says_low_rank_adapters("LoRA rank 16"));
  EXPECT_FALSE(says_low_rank_adapters("full fine-tuning, no LoRA"));
  EXPECT_FALSE(says_low_rank_adapters("MLA (q_lora_rank 1536, kv_lora_rank 512)"));
}

}  // namespace
}  // namespace shardwright::sim
