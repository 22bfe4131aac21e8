// The search against simulating every plan of the space.
#include "planner/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.hpp"
#include "core/program/shard_shape.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/request_check.hpp"
#include "sim/step/simulate.hpp"
#include "tests/planner/random_request.hpp"
#include "tests/planner/sample_share.hpp"

namespace shardwright::planner {
namespace {

struct Scored {
  double score;
  // The index in the order of the space.
  std::size_t place;
  Seconds step;
  Bytes memory;
};

Seconds computing(const sim::StepResult& result) {
  Seconds sum;
  for (const sim::StageResult& stage : result.stages)
    sum += stage.time.compute() + stage.time.optimizer;
  return sum / static_cast<double>(result.stages.size());
}

// The oracle: every plan that obeys the rules and the constraints, simulated.
std::vector<Scored> simulate_all(const PlanRequest& request, const std::vector<Plan>& space) {
  std::vector<Scored> all;
  for (std::size_t place = 0; place < space.size(); ++place) {
    const Plan& plan = space[place];
    if (first_broken_rule(request.model, request.cluster, plan, request.gpus, &request.stack))
      continue;
    if (!broken_constraint(request.constraints, plan).empty()) continue;
    const sim::StepResult result = sim::simulate_step(scenario_of(request, plan));
    if (result.memory().peak > available_memory(request)) continue;
    const StepExpense expense = step_expense(request.cluster, plan, result.step, computing(result));
    all.push_back({score(request.objective, plan, result, expense), place, result.step,
                   result.memory().peak});
  }
  std::sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score < b.score : a.place < b.place;
  });
  return all;
}

// A space of some dozens of plans: a few choices are fixed.
PlanRequest small_request(std::mt19937& random) {
  PlanRequest request = random_request(random);
  request.gpus = pick<std::int64_t>(random, {2, 4, 8});
  request.global_batch = pick<std::int64_t>(random, {8, 16});
  constexpr auto kObjectives = enumerators<Objective>();
  request.objective = pick<Objective>(random, {kObjectives.begin(), kObjectives.end()});
  request.top = 3;
  request.limits.schedules = {
      pick<ScheduleKind>(random, {ScheduleKind::OneFOneB, ScheduleKind::Interleaved}),
      pick<ScheduleKind>(random, {ScheduleKind::ZbH1, ScheduleKind::ZbH2, ScheduleKind::ZbV,
                                  ScheduleKind::DualPipe, ScheduleKind::GPipe})};
  request.limits.zero_stages = {pick<int>(random, {0, 1}), pick<int>(random, {2, 3})};
  request.limits.context_parallel = {pick<ContextParallelKind>(
      random,
      {ContextParallelKind::Ring, ContextParallelKind::AllGather, ContextParallelKind::Ulysses})};
  request.limits.max_micro_batch = 2;
  request.limits.max_cp = pick<int>(random, {1, 1, 1, 2});
  request.limits.min_cp_tokens = 1;
  request.limits.partial_recompute = pick<int>(random, {0, 0, 0, 1}) == 1;
  if (pick<int>(random, {0, 1, 2, 3}) == 0) {
    request.limits.recompute_groups = {2, 3};
    request.limits.recompute_intervals = {2};
  }
  if (pick<int>(random, {0, 1, 2}) == 0) request.model.layers = 7;  // uneven splits
  if (pick<bool>(random, {true, false}))
    request.limits.rank_orders = {Plan().rank_order, pipeline_inside_data()};
  if (pick<int>(random, {0, 1, 2, 3}) == 0)
    request.limits.offload_optimizer = {
        OptimizerOffload::None,
        pick<OptimizerOffload>(random, {OptimizerOffload::Host, OptimizerOffload::Nvme})};
  else if (pick<int>(random, {0, 1, 2, 3}) == 0)
    request.limits.optimizer_states = {OptimizerStates::OfStack, OptimizerStates::PureBf16,
                                       OptimizerStates::EightBit};
  if (pick<int>(random, {0, 1, 2, 3}) == 0) request.limits.offload_activations = {false, true};
  if (request.model.moe) fix(request, {"expert_tp=1"});
  // Sometimes memory decides.
  request.max_memory = pick<Bytes>(random, {Bytes(), gigabytes(12.0), gigabytes(20.0)});
  return request;
}

