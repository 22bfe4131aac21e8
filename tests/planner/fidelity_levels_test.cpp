// The ladder: bound <= event, analytic near event, memory equal to the replay, over random plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "planner/plan_evaluation.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/simulate.hpp"
#include "tests/planner/random_plan.hpp"
#include "tests/planner/random_request.hpp"
#include "tests/planner/sample_share.hpp"

namespace shardwright::planner {
namespace {

constexpr int kRequests = 200 / kSampleShare;
constexpr std::size_t kPlansEach = 20;

struct Levels {
  Plan plan;
  double bound, analytic, event;
  double estimated_memory, replayed_memory;
};

Levels at_all_levels(const PlanRequest& request, const Plan& plan) {
  const ClosedForms closed = closed_forms(request, plan);
  const sim::StepResult event = sim::simulate_step(scenario_of(request, plan));
  return {plan,
          closed.bound.value(),
          closed.analytic.value(),
          event.step.value(),
          closed.peak_memory.value(),
          event.memory().peak.value()};
}

std::string describe(const PlanRequest& request, const Plan& plan) {
  return request.model.name + " " + request.stack.name + " dp" + std::to_string(plan.dp) + " tp" +
         std::to_string(plan.tp) + " pp" + std::to_string(plan.pp) + " vpp" +
         std::to_string(plan.vpp) + " cp" + std::to_string(plan.cp) + " ep" +
         std::to_string(plan.ep) + " zero" + std::to_string(plan.zero_stage) + " mb" +
         std::to_string(plan.micro_batch) + " " + name_of(plan.schedule) + " " +
         name_of(plan.recompute) + (plan.stage_layers.empty() ? "" : " front-light") +
         (plan.embedding_counts_as_layer ? " ends counted" : "") +
         (plan.rank_order.back() == Axis::Pipeline ? "" : " pp inside dp");
}

TEST(FidelityLevels, BoundStaysBelowEventAndMemoryIsThatOfTheReplay) {
  std::mt19937 random(20240717);
  std::int64_t compared = 0;
  for (int i = 0; i < kRequests; ++i) {
    const PlanRequest request = random_request(random);
    std::vector<Plan> plans = valid_plans(request);
    std::shuffle(plans.begin(), plans.end(), random);
    plans.resize(std::min(plans.size(), kPlansEach));
    for (const Plan& plan : plans) {
      const Levels levels = at_all_levels(request, plan);
      ++compared;
      ASSERT_LE(levels.bound, levels.event) << describe(request, plan);
      ASSERT_GT(levels.bound, 0.0) << describe(request, plan);
      ASSERT_NEAR(levels.estimated_memory / levels.replayed_memory, 1.0, 1e-9)
          << describe(request, plan);
    }
  }
  EXPECT_GT(compared, 2000 / kSampleShare);
}

// Every schedule, sharding, degree and kind of model, whether or not the plan fits.
TEST(FidelityLevels, AnalyticIsNearEventForMostPlansOfAllKinds) {
  constexpr int kEach = 40 / kSampleShare, kPlans = 24;
  std::mt19937 random(20240718);
  std::int64_t compared = 0, all_near = 0;
  for (const Workload workload : {Workload::Dense, Workload::Small, Workload::Experts}) {
    std::int64_t near = 0, drawn = 0;
    for (int i = 0; i < kEach; ++i) {
      const PlanRequest request = any_request(random, workload);
      for (const Plan& plan : draw_valid_plans(random, request, kPlans)) {
        const Levels levels = at_all_levels(request, plan);
        ++drawn;
        near += std::abs(levels.analytic / levels.event - 1.0) <= 0.05;
        ASSERT_GE(levels.analytic, levels.bound) << describe(request, plan);
        ASSERT_LE(levels.bound, levels.event) << describe(request, plan);
      }
    }
    EXPECT_GE(near * 100, drawn * 80) << static_cast<int>(workload);
    compared += drawn;
    all_near += near;
  }
  // The share of a small sample strays by sqrt(0.9 * 0.1 / n); the whole sample is held to 90 %.
  const double stray = kSampleShare == 1 ? 0.0 : 2.0 * std::sqrt(0.09 / double(compared));
  EXPECT_GE(double(all_near), (0.9 - stray) * double(compared)) << compared;
  EXPECT_GT(compared, 2000 / kSampleShare);
}

// 126 layers on 128 chunks, as Llama 3 405B ran (arXiv 2407.21783, section 3.3.2): the first chunk
// has the embedding alone, and the last one the head.
TEST(FidelityLevels, AgreeOnAPipelineWhoseEndsHoldNoLayer) {
  const PlanRequest request = request_for("llama3.1-405b", 256, 64, 8192);
  Plan plan;
  plan.dp = 2;
  plan.tp = plan.vpp = 8;
  plan.pp = 16;
  plan.global_batch = 64;
  plan.seq_len = 8192;
  plan.schedule = ScheduleKind::Interleaved;
  plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  ASSERT_FALSE(first_broken_rule(request.model, request.cluster, plan));
  const Levels levels = at_all_levels(request, plan);
  EXPECT_LE(levels.bound, levels.event);
  EXPECT_NEAR(levels.analytic / levels.event, 1.0, 0.05);
  EXPECT_NEAR(levels.estimated_memory / levels.replayed_memory, 1.0, 1e-9);
}

// Issuing a slot with CUDA graphs off takes longer than the slot, and the last stage of a pipeline
// sends itself the first gradient.
TEST(FidelityLevels, BoundKnowsThatTheLastStageDoesNotWaitForItsOwnGradient) {
  PlanRequest request = request_for("llama3.2-1b", 16, 2, 2048);
  request.cluster = load_cluster(std::string("vultr-hgx-b200-tuned"));
  request.stack = load_stack(std::string("nemo-te-mla"));
  Plan plan;
  plan.tp = 8;
  plan.pp = 2;
  plan.micro_batch = plan.global_batch = 2;
  plan.seq_len = 2048;
  const Levels levels = at_all_levels(request, plan);
  EXPECT_LE(levels.bound, levels.event);
}

// Without sequence parallelism a message is scattered over the tensor-parallel ranks, and the host
// issues the stage's kernels beside the gather that follows it.
TEST(FidelityLevels, BoundKnowsThatTheHostIssuesBesideTheGatherOfAMessage) {
  PlanRequest request = request_for("opt-1.3b", 64, 4, 1024);
  request.cluster = load_cluster(std::string("h800-ib"));
  request.stack = load_stack(std::string("megatron-bridge-mla"));
  Plan plan;
  plan.tp = plan.pp = 8;
  plan.micro_batch = plan.global_batch = 4;
  plan.seq_len = 1024;
  plan.sequence_parallel = false;
  plan.precision = request.precision = Precision::Fp8;
  plan.overlap.tensor_parallel = true;
  const Levels levels = at_all_levels(request, plan);
  EXPECT_LE(levels.bound, levels.event);
  EXPECT_GE(levels.bound, 0.95 * levels.event);
}

struct Share {
  std::int64_t near = 0, drawn = 0;

