#include "core/lowering/message_waits.hpp"

#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {
namespace {

bool overlaps_messages(const StackSpec& stack, const Plan& plan) {
  return stack.overlap.p2p && plan.overlap.p2p;
}

}  // namespace

bool kernels_wait_for_sends(const StackSpec& stack, const Plan& plan) {
  return sends_may_block(plan.schedule) && !overlaps_messages(stack, plan);
}

bool host_waits_for_receives(const StackSpec& stack, const Plan& plan) {
  if (!stack.host.waits_for_messages) return false;
  const bool interleaved = plan.schedule == ScheduleKind::Interleaved;
  return sends_may_block(plan.schedule) || (interleaved && !overlaps_messages(stack, plan));
}

}  // namespace shardwright