// No plan of the space is as small as a member of the front and faster.
void expect_front(const SearchResult& result, const std::vector<Scored>& oracle) {
  ASSERT_EQ(result.front.empty(), oracle.empty());
  for (const PlanCandidate& member : result.front) {
    for (const Scored& other : oracle) {
      // The closed form of the memory and the replay differ in the last digits.
      const bool smaller = other.memory <= member.result.memory().peak * (1.0 - 1e-9);
      ASSERT_FALSE(smaller && other.step < member.result.step);
    }
  }
}

TEST(Search, EqualsExhaustiveSimulationOnRandomSpaces) {
  std::mt19937 random(99);
  constexpr int kSpaces = 200 / kSampleShare;
  std::int64_t with_plans = 0;
  for (int trial = 0; with_plans < kSpaces && trial < 2 * kSpaces; ++trial) {
    PlanRequest request = small_request(random);
    request.threads = 1 + trial % 2;
    PlanRequest adapted = request;
    adapt_limits(adapted);
    const std::vector<Plan> space = enumerate_plans(space_of(adapted));
    const std::vector<Scored> oracle = simulate_all(request, space);
    const SearchResult result = search(request);
    ASSERT_EQ(result.counts.space, static_cast<std::int64_t>(space.size()));
    ASSERT_EQ(result.counts.space, result.counts.evaluated + result.counts.rejected_total());
    ASSERT_EQ(result.counts.evaluated, static_cast<std::int64_t>(oracle.size()));
    ASSERT_EQ(result.plans.size(), std::min<std::size_t>(oracle.size(), 3));
    ASSERT_EQ(result.infeasible.has_value(), oracle.empty());
    expect_front(result, oracle);
    with_plans += oracle.empty() ? 0 : 1;
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
      ASSERT_EQ(result.plans[i].score, oracle[i].score) << "trial " << trial << " place " << i;
      ASSERT_EQ(result.plans[i].plan, space[oracle[i].place]) << "trial " << trial;
    }
  }
  EXPECT_EQ(with_plans, kSpaces);
}

using Layout = std::array<std::int64_t, 5>;

Layout layout_of(const Plan& plan) {
  return {plan.tp, plan.pp, plan.cp, plan.ep, plan.zero_stage == 3 ? 1 : 0};
}

// Against all plans of the space, each simulated and with its closed form.
TEST(Search, ShowsTheFastestPlanOfEachLayout) {
  std::mt19937 random(7);
  std::size_t layouts_seen = 0;
  for (int trial = 0; trial < 18; ++trial) {
    PlanRequest request = small_request(random);
    request.top = request.layouts = 1000;
    const SearchResult result = search(request);
    if (result.counts.evaluated > request.top) continue;
    std::map<Layout, Seconds> fastest;
    for (const PlanCandidate& each : result.plans) {
      const auto [known, is_new] = fastest.try_emplace(layout_of(each.plan), each.analytic);
      if (!is_new) known->second = std::min(known->second, each.analytic);
    }
    ASSERT_EQ(result.layouts.size(), fastest.size()) << "trial " << trial;
    Seconds last;
    for (const PlanCandidate& each : result.layouts) {
      ASSERT_EQ(fastest.count(layout_of(each.plan)), 1U);
      EXPECT_EQ(each.analytic, fastest[layout_of(each.plan)]);
      EXPECT_GE(each.analytic, last) << "fastest first";
      last = each.analytic;
      fastest.erase(layout_of(each.plan));
    }
    layouts_seen += result.layouts.size();
  }
  EXPECT_GT(layouts_seen, 30U);
}