  void count(const Levels& levels) {
    ++drawn;
    near += std::abs(levels.analytic / levels.event - 1.0) <= 0.05;
  }
  double percent() const { return 100.0 * static_cast<double>(near) / static_cast<double>(drawn); }
};

// For docs/models/analytic_and_bound.md, in the XML that --gtest_output writes.
void record(const std::string& name, const Share& share) {
  testing::Test::RecordProperty(
      name, std::to_string(share.percent()) + " % of " + std::to_string(share.drawn));
}

// Plan files may also ask for these: any shipped model on any cluster and stack, any split of the
// layers, hybrid sharding at any ZeRO stage, and overlap switched off.
// A suite of its own, so that it runs beside the others.
TEST(FidelityLevelsOfAllShipped, AnalyticIsNearEventForMostPlans) {
  constexpr int kRuns = 4000 / kSampleShare;
  std::mt19937 random(20240720);
  Share all;
  std::map<ScheduleKind, Share> by_schedule;
  std::array<Share, 4> by_zero_stage;
  for (int i = 0; i < kRuns; ++i) {
    const auto [request, plan] = random_run(random);
    const Levels levels = at_all_levels(request, plan);
    ASSERT_LE(levels.bound, levels.event) << request.cluster.name << " " << describe(request, plan);
    ASSERT_GE(levels.analytic, levels.bound) << describe(request, plan);
    all.count(levels);
    by_schedule[plan.schedule].count(levels);
    by_zero_stage[static_cast<std::size_t>(plan.zero_stage)].count(levels);
  }
  record("all", all);
  // As above: a small sample strays.
  const double stray = kSampleShare == 1 ? 0.0 : 2.0 * std::sqrt(7.0 * 93.0 / kRuns);
  EXPECT_GE(all.percent(), 93.0 - stray);
  const double least = kSampleShare == 1 ? 88.0 : 78.0;  // groups of a small sample stray more
  for (const auto& [schedule, share] : by_schedule) {
    record(name_of(schedule), share);
    EXPECT_GE(share.percent(), least) << name_of(schedule);
  }
  for (std::size_t stage = 0; stage < by_zero_stage.size(); ++stage) {
    record("zero-" + std::to_string(stage), by_zero_stage[stage]);
    EXPECT_GE(by_zero_stage[stage].percent(), least) << stage;
  }
}

// Draws runs, changes the plan of each with `prepare` and then with `change`, and compares the
// levels. The memory is as exact as that of the plan before `change`.
template <class Prepare, class Change>
void expect_agreement(const std::string& name, unsigned seed, Prepare prepare, Change change) {
  constexpr int kRuns = 600 / kSampleShare;
  std::mt19937 random(seed);
  Share all;
  const auto is_exact = [](const Levels& levels) {
    return std::abs(levels.estimated_memory / levels.replayed_memory - 1.0) < 1e-9;
  };
  std::int64_t exact = 0;
  for (int i = 0; i < kRuns; ++i) {
    auto [request, plan] = random_run(random);
    prepare(plan);
    const bool was_exact = is_exact(at_all_levels(request, plan));
    change(random, request, plan);
    if (first_broken_rule(request.model, request.cluster, plan)) continue;
    const Levels levels = at_all_levels(request, plan);
    const std::string run =
        request.cluster.name + " " + describe(request, plan) + " " + to_json(plan).dump();
    ASSERT_LE(levels.bound, levels.event) << run;
    ASSERT_GE(levels.analytic, levels.bound) << run;
    EXPECT_TRUE(is_exact(levels) || !was_exact)
        << levels.estimated_memory / levels.replayed_memory << " " << run;
    exact += is_exact(levels);
    all.count(levels);
  }
  record(name, all);
  EXPECT_GT(all.drawn, kRuns / 2);
  EXPECT_GT(exact, all.drawn * 9 / 10);
  EXPECT_GE(all.percent(), 85.0);
}

// Adapters over frozen weights, beside plans that train all parameters.
TEST(FidelityLevels, AgreeOnLowRankAdapters) {
  expect_agreement(
      "lora", 20260824, [](Plan&) {},
      [](std::mt19937& random, PlanRequest& request, Plan& plan) {
        plan.lora = Lora{
            .rank = pick<std::int64_t>(random, {8, 64}), .targets = {}, .joint = one_in(random, 4)};
        if (one_in(random, 2)) plan.lora->targets = {LoraTarget::Q, LoraTarget::K, LoraTarget::V};
        if (one_in(random, 3)) plan.lora->base = FrozenFormat::Nf4;
        request.lora = plan.lora;
      });
}

void recompute_all_layers(Plan& plan) {
  plan.recompute = RecomputePolicy::Full;
  plan.recompute_layers = 0;
  plan.recompute_modules = {};
  plan.offload_activations = false;
}

// Groups and intervals of recomputed layers, beside layers that are recomputed one by one.
TEST(FidelityLevels, AgreeOnGroupsOfRecomputedLayers) {
  expect_agreement(
      "groups", 20261127, recompute_all_layers, [](std::mt19937& random, PlanRequest&, Plan& plan) {
        std::int64_t& number = one_in(random, 3) ? plan.recompute_interval : plan.recompute_group;
        number = pick<std::int64_t>(random, {2, 3, 4});
      });
}

// Stages that recompute more layers of their chunks or fewer, beside those that recompute all.
TEST(FidelityLevels, AgreeOnStagesThatRecomputeOtherNumbersOfLayers) {
  expect_agreement(
      "recomputation by stage", 20261201,
      [](Plan& plan) {
        recompute_all_layers(plan);
        if (plan.schedule == ScheduleKind::DualPipe) plan.schedule = ScheduleKind::OneFOneB;
      },
      [](std::mt19937& random, PlanRequest& request, Plan& plan) {
        std::uniform_int_distribution<std::int64_t> any(0, plan.even_chunk(request.model.layers));
        plan.stage_recompute_layers.resize(static_cast<std::size_t>(plan.pp));
        for (std::int64_t& layers : plan.stage_recompute_layers) layers = any(random);
      });
}

// Gives the plan at least four replicas of all states.
void use_whole_replicas(Plan& plan) {
  const std::int64_t microbatches = plan.microbatches();
  plan.dp = std::max<std::int64_t>(plan.dp, 4);
  plan.cp = plan.ep = 1;
  plan.expert_tp = plan.tp;
  plan.overlap.expert_microbatches = false;
  plan.zero_stage = 0;
  plan.shard_group = 0;
  plan.global_batch = plan.dp * plan.micro_batch * microbatches;
}

// Local steps and compressed gradients, also between shard groups.
TEST(FidelityLevels, AgreeOnReplicasThatSendLess) {
  expect_agreement("replicas", 20261128, use_whole_replicas,
                   [](std::mt19937& random, PlanRequest&, Plan& plan) {
                     plan.replicas = any_agreement(random);
                     if (!plan.replicas.local() || one_in(random, 2)) return;
                     plan.zero_stage = pick<int>(random, {1, 2, 3});
                     plan.shard_group = plan.dp / 2;
                   });
}

// The same, with the optimizer in fp32 on the device.
void use_plain_replicas(Plan& plan) {
  use_whole_replicas(plan);
  plan.offload_optimizer = OptimizerOffload::None;
  plan.optimizer_states = OptimizerStates::OfStack;
}

// Fragments of local steps, and exchanges beside steps on networks down to a thousandth as fast.
TEST(FidelityLevels, AgreeOnStreamingLocalSteps) {
  expect_agreement(
      "fragments", 20261130, use_plain_replicas,
      [](std::mt19937& random, PlanRequest& request, Plan& plan) {
        NicSpec& nic = request.cluster.node.nic;
        nic.bandwidth = nic.bandwidth * pick<double>(random, {1.0, 0.1, 0.01, 0.001});
        if (!request.model.moe) plan.expert_tp = 1;
        ReplicaAgreement& replicas = plan.replicas;
        replicas.sync = ReplicaSync::LocalSteps;
        replicas.inner_steps = 8;
        replicas.fragments = pick<std::int64_t>(random, {1, 3, 4});
        replicas.fragment_order =
            pick<FragmentOrder>(random, {FragmentOrder::Sequential, FragmentOrder::Strided});
        replicas.overlap_steps = pick<std::int64_t>(random, {0, 1, 2});
        replicas.local_share = pick<double>(random, {0.0, 0.5});
        replicas.compression = pick<ReplicaCompression>(
            random, {ReplicaCompression::None, ReplicaCompression::Fp4, ReplicaCompression::TopK});
      });
}

TEST(FidelityLevels, AgreeOnParameterServers) {
  expect_agreement(
      "parameter servers", 20261129,
      [](Plan& plan) {
        use_plain_replicas(plan);
        if (plan.schedule == ScheduleKind::DualPipe) plan.schedule = ScheduleKind::OneFOneB;
      },
      [](std::mt19937& random, PlanRequest& request, Plan& plan) {
        plan.replicas = any_servers(random);
        if (!request.model.moe) plan.expert_tp = 1;
      });
}

// Puts the last stages on accelerators, nodes and a fabric of another shipped cluster, behind a
// network that may be slower. False if a rule forbids it.
bool put_on_pools(std::mt19937& random, PlanRequest& request, Plan& plan) {
  const ClusterSpec& other = pick(random, shipped_cluster_specs());
  request.cluster.pools = {{.name = "further pool",
                            .accelerator = other.accelerator,
                            .node = other.node,
                            .fabric = other.fabric,
                            .nodes = 0,
                            .price = {}}};
  request.cluster.between_pools.latency = Seconds(pick<double>(random, {0.0, 0.0, 1e-5, 1e-4}));
  request.cluster.between_pools.bandwidth =
      BytesPerSecond(pick<double>(random, {0.0, 0.0, 1e11, 2.5e10}));
  std::erase(plan.rank_order, Axis::Pipeline);
  plan.rank_order.push_back(Axis::Pipeline);
  const auto first = std::uniform_int_distribution<std::int64_t>(0, plan.pp - 1)(random);
  for (std::int64_t stage = 0; stage < plan.pp; ++stage)
    plan.stage_pools.push_back(stage < first ? request.cluster.name : "further pool");
  return plan.pp > 1 && !first_broken_rule(request.model, request.cluster, plan);
}

// The same for the last replicas, which may run more microbatches or fewer.
bool put_replicas_on_pools(std::mt19937& random, PlanRequest& request, Plan& plan) {
  if (plan.dp == 1) return false;
  put_on_pools(random, request, plan);
  plan.stage_pools.clear();
  std::erase(plan.rank_order, Axis::Data);
  plan.rank_order.push_back(Axis::Data);
  const auto first = std::uniform_int_distribution<std::int64_t>(1, plan.dp - 1)(random);
  const std::int64_t each = plan.microbatches();
  plan.replica_pools = {{request.cluster.name, first, each},
                        {"further pool", plan.dp - first, each}};
  const Plan equal = plan;
  plan.replica_pools[1].microbatches =
      pick<std::int64_t>(random, {each, 2 * each, 3 * each, std::max<std::int64_t>(1, each / 2)});
  plan.global_batch = batch_of_pools(plan);
  const auto breaks = [&] { return first_broken_rule(request.model, request.cluster, plan); };
  if (breaks()) plan = equal;
  return !breaks() && !spreads_experts(plan);
}

// The same for the last replicas from one of their stages on.
bool split_replicas_on_pools(std::mt19937& random, PlanRequest& request, Plan& plan) {
  if (plan.pp == 1 || !put_replicas_on_pools(random, request, plan)) return false;
  std::erase(plan.rank_order, Axis::Pipeline);
  plan.rank_order.push_back(Axis::Pipeline);
  const auto border = std::uniform_int_distribution<std::int64_t>(0, plan.pp - 1)(random);
  for (std::size_t part = 0; part < 2; ++part) {
    plan.replica_pools[part].pool.clear();
    for (std::int64_t stage = 0; stage < plan.pp; ++stage)
      plan.replica_pools[part].stage_pools.push_back(
          stage < border || (stage == border && part == 0) ? request.cluster.name : "further pool");
  }
  return !first_broken_rule(request.model, request.cluster, plan);
}

// Mixed clusters, whose stages or replicas differ in all that a step takes. At least one plan of
// `few` can be put on pools, and the levels agree on at least `least` per cent of these.
template <class Put>
void expect_agreement_on_pools(std::uint32_t seed, const Put& put, int few = 4,
                               double least = 85.0) {
  constexpr int kRuns = 1200 / kSampleShare;
  std::mt19937 random(seed);
  Share all, alone;
  for (int i = 0; i < kRuns; ++i) {
    auto [request, plan] = random_run(random);
    if (!put(random, request, plan)) continue;
    const Scenario scenario{request.model, request.cluster, request.stack, plan};
    const sim::StepEstimate closed = sim::estimate_step(scenario);
    const sim::StepResult event = sim::simulate_step(scenario);
    const std::string run = describe(request, plan) + " " + to_json(plan).dump();
    ASSERT_LE(closed.bound, event.step) << run;
    ASSERT_GE(closed.analytic, closed.bound) << run;
    Levels levels{plan, closed.bound.value(), closed.analytic.value(), event.step.value(), 0, 0};
    (pools_of(plan).size() > 1 ? all : alone).count(levels);
  }
  record("pools", all);
  record("one further pool", alone);
  EXPECT_GT(all.drawn, kRuns / few);
  EXPECT_GE(all.percent(), least);
}

TEST(FidelityLevels, AgreeOnStagesOfUnlikePools) {
  expect_agreement_on_pools(20261130, put_on_pools);
}

TEST(FidelityLevels, AgreeOnReplicasOnUnlikePools) {
  expect_agreement_on_pools(20261209, put_replicas_on_pools);
}

TEST(FidelityLevels, AgreeOnStagesAndReplicasOnUnlikePools) {
  expect_agreement_on_pools(20261210, split_replicas_on_pools, 6, 82.0);
}

// No search tries offload of activations, but plan files may ask for it.
TEST(FidelityLevels, AnalyticIsNearEventWhereActivationsAreOffloaded) {
  constexpr int kPlans = 4;
  std::mt19937 random(20240719);
  int compared = 0, near = 0;
  double bias = 0.0;
  while (compared < 240 / kSampleShare) {
    const Workload workload = pick<Workload>(random, {Workload::Dense, Workload::Small});
    const PlanRequest request = any_request(random, workload);
    for (Plan& plan : draw_valid_plans(random, request, kPlans)) {
      plan.offload_activations = true;
      if (first_broken_rule(request.model, request.cluster, plan, request.gpus, &request.stack))
        continue;
      const Levels levels = at_all_levels(request, plan);
      ASSERT_LE(levels.bound, levels.event) << describe(request, plan);
      ++compared;
      near += std::abs(levels.analytic / levels.event - 1.0) <= 0.05;
      bias += levels.analytic / levels.event - 1.0;
    }
  }
  EXPECT_GE(near * 100, compared * 80);
  EXPECT_LT(std::abs(bias / compared), 0.02);
}

}  // namespace
}  // namespace shardwright::planner
