// A simulated step as text.
#pragma once

#include <string>
#include <vector>

#include "cli/output/page.hpp"
#include "cli/output/table.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {

// "llama3-70b on 512 × h100-sxm (dgx-h100), megatron-core".
std::string cluster_text(const Scenario& scenario);

// "dp 16, tp 8, pp 4, mb 1", and the other fields that are not at their defaults.
std::string plan_text(const Plan& plan);

// The columns of a table that has one step per row, and their cells: compute, exposed communication
// and copies, bubble, host. Seconds.
std::vector<Column> time_columns();
std::vector<std::string> time_cells(const sim::TimeBreakdown& time, int decimals);

// "15.3 to 19.8 s, from the errors on 690 published runs".
std::string interval_text(const validation::StepInterval& interval);

// Adds the report of one step: the scenario, the rates, the interval of the step time, and the
// parts of time and memory.
void add_step(Page& page, const Scenario& scenario, const sim::StepResult& result,
              const validation::Confidence& confidence);

// Adds the step's interval, which is known, and what published runs say of a plan that is named so.
void add_confidence(Page& page, const std::string& name, Seconds step,
                    const validation::Confidence& confidence);

// Prints on standard error by how much a step exceeds the memory of an accelerator; nothing if it
// fits. `who` begins the line. Returns true if the step fits.
bool report_fit(const std::string& who, const sim::StepResult& result, const Scenario& scenario);
// The same for a cluster of one pool.
bool report_fit(const std::string& who, const sim::StepResult& result, const ClusterSpec& cluster);

// Adds drawings of the step's time, memory and timeline, which may be empty, and the plan file.
// `whose` ends their captions, as in " of plan 1". Only HTML has them.
void add_step_figures(Page& page, const Scenario& scenario, const sim::StepResult& result,
                      const Timeline& timeline, const std::string& whose = "");
// Adds what the step is bound by, and how many of the figures it rests on are estimates.
void add_grounds(Page& page, const Scenario& scenario, const sim::StepResult& result);

// Adds the drawings with the timeline of a simulation at the level event; without one of a step of
// too many ops.
void add_simulated_figures(Page& page, const Scenario& scenario, const std::string& whose);

// Adds a table with a row per stage; nothing if there is only one.
void add_stages(Page& page, const Plan& plan, const sim::StepResult& result);

// Adds the values that were assumed because the inputs leave them open; nothing if there are none.
void add_filled_in(Page& page, const std::vector<std::string>& filled_in);

}  // namespace shardwright::cli
