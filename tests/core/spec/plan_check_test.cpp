#include "core/spec/plan_check.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/core/spec/random_plan.hpp"

namespace shardwright {

namespace {

// A model, a cluster and a plan for it that keeps every rule.
struct Case {
  ModelSpec model;
  ClusterSpec cluster;
  Plan plan;
  std::int64_t accelerators = 0;
};

Case dense_case() {
  Case sound;
  sound.model.name = "dense";
  sound.model.layers = 32;
  sound.model.hidden = 4096;
  sound.model.attention.heads = 32;
  sound.model.attention.kv_heads = 8;
  sound.model.mlp.ffn_hidden = 14336;
  sound.cluster.nodes = 64;
  sound.cluster.accelerator.matrix.bf16 = FlopPerSecond(1e15);
  sound.plan.dp = 4;
  sound.plan.tp = 8;
  sound.plan.pp = 4;
  sound.plan.cp = 2;
  sound.plan.global_batch = 128;
  sound.plan.seq_len = 8192;
  sound.accelerators = 256;
  return sound;
}

Case sparse_case() {
  Case sound = dense_case();
  sound.model.moe = MoeSpec{};
  sound.model.moe->experts = 64;
  sound.model.moe->top_k = 4;
  sound.model.moe->expert_ffn = 2048;
  sound.model.moe->shared_expert_ffn = 4096;
  sound.plan.ep = 16;
  sound.plan.expert_tp = 2;
  return sound;
}

std::vector<PlanRule> rules_broken_by(const Case& subject) {
  std::vector<PlanRule> rules;
  for (const BrokenRule& broken :
       broken_rules(subject.model, &subject.cluster, subject.plan, subject.accelerators, "/plan")) {
    rules.push_back(broken.rule);
    EXPECT_EQ(broken.problem.where.rfind("/plan", 0), 0U) << broken.problem.where;
    EXPECT_FALSE(broken.problem.found.empty());
    EXPECT_FALSE(broken.problem.expected.text.empty());
  }
  return rules;
}

std::optional<PlanRule> first_broken(const Case& subject) {
  return first_broken_rule(subject.model, subject.cluster, subject.plan, subject.accelerators);
}

TEST(PlanCheck, SoundPlansKeepEveryRule) {
  EXPECT_EQ(rules_broken_by(dense_case()), std::vector<PlanRule>{});
  EXPECT_EQ(rules_broken_by(sparse_case()), std::vector<PlanRule>{});
  EXPECT_EQ(first_broken(dense_case()), std::nullopt);
}

// One change to a sound case, and the one rule that it breaks.
struct Breakage {
  PlanRule rule;
  const char* what;
  std::function<void(Case&)> change;
};

std::vector<Breakage> dense_breakages() {
  return {
      {PlanRule::Range, "no rank", [](Case& c) { c.plan.dp = 0; }},
      {PlanRule::Range, "a negative batch", [](Case& c) { c.plan.micro_batch = -1; }},
      {PlanRule::Range, "a product beyond 64 bits",
       [](Case& c) { c.plan.dp = c.plan.tp = c.plan.pp = c.plan.cp = kMaxDegree; }},
      {PlanRule::WorldSize, "other than asked for", [](Case& c) { c.accelerators = 512; }},
      {PlanRule::ClusterSize, "more than there are", [](Case& c) { c.cluster.nodes = 31; }},
      {PlanRule::Precision, "no FP8 units", [](Case& c) { c.plan.precision = Precision::Fp8; }},
      {PlanRule::Heads, "20 heads on tp 8",
       [](Case& c) { c.model.attention.heads = c.model.attention.kv_heads * 2 + 4; }},
      {PlanRule::KvHeads, "6 heads on tp 8", [](Case& c) { c.model.attention.kv_heads = 6; }},
      {PlanRule::FfnHidden, "an odd width", [](Case& c) { c.model.mlp.ffn_hidden = 14337; }},
      {PlanRule::ExpertParallel, "a dense model", [](Case& c) { c.plan.ep = 2; }},
      {PlanRule::ExpertParallel, "a dense model", [](Case& c) { c.plan.expert_tp = 2; }},
      {PlanRule::ContextParallel, "a half chunk too many",
       [](Case& c) {
         c.plan.seq_len = 8194;
         c.plan.sequence_parallel = false;
       }},
      {PlanRule::UlyssesHeads, "24 heads on 16 ranks",
       [](Case& c) {
         c.plan.context_parallel = ContextParallelKind::Ulysses;
         c.model.attention.heads = c.model.attention.kv_heads = 24;
       }},
      {PlanRule::SequenceParallel, "8200 = 16 x 512.5", [](Case& c) { c.plan.seq_len = 8200; }},
      {PlanRule::Positions, "a shorter table",
       [](Case& c) {
         c.model.position = PositionKind::Learned;
         c.model.position_embeddings = 2048;
       }},
      {PlanRule::GlobalBatch, "a partial microbatch", [](Case& c) { c.plan.global_batch = 130; }},
      {PlanRule::StepSize, "31,251 microbatches of 32 layers",
       [](Case& c) { c.plan.global_batch = 4 * 31'251; }},
      {PlanRule::VirtualStages, "1F1B with two chunks", [](Case& c) { c.plan.vpp = 2; }},
      {PlanRule::VirtualStages, "ZB-V with one chunk",
       [](Case& c) { c.plan.schedule = ScheduleKind::ZbV; }},
      {PlanRule::ScheduleShape, "6 microbatches on 4 interleaved stages",
       [](Case& c) {
         c.plan.schedule = ScheduleKind::Interleaved;
         c.plan.vpp = 2;
         c.plan.global_batch = 24;
       }},
      {PlanRule::ScheduleShape, "too few microbatches for DualPipe",
       [](Case& c) {
         c.plan.schedule = ScheduleKind::DualPipe;
         c.plan.global_batch = 24;
       }},
      {PlanRule::Layers, "3 layers on 4 stages", [](Case& c) { c.model.layers = 3; }},
      {PlanRule::StageLayers, "3 numbers",
       [](Case& c) {
         c.plan.stage_layers = {10, 11, 11};
       }},
      {PlanRule::StageLayers, "33 layers",
       [](Case& c) {
         c.plan.stage_layers = {8, 8, 8, 9};
       }},
      {PlanRule::StageLayers, "an idle stage",
       [](Case& c) {
         c.plan.stage_layers = {16, 0, 8, 8};
       }},
      {PlanRule::StagePools, "a pool for one of four stages",
       [](Case& c) { c.plan.stage_pools = {c.cluster.name}; }},
      {PlanRule::StagePools, "pools that the cluster does not have",
       [](Case& c) {
         c.plan.stage_pools = {"a", "a", "b", "b"};
       }},
      {PlanRule::ReplicaPools, "replicas on a pool that the cluster does not have",
       [](Case& c) {
         c.plan.replica_pools = {{"a", c.plan.dp, c.plan.microbatches()}};
       }},
      {PlanRule::RecomputeModules, "nothing is recomputed",
       [](Case& c) { c.plan.recompute_modules = {RecomputeModule::Mlp}; }},
      {PlanRule::RecomputeModules, "experts of a dense model",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Selective;
         c.plan.recompute_modules = {RecomputeModule::Mlp, RecomputeModule::MoeActivation};
       }},
      {PlanRule::RecomputeLayers, "nothing is recomputed",
       [](Case& c) { c.plan.recompute_layers = 1; }},
      {PlanRule::RecomputeLayers, "more than there are",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.recompute_layers = 33;
       }},
      {PlanRule::StageRecompute, "stages of nothing",
       [](Case& c) { c.plan.stage_recompute_layers = std::vector<std::int64_t>(4, 1); }},
      {PlanRule::StageRecompute, "three of four stages",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.stage_recompute_layers = {1, 2, 3};
       }},
      {PlanRule::StageRecompute, "beside a number for all stages",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.recompute_layers = 1;
         c.plan.stage_recompute_layers = {1, 2, 3, 4};
       }},
      {PlanRule::StageRecompute, "more than there are on a stage",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.stage_recompute_layers = {1, 2, 33, 4};
       }},
      {PlanRule::RecomputePattern, "groups of nothing",
       [](Case& c) { c.plan.recompute_group = 2; }},
      {PlanRule::RecomputePattern, "groups and intervals",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.recompute_interval = c.plan.recompute_group = 2;
       }},
      {PlanRule::RecomputePattern, "intervals of the first layers",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.recompute_layers = 4;
         c.plan.recompute_interval = 2;
       }},
      {PlanRule::RecomputePattern, "a group of more than there are",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.recompute_group = 33;
       }},
      {PlanRule::ZeroStage, "stage 4", [](Case& c) { c.plan.zero_stage = 4; }},
      {PlanRule::ShardGroup, "3 of 8", [](Case& c) { c.plan.shard_group = 3; }},
      {PlanRule::ShardGroup, "4 across rows of 6",
       [](Case& c) {
         c.plan.dp = 2;
         c.plan.cp = 6;
         c.accelerators = 384;
         c.plan.seq_len = 12288;
         c.plan.shard_group = 4;
       }},
      {PlanRule::ShardGroup, "nothing is sharded",
       [](Case& c) {
         c.plan.shard_group = 4;
         c.plan.zero_stage = 0;
       }},
      {PlanRule::DataParallel, "local steps of one replica",
       [](Case& c) { c.plan.replicas.sync = ReplicaSync::LocalSteps; }},
      {PlanRule::DataParallel, "local steps of ranks that share a sequence",
       [](Case& c) {
         c.plan.replicas.sync = ReplicaSync::LocalSteps;
         c.plan.zero_stage = 0;
       }},
      {PlanRule::DataParallel, "more fragments than layers",
       [](Case& c) {
         c.plan.shard_group = 4;
         c.plan.replicas.sync = ReplicaSync::LocalSteps;
         c.plan.replicas.inner_steps = 100;
         c.plan.replicas.fragments = 33;
       }},
      {PlanRule::DataParallel, "exchanges of fragments at the same time",
       [](Case& c) {
         c.plan.shard_group = 4;
         c.plan.replicas.sync = ReplicaSync::LocalSteps;
         c.plan.replicas.inner_steps = 10;
         c.plan.replicas.fragments = 4;
         c.plan.replicas.overlap_steps = 3;
       }},
      {PlanRule::DataParallel, "compressed gradients that ZeRO scatters",
       [](Case& c) { c.plan.replicas.compression = ReplicaCompression::TopK; }},
      {PlanRule::DataParallel, "no share of the gradients",
       [](Case& c) {
         c.plan.replicas.compression = ReplicaCompression::TopK;
         c.plan.replicas.topk_ratio = 0.0;
         c.plan.zero_stage = 0;
       }},
      {PlanRule::DataParallel, "parameter servers beside ZeRO",
       [](Case& c) { c.plan.replicas.sync = ReplicaSync::ParameterServer; }},
      {PlanRule::DataParallel, "compressed gradients for parameter servers",
       [](Case& c) {
         c.plan.zero_stage = 0;
         c.plan.replicas.sync = ReplicaSync::ParameterServer;
         c.plan.replicas.compression = ReplicaCompression::Bf16;
       }},
      {PlanRule::DataParallel, "more nodes of parameter servers than there are",
       [](Case& c) {
         c.plan.zero_stage = 0;
         c.plan.replicas.sync = ReplicaSync::ParameterServer;
         c.plan.replicas.server_place = ServerPlace::Dedicated;
         c.plan.replicas.servers = kMaxDegree;
       }},
      {PlanRule::RankOrder, "an axis twice",
       [](Case& c) { c.plan.rank_order[0] = Axis::Pipeline; }},
      {PlanRule::RankOrder, "an axis missing", [](Case& c) { c.plan.rank_order.pop_back(); }},
      {PlanRule::ExpertOverlap, "a dense model",
       [](Case& c) { c.plan.overlap.expert_parallel = true; }},
      {PlanRule::ExpertOverlap, "no exchange of tokens",
       [](Case& c) { c.plan.overlap.expert_microbatches = true; }},
      {PlanRule::ActivationOffload, "nothing is kept",
       [](Case& c) {
         c.plan.recompute = RecomputePolicy::Full;
         c.plan.offload_activations = true;
       }},
      {PlanRule::ActivationOffload, "modules of nothing",
       [](Case& c) { c.plan.offload_modules = {OffloadModule::CoreAttention}; }},
      {PlanRule::ActivationOffload, "experts that the model does not have",
       [](Case& c) {
         c.plan.offload_activations = true;
         c.plan.offload_modules = {OffloadModule::ExpertFc1};
       }},
      {PlanRule::ActivationOffload, "attention's output without its other tensors",
       [](Case& c) {
         c.plan.offload_activations = true;
         c.plan.offload_modules = {OffloadModule::AttentionProjection};
       }},
      {PlanRule::ActivationOffload, "what runs again",
       [](Case& c) {
         c.plan.offload_activations = true;
         c.plan.offload_modules = {OffloadModule::CoreAttention};
         c.plan.recompute = RecomputePolicy::Selective;
         c.plan.recompute_modules = {RecomputeModule::CoreAttention};
       }},
      {PlanRule::OptimizerStates, "8 bits on the host",
       [](Case& c) {
         c.cluster.node.host.memory = Bytes(1e15);
         c.plan.offload_optimizer = OptimizerOffload::Host;
         c.plan.optimizer_states = OptimizerStates::EightBit;
       }},
      {PlanRule::OptimizerStates, "pure bf16 beside weights in fp32",
       [](Case& c) {
         c.cluster.accelerator.matrix.fp32 = FlopPerSecond(1e14);
         c.plan.precision = Precision::Fp32;
         c.plan.optimizer_states = OptimizerStates::PureBf16;
       }},
      {PlanRule::OptimizerOffload, "no disks",
       [](Case& c) {
         c.plan.offload_optimizer = OptimizerOffload::Nvme;
         c.cluster.node.host.nvme_write = BytesPerSecond(0);
       }},
      {PlanRule::OptimizerOffload, "a host of 1 MB",
       [](Case& c) {
         c.plan.offload_optimizer = OptimizerOffload::Host;
         c.cluster.node.host.memory = Bytes(1e6);
       }},
      {PlanRule::Lora, "a gate that the model does not have",
       [](Case& c) {
         c.model.mlp.gated = false;
         c.plan.lora = Lora{.targets = {LoraTarget::Q, LoraTarget::Gate}};
       }},
      {PlanRule::Lora, "wider than the model",
       [](Case& c) { c.plan.lora = Lora{.rank = c.model.hidden + 1, .targets = {}}; }},
      {PlanRule::Lora, "a joint adapter for a part",
       [](Case& c) {
         c.plan.lora = Lora{.targets = {LoraTarget::Q, LoraTarget::V}, .joint = true};
       }},
      {PlanRule::Lora, "products in FP8 of weights of 4 bits",
       [](Case& c) {
         c.cluster.accelerator.matrix.fp8 = FlopPerSecond(1e15);
         c.plan.precision = Precision::Fp8;
         c.plan.lora = Lora{.targets = {}, .base = FrozenFormat::Nf4};
       }},
      {PlanRule::Range, "a rank of 0",
       [](Case& c) { c.plan.lora = Lora{.rank = 0, .targets = {}}; }},
  };
}

