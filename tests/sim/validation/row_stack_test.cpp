// The software of published measurements, and the words of their sources.
#include "sim/validation/row_stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/row_words.hpp"
#include "sim/validation/stack_name.hpp"
#include "sim/validation/training_row.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

TEST(RowStack, LossAndOptimizerFollowYearModelAndDevice) {
  TrainingRow row = shipped_row("titan-8b-h200-g64");
  EXPECT_TRUE(scenario_of(row).scenario->stack.fusion.loss);
  row.source_year = 2024;
  EXPECT_FALSE(scenario_of(row).scenario->stack.fusion.loss);
  row = shipped_row("simumax-b200-deepseekv2-tp1-ep8-pp1-dp8-l4-mbc4-cef");
  EXPECT_EQ(scenario_of(row).scenario->stack.memory.optimizer_state_bytes, Bytes(8));
  row.stack = "nemo-te";
  EXPECT_EQ(scenario_of(row).scenario->stack.memory.optimizer_state_bytes, Bytes(4));
  const auto weight_bytes = [](const char* id) {
    return scenario_of(shipped_row(id)).scenario->stack.memory.fp8_weight_bytes;
  };
  EXPECT_EQ(weight_bytes("mlperf-v5.0-llama405b-gb200-cw-1024"), Bytes(1));
  EXPECT_EQ(weight_bytes("mlperf-v5.0-llama405b-h100-512"), Bytes(2));
}

TEST(RowStack, GraphsFollowNotesAndSubmissions) {
  TrainingRow row = shipped_row("mlperf-v5.0-llama405b-h100-512");
  EXPECT_TRUE(scenario_of(row).scenario->stack.host.cuda_graphs);
  row.source_title = "Some other source";
  const auto graphs = [&row](const std::string& notes) {
    row.notes = notes;
    const auto made = scenario_of(row);
    return std::pair(made.scenario->stack.host.cuda_graphs,
                     made.scenario->stack.host.graphs_to_dispatch);
  };
  EXPECT_EQ(graphs(""), std::pair(false, false));
  EXPECT_EQ(graphs("CUDA graphs transformer_engine scope ['attn', 'moe_router']"),
            std::pair(false, true));
  EXPECT_EQ(graphs("CUDA graphs full_iteration scope []"), std::pair(true, false));
}

// Recipes that force balanced routing on Hopper exchange tokens once per node.
TEST(RowStack, TokenExchangeFollowsTheRecipesOfLatentAttention) {
  TrainingRow row = shipped_row("simumax-b200-deepseekv2-tp1-ep8-pp1-dp8-l4-mbc4-cef");
  row.stack = "nemo-te";
  row.cluster.gpu = "H100-SXM5-80GB";
  const auto once = [&row](const std::string& notes) {
    row.notes = notes;
    return scenario_of(row).scenario->stack.communication.sends_tokens_once_per_node;
  };
  EXPECT_TRUE(once("token distribution force-balanced, dropless"));
  EXPECT_FALSE(once("learned router"));
  EXPECT_FALSE(once("MoE token-drop run"));
  row.cluster.gpu = "B200-SXM-180GB";
  EXPECT_FALSE(once("token distribution force-balanced, dropless"));
}

TEST(RowWords, PrecisionsInTheirSpellings) {
  for (const char* text : {"BF16", "bf16", "bfloat16", "bf16-mixed", "BF16 (fp32 master)"})
    EXPECT_EQ(precision_in(text), Precision::Bf16) << text;
  for (const char* text : {"fp8", "FP8-MX", "mxfp8", "fp8-mx", "float8", "fp8 (bf16 activations)"})
    EXPECT_EQ(precision_in(text), Precision::Fp8) << text;
  for (const char* text : {"nvfp4", "NVFP4", "fp4"})
    EXPECT_EQ(precision_in(text), Precision::Nvfp4) << text;
  for (const char* text : {"FP16", "fp16", "float16", "half", "fp16 with fp32 master"})
    EXPECT_EQ(precision_in(text), Precision::Fp16) << text;
  for (const char* text : {"BFLOAT", "bf16, no fp8", "bf16 without FP8"})
    EXPECT_EQ(precision_in(text), Precision::Bf16) << text;
  EXPECT_EQ(precision_in("16-true"), Precision::Fp16);
  for (const char* text : {"FP32", "32-true", "full precision"})
    EXPECT_EQ(precision_in(text), Precision::Fp32) << text;
  EXPECT_EQ(precision_in("tf32"), Precision::Tf32);
  for (const char* text : {"mxfp4", "int8", "posit"})
    EXPECT_EQ(precision_in(text), std::nullopt) << text;
}

