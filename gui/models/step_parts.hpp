// The parts of a step's time and memory that charts show, with their texts.
#pragma once

#include <QString>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "gui/style/palette.hpp"
#include "planner/explain.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::gui {

Role role_of(sim::StepPart part);

struct TimePart {
  // "GEMMs", "exposed: tensor parallel"
  QString title;
  Role role = Role::Other;
  Seconds time;
  // What counts as it, as a sentence.
  QString meaning;
};

// The parts in the order of StepPart; they add up to the step. Parts of zero length are left out,
// but for the optimizer, the bubble and the host. Times below a nanosecond (is_no_time) count as
// zero.
std::vector<TimePart> time_parts(const sim::TimeBreakdown& time);

QString title_of(MemoryCategory category);

// The memory of an accelerator of each stage of the result.
std::vector<Bytes> stage_memories(const sim::StepResult& result, const Scenario& scenario);

// "The plan uses 100.0 % of the memory; set a memory limit to keep a margin."; empty if the plan,
// called `plan`, leaves enough.
QString memory_warning(const QString& plan, const sim::StepResult& result,
                       const Scenario& scenario);

// "26 of the 82 hardware and software figures used are estimates."
QString figures_text(const ClusterSpec& cluster, const StackSpec& stack);

// "while attention.qkv runs (backward input, layer 3, microbatch 5)".
QString peak_moment_text(const planner::PeakMoment& moment);

}  // namespace shardwright::gui
