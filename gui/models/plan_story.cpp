#include "gui/models/plan_story.hpp"

#include <algorithm>
#include <array>

#include "core/lowering/lowering.hpp"
#include "gui/models/text.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

// The op that runs at the peak of the fullest stage.
QString moment_of_peak(const Scenario& scenario, const sim::StepResult& result) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const RankProgram& rank = program.stages[static_cast<std::size_t>(result.fullest)];
  const std::uint32_t number = result.memory().op;
  const auto after =
      std::upper_bound(rank.calls.begin(), rank.calls.end(), number,
                       [](std::uint32_t op, const Call& call) { return op < call.first_op; });
  if (after == rank.calls.begin()) return {};
  const Call& call = *(after - 1);
  if (number - call.first_op >= program.blocks[call.block].ops.size()) return {};
  const Op& op = program.op(call, number);
  QString phase = QString::fromUtf8(name_of(op.phase));
  QString text =
      QStringLiteral("while %1 runs (%2")
          .arg(QString::fromStdString(op.name), phase.replace(QLatin1Char('_'), QLatin1Char(' ')));
  if (call.layer >= 0) text += QStringLiteral(", layer %1").arg(call.layer);
  if (call.microbatch >= 0) text += QStringLiteral(", microbatch %1").arg(call.microbatch);
  return text + QLatin1Char(')');
}

}  // namespace

std::vector<TimePart> time_parts(const sim::TimeBreakdown& time) {
  const auto exposed = [&](Axis axis, Role role) {
    return TimePart{QStringLiteral("exposed: ") + title_of(role), role, time.exposed_on(axis)};
  };
  std::vector<TimePart> parts = {
      {title_of(Role::MatrixProducts), Role::MatrixProducts, time.gemm},
      {title_of(Role::Attention), Role::Attention, time.attention},
      {title_of(Role::MemoryBound), Role::MemoryBound, time.memory_bound},
      {QStringLiteral("optimizer"), Role::Optimizer, time.optimizer},
      {QStringLiteral("slowed by collectives"), Role::Other, time.interference},
      exposed(Axis::Tensor, Role::Tensor),
      exposed(Axis::Context, Role::Context),
      exposed(Axis::Expert, Role::Expert),
      exposed(Axis::Data, Role::Data),
      exposed(Axis::Pipeline, Role::Pipeline),
      {QStringLiteral("exposed: offload to the host"), Role::Other, time.offload},
      {QStringLiteral("pipeline bubble"), Role::Bubble, time.bubble},
      {QStringLiteral("waiting for the host"), Role::Host, time.host},
      {QStringLiteral("waiting for slower ranks"), Role::Other, time.stall}};
  for (TimePart& part : parts) {
    if (is_no_time(part.time)) part.time = Seconds();
  }
  // That these cost nothing is news; a group that the plan does not have is none.
  const auto always = [](Role role) {
    return role == Role::Optimizer || role == Role::Bubble || role == Role::Host;
  };
  std::erase_if(parts,
                [&](const TimePart& part) { return part.time <= Seconds() && !always(part.role); });
  return parts;
}

QString title_of(MemoryCategory category) {
  QString name = QString::fromUtf8(name_of(category));
  return name.replace(QLatin1Char('_'), QLatin1Char(' '));
}

QString memory_warning(const QString& plan, const sim::StepResult& result,
                       const ClusterSpec& cluster) {
  const double share = planner::memory_share(result, cluster);
  if (share <= planner::kTightMemory) return {};
  return QStringLiteral("%1 uses %2 of the memory; set a memory limit to keep a margin.")
      .arg(plan, percent_text(share));
}

QString figures_text(const ClusterSpec& cluster, const StackSpec& stack) {
  return to_qstring(planner::estimates_text(planner::figure_counts(cluster, stack))) +
         QLatin1Char('.');
}

PlanStory tell_story(const Scenario& scenario, const std::stop_token& stop) {
  PlanStory story;
  story.explanation = planner::explain(scenario, planner::kSensitivityStep, stop);
  if (!stop.stop_requested())
    story.peak_moment = moment_of_peak(scenario, story.explanation.result);
  return story;
}

}  // namespace shardwright::gui
