// The words for whole runs that the command and the window both show.
#pragma once

#include <optional>
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

// "on demand".
std::string contract_text(Contract contract);

// "network adapter".
std::string cause_text(FailureCause cause);

// The thing that RunGain::name names: "step time", "interruptions by network adapter".
std::string gain_text(const std::string& name);

// What the profile asks for in recovery and the plan cannot have, a sentence each.
std::vector<std::string> recovery_without_effect(const RecoverySpec& recovery, const Plan& plan,
                                                 const sim::RunModel& model);

// The heading of the laws that the number of tokens of a run rests on (laws_behind_tokens).
inline constexpr const char* kLawsTitle = "Laws behind the number of tokens";

// Reads a loss to train to; none unless the whole text is a number that it may be.
std::optional<double> parse_loss(const std::string& text);
inline constexpr const char* kExpectedLoss =
    "a loss in nats per token above 0 and up to 100, as in 1.95";

// "$3.2 M".
std::string money_text(Dollars dollars);

// "15 T".
std::string tokens_text(double tokens);

}  // namespace shardwright::planner
