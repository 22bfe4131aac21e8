#include "core/lowering/data_parallel_messages.hpp"

#include <limits>

#include "core/program/groups.hpp"

namespace shardwright {

double gradient_bucket_bytes(const ModelSpec& model, const Plan& plan, const StackSpec& stack) {
  return shards_parameters(model, plan) ? 0.0 : unsharded_bucket_bytes(plan, stack);
}

double unsharded_bucket_bytes(const Plan& plan, const StackSpec& stack) {
  // A replica that pushes without an agreement clips its gradients by their norm before.
  const bool beside_backward = !plan.replicas.stale() && stack.overlap.grad_reduce &&
                               plan.overlap.grad_reduce &&
                               stack.gradients.buckets != GradientBuckets::Single;
  if (!beside_backward) return std::numeric_limits<double>::infinity();
  if (stack.gradients.buckets == GradientBuckets::PerLayer) return 0.0;
  return reduced_gradient_bytes(stack, plan.precision).value() * elements_per_bucket(stack, plan);
}

double parameter_bucket_bytes(const Plan& plan, const StackSpec& stack) {
  return storage_bytes(plan.precision).value() * elements_per_bucket(stack, plan);
}

ParameterGathers parameter_gathers(const Plan& plan, const StackSpec& stack) {
  if (plan.zero_stage != 1 && plan.zero_stage != 2) return ParameterGathers::None;
  return stack.overlap.param_gather && plan.overlap.param_gather ? ParameterGathers::BesideForward
                                                                 : ParameterGathers::AfterOptimizer;
}

GradientCopies gradient_copies(const PartParameters& stage, const Plan& plan,
                               const StackSpec& stack) {
  // Parameter servers add them up, too.
  if (plan.replicas.has_servers()) return {};
  const double main = main_gradient_bytes(stack, plan).value();
  const double reduced = reduced_gradient_bytes(stack, plan.precision).value();
  const double dense_parts = plan.zero_stage >= 1 ? dense_shards(plan) : 1.0;
  const double expert_parts = plan.zero_stage >= 1 ? expert_shards(plan) : 1.0;
  return {stage.tensor_reduced * main / (plan.zero_stage == 3 ? dense_parts : 1.0),
          stage.dense * reduced / dense_parts, stage.expert * reduced / expert_parts};
}

}  // namespace shardwright