// What is kept or sent in a format is not multiplied in it.
TEST(RowWords, ThePrecisionIsThatOfTheProducts) {
  for (const char* text :
       {"bf16, fp8 optimizer states", "bf16 (fp8 Adam moments)", "bf16 with fp8 all-gather",
        "bf16, optimizer states in fp8", "bf16 + fp8 gradient reduction", "bf16, int8 optimizer",
        "bf16 params, fp32 optimizer", "bf16, gradients: fp32", "bf16; optimizer fp8",
        "bf16 and fp8 optimizer states", "bf16 + fp8 weight gather"})
    EXPECT_EQ(precision_in(text), Precision::Bf16) << text;
  for (const char* text : {"fp8, bf16 optimizer states", "fp8 weights", "fp8 with fp8 all-gather",
                           "mxfp8 params, bf16 gradients", "bf16, fp8 weights"})
    EXPECT_EQ(precision_in(text), Precision::Fp8) << text;
  EXPECT_EQ(precision_in("fp16, gradients in fp32"), Precision::Fp16);
  EXPECT_FALSE(names_other_format("bf16, int8 optimizer states"));
  EXPECT_TRUE(names_other_format("int8 weights"));
}

TEST(RowWords, WordsThatNameNoFormatAreNoOtherFormat) {
  for (const char* text : {"", "amp O2", "mixed-precision (AMP)", "AMP (dtype unknown)", "O2",
                           "unknown", "n/a", "not stated", "16-bit mixed"}) {
    EXPECT_EQ(precision_in(text), std::nullopt) << text;
    EXPECT_FALSE(names_other_format(text)) << text;
  }
  for (const char* text : {"mxfp4", "int8", "INT8 QAT", "posit", "fp6", "mxfp6", "fp64", "double",
                           "nf4", "HiF8", "8-bit"})
    EXPECT_TRUE(names_other_format(text)) << text;
  for (const char* text : {"bf16", "fp8", "nvfp4", "tf32"})
    EXPECT_FALSE(names_other_format(text)) << text;
}

TEST(RowWords, SchedulesInTheirSpellings) {
  EXPECT_EQ(schedule_in("1F1B", 1), ScheduleKind::OneFOneB);
  EXPECT_EQ(schedule_in("PipeDream-Flush", 1), ScheduleKind::OneFOneB);
  EXPECT_EQ(schedule_in("Interleaved 1F1B", 4), ScheduleKind::Interleaved);
  EXPECT_EQ(schedule_in("GPipe", 1), ScheduleKind::GPipe);
  EXPECT_EQ(schedule_in("zero-bubble zb-1p", 1), ScheduleKind::ZbH1);
  EXPECT_EQ(schedule_in("ZB-H2", 1), ScheduleKind::ZbH2);
  EXPECT_EQ(schedule_in("zero bubble (ZB-V)", 2), ScheduleKind::ZbV);
  EXPECT_EQ(schedule_in("DualPipe", 1), ScheduleKind::DualPipe);
  for (const char* text : {"", "none", "zero-bubble", "DualPipeV", "breadth-first"})
    EXPECT_EQ(schedule_in(text, 1), std::nullopt) << text;
}

// The families as the frameworks' own documentation describes them.
TEST(RowStack, UnknownFrameworksFallToTheirFamily) {
  const auto stack_for = [](const std::string& name) {
    TrainingRow row;
    row.stack = name;
    std::vector<std::string> filled_in;
    const std::string profile = stack_of_row(row, filled_in).name;
    EXPECT_TRUE(any_says(filled_in, "stack: " + profile)) << name;
    return profile;
  };
  for (const char* name : {"InternEvo", "internevo 0.5", "nanotron", "PaddleNLP", "Colossal-AI",
                           "MindSpeed", "ColossalAI 0.3.1", "GPT-NeoX"})
    EXPECT_EQ(stack_for(name), "generic-megatron") << name;
  for (const char* name : {"XTuner", "veScale", "Axolotl", "PyTorch DDP", "HF Accelerate",
                           "NeMo AutoModel", "metaseq (fairscale FSDP + Megatron TP)"})
    EXPECT_EQ(stack_for(name), "generic-pytorch") << name;
  for (const char* name : {"BMTrain", "LLaMA-Factory (ZeRO-3)", "ms-swift", "our ZeRO",
                           "SageMaker SMP (MiCS, ZeRO-3)", "SMP v1", "smdistributed"})
    EXPECT_EQ(stack_for(name), "generic-deepspeed") << name;
  for (const char* name : {"MaxText", "Levanter", "alpa", "AXLearn", "Pax", "PaxML", "Flax",
                           "SaxML", "Mesh-TensorFlow", "MLPerf v4.0 Google (JAX, PAX)"})
    EXPECT_EQ(stack_for(name), "generic-jax") << name;
  for (const char* name : {"our own", "Benzeroid"}) EXPECT_EQ(stack_for(name), "generic") << name;
  EXPECT_EQ(stack_for(""), "generic");
  EXPECT_EQ(stack_for("NeMo 24.07"), "nemo-te");
  EXPECT_EQ(stack_for("NeMo-Framework 24.07"), "nemo-te");
  EXPECT_EQ(stack_for("torchtitan v0.1"), "fsdp2");
}

