#include "core/spec/stack_support.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardwright {
namespace {

template <class T>
bool runs(const std::vector<T>& listed, const T& wanted) {
  return listed.empty() || std::find(listed.begin(), listed.end(), wanted) != listed.end();
}

}  // namespace

OverlapSwitches usual_overlap(const StackSpec& stack, const ModelSpec& model) {
  OverlapSwitches overlap;
  overlap.tensor_parallel = stack.overlap.tensor_parallel;
  overlap.expert_parallel = stack.overlap.expert_parallel && has_shared_experts(model);
  return overlap;
}

std::vector<std::string> unsupported_by(const StackSpec& stack, const Plan& plan) {
  std::vector<std::string> sentences;
  if (plan.pp > 1 && !runs(stack.schedules, plan.schedule)) {
    std::vector<std::string> names;
    for (const ScheduleKind schedule : stack.schedules) names.emplace_back(name_of(schedule));
    sentences.push_back(fmt::format("{} does not run the schedule {} (it runs {})", stack.name,
                                    name_of(plan.schedule), fmt::join(names, ", ")));
  }
  if (!runs(stack.zero_stages, plan.zero_stage)) {
    sentences.push_back(fmt::format("{} does not run ZeRO stage {} (it runs {})", stack.name,
                                    plan.zero_stage, fmt::join(stack.zero_stages, ", ")));
  }
  const bool gathers = plan.context_parallel == ContextParallelKind::AllGather;
  if (plan.cp > 1 && !stack.fusion.flash_attention && !gathers) {
    sentences.push_back(fmt::format(
        "{} does not fuse attention: context parallelism gathers keys and values, whatever "
        "the plan says ({})",
        stack.name, name_of(plan.context_parallel)));
  }
  return sentences;
}

}  // namespace shardwright