std::vector<Breakage> sparse_breakages() {
  return {
      {PlanRule::RankOrder, "24 ranks inside of the pipeline, groups of 16 experts",
       [](Case& c) {
         c.plan.tp = 2;
         c.plan.cp = 12;
         c.plan.dp = 4;
         c.plan.expert_tp = 1;
         c.plan.seq_len = 12288;
         c.accelerators = 384;
         c.plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline,
                              Axis::Data};
       }},
      {PlanRule::ShardGroup, "4 of the 6 replicas of an expert",
       [](Case& c) {
         c.plan.dp = 12;
         c.plan.tp = 8;
         c.plan.cp = 2;
         c.plan.pp = 2;
         c.plan.shard_group = 4;
         c.plan.global_batch = 48;
         c.accelerators = 384;
       }},
      {PlanRule::FfnHidden, "an odd shared expert",
       [](Case& c) { c.model.moe->shared_expert_ffn = 4097; }},
      {PlanRule::Experts, "60 experts on ep 16", [](Case& c) { c.model.moe->experts = 60; }},
      {PlanRule::ExpertFfn, "an odd width", [](Case& c) { c.model.moe->expert_ffn = 2047; }},
      {PlanRule::ExpertGroups, "128 of a stage's 64 ranks", [](Case& c) { c.plan.expert_tp = 8; }},
      {PlanRule::Lora, "adapters of experts that ranks share",
       [](Case& c) {
         c.plan.expert_tp = 2;
         c.plan.lora = Lora{};
       }},
  };
}

