// A simulated step as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/output/page.hpp"
#include "cli/output/table.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"
#include "validation/prediction_interval.hpp"

namespace shardwright::cli {

// "dp 16, tp 8, pp 4, mb 1" and whatever else is not at its default.
std::string plan_text(const Plan& plan);

// The parts of a step, largest first, with their names: "matrix products", "exposed: tensor", ….
// Parts of zero length are left out.
std::vector<std::pair<std::string, Seconds>> time_parts(const sim::TimeBreakdown& time);

// The columns that tell one step in each row of a table, and their cells: compute, exposed
// communication and copies, bubble, host. Seconds.
std::vector<Column> time_columns();
std::vector<std::string> time_cells(const sim::TimeBreakdown& time, int decimals);

// "14.9 s to 18.9 s".
std::string interval_text(const validation::StepInterval& interval);

// Adds the report of one step: what runs on what, how fast, how sure that is, where time and memory
// go. `surest_step` is the time whose interval is told: a closed form has none of its own.
void add_step(Page& page, const Scenario& scenario, const sim::StepResult& result,
              Seconds surest_step);

// Says on stderr by how much a step exceeds the memory of an accelerator; nothing where it fits.
// `who` begins the line. True if the step fits.
bool report_fit(const std::string& who, const sim::StepResult& result, const ClusterSpec& cluster);

// Adds a row for each stage; nothing if there is one only.
void add_stages(Page& page, const sim::StepResult& result);

// Adds what was filled in because the inputs do not say it; nothing if they say everything.
void add_filled_in(Page& page, const std::vector<std::string>& filled_in);

}  // namespace shardwright::cli
