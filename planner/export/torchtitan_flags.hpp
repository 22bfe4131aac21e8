// Plans as command-line flags of torchtitan.
//
// The names come from torchtitan/config/parallelism.py at commit 15e24313ef2e and
// torchtitan/config/training.py at f204eb63c07b of https://github.com/pytorch/torchtitan. Its set
// of flags is frozen (torchtitan/config/README.md): newer settings belong to the Python function
// that --config names.
#pragma once

#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// Writes a Bash array TORCHTITAN_FLAGS, with the launch line as a comment. The model is that of the
// function that --config names.
PlanExport torchtitan_flags(const Scenario& scenario);

}  // namespace shardwright::planner