void expect_breaks(Case subject, const Breakage& breakage) {
  SCOPED_TRACE(std::string(name_of(breakage.rule)) + ": " + breakage.what);
  breakage.change(subject);
  EXPECT_EQ(rules_broken_by(subject), std::vector<PlanRule>{breakage.rule});
  EXPECT_EQ(first_broken(subject), breakage.rule);
}

TEST(PlanCheck, EachBreakageBreaksItsRuleAlone) {
  for (const Breakage& breakage : dense_breakages()) expect_breaks(dense_case(), breakage);
  for (const Breakage& breakage : sparse_breakages()) expect_breaks(sparse_case(), breakage);
}

TEST(PlanCheck, EveryRuleHasABreakageAndANameOfItsOwn) {
  std::set<PlanRule> broken;
  for (const Breakage& breakage : dense_breakages()) broken.insert(breakage.rule);
  for (const Breakage& breakage : sparse_breakages()) broken.insert(breakage.rule);
  // The cases have no stack; StackSupport has those of its rule.
  broken.insert(PlanRule::Stack);
  std::set<std::string> names;
  for (const PlanRule rule : all_plan_rules()) {
    EXPECT_EQ(broken.count(rule), 1U) << name_of(rule);
    names.insert(name_of(rule));
  }
  EXPECT_EQ(names.size(), all_plan_rules().size());
}

