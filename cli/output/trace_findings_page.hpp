// What follows from traces, as text: the layers of the model, the stragglers of a job, what traces
// predict of each other, and what another order of the gradients' reductions would gain.
#pragma once

#include "calibration/traces/layer_structure.hpp"
#include "calibration/traces/straggler_analysis.hpp"
#include "calibration/traces/trace_predictions.hpp"
#include "cli/output/page.hpp"

namespace shardwright::cli {

// The layers that repeat in a step, and the shape of the model as far as it is known.
void add_structure(Page& page, const calibration::LayerStructure& structure);

// What the differences among a job's workers cost, and who is to blame.
void add_job(Page& page, const calibration::StragglerAnalysis& job);

// Traces that others predict.
void add_held_out(Page& page, const calibration::HeldOut& held_out);

// The step with gradients that are reduced as soon as they are there.
void add_overlap(Page& page, const calibration::OverlappedGradients& overlap);

}  // namespace shardwright::cli
