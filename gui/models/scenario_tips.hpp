// Tool tips of a scenario's fields: meaning, unit and range, then the figures that the present
// choice stands for, each with its source.
#pragma once

#include <QString>
#include <optional>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/scenario_choice.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {

// The parts that the fields name; none if they cannot be loaded.
struct ScenarioParts {
  std::optional<ModelSpec> model;
  // The cluster with replaced parts, but without what-ifs.
  std::optional<ClusterSpec> cluster;
  std::optional<StackSpec> stack;
};
ScenarioParts load_parts(const ScenarioChoice& choice);

// Rich text.
QString tip_of(Field field, const ScenarioChoice& choice, const ScenarioParts& parts);
// Names the figure that 100 % of a what-if stands for.
QString tip_of(planner::Resource resource, const ScenarioParts& parts);

// Describe a cluster or a model with the sources of its figures, as rich text.
QString cluster_summary(const ClusterSpec& cluster);
QString model_summary(const ModelSpec& model);
// The source of figures that the event simulation computes for a plan: it names the profile and
// counts how many of its figures are measured, fitted, derived or assumed.
TipSource simulated_on(const ClusterSpec& cluster);
// The same in views of a step, which do not know its profile.
TipSource simulated_step();
// That of the plans of a set, with the file that they come from.
TipSource source_of(const PlanSet& set);
// Names one of what trains on the cluster: "GPU", "CPU rank", "TPU", "accelerator".
const char* accelerator_word(const ClusterSpec& cluster);
// "GPU" if the cluster cannot be loaded.
const char* accelerator_word(const ScenarioChoice& choice);
// "GPU" without plans.
const char* accelerator_word(const PlanSetPointer& set);
// Returns a text about GPUs with another word for them: "Tokens/s per TPU", "CPU ranks".
QString with_accelerator(const QString& text, const char* word);
// Describes the nodes in a line: "8 × h100-sxm (85.5 GB) a node, NVLink 4 at 450 GB/s, 8 NICs at
// 50.0 GB/s". Keeps numbers and their units together.
QString machine_facts(const ClusterSpec& cluster);

}  // namespace shardwright::gui