// Against the list of all plans, best first.
TEST(Search, ListsTheBestPlanOfEachLayoutTheBestValidatedOneAndTheBestBeyondTheMargin) {
  const auto is_validated = [](const Plan& plan) { return plan.tp > 1; };
  std::mt19937 random(8);
  int several = 0, other_validated = 0, better_beyond = 0;
  for (int trial = 0; trial < 40; ++trial) {
    PlanRequest request = small_request(random);
    request.top = 1000;
    const std::vector<PlanCandidate> whole = search(request).plans;
    request.memory_share = 0.3;
    const SearchResult all = search(request);
    if (whole.size() == 1000 || all.plans.empty()) continue;
    std::vector<const PlanCandidate*> expected;
    std::set<Layout> seen;
    for (const PlanCandidate& each : all.plans) {
      if (seen.insert(layout_of(each.plan)).second) expected.push_back(&each);
    }
    request.top = 5;
    request.one_per_layout = request.look_beyond_margin = true;
    request.validated = is_validated;
    const SearchResult folded = search(request);
    ASSERT_EQ(folded.plans.size(), std::min<std::size_t>(expected.size(), 5)) << trial;
    for (std::size_t i = 0; i < folded.plans.size(); ++i) {
      EXPECT_EQ(folded.plans[i].plan, expected[i]->plan) << trial << " place " << i;
      const auto alike =
          std::count_if(all.plans.begin(), all.plans.end(), [&](const PlanCandidate& each) {
            return layout_of(each.plan) == layout_of(expected[i]->plan) &&
                   each.analytic <= expected[i]->analytic * 1.01 && each.plan != expected[i]->plan;
          });
      EXPECT_EQ(folded.plans[i].variants, alike) << trial << " place " << i;
      several += alike > 0 ? 1 : 0;
    }
    const auto validated = std::find_if(all.plans.begin(), all.plans.end(),
                                        [&](const auto& each) { return is_validated(each.plan); });
    const bool shown = validated != all.plans.begin() && validated != all.plans.end();
    ASSERT_EQ(folded.best_validated.has_value(), shown) << trial;
    if (shown) {
      EXPECT_EQ(folded.best_validated->plan, validated->plan) << trial;
      ++other_validated;
    }
    const bool margin_costs = whole.front().score < all.plans.front().score;
    ASSERT_EQ(folded.best_beyond.has_value(), margin_costs) << trial;
    if (margin_costs) {
      EXPECT_EQ(folded.best_beyond->plan, whole.front().plan) << trial;
      ++better_beyond;
    }
    request.validated_only = true;
    const SearchResult inside = search(request);
    ASSERT_EQ(inside.plans.empty(), validated == all.plans.end()) << trial;
    if (!inside.plans.empty()) {
      EXPECT_EQ(inside.plans.front().plan, validated->plan) << trial;
    }
    EXPECT_EQ(inside.counts.space, inside.counts.evaluated + inside.counts.rejected_total());
  }
  EXPECT_GT(several, 3);
  EXPECT_GT(other_validated, 2);
  EXPECT_GT(better_beyond, 1);
}

// A compared plan of the space has as many faster ones as stand before it by the closed form.
TEST(Search, CountsThePlansThatAreFasterThanACompared) {
  std::mt19937 random(9);
  PlanRequest request;
  SearchResult all;
  do {
    request = small_request(random);
    request.top = 1000;
    all = search(request);
  } while (all.counts.evaluated > request.top || all.plans.size() < 50);
  for (std::size_t i = 0; i < all.plans.size(); i += 1 + all.plans.size() / 20) {
    request.compared = all.plans[i].plan;
    const auto faster = std::count_if(
        all.plans.begin(), all.plans.end(),
        [&](const PlanCandidate& each) { return each.analytic < all.plans[i].analytic; });
    EXPECT_NEAR(static_cast<double>(*search(request).faster_than_compared),
                static_cast<double>(faster), 3.0)  // equal plans differ by rounding
        << i;
  }
}

TEST(Search, AnswersTheSameForAnyNumberOfThreads) {
  PlanRequest request = llama_on_one_node();
  request.threads = 1;
  const SearchResult one = search(request);
  request.threads = 4;
  const SearchResult four = search(request);
  EXPECT_EQ(one.counts.simulated, four.counts.simulated);
  ASSERT_EQ(one.plans.size(), four.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) {
    EXPECT_EQ(one.plans[i].plan, four.plans[i].plan);
    EXPECT_EQ(one.plans[i].result.step, four.plans[i].result.step);
  }
}

TEST(Search, KeepsConstraints) {
  PlanRequest request = llama_on_one_node();
  fix(request, {"tp=2,4"});
  request.constraints.forbidden = {parse_constraint("zero=3", "--forbid")};
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  for (const PlanCandidate& candidate : result.plans) {
    EXPECT_TRUE(candidate.plan.tp == 2 || candidate.plan.tp == 4);
    EXPECT_NE(candidate.plan.zero_stage, 3);
  }
}

TEST(Search, FrontTradesTimeForMemory) {
  const SearchResult result = search(llama_on_one_node());
  ASSERT_GE(result.front.size(), 2U);
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    EXPECT_GT(result.front[i].result.step, result.front[i - 1].result.step);
    EXPECT_LT(result.front[i].result.memory().peak, result.front[i - 1].result.memory().peak);
  }
}

