#include "gui/models/step_parts.hpp"

#include "gui/models/text.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {

std::vector<TimePart> time_parts(const sim::TimeBreakdown& time) {
  const auto exposed = [&](Axis axis, Role role) {
    return TimePart{u"exposed: "_s + title_of(role), role, time.exposed[axis]};
  };
  std::vector<TimePart> parts = {
      {title_of(Role::MatrixProducts), Role::MatrixProducts, time.gemm},
      {title_of(Role::Attention), Role::Attention, time.attention},
      {title_of(Role::MemoryBound), Role::MemoryBound, time.memory_bound},
      {u"optimizer"_s, Role::Optimizer, time.optimizer},
      {u"slowed by collectives"_s, Role::Other, time.interference},
      exposed(Axis::Tensor, Role::Tensor),
      exposed(Axis::Context, Role::Context),
      exposed(Axis::Expert, Role::Expert),
      exposed(Axis::Data, Role::Data),
      exposed(Axis::Pipeline, Role::Pipeline),
      {u"exposed: offload to the host"_s, Role::Other, time.offload},
      {u"pipeline bubble"_s, Role::Bubble, time.bubble},
      {u"waiting for the host"_s, Role::Host, time.host},
      {u"waiting for slower ranks"_s, Role::Other, time.stall}};
  for (TimePart& part : parts) {
    if (is_no_time(part.time)) part.time = Seconds();
  }
  // A cost of zero is news for these roles, but not for a group that the plan does not have.
  const auto always = [](Role role) {
    return role == Role::Optimizer || role == Role::Bubble || role == Role::Host;
  };
  std::erase_if(parts,
                [&](const TimePart& part) { return part.time <= Seconds() && !always(part.role); });
  return parts;
}

QString title_of(MemoryCategory category) {
  QString name = to_qstring(name_of(category));
  return name.replace(u'_', u' ');
}

QString memory_warning(const QString& plan, const sim::StepResult& result,
                       const ClusterSpec& cluster) {
  const double share = planner::memory_share(result, cluster);
  if (share <= planner::kTightMemory) return {};
  return u"%1 uses %2 of the memory; set a memory limit to keep a margin."_s.arg(
      plan, percent_text(share));
}

QString figures_text(const ClusterSpec& cluster, const StackSpec& stack) {
  return to_qstring(planner::estimates_text(planner::figure_counts(cluster, stack))) + u'.';
}

QString peak_moment_text(const planner::PeakMoment& moment) {
  QString phase = to_qstring(name_of(moment.phase));
  QString text = u"while %1 runs (%2"_s.arg(to_qstring(moment.op), phase.replace(u'_', u' '));
  if (moment.layer >= 0) text += u", layer %1"_s.arg(moment.layer);
  if (moment.microbatch >= 0) text += u", microbatch %1"_s.arg(moment.microbatch);
  return text + u')';
}

}  // namespace shardwright::gui