// Papers of the framework's authors: 1909.08053, 2104.04473, 2205.05198; Transformer Engine's
// layers on Hopper since 2024.
TEST(RowStack, NamesThatOutliveTheirSoftwareAreReadByTheYear) {
  const auto stack_of = [](const char* name, std::int64_t year, const char* gpu) {
    TrainingRow row;
    row.stack = name;
    row.source_year = year;
    row.cluster.gpu = gpu;
    row.plan.pp = 4;
    std::vector<std::string> filled_in;
    return stack_of_row(row, filled_in).name;
  };
  EXPECT_EQ(stack_of("Megatron-LM", 2021, "A100"), "megatron-lm-2021");
  EXPECT_EQ(stack_of("Megatron-LM", 2022, "A100"), "megatron-lm-2022");
  EXPECT_EQ(stack_of("Megatron-LM (internal)", 2024, "A100"), "megatron-lm-2023");
  EXPECT_EQ(stack_of("Megatron-LM", 2024, "H100 SXM"), "megatron-core");
  EXPECT_EQ(stack_of("Megatron-LM", 2024, "p5.48xlarge"), "megatron-core");
  EXPECT_EQ(stack_of("Megatron-LM", 2024, "NVIDIA Blackwell"), "megatron-core");
  EXPECT_EQ(stack_of("Megatron-LM", 2024, "8x MI300X"), "megatron-core");
  EXPECT_EQ(stack_of("Pai-Megatron-Patch", 2025, "A100"), "megatron-core");
  EXPECT_EQ(stack_of("Megatron-LM core_r0.8", 2024, "A100"), "megatron-core");
  EXPECT_EQ(stack_of("Megatron-LM 2021", 2025, "H100"), "megatron-lm-2021");
  EXPECT_EQ(stack_of("GPT-NeoX", 2022, "A100"), "megatron-deepspeed");
  EXPECT_EQ(stack_of("GPT-NeoX", 2024, "A100"), "generic-megatron");
  EXPECT_EQ(stack_of("Megatron-DeepSpeed (ours)", 2024, "A100"), "megatron-deepspeed-23");
}

// NeMo's layers became those of Transformer Engine with the first systems of Hopper.
TEST(RowStack, NeMoIsReadByReleaseYearAndDeviceWhateverItIsCalled) {
  const auto stack_of = [](const char* name, std::optional<std::int64_t> year, const char* gpu) {
    TrainingRow row;
    row.stack = name;
    row.source_year = year;
    row.cluster.gpu = gpu;
    std::vector<std::string> filled_in;
    return stack_of_row(row, filled_in).name;
  };
  for (const char* name : {"NeMo", "NeMo-Megatron", "NeMo Framework Launcher", "MLPerf (NeMo)",
                           "BigNLP", "nemo:24.05", "NVIDIA NeMo (Megatron Core)"}) {
    EXPECT_EQ(stack_of(name, 2024, "H100"), "nemo-te") << name;
    const bool dated = std::string(name).find("24.05") != std::string::npos;
    EXPECT_EQ(stack_of(name, 2022, "A100"), dated ? "nemo-te" : "nemo-2022") << name;
  }
  EXPECT_EQ(stack_of("NeMo 22.09", 2024, "A100"), "nemo-2022");
  EXPECT_EQ(stack_of("NeMo", 2023, "A100"), "nemo-2022");
  EXPECT_EQ(stack_of("NeMo", 2023, "H100"), "nemo-te");
  EXPECT_EQ(stack_of("NeMo", 2023, "a3-megagpu-8g"), "nemo-te");
  EXPECT_EQ(stack_of("NeMo", std::nullopt, "A100"), "nemo-te");
  EXPECT_EQ(stack_of("nemo-2022", 2024, "H100"), "nemo-2022");
  EXPECT_EQ(stack_of("Megatron Bridge", 2022, "A100"), "nemo-te");
  EXPECT_EQ(stack_of("mbridge", 2025, "H100"), "nemo-te");
  EXPECT_EQ(stack_of("MCore r0.8.0", 2024, "H100"), "megatron-core");
}

