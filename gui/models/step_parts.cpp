#include "gui/models/step_parts.hpp"

#include "core/spec/pools.hpp"
#include "gui/models/text.hpp"
#include "planner/figure.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {

namespace {

constexpr EnumArray<sim::StepPart, const char*> kMeanings{
    {"Matrix products, recomputed ones included.", "Attention kernels, recomputed ones included.",
     "Kernels that wait for memory: norms, activations, sums.",
     "The update of the parameters at the end of the step.",
     "Computation that is slower while a collective uses the same accelerator.",
     "Tensor-parallel communication during which nothing is computed.",
     "Context-parallel communication during which nothing is computed.",
     "Exchanges of tokens with experts during which nothing is computed.",
     "Data-parallel communication during which nothing is computed.",
     "Messages between stages during which nothing is computed.",
     "Waiting for copies between the accelerator and its host.",
     "Waiting for other pipeline stages.",
     "Waiting for the host, which launches kernels one by one.",
     "Waiting for slower ranks and for training data."}};

}  // namespace

Role role_of(sim::StepPart part) {
  constexpr EnumArray<sim::StepPart, Role> kRoles{
      {Role::MatrixProducts, Role::Attention, Role::MemoryBound, Role::Optimizer, Role::Other,
       Role::Tensor, Role::Context, Role::Expert, Role::Data, Role::Pipeline, Role::Other,
       Role::Bubble, Role::Host, Role::Other}};
  return kRoles[part];
}

std::vector<TimePart> time_parts(const sim::TimeBreakdown& time) {
  std::vector<TimePart> parts;
  for (const sim::StepPart part : enumerators<sim::StepPart>()) {
    const Seconds taken = is_no_time(time.of(part)) ? Seconds() : time.of(part);
    // A cost of zero is news for these parts, but not for a group that the plan does not have.
    const bool always = part == sim::StepPart::Optimizer || part == sim::StepPart::Bubble ||
                        part == sim::StepPart::Host;
    if (taken > Seconds() || always)
      parts.push_back({to_qstring(planner::part_title(part)), role_of(part), taken,
                       to_qstring(kMeanings[part])});
  }
  return parts;
}

QString title_of(MemoryCategory category) {
  return to_qstring(planner::memory_text(category));
}

std::vector<Bytes> stage_memories(const sim::StepResult& result, const Scenario& scenario) {
  std::vector<Bytes> memories;
  for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
    const auto number = static_cast<std::int32_t>(stage);
    memories.push_back(stage_cluster(scenario.cluster, scenario.plan, number).accelerator.memory);
  }
  return memories;
}

QString memory_warning(const QString& plan, const sim::StepResult& result,
                       const Scenario& scenario) {
  const double share =
      planner::memory_share(result, stage_cluster(scenario.cluster, scenario.plan, result.fullest));
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
