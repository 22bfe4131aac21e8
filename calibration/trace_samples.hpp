// What traces of other programs measured, as the samples that profiles are refitted to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibration/run_samples.hpp"
#include "calibration/traces/program_match.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/predicted_timeline.hpp"

namespace shardwright::calibration {

// The stage of a trace's rank; the first one where the trace does not tell, or tells of another
// job.
std::int64_t stage_of(const Trace& trace, const Plan& plan);

// The scenario with the clock that the device had in these traces: where kernels fill less than
// nine tenths of the steps, that of short measurements, because neither power nor temperature holds
// it back.
Scenario at_clock_of(std::span<const Trace> traces, Scenario scenario);

// The step of a stage's first rank.
PlannedStep planned_step(const sim::TracedStep& step, std::int64_t stage);

// Matrix products by shape, collectives by kind, size and group (of groups of equal size, those of
// another name or shape are others), the slowdown of kernels beside collectives and the variation
// among ranks; of traces that were matched to a plan also attention, and kernels that memory
// traffic limits where the framework fuses them as the plan's stack does. Collectives are those
// whose transfer `matching` tells: those of more ranks than the cluster has are left out, and those
// that evidently wait for ranks without a trace; so
// are kernels whose data the cache of the cluster's device holds, or that are faster than its
// memory: they say nothing of the memory's bandwidth. The host's time for a launch is none of the
// samples: a profiler that records each call of the host lengthens it by a time of its own, which
// no trace tells.
RunSamples samples_of(const std::vector<Trace>& traces, const std::vector<ProgramMatch>& matches,
                      const std::optional<RankMatching>& matching, const ClusterSpec& cluster);

}  // namespace shardwright::calibration
