// The words for whole runs that the command and the window both show.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/run_spec.hpp"
#include "sim/run/run_model.hpp"

namespace shardwright::planner {

// Gains of less of the wall time are not worth a line.
inline constexpr double kLeastGain = 0.0005;

// "work lost to failures".
std::string part_text(sim::RunPart part);

// "network adapter".
std::string cause_text(FailureCause cause);

// The thing that RunGain::name names: "step time", "interruptions by network adapter".
std::string gain_text(const std::string& name);

// What the profile asks for in recovery and the plan cannot have, a sentence each.
std::vector<std::string> recovery_without_effect(const RecoverySpec& recovery, const Plan& plan,
                                                 const sim::RunModel& model);

// "$3.2 M".
std::string money_text(Dollars dollars);

// "15 T".
std::string tokens_text(double tokens);

}  // namespace shardwright::planner
