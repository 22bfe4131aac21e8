// Models that are no plain causal decoders are told by name or notes, and no decoder is taken for
// one.
#include "sim/validation/other_architecture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/spec/model_library.hpp"
#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

TrainingRow row_of(const std::string& name, const std::string& notes) {
  TrainingRow row;
  row.model.name = name;
  row.notes = notes;
  return row;
}

struct Part {
  const char* said;  // of the reason
  std::vector<const char*> texts;
};

TEST(OtherArchitecture, FamiliesAreToldByName) {
  const std::vector<Part> parts = {
      {"state-space",
       {"Nemotron-H-56B", "NemotronH-8B", "nvidia/Nemotron-H-8B-Base-8K",
        "NVIDIA-Nemotron-Nano-9B-v2", "Nemotron-3-Nano-30B-A3B", "Jamba-1.5-Large", "Zamba2-7B",
        "Bamba-9B", "Hymba-1.5B", "Samba 3.8B", "Granite-4.0-H-Small", "Falcon-Mamba-7B",
        "Falcon-H1-34B", "Mamba-2 2.7B"}},
      {"linear-attention",
       {"RecurrentGemma-9B", "Griffin 14B", "StripedHyena-7B", "Evo-7B", "Evo 2 40B", "RWKV-6-7B",
        "RetNet-6.7B", "xLSTM-7B", "MiniMax-01", "MiniMax-Text-01", "MiniMax-M1", "TransNormerLLM",
        "Qwen3-Next-80B-A3B", "Kimi-Linear-48B-A3B"}},
      {"cross-attention",
       {"T5-11B", "google/mt5-xxl", "mT5-XXL", "Flan-T5-XL", "flan_t5_xl", "CodeT5+ 16B", "ByT5",
        "UL2-20B", "Flan-UL2", "BART-large", "mBART-50", "NLLB-54B", "Switch-C"}},
      {"bidirectional",
       {"BERT-large", "Megatron-BERT-3.9B", "RoBERTa-large", "DeBERTa-v3", "ELECTRA-large",
        "ModernBERT", "xlm-roberta-xxl", "BERT (MLPerf)"}},
      {"pictures or sound",
       {"LLaVA-1.5-13B", "LLaVA-NeXT-34B", "InternVL2-76B", "InternVL-Chat-V1.5", "Qwen-VL-Chat",
        "Qwen2-VL-72B", "Qwen2.5-VL-7B", "CogVLM-17B", "OpenFlamingo-9B", "CLIP ViT-L/14",
        "ViT-22B", "ViT_e", "DiT-XL/2", "Whisper large-v3", "Llama-3.2-11B-Vision", "SmolVLM-2B",
        "DeepSeek-VL2", "Qwen2-Audio-7B", "Stable Diffusion XL"}},
      {"few bits", {"BitNet b1.58 3B", "bitnet-b1.58-2B-4T"}},
  };
  for (const Part& part : parts)
    for (const char* name : part.texts)
      EXPECT_NE(other_architecture(row_of(name, "")).find(part.said), std::string::npos) << name;
}

TEST(OtherArchitecture, NotesTellIt) {
  const std::vector<Part> parts = {
      {"state-space",
       {"24 of 28 are Mamba-2 layers", "hybrid: Mamba layers and attention",
        "SSM blocks of width 128", "state-space layers"}},
      {"linear-attention",
       {"linear attention in 7 of 8 layers", "lightning attention", "gated DeltaNet layers",
        "a third are recurrent blocks (RG-LRU)"}},
      {"cross-attention",
       {"encoder-decoder", "an encoder/decoder of 24 + 24 layers", "seq2seq pretraining",
        "24 encoder and 24 decoder layers"}},
      {"bidirectional", {"bidirectional encoder", "encoder-only", "masked language modelling"}},
      {"pictures or sound",
       {"ViT encoder + LLM", "vision", "with a vision encoder",
        "InternViT-6B vision tower, 256 image tokens", "multimodal pretraining", "text-to-image"}},
      {"few bits",
       {"1.58-bit weights", "ternary weights", "quantization-aware training", "QAT",
        "int8 training"}},
  };
  for (const Part& part : parts)
    for (const char* notes : part.texts)
      EXPECT_NE(other_architecture(row_of("Llama-2-13B", notes)).find(part.said), std::string::npos)
          << notes;
}

TEST(OtherArchitecture, DecodersAreNoOtherModels) {
  for (const char* name : {"Llama-Nemotron-Super-49B",
                           "Llama-3.1-Nemotron-Nano-8B",
                           "Nemotron-4-340B",
                           "Nemotron-3-8B",
                           "Nemotron-4 15B",
                           "MiniMax-M2",
                           "Granite-3.0-8B",
                           "Granite-34B-Code",
                           "Falcon-180B",
                           "GPT-5B",
                           "GPT-NeoX-20B",
                           "Minitron-8B",
                           "Evolved-7B",
                           "DeepSeek-V2-Lite",
                           "Gemma-2-27B",
                           "OPT-175B",
                           "Vicuna-13B",
                           "PaLM-540B",
                           "Switchboard-LM",
                           "Bertrand-7B",
                           "Grok-1"})
    EXPECT_EQ(other_architecture(row_of(name, "")), "") << name;
  for (const char* notes :
       {"no vision encoder", "without Mamba layers", "text-only run of the multimodal data",
        "vision tower not loaded", "the vision encoder was removed", "faster than linear attention",
        "unlike encoder-decoder models", "not a bidirectional encoder",
        "a third revision of the table", "quantization granularity 32x32", "8-bit Adam",
        "NVLink 900 GB/s bidirectional", "FP8 (TE hybrid)", "HybridEP", "hybrid sharding",
        "non-linear attention scores", "compared with BERT-style pretraining", "supervision",
        "int8 training is not used"})
    EXPECT_EQ(other_architecture(row_of("Llama-2-13B", notes)), "") << notes;
}

TEST(OtherArchitecture, NoShippedModelIsOne) {
  for (const ModelSpec& model : shipped_model_specs()) {
    EXPECT_EQ(other_architecture(row_of(model.name, "")), "") << model.name;
    for (const std::string& alias : model.aliases)
      EXPECT_EQ(other_architecture(row_of(alias, "")), "") << alias;
  }
}

// Sizes in full do not make a decoder of it.
TEST(OtherArchitecture, SuchRowsAreSkippedWithTheReason) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model.name = "Nemotron-H-8B";
  EXPECT_FALSE(scenario_of(row).scenario);
  EXPECT_NE(scenario_of(row).reason.find("state-space layers"), std::string::npos);
}

}  // namespace
}  // namespace shardwright::sim
