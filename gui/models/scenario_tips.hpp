// Tool tips of a scenario's fields: meaning, unit and range, then the figures that the present
// choice stands for, each with its source.
#pragma once

#include <QString>
#include <optional>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

// What the fields name; none where it cannot be loaded.
struct ScenarioParts {
  std::optional<ModelSpec> model;
  // With replaced parts, but without what-ifs.
  std::optional<ClusterSpec> cluster;
  std::optional<StackSpec> stack;
};
ScenarioParts load_parts(const ScenarioChoice& choice);

// Rich text.
QString tip_of(Field field, const ScenarioChoice& choice, const ScenarioParts& parts);
// Of a what-if: the figure that 100 % is.
QString tip_of(planner::Resource resource, const ScenarioParts& parts);

// What a cluster is made of, with the source of each figure, as rich text.
QString cluster_summary(const ClusterSpec& cluster);
QString model_summary(const ModelSpec& model);
// Its nodes in a line: "8 × h100-sxm (85.5 GB) a node, NVLink 4 at 450 GB/s, 8 NICs at 50.0 GB/s";
// numbers and their units are not broken apart.
QString machine_facts(const ClusterSpec& cluster);

}  // namespace shardwright::gui