// As the rows of MLPerf that travel with the project have it; Intel's and Google's are others'.
TEST(RowStack, SubmissionsOnHopperAndLaterAreNeMoUnlessMoreIsSaid) {
  const auto stack_of = [](const char* name, std::int64_t year, const char* gpu) {
    TrainingRow row;
    row.stack = name;
    row.source_year = year;
    row.cluster.gpu = gpu;
    std::vector<std::string> filled_in;
    const std::string profile = stack_of_row(row, filled_in).name;
    EXPECT_TRUE(any_says(filled_in, "stack: " + profile)) << name;
    return profile;
  };
  EXPECT_EQ(stack_of("MLPerf v3.0 CoreWeave/NVIDIA", 2023, "H100"), "nemo-te");
  EXPECT_EQ(stack_of("MLPerf v4.1 NVIDIA", 2024, "B200"), "nemo-te");
  EXPECT_EQ(stack_of("MLPerf 1.1", 2021, "A100"), "generic");
  EXPECT_EQ(stack_of("MLPerf v3.1 Intel-HabanaLabs", 2023, "Gaudi2"), "generic");
  EXPECT_EQ(stack_of("MLPerf v4.0 (JAX)", 2024, "H100"), "generic-jax");
}

TEST(RowStack, AProfileIsKnownAmongWordsThatNameNoOtherFramework) {
  const auto stack_of = [](const char* name) {
    TrainingRow row;
    row.stack = name;
    row.source_year = 2024;
    std::vector<std::string> filled_in;
    const std::string profile = stack_of_row(row, filled_in).name;
    EXPECT_FALSE(filled_in.empty()) << name;
    return profile;
  };
  for (const char* name : {"TorchTitan v0.1 (FSDP2)", "PyTorch 2.5 FSDP2 + TP", "torchtitan (FSDP)",
                           "FSDP2 + torchao"})
    EXPECT_EQ(stack_of(name), "fsdp2") << name;
  for (const char* name :
       {"torchtitan + torch.compile", "TorchTitan, compiled", "FSDP2 v2.5 (compile)"})
    EXPECT_EQ(stack_of(name), "fsdp2-compile") << name;
  for (const char* name :
       {"FSDP (PyTorch 2.1)", "MosaicML LLM Foundry v0.2", "torch FSDP, no compile"})
    EXPECT_EQ(stack_of(name), "fsdp1") << name;
  EXPECT_EQ(stack_of("torchtitan (compile=0)"), "fsdp2");
  EXPECT_EQ(stack_of("DeepSpeed ZeRO-3 (HF Trainer)"), "deepspeed-zero");
  EXPECT_EQ(stack_of("DeepSeek in-house (HAI-LLM)"), "hai-llm");
  for (const char* name : {"HF Accelerate + FSDP", "XTuner (FSDP2)", "Lightning FSDP", "our FSDP",
                           "Meta internal (FSDP)"})
    EXPECT_EQ(stack_of(name), "generic-pytorch") << name;
  EXPECT_EQ(stack_of("Primus torchtitan"), "fsdp2");
  EXPECT_EQ(stack_of("Primus (Megatron)"), "generic-megatron");
  EXPECT_EQ(stack_of("PyTorch/XLA FSDP"), "generic-jax");
  EXPECT_EQ(stack_of("LLaMA-Factory + FSDP"), "generic-deepspeed");
}

TEST(RowStack, AFrameworkThatTheNameDeniesIsNotTaken) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  const auto profile = [&row](const std::string& name) {
    row.stack = name;
    return scenario_of(row).scenario->stack.name;
  };
  const std::string plain = profile("Megatron-LM");
  for (const char* name :
       {"Megatron-LM (not DeepSpeed)", "Megatron-LM, no DeepSpeed", "Megatron-LM without DeepSpeed",
        "Megatron-LM instead of DeepSpeed", "Megatron-LM (not Megatron-DeepSpeed)",
        "not DeepSpeed but Megatron-LM", "Megatron-LM (DeepSpeed not used)",
        "Megatron-LM; DeepSpeed is disabled", "Megatron-LM with DeepSpeed disabled"})
    EXPECT_EQ(profile(name), plain) << name;
  EXPECT_NE(profile("Megatron-LM with DeepSpeed"), plain);
  // What is denied is not the framework, or nothing else is named.
  for (const char* name : {"Megatron-LM (not public)", "Megatron-LM without overlap"})
    EXPECT_EQ(without_denied_frameworks(name), name);
  EXPECT_EQ(without_denied_frameworks("not DeepSpeed"), "not DeepSpeed");
}

