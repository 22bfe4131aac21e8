// Where a plan's time and memory go, in the parts that charts show.
#pragma once

#include <QString>
#include <stop_token>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "gui/style/palette.hpp"
#include "planner/compare.hpp"
#include "planner/explain.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::gui {

// A part of the step of the bottleneck stage.
struct TimePart {
  QString title;  // "GEMMs", "exposed: tensor parallel"
  Role role = Role::Other;
  Seconds time;
};

// In a fixed order, without groups and stalls of zero length; they add up to the step. What
// `is_no_time` is zero.
std::vector<TimePart> time_parts(const sim::TimeBreakdown& time);

QString title_of(MemoryCategory category);

// "The plan uses 100.0 % of the memory; set a memory limit to keep a margin."; empty if the plan,
// called `plan`, leaves enough.
QString memory_warning(const QString& plan, const sim::StepResult& result,
                       const ClusterSpec& cluster);

// "26 of the 82 hardware and software figures used are estimates."
QString figures_text(const ClusterSpec& cluster, const StackSpec& stack);

// What is known of a plan after its explanation.
struct PlanStory {
  planner::Explanation explanation;
  QString peak_moment;  // "while layer 3's attention.qkv runs forward, microbatch 5"
};

// Re-simulates; seconds for large plans. Throws InputError.
PlanStory tell_story(const Scenario& scenario, const std::stop_token& stop);

}  // namespace shardwright::gui