TEST(Search, FrontIsWholeWhereAllPlansAreSimulated) {
  PlanRequest request = llama_on_one_node();
  fix(request, {"cp=1", "zero=0,3"});
  request.top = 1000;
  const SearchResult result = search(request);
  ASSERT_EQ(result.counts.simulated, result.counts.evaluated);
  const auto step = [](const PlanCandidate& each) { return each.result.step.value(); };
  const auto memory = [](const PlanCandidate& each) { return each.result.memory().peak.value(); };
  constexpr double kRounding = 1.0 + 1e-9;
  for (const PlanCandidate& plan : result.plans) {
    EXPECT_TRUE(std::any_of(result.front.begin(), result.front.end(),
                            [&](const auto& member) {
                              return step(member) <= step(plan) &&
                                     memory(member) <= memory(plan) * kRounding;
                            }))
        << step(plan) << " s, " << memory(plan) << " bytes";
  }
}

TEST(Search, SplitsLayersThatDoNotDivideInEachWay) {
  PlanRequest request = llama_on_one_node();
  request.model.layers = 30;
  fix(request, {"pp=4", "vpp=1"});
  std::set<std::vector<std::int64_t>> splits;
  adapt_limits(request);
  for (const Plan& plan : enumerate_plans(space_of(request))) {
    if (plan.pp != 4 || plan.vpp != 1) continue;
    std::vector<std::int64_t> counts;
    for (const LayerRange& range : split_layers(request.model, plan)) counts.push_back(range.count);
    splits.insert(counts);
  }
  EXPECT_EQ(splits,
            (std::set<std::vector<std::int64_t>>{{8, 8, 7, 7}, {7, 7, 8, 8}, {7, 8, 8, 7}}));
}

// Ends that count as layers make eight chunks of six layers: no other split of them is even.
TEST(Search, FindsPlansWhoseEndsHoldNoLayer) {
  PlanRequest request = llama_on_one_node();
  request.model.layers = 6;
  fix(request, {"pp=4", "vpp=2", "schedule=interleaved"});
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  for (const PlanCandidate& candidate : result.plans) {
    const std::vector<LayerRange> parts = split_layers(request.model, candidate.plan);
    EXPECT_EQ(parts.front().count, 0);
    EXPECT_EQ(parts.back().count, 0);
  }
}

TEST(Search, TriesEachPlanOnce) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 20; ++trial) {
    PlanRequest request = small_request(random);
    adapt_limits(request);
    std::set<std::string> seen;
    for (Plan plan : enumerate_plans(space_of(request))) {
      // Splits that come to the same are the same plan.
      if (first_broken_rule(request.model, request.cluster, plan, request.gpus, &request.stack))
        continue;
      std::vector<std::int64_t> counts;
      for (const LayerRange& range : split_layers(request.model, plan))
        counts.push_back(range.count);
      plan.stage_layers = counts;
      plan.embedding_counts_as_layer = plan.head_counts_as_layer = false;
      ASSERT_TRUE(seen.insert(to_json(plan).dump()).second) << to_json(plan).dump();
    }
  }
}

// A search of fewer splits writes the plans that it shares with the whole one in the same way.
TEST(Search, KnowsThePlansOfFewerSplitsAgain) {
  using enum LayerSplit;
  std::mt19937 random(7);
  for (int trial = 0; trial < 10; ++trial) {
    PlanRequest request = small_request(random);
    adapt_limits(request);
    std::set<std::string> whole;
    for (const Plan& plan : enumerate_plans(space_of(request))) whole.insert(to_json(plan).dump());
    for (const std::vector<LayerSplit>& splits :
         std::vector<std::vector<LayerSplit>>{{BalancedEnds},
                                              {FrontLight},
                                              {BalancedEnds, FrontLight},
                                              {BalancedEnds, FrontHeavy}}) {
      request.limits.layer_splits = splits;
      std::set<std::string> fewer;
      for (const Plan& plan : enumerate_plans(space_of(request))) {
        const std::string text = to_json(plan).dump();
        ASSERT_TRUE(fewer.insert(text).second) << "twice: " << text;
        ASSERT_TRUE(whole.contains(text)) << text;
      }
      EXPECT_EQ(fewer.empty(), whole.empty());
    }
  }
}