TEST(PlanCheck, KeyValueHeadsMayBeReplicatedOverTensorParallelRanks) {
  Case subject = dense_case();
  subject.model.attention.kv_heads = 2;
  EXPECT_EQ(first_broken(subject), std::nullopt);
}

// Llama 3.1 405B has 126 layers on 16 stages, one less on the first and the last (arXiv 2407.21783
// section 3.3.2).
TEST(PlanCheck, AcceptsTheUnevenSplitOfLlama405b) {
  Case subject = dense_case();
  subject.model.layers = 126;
  subject.model.attention.heads = 128;
  subject.plan.pp = 16;
  subject.plan.cp = 1;
  subject.accelerators = 512;
  subject.plan.stage_layers = std::vector<std::int64_t>(16, 8);
  EXPECT_EQ(first_broken(subject), PlanRule::StageLayers);
  subject.plan.stage_layers.front() = subject.plan.stage_layers.back() = 7;
  EXPECT_EQ(first_broken(subject), std::nullopt);
}

TEST(PlanCheck, SaysEveryProblemWithItsPlace) {
  Case subject = dense_case();
  subject.plan.global_batch = 130;
  subject.plan.zero_stage = 7;
  const std::vector<BrokenRule> broken =
      broken_rules(subject.model, nullptr, subject.plan, 256, "/plan");
  ASSERT_EQ(broken.size(), 2U);
  EXPECT_EQ(broken[0].problem,
            (Problem{"/plan/global_batch", "130", "a multiple of 4 (dp x micro_batch)"}));
  EXPECT_EQ(broken[1].problem, (Problem{"/plan/zero_stage", "7", "0, 1, 2 or 3"}));
}

