// Plans whose loss curves are compared with that of one rank.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/spec/plan.hpp"
#include "executor/runtime/training_options.hpp"

namespace shardwright::executor {

// Changes to `one_rank_plan`, for `small_gpt2` or `small_llama`.
struct PlanCase {
  std::string name;
  bool gpt2 = false;
  std::function<void(Plan&)> change;
};

void PrintTo(const PlanCase& plan, std::ostream* out);

const std::vector<PlanCase>& plan_cases();

TrainingOptions twenty_steps();

}  // namespace shardwright::executor