// Also those that a search would not try of its own accord.
TEST(Search, FindsPlansWithWhateverValueIsFixed) {
  struct Case {
    const char* model;
    std::int64_t gpus;
    std::vector<const char*> fixed;
  };
  const std::vector<Case> cases = {
      {"llama3-8b", 8, {"dp=4"}},
      {"llama3-8b", 8, {"tp=8"}},
      {"llama3-8b", 8, {"pp=8"}},
      {"llama3-8b", 8, {"cp=8"}},
      {"llama3-8b", 8, {"cp=2", "context_parallel=ulysses"}},
      {"llama3-8b", 8, {"pp=2", "schedule=interleaved", "vpp=3"}},
      {"llama3-8b", 8, {"zero=2"}},
      {"llama3-8b", 8, {"zero=3", "shard_group=2"}},
      {"llama3-8b", 8, {"micro_batch=3"}},
      {"llama3-8b", 8, {"global_batch=24"}},
      {"llama3-8b", 8, {"tp=2", "sequence_parallel=false"}},
      {"llama3-8b", 8, {"recompute=full", "recompute_layers=5", "pp=1"}},
      {"llama3-8b", 8, {"recompute=full", "recompute_group=4", "pp=2"}},
      {"llama3-8b", 8, {"pp=2", "schedule=zb-h2"}},
      {"llama3-8b", 8, {"offload_optimizer=host"}},
      {"llama3-8b", 8, {"optimizer_states=8-bit"}},
      {"llama3-8b", 8, {"offload_activations=true"}},
      {"llama3-8b", 8, {"offload_activations=true", "offload_modules=core_attn+attn_proj"}},
      {"mixtral-8x7b", 32, {"ep=4"}},
      {"mixtral-8x7b", 32, {"tp=4", "expert_tp=2"}},
      {"mixtral-8x7b", 32, {"recompute_modules=moe+layernorm"}},
      {"llama3-8b", 8, {"recompute=selective", "recompute_modules=mlp"}}};
  for (const Case& each : cases) {
    PlanRequest request = llama_on_one_node();
    request.model = load_model(each.model);
    request.gpus = each.gpus;
    request.global_batch = 24 * each.gpus / 8;
    request.seq_len = 2048;
    request.top = 1;
    request.front = false;
    fix(request, each.fixed);
    const SearchResult result = search(request);
    ASSERT_EQ(result.plans.size(), 1U) << each.fixed.back();
    EXPECT_TRUE(broken_constraint(request.constraints, result.plans[0].plan).empty())
        << each.fixed.back();
  }
}

// Sets of modules are tried where the model has what pays and the stack runs it: about half as
// many plans more at most, and none for dense models with fused attention.
TEST(Search, TriesTheModulesThatPay) {
  const auto tried = [](const char* model, const char* stack) {
    PlanRequest request = llama_on_one_node();
    request.model = load_model(model);
    request.stack = load_stack(stack);
    request.limits = limits_of(request.stack);
    request.gpus = 16;
    std::map<std::string, std::size_t> plans;
    for (const Plan& plan : enumerate_plans(space_of(request)))
      ++plans[plan.recompute == RecomputePolicy::Selective ? names_of(plan.recompute_modules, "+")
                                                           : "other"];
    std::size_t selective = 0;
    for (const auto& [set, count] : plans) selective += set == "other" ? 0 : count;
    EXPECT_LE(100 * selective, 55 * plans["other"]) << model << " on " << stack;
    std::vector<std::string> sets;
    for (const auto& [set, count] : plans)
      if (set != "other") sets.push_back(set);
    return sets;
  };
  using testing::UnorderedElementsAre;
  EXPECT_THAT(tried("llama3-8b", "megatron-core"), testing::IsEmpty());
  EXPECT_THAT(tried("mixtral-8x7b", "megatron-core"), UnorderedElementsAre("moe_act+layernorm"));
  EXPECT_THAT(tried("deepseek-v2-lite", "megatron-core"),
              UnorderedElementsAre("mla_up_proj", "moe_act+layernorm+mla_up_proj"));
  EXPECT_THAT(tried("deepseek-v2-lite", "fsdp2"), testing::IsEmpty());
}

// Attention that is not fused moves keys and values in one way only.
TEST(Search, TriesNoContextParallelismThatIsLoweredAsAnother) {
  PlanRequest request = llama_on_one_node();
  request.stack = load_stack("megatron-lm-2021");
  request.limits.min_cp_tokens = 1;
  for (const Plan& plan : enumerate_plans(space_of(request)))
    EXPECT_TRUE(plan.cp == 1 || plan.context_parallel == ContextParallelKind::AllGather);
}

TEST(Search, RefusesMoreThanThereIs) {
  PlanRequest batch = llama_on_one_node();
  batch.max_global_batch = batch.global_batch - 1;
  EXPECT_THROW(search(batch), InputError);
  PlanRequest machine = llama_on_one_node();
  machine.cluster.nodes = 1;
  machine.gpus = 16;
  EXPECT_THROW(search(machine), InputError);
}

}  // namespace
}  // namespace shardwright::planner