TEST(RowStack, LongNamesAreRead) {
  for (const char* part : {"a", " ", "(", "not ", "2:"}) {
    TrainingRow row = shipped_row("titan-8b-h200-g64");
    row.stack = "Megatron-LM ";
    while (row.stack.size() < 100'000) row.stack += part;
    const RowScenario result = scenario_of(row);
    EXPECT_NE(result.scenario.has_value(), !result.reason.empty()) << part;
  }
}

TEST(RowStack, CompilationIsReadFromNotes) {
  const auto stack_of = [](const char* name, const char* notes) {
    TrainingRow row;
    row.stack = name;
    row.notes = notes;
    std::vector<std::string> filled_in;
    return stack_of_row(row, filled_in);
  };
  for (const char* notes : {"torch.compile, float8", "FSDP2, compiled", "compile=true", "async TP",
                            "eager mode attention, compiled"})
    EXPECT_EQ(stack_of("torchtitan", notes).name, "fsdp2-compile") << notes;
  for (const char* notes :
       {"", "torch.compile off", "not compiled", "no torch.compile", "compile: 0",
        "figures compiled from two tables", "uncompiled",
        "does not say whether torch.compile was used", "compile unknown",
        "NCCL compiled with CUDA 12", "results were compiled by hand", "compile not mentioned"})
    EXPECT_EQ(stack_of("torchtitan", notes).name, "fsdp2") << notes;
  EXPECT_EQ(stack_of("fsdp2-compile", "eager mode").name, "fsdp2");
  EXPECT_FALSE(stack_of("XTuner", "").fusion.rope);
  EXPECT_TRUE(stack_of("XTuner", "torch.compile").fusion.rope);
  EXPECT_EQ(stack_of("Megatron-Core", "torch.compile").name, "megatron-core");
}

TEST(RowStack, AttentionIsFusedSinceTheYearInWhichItCouldBe) {
  const auto fused = [](std::int64_t year, const char* notes) {
    TrainingRow row;
    row.stack = "our own";
    row.source_year = year;
    row.notes = notes;
    std::vector<std::string> filled_in;
    return stack_of_row(row, filled_in).fusion.flash_attention;
  };
  EXPECT_FALSE(fused(2022, ""));
  EXPECT_TRUE(fused(2023, ""));
  EXPECT_TRUE(fused(2022, "FlashAttention"));
  EXPECT_FALSE(fused(2024, "no FlashAttention"));
}

TEST(RowStack, ProfilesOfTheirOwnNeedNoWords) {
  TrainingRow row;
  for (const char* name : {"torchtitan", "NeMo", "Megatron Core", "nemo-te"}) {
    row.stack = name;
    std::vector<std::string> filled_in;
    EXPECT_FALSE(stack_of_row(row, filled_in).name.starts_with("generic"));
    EXPECT_TRUE(filled_in.empty()) << name;
  }
}

TEST(RowNotes, ReadsForcedBalance) {
  for (const char* notes :
       {"--moe-router-force-load-balancing", "forced balancing", "force-balanced",
        "TE + DeepEP. Fake balanced gate.", "fake balance", "fake_balanced_gate=True",
        "FakeBalancedGate", "balanced gate", "balanced gating"})
    EXPECT_TRUE(notes_say_balanced_routing(notes)) << notes;
  for (const char* notes : {"load balancing loss", "load-balanced gate by an auxiliary loss",
                            "no fake balanced gate", "fake_balanced_gate=False", "unbalanced gate"})
    EXPECT_FALSE(notes_say_balanced_routing(notes)) << notes;
}

TEST(RowNotes, ReadsExpertTensorParallel) {
  EXPECT_EQ(expert_tensor_parallel_in("TP4 ETP4 PP1"), 4);
  EXPECT_EQ(expert_tensor_parallel_in("ETP=1 (folded)"), 1);
  EXPECT_EQ(expert_tensor_parallel_in("TP/PP/EP/CP/ETP=2/8/32/1/1"), 1);
  EXPECT_EQ(expert_tensor_parallel_in("no such thing"), std::nullopt);
}

}  // namespace
}  // namespace shardwright::sim
