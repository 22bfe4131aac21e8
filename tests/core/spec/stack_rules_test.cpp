// The capabilities of stacks: what a stack does not run is said of a plan, and left out of a
// search.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright {
namespace {

TEST(StackSupport, NamesWhatTheProfileDoesNotList) {
  StackSpec stack;
  stack.name = "s";
  const ModelSpec model;
  Plan plan;
  plan.pp = 4;
  plan.schedule = ScheduleKind::ZbH1;
  plan.zero_stage = 3;
  EXPECT_TRUE(unsupported_by(stack, model, plan).empty());  // an empty list is all of them
  stack.schedules = {ScheduleKind::OneFOneB, ScheduleKind::Interleaved};
  stack.zero_stages = {0, 1};
  const auto sentences = unsupported_by(stack, model, plan);
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_EQ(sentences[0], "s does not run the schedule zb-h1 (it runs 1f1b, interleaved)");
  EXPECT_EQ(sentences[1], "s does not run ZeRO stage 3 (it runs 0, 1)");
  plan.zero_stage = 1;
  plan.pp = 1;  // nothing to schedule
  EXPECT_TRUE(unsupported_by(stack, model, plan).empty());
}

// Each capability of a stack is a limit of its plans, and breaks the rule `stack`.
TEST(StackSupport, EachCapabilityRefusesWhatTheFrameworkDoesNotRun) {
  const auto broken = [](const char* name, const char* model, const Plan& plan) {
    const StackSpec stack = load_stack(name);
    const ModelSpec spec = load_model(model);
    const ClusterSpec cluster = load_cluster("dgx-h100");
    const auto rule = first_broken_rule(spec, cluster, plan, 0, &stack);
    EXPECT_EQ(rule == PlanRule::Stack, !unsupported_by(stack, spec, plan).empty());
    EXPECT_FALSE(first_broken_rule(spec, cluster, plan)) << "without a stack, any plan is allowed";
    return rule == PlanRule::Stack;
  };
  Plan plan;
  plan.dp = plan.tp = 2;
  plan.zero_stage = 3;
  plan.global_batch = 16;
  Plan local = plan;
  local.replicas.sync = ReplicaSync::LocalSteps;
  local.shard_group = 1;
  EXPECT_TRUE(broken("megatron-core", "llama3-8b", local));
  EXPECT_FALSE(broken("fsdp2", "llama3-8b", local));
  local.replicas.compression = ReplicaCompression::Int8;
  EXPECT_TRUE(broken("fsdp2", "llama3-8b", local));
  Plan pipeline = plan, context = plan, alone = plan, group = plan, some = plan, heads = plan;
  pipeline.pp = 2;
  EXPECT_TRUE(broken("megatron-core", "llama3-8b", pipeline));
  EXPECT_FALSE(broken("megatron-core", "llama3-8b", plan));
  EXPECT_FALSE(broken("fsdp2", "llama3-8b", pipeline));
  EXPECT_TRUE(broken("fsdp2", "llama3.2-1b", pipeline)) << "tied embeddings";
  context.cp = 2;
  EXPECT_TRUE(broken("fsdp2", "llama3-8b", context)) << "a ring";
  context.context_parallel = ContextParallelKind::AllGather;
  EXPECT_FALSE(broken("fsdp2", "llama3-8b", context));
  context.zero_stage = 0;
  EXPECT_TRUE(broken("fsdp2", "llama3-8b", context)) << "context-parallel ranks shard";
  EXPECT_TRUE(broken("deepspeed-zero", "llama3-8b", plan)) << "sequence parallelism";
  alone.sequence_parallel = false;
  EXPECT_FALSE(broken("deepspeed-zero", "llama3-8b", alone));
  group.dp = 4;
  group.shard_group = 2;
  group.sequence_parallel = false;
  EXPECT_TRUE(broken("deepspeed-zero", "llama3-8b", group));
  some.recompute = RecomputePolicy::Full;
  some.recompute_layers = 4;
  EXPECT_TRUE(broken("fsdp2", "llama3-8b", some));
  Plan offloads = plan;
  offloads.offload_activations = true;
  offloads.offload_modules = {OffloadModule::QkvLinear};
  EXPECT_FALSE(broken("megatron-core", "llama3-8b", offloads));
  EXPECT_TRUE(broken("megatron-kwai", "llama3-8b", offloads));
  EXPECT_TRUE(broken("fsdp2", "llama3-8b", offloads));
  Plan groups = plan, intervals = plan;
  groups.recompute = intervals.recompute = RecomputePolicy::Full;
  groups.recompute_group = intervals.recompute_interval = 2;
  EXPECT_FALSE(broken("megatron-core", "llama3-8b", groups));
  EXPECT_TRUE(broken("megatron-core", "deepseek-v3", groups)) << "layers that predict further";
  EXPECT_TRUE(broken("megatron-core", "llama3-8b", intervals));
  EXPECT_TRUE(broken("fsdp2-compile", "llama3-8b", intervals));
  EXPECT_FALSE(broken("fsdp2-compile-2025", "llama3-8b", intervals));
  heads.tp = 16;
  EXPECT_TRUE(broken("fsdp2", "llama3-8b", heads)) << "8 key/value heads";
  Plan experts = plan;
  experts.ep = 4;
  EXPECT_FALSE(broken("fsdp2", "mixtral-8x7b", experts));
  experts.zero_stage = 0;
  EXPECT_TRUE(broken("fsdp2", "mixtral-8x7b", experts)) << "ep within a shard group";
  Plan narrow = plan;
  narrow.optimizer_states = OptimizerStates::EightBit;
  EXPECT_FALSE(broken("megatron-core", "llama3-8b", narrow));
  EXPECT_TRUE(broken("fsdp2", "llama3-8b", narrow));
  narrow.zero_stage = 0;
  EXPECT_TRUE(broken("megatron-core", "llama3-8b", narrow)) << "a part of ZeRO-1";
  narrow.optimizer_states = OptimizerStates::PureBf16;
  EXPECT_TRUE(broken("megatron-core", "llama3-8b", narrow));
}

// What a stack refuses of adapters, it refuses in plans and before a search alike.
TEST(StackSupport, AdaptersAreThoseOfTheFramework) {
  using enum LoraTarget;
  const auto refused = [](const char* name, const char* model, const Lora& lora) {
    const StackSpec stack = load_stack(name);
    const ModelSpec spec = load_model(model);
    const std::string said = adapters_refused_by(stack, spec, lora);
    Plan plan;
    plan.lora = lora;
    plan.zero_stage = 0;
    plan.context_parallel = ContextParallelKind::AllGather;
    plan.sequence_parallel = false;
    const std::vector<std::string> sentences = unsupported_by(stack, spec, plan);
    EXPECT_EQ(sentences.empty(), said.empty()) << name;
    if (said.empty()) return false;
    EXPECT_EQ(sentences.front(), stack.name + " " + said);
    return true;
  };
  const Lora all{.rank = 16, .targets = {}};
  const Lora joint{.rank = 16, .targets = {}, .joint = true};
  const Lora queries{.rank = 16, .targets = {Q, V}}, attention{.rank = 16, .targets = {Q, K, V}};
  Lora narrow = attention;
  narrow.base = FrozenFormat::Nf4;
  for (const char* name : {"megatron-core", "nemo-te", "megatron-bridge"}) {
    EXPECT_FALSE(refused(name, "mixtral-8x7b", all)) << name;
    EXPECT_FALSE(refused(name, "llama3-8b", joint)) << name;
    EXPECT_TRUE(refused(name, "llama3-8b", narrow)) << name << ": weights of 4 bits";
  }
  EXPECT_FALSE(refused("fsdp2", "llama3-8b", all));
  EXPECT_TRUE(refused("fsdp2", "llama3-8b", joint));
  EXPECT_TRUE(refused("fsdp2", "llama3-8b", queries)) << "values without keys";
  EXPECT_TRUE(refused("fsdp2", "mixtral-8x7b", all)) << "experts";
  EXPECT_FALSE(refused("fsdp2", "mixtral-8x7b", attention));
  EXPECT_FALSE(refused("deepspeed-zero", "llama3-8b", narrow));
  EXPECT_FALSE(refused("generic-pytorch", "llama3-8b", queries));
  for (const char* name : {"megatron-lm-2020", "megatron-kwai", "hai-llm", "shardwright"})
    EXPECT_TRUE(refused(name, "llama3-8b", attention)) << name;
}

// generate_llm_fqn_per_model_part of torchtitan, in which the first chunks take the remainder.
TEST(StackSupport, FewerLayersAtTheEnds) {
  ModelSpec model;
  model.layers = 31;
  Plan plan;
  plan.pp = 4;
  plan.stage_layers = {7, 8, 8, 8};
  EXPECT_EQ(fewer_layers_at_ends(model, plan), (FewerLayers{1, 0}));
  plan.stage_layers = {8, 8, 8, 7};
  EXPECT_EQ(fewer_layers_at_ends(model, plan), (FewerLayers{0, 0}));
  plan.stage_layers = {6, 9, 9, 7};
  EXPECT_EQ(fewer_layers_at_ends(model, plan), (FewerLayers{3, 1}));
  plan.stage_layers = {7, 9, 7, 8};
  EXPECT_EQ(fewer_layers_at_ends(model, plan), std::nullopt);
}

}  // namespace
}  // namespace shardwright
