// Small random planning problems, where simulating every plan takes milliseconds.
#pragma once

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "planner/plan_evaluation.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {

template <class T>
T pick(std::mt19937& random, const std::vector<T>& from) {
  return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
}

// A model of a few layers; every other one has experts.
inline ModelSpec small_model(std::mt19937& random) {
  ModelSpec model = load_model(pick<std::string>(random, {"llama3.2-1b", "gpt2", "mixtral-8x7b"}));
  model.layers = pick<std::int64_t>(random, {4, 6, 8});
  model.hidden = pick<std::int64_t>(random, {768, 2048});
  if (model.attention.head_dim * model.attention.heads != model.hidden)
    model.hidden = model.attention.head_dim * model.attention.heads;
  return model;
}

inline PlanRequest random_request(std::mt19937& random) {
  PlanRequest request;
  request.model = small_model(random);
  request.cluster = load_cluster(
      pick<std::string>(random, {"dgx-h100", "dgx-a100", "h100-pcie-server", "dgx-v100"}));
  request.stack = load_stack(pick<std::string>(
      random, {"megatron-core", "megatron-lm-2021", "fsdp2", "deepspeed-zero", "shardwright"}));
  request.gpus = pick<std::int64_t>(random, {1, 2, 4, 8, 12, 16, 32});
  request.global_batch = pick<std::int64_t>(random, {8, 16, 24, 32});
  request.seq_len = pick<std::int64_t>(random, {512, 1024});
  // The format that all of these clusters multiply in.
  request.precision = Precision::Fp16;
  request.stack.capabilities.precisions.clear();
  request.limits.max_micro_batch = pick<std::int64_t>(random, {2, 4});
  request.limits.min_cp_tokens = 256;
  request.limits.max_cp = 2;
  request.limits.partial_recompute = pick<bool>(random, {true, false});
  if (pick<int>(random, {0, 1, 2}) == 0)
    request.limits.rank_orders = {Plan().rank_order, pipeline_inside_data()};
  return request;
}

// Kinds of training, from those that the network delays to those that the host delays.
enum class Workload { Dense, Small, Experts };

// A published model on any cluster and stack.
inline PlanRequest any_request(std::mt19937& random, Workload workload) {
  const bool small = workload == Workload::Small;
  PlanRequest request;
  request.model = load_model(pick<std::string>(
      random,
      small ? std::vector<std::string>{"gpt2", "llama3.2-1b"}
      : workload == Workload::Dense
          ? std::vector<std::string>{"llama3-8b", "llama3-70b", "gpt3-175b", "llama3.1-405b"}
          : std::vector<std::string>{"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"}));
  request.cluster = load_cluster(pick<std::string>(
      random, {"dgx-h100", "dgx-a100", "h100-pcie-server", "dgx-v100", "grand-teton-h100-roce"}));
  request.stack = load_stack(pick<std::string>(
      random, {"megatron-core", "megatron-lm-2021", "fsdp2", "deepspeed-zero", "shardwright"}));
  request.gpus = pick<std::int64_t>(random, small ? std::vector<std::int64_t>{1, 2, 4, 8, 16, 32}
                                                  : std::vector<std::int64_t>{32, 64, 128, 256});
  request.global_batch =
      pick<std::int64_t>(random, small ? std::vector<std::int64_t>{8, 16, 32, 64}
                                       : std::vector<std::int64_t>{64, 128, 256});
  request.seq_len = pick<std::int64_t>(random, small ? std::vector<std::int64_t>{512, 1024, 4096}
                                                     : std::vector<std::int64_t>{2048, 8192});
  // The format that all of these clusters multiply in.
  request.precision = Precision::Fp16;
  request.stack.capabilities.precisions.clear();
  request.limits.max_micro_batch = 4;
  request.limits.min_cp_tokens = 256;
  request.limits.max_cp = 4;
  request.limits.max_pp = 32;
  request.limits.max_vpp = 8;
  return request;
}

// The whole space in its order.
inline std::vector<Plan> enumerate_plans(const SpaceRequest& request) {
  std::vector<Plan> plans;
  for (const Plan& cut : layer_cuts(request))
    for_each_plan(request, cut, [&](const Plan& plan) { plans.push_back(plan); });
  return plans;
}

// The plans of a request that break no rule.
inline std::vector<Plan> valid_plans(const PlanRequest& request) {
  std::vector<Plan> plans;
  for (const Plan& plan : enumerate_plans(space_of(request))) {
    if (!first_broken_rule(request.model, request.cluster, plan, request.gpus, &request.stack))
      plans.push_back(plan);
  }
  return plans;
}

// Draws up to `count` plans that break no rule, each as likely as any other. A large space is
// walked without a copy of its plans, and rules are asked of a few of them only.
inline std::vector<Plan> draw_valid_plans(std::mt19937& random, const PlanRequest& request,
                                          std::size_t count) {
  constexpr int kRounds = 4;
  const SpaceRequest space = space_of(request);
  const std::vector<Plan> cuts = layer_cuts(space);
  std::size_t size = 0;
  for (const Plan& cut : cuts) for_each_plan(space, cut, [&](const Plan&) { ++size; });
  std::vector<Plan> drawn;
  for (int round = 0; round < kRounds && size > 0 && drawn.size() < count; ++round) {
    std::multiset<std::size_t> places;
    while (places.size() < 8 * count)
      places.insert(std::uniform_int_distribution<std::size_t>(0, size - 1)(random));
    std::vector<Plan> valid;
    auto next = places.begin();
    std::size_t place = 0;
    const auto visit = [&](const Plan& plan) {
      for (; next != places.end() && *next == place; ++next) {
        if (!first_broken_rule(request.model, request.cluster, plan, request.gpus, &request.stack))
          valid.push_back(plan);
      }
      ++place;
    };
    for (const Plan& cut : cuts) for_each_plan(space, cut, visit);
    std::shuffle(valid.begin(), valid.end(), random);
    const auto taken = std::min(valid.size(), count - drawn.size());
    drawn.insert(drawn.end(), valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  return drawn;
}

}  // namespace shardwright::planner
