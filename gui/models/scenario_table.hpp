// The scenario as a table: for the clipboard and for files.
#pragma once

#include "gui/models/scenario_choice.hpp"
#include "gui/models/table_text.hpp"

namespace shardwright::gui {

// "HBM bandwidth".
QString what_if_title(planner::Resource resource);

// A row of its title and its value for each field and each what-if.
TextTable table_of(const ScenarioChoice& choice);

}  // namespace shardwright::gui