RC_GTEST_PROP(PlanCheck, TheFastPathNamesTheFirstOfTheReportedRules, ()) {
  Case subject = *rc::gen::arbitrary<bool>() ? dense_case() : sparse_case();
  subject.plan = any_plan();
  subject.accelerators = 0;
  if (*rc::gen::arbitrary<bool>()) subject.plan.tp = subject.plan.cp = subject.plan.dp = 1;
  const std::vector<PlanRule> reported = rules_broken_by(subject);
  const std::optional<PlanRule> first = first_broken(subject);
  RC_ASSERT(first.has_value() != reported.empty());
  if (first) RC_ASSERT(*first == reported.front());
}

// The rules on the schedule's shape are those of the schedules themselves, for every kind and all
// small shapes.
TEST(PlanCheck, AgreesWithTheSchedulesOnShapes) {
  Case subject = dense_case();
  subject.model.layers = 1000;
  subject.cluster.nodes = 0;
  subject.accelerators = 0;
  Plan& plan = subject.plan;
  plan.dp = plan.tp = plan.cp = 1;
  for (const ScheduleKind kind : enumerators<ScheduleKind>()) {
    plan.schedule = kind;
    for (plan.pp = 1; plan.pp <= 9; ++plan.pp) {
      for (plan.vpp = 1; plan.vpp <= 4; ++plan.vpp) {
        for (plan.global_batch = 1; plan.global_batch <= 30; ++plan.global_batch) {
          EXPECT_EQ(first_broken(subject).has_value(), why_not(kind, shape_of(plan)).has_value())
              << name_of(kind) << " pp " << plan.pp << " vpp " << plan.vpp << " m "
              << plan.global_batch;
        }
      }
    }
  }
  plan = dense_case().plan;
  plan.global_batch = 100'000'000;
  EXPECT_TRUE(why_not(plan.schedule, shape_of(plan)).has_value());
  EXPECT_EQ(first_broken(subject), PlanRule::StepSize);
  plan.dp = plan.tp = plan.cp = 1;
  plan.pp = kMaxDegree;
  plan.global_batch = 900;
  EXPECT_TRUE(why_not(plan.schedule, shape_of(plan)).has_value());
  EXPECT_EQ(first_broken(subject), PlanRule::ScheduleShape);
}

}  // namespace

}  // namespace shardwright
