// The request for plans that a scenario choice stands for, and the choice of a scenario.
#pragma once

#include <QStringList>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "gui/models/scenario_choice.hpp"
#include "planner/search.hpp"

namespace shardwright::gui {

// What constraints may be completed to: "tp=", "schedule=1f1b" …
QStringList constraint_completions();

std::string own_stack_of(const std::string& cluster);

// Returns `choice` on another cluster with the stack that `shardwright plan` uses there, which is
// the cluster's own if it has one. The own stack of the former cluster is left behind. On several
// pools the choice has at most as many accelerators as these.
ScenarioChoice on_cluster(ScenarioChoice choice, const std::string& cluster);

// Loads the stack of this name: the cluster's own, a shipped one or that of a file. Throws
// InputError.
StackSpec load_stack_on(const ClusterSpec& cluster, const std::string& name);

// Returns the choice for a scenario on the cluster of this name or file. It keeps the name alone of
// a model that is not shipped, and of a stack that is neither shipped nor the cluster's own.
ScenarioChoice choice_of(const Scenario& scenario, const std::string& cluster);

// Returns the choice with the changes that make a plan fit; none if a field cannot take one of
// them.
std::optional<ScenarioChoice> with_remedies(ScenarioChoice choice,
                                            const std::vector<planner::Remedy>& remedies,
                                            Bytes accelerator_memory);

// Returns none unless the shipped files hold the whole scenario.
std::optional<ScenarioChoice> shipped_choice_of(const Scenario& scenario);

// Loads the parts. Throws InputError with every problem; `where` is the id of the field.
planner::PlanRequest load_request(const ScenarioChoice& choice);

// True if plans like that of the scenario are searched for where this is chosen, whatever the
// constraints.
bool describes(const ScenarioChoice& choice, const Scenario& scenario);

// Loads the cluster with replaced parts and what-ifs. Throws InputError.
ClusterSpec load_cluster_of(const ScenarioChoice& choice);
// Returns the number of accelerators of the cluster. Returns none if it has as many as are asked
// for and if it cannot be loaded.
std::optional<std::int64_t> most_gpus(const ScenarioChoice& choice);

// Returns the names of the shipped profiles in a folder ("nodes", "fabrics"), sorted.
std::vector<std::string> shipped_profiles(const std::string& folder);

}  // namespace shardwright::gui
