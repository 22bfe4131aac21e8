// Laws that hold for all plans: degrees that fill the launched processes, batches that add up,
// names that the frameworks know, and no field of a plan that leaves no trace.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/request_check.hpp"
#include "planner/search_space.hpp"
#include "tests/planner/export/export_cases.hpp"
#include "tests/planner/export/known_flags.hpp"

namespace shardwright::planner {
namespace {

using nlohmann::json;

constexpr std::size_t kScenarios = 100;
constexpr unsigned kSeed = 2026;

const std::vector<Scenario>& random_scenarios() {
  static const std::vector<Scenario> scenarios = [] {
    std::mt19937 random(kSeed);
    std::vector<Scenario> made;
    while (made.size() < kScenarios) made.push_back(random_scenario(random));
    return made;
  }();
  return scenarios;
}

// `check` says whether the format could express the plan.
template <class Check>
void for_random_scenarios(Check check) {
  std::size_t expressed = 0;
  for (const Scenario& scenario : random_scenarios()) {
    SCOPED_TRACE(to_json(scenario.plan).dump());
    if (check(scenario)) ++expressed;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(expressed, kScenarios / 50) << "hardly a plan that the format can express";
}

// Microbatches of a replica and replicas, from the numbers of the text alone.
void expect_batch_adds_up(std::int64_t global, std::int64_t micro, std::int64_t accumulation,
                          std::int64_t processes, std::int64_t model_ranks) {
  ASSERT_EQ(processes % model_ranks, 0);
  EXPECT_EQ(global, micro * accumulation * (processes / model_ranks));
}

TEST(ExportLaws, MegatronsDegreesFillTheProcesses) {
  for_random_scenarios([](const Scenario& scenario) {
    const PlanExport result = megatron_arguments(scenario);
    const auto arguments = arguments_of(result.text);
    const std::int64_t model_ranks = number(arguments, "--tensor-model-parallel-size") *
                                     number(arguments, "--pipeline-model-parallel-size") *
                                     number(arguments, "--context-parallel-size");
    expect_batch_adds_up(number(arguments, "--global-batch-size"),
                         number(arguments, "--micro-batch-size"), scenario.plan.microbatches(),
                         processes_of(result.launch), model_ranks);
    EXPECT_EQ(processes_of(result.launch) / model_ranks, scenario.plan.dp);
    return result.problems.empty();
  });
}

TEST(ExportLaws, TorchtitansDegreesFillTheProcesses) {
  for_random_scenarios([](const Scenario& scenario) {
    const PlanExport result = torchtitan_flags(scenario);
    if (!result.problems.empty()) return false;
    const auto flags = arguments_of(result.text);
    const auto degree = [&](const char* name) {
      return number(flags, fmt::format("--parallelism.{}_degree", name));
    };
    const std::int64_t data = degree("data_parallel_replicate") * degree("data_parallel_shard");
    const std::int64_t model_ranks =
        degree("tensor_parallel") * degree("pipeline_parallel") * degree("context_parallel");
    EXPECT_EQ(data * model_ranks, processes_of(result.launch));
    EXPECT_EQ(number(flags, "--training.global_batch_size") %
                  (number(flags, "--training.local_batch_size") * data),
              0);
    EXPECT_EQ(number(flags, "--training.local_batch_size") %
                  number(flags, "--parallelism.pipeline_parallel_microbatch_size"),
              0);
    return true;
  });
}

// https://www.deepspeed.ai/docs/config-json/: train_batch_size must be the product.
TEST(ExportLaws, DeepSpeedsBatchIsItsProduct) {
  for_random_scenarios([](const Scenario& scenario) {
    const PlanExport result = deepspeed_json(scenario);
    const json config = json::parse(result.text);
    const Plan& plan = scenario.plan;
    expect_batch_adds_up(config["train_batch_size"], config["train_micro_batch_size_per_gpu"],
                         config["gradient_accumulation_steps"], processes_of(result.launch),
                         plan.tp * plan.pp * plan.cp);
    return result.problems.empty();
  });
}

TEST(ExportLaws, EveryNameIsTheFrameworks) {
  for_random_scenarios([](const Scenario& scenario) {
    for (const auto& [flag, value] : arguments_of(megatron_arguments(scenario).text))
      EXPECT_TRUE(megatron_flags().contains(flag)) << flag;
    for (const auto& [flag, value] : arguments_of(torchtitan_flags(scenario).text))
      EXPECT_TRUE(torchtitan_names().contains(flag)) << flag;
    const json flat = json::parse(deepspeed_json(scenario).text).flatten();
    for (const auto& [key, value] : flat.items())
      EXPECT_TRUE(deepspeed_keys().contains(key)) << key;
    return true;
  });
}

TEST(ExportLaws, EveryShippedModelAndStackIsInNamesOfMegatron) {
  Plan plan;
  plan.seq_len = 1024;
  const auto check = [&](const std::string& model, const std::string& stack) {
    for (const auto& [flag, value] :
         arguments_of(megatron_arguments(scenario_of(model, stack, plan)).text))
      EXPECT_TRUE(megatron_flags().contains(flag)) << model << ' ' << stack << ' ' << flag;
  };
  for (const std::string& model : shipped_models()) check(model, "megatron-core");
  plan.dp = plan.ep = 2;
  for (const std::string& stack : shipped_stacks()) check("mixtral-8x7b", stack);
}

// The framework of a stack runs every plan that the search proposes for it.
struct StackFormat {
  const char* stack;
  PlanExport (*write)(const Scenario&);
};

class ExportOfStack : public testing::TestWithParam<StackFormat> {};

TEST_P(ExportOfStack, RefusesNoPlanOfItsSearch) {
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 12; ++trial) {
    PlanRequest request = any_request(random, trial % 2 == 0 ? Workload::Dense : Workload::Experts);
    request.stack = load_stack(GetParam().stack);
    request.precision = pick<Precision>(random, {Precision::Bf16, Precision::Fp32});
    request.limits.rank_orders.push_back(pipeline_inside_data());
    adapt_limits(request);
    for (const Plan& plan : draw_valid_plans(random, request, 200)) {
      const Scenario scenario{request.model, request.cluster, request.stack, plan};
      const PlanExport result = GetParam().write(scenario);
      ASSERT_TRUE(result.problems.empty())
          << request.model.name << ": " << result.problems.front().where << ' '
          << result.problems.front().found << "; " << to_json(plan).dump();
      ASSERT_TRUE(unsupported_by(request.stack, request.model, plan).empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stacks, ExportOfStack,
                         testing::Values(StackFormat{"megatron-core", megatron_arguments},
                                         StackFormat{"nemo-te", megatron_arguments},
                                         StackFormat{"fsdp2", torchtitan_flags},
                                         StackFormat{"fsdp2-compile", torchtitan_flags},
                                         StackFormat{"deepspeed-zero", deepspeed_json}),
                         [](const auto& test) {
                           std::string name = test.param.stack;
                           std::erase(name, '-');
                           return name;
                         });

// "t*3" is "ttt", as PipelineParallelLayerLayout.parse_str_to_list of Megatron Core reads it.
std::string unrolled(const std::string& layout) {
  std::string text;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] != '*') {
      text += layout[i];
      continue;
    }
    std::size_t digits = 0;
    const auto count = std::stoull(layout.substr(i + 1), &digits);
    text.append(count - 1, text.back());
    i += digits;
  }
  return text;
}

TEST(ExportLaws, MegatronsLayoutHoldsEveryLayerOnce) {
  Plan plan;
  plan.pp = 4;
  plan.vpp = 2;
  plan.schedule = ScheduleKind::Interleaved;
  plan.global_batch = 8;
  for (const char* model : {"deepseek-v3", "llama3.1-405b", "qwen3-235b-a22b"}) {
    const Scenario scenario = scenario_of(model, "megatron-core", plan);
    const auto arguments = arguments_of(megatron_arguments(scenario).text);
    const std::string layout = unrolled(arguments.at("--pipeline-model-parallel-layout"));
    EXPECT_EQ(std::count(layout.begin(), layout.end(), 't'), scenario.model.layers);
    EXPECT_EQ(std::count(layout.begin(), layout.end(), 'm'), scenario.model.mtp_layers);
    EXPECT_EQ(std::count(layout.begin(), layout.end(), '|') + 1, plan.chunks());
    EXPECT_EQ(layout.front(), 'E');
    EXPECT_EQ(layout.back(), 'L');
  }
}

// No field is dropped in silence.

// Merge patches on a plan with every kind of parallelism.
constexpr const char* kChanges[] = {R"({"dp": 8})",
                                    R"({"tp": 4})",
                                    R"({"pp": 4})",
                                    R"({"cp": 4})",
                                    R"({"ep": 4})",
                                    R"({"expert_tp": 2})",
                                    R"({"schedule": "interleaved", "vpp": 2})",
                                    R"({"sequence_parallel": false})",
                                    R"({"zero_stage": 0})",
                                    R"({"zero_stage": 2})",
                                    R"({"zero_stage": 3})",
                                    R"({"shard_group": 2})",
                                    R"({"micro_batch": 2})",
                                    R"({"global_batch": 128})",
                                    R"({"seq_len": 8192})",
                                    R"({"schedule": "gpipe"})",
                                    R"({"schedule": "zb-h1"})",
                                    R"({"schedule": "dualpipe"})",
                                    R"({"context_parallel": "all-gather"})",
                                    R"({"context_parallel": "ulysses"})",
                                    R"({"recompute": "selective"})",
                                    R"({"recompute": "selective", "recompute_modules": ["mlp"]})",
                                    R"({"recompute": "full"})",
                                    R"({"recompute": "full", "recompute_layers": 3})",
                                    R"({"recompute": "full", "recompute_group": 2})",
                                    R"({"recompute": "full", "recompute_interval": 2})",
                                    R"({"precision": "fp32"})",
                                    R"({"precision": "tf32"})",
                                    R"({"precision": "fp16"})",
                                    R"({"precision": "fp8"})",
                                    R"({"precision": "nvfp4"})",
                                    R"({"overlap": {"grad_reduce": false}})",
                                    R"({"overlap": {"param_gather": false}})",
                                    R"({"overlap": {"tensor_parallel": true}})",
                                    R"({"overlap": {"p2p": false}})",
                                    R"({"overlap": {"expert_parallel": true}})",
                                    R"({"overlap": {"expert_microbatches": true}})",
                                    R"({"rank_order": ["tp", "cp", "ep", "pp", "dp"]})",
                                    R"({"stage_layers": [10, 17]})",
                                    R"({"optimizer_states": "bf16"})",
                                    R"({"optimizer_states": "8-bit"})",
                                    R"({"optimizer_states": "pure-bf16"})",
                                    R"({"offload_optimizer": "host"})",
                                    R"({"offload_optimizer": "nvme"})",
                                    R"({"offload_activations": true})",
                                    R"({"offload_activations": true, )"
                                    R"("offload_modules": ["moe_act"]})",
                                    R"({"lora": {"rank": 16}})",
                                    R"({"lora": {"rank": 16, "base": "nf4"}})"};

Plan patched(const Plan& plan, const char* patch) {
  json document = to_json(plan);
  document.merge_patch(json::parse(patch));
  ProblemList problems("plan");
  ObjectReader object(document, "", problems);
  return read_plan(object);
}

struct Format {
  const char* name;
  PlanExport (*write)(const Scenario&);
};

class NothingIsDropped : public testing::TestWithParam<Format> {};

std::string all_of(const PlanExport& result) {
  std::string text = fmt::format("{}\n{}", result.text, fmt::join(result.notes, "\n"));
  for (const Problem& problem : result.problems)
    text += fmt::format("\n{} {} {}", problem.where, problem.found, problem.expected.text);
  return text;
}

TEST_P(NothingIsDropped, EachChangeOfThePlanLeavesATrace) {
  Plan plan;
  plan.dp = plan.tp = plan.pp = plan.cp = plan.ep = 2;
  plan.global_batch = 64;
  const Scenario usual = scenario_of("deepseek-v2-lite", "megatron-core", plan);
  for (const char* change : kChanges) {
    Scenario changed = usual;
    changed.plan = patched(plan, change);
    EXPECT_NE(changed.plan, plan) << change;
    EXPECT_NE(all_of(GetParam().write(usual)), all_of(GetParam().write(changed))) << change;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, NothingIsDropped,
                         testing::Values(Format{"Megatron", megatron_arguments},
                                         Format{"DeepSpeed", deepspeed_json},
                                         Format{"Torchtitan", torchtitan_flags}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace shardwright::planner
