// What traces of training runs say, as text.
#pragma once

#include <optional>
#include <vector>

#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace_report.hpp"
#include "cli/output/page.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::cli {

// One trace in detail, or several beside each other and as their mean. `matching`: the collectives
// that they share. `step`: one recorded step of the trace `shown`, for HTML.
void add_traces(Page& page, const std::vector<calibration::TraceReport>& reports,
                const std::optional<calibration::RankMatching>& matching, const Timeline& step,
                std::size_t shown);

// The matrix products whose shapes traces tell, beside what `device` can do; null: it is not known.
void add_products(Page& page, std::vector<calibration::TimedProduct> products,
                  const AcceleratorSpec* device);

}  // namespace shardwright::cli
