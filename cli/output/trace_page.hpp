// What traces and logs of training runs say, as text.
#pragma once

#include <optional>
#include <vector>

#include "calibration/collective_timings.hpp"
#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/layer_structure.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/straggler_analysis.hpp"
#include "calibration/traces/trace_predictions.hpp"
#include "calibration/traces/trace_report.hpp"
#include "cli/output/page.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::cli {

// One trace in detail, or several beside each other and as their mean. `matching`: the collectives that they share.
// `step`: one recorded step of the trace `shown`, for HTML.
void add_traces(Page& page, const std::vector<calibration::TraceReport>& reports,
                const std::optional<calibration::RankMatching>& matching, const Timeline& step,
                std::size_t shown);

// The matrix products whose shapes traces tell, beside what `device` can do; null: it is not known.
void add_products(Page& page, std::vector<calibration::TimedProduct> products,
                  const AcceleratorSpec* device);

// The collectives that a file of nccl-tests times.
void add_collective_file(Page& page, const calibration::CollectiveFile& file);

// The collectives and messages of processes that NCCL's Inspector watched, all together, and what they wait for each
// other. Nothing without a process.
void add_inspector(Page& page, const std::vector<calibration::InspectorProcess>& processes,
                   const std::optional<calibration::RankMatching>& matching);

// The layers that repeat in a step, and the shape of the model as far as it is known.
void add_structure(Page& page, const calibration::LayerStructure& structure);

// What the differences among a job's workers cost, and who is to blame.
void add_job(Page& page, const calibration::StragglerAnalysis& job);

// Traces that others predict.
void add_held_out(Page& page, const calibration::HeldOut& held_out);

// The step with gradients that are reduced as soon as they are there.
void add_overlap(Page& page, const calibration::OverlappedGradients& overlap);

}  // namespace shardwright::cli
