#include "executor/runtime/run_checks.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/lowering/replica_exchange.hpp"
#include "core/spec/plan_text.hpp"

namespace shardwright::executor {

bool allows_checkpoints(const Plan& plan) {
  return !plan.replicas.local() && !feeds_back(plan.replicas.compression);
}

void check_checkpoints(const Plan& plan, bool keeps) {
  if (!keeps || allows_checkpoints(plan)) return;
  throw InputError(
      "shardwright run",
      {{"--checkpoint-every", "checkpoints with " + replicas_text(plan),
        "0 and no --resume: checkpoints hold one replica's states, and none of an exchange"}});
}

void check_balance_loss(const ModelSpec& model, const Plan& plan, double weight) {
  if (weight == 0.0) return;
  const std::string found = fmt::format("{}", weight);
  ProblemList problems("shardwright run");
  if (!model.moe) problems.add("--balance-loss", found, "0: the model has no experts");
  if (plan.cp > 1 || plan.micro_batch % plan.tp != 0) {
    problems.add("--balance-loss",
                 fmt::format("{} with cp {}, tp {} and micro_batch {}", found, plan.cp, plan.tp,
                             plan.micro_batch),
                 "whole sequences on each rank: cp 1 and a multiple of tp as micro_batch");
  }
  problems.throw_if_any();
}

}  // namespace shardwright::executor
