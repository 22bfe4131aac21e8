// A sweep: the step of a plan, or of the best plan, at each of several values of one quantity.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/error.hpp"
#include "planner/batch_knee.hpp"
#include "planner/scale.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

enum class SweepAxis : std::uint8_t {
  Gpus,
  GlobalBatch,
  SeqLen,
  ScaleOutBandwidth,  // of one NIC
  ScaleUpBandwidth,   // of one accelerator, as over NVLink
  MemoryBandwidth,
};
constexpr auto enum_names(SweepAxis) {
  return std::array{"gpus",
                    "global-batch",
                    "seq-len",
                    "scale-out-bandwidth",
                    "scale-up-bandwidth",
                    "memory-bandwidth"};
}

bool is_bandwidth(SweepAxis axis);

enum class SweepPlan : std::uint8_t {
  Best,    // The best plan of each point.
  Chosen,  // One plan, unchanged at every point.
};

// A plan has one number of GPUs, so that along GPUs only the best plans can be swept.
SweepPlan possible_plan(SweepAxis axis, SweepPlan wanted);

struct SweepRequest {
  SweepAxis axis = SweepAxis::Gpus;
  SweepPlan plan = SweepPlan::Best;
  // The values of the axis, ascending; empty: usual_values().
  std::vector<double> values;
  // The request that the best plans are searched for. Its `stop` stops the sweep.
  PlanRequest request;
  // The chosen plan. Its batch and its bandwidths are the centre of the usual values.
  Scenario scenario;
};

struct SweepPoint {
  // GPUs, sequences, tokens or bytes per second.
  double value = 0.0;
  // None if no plan runs here.
  std::optional<PlanCandidate> candidate;
  // True if the candidate fits in memory.
  bool fits = false;
  // The rule that the chosen plan breaks here.
  std::optional<Problem> broken_rule;
  // True if only the narrow space (narrow_limits) was searched: the whole one may hold a better
  // plan, or one that fits.
  bool preliminary = false;

  double tokens_per_s() const { return candidate->tokens() / candidate->result.step.value(); }
};

struct Sweep {
  SweepAxis axis = SweepAxis::Gpus;
  SweepPlan plan = SweepPlan::Best;
  // Ascending in their values.
  std::vector<SweepPoint> points;
  // Index of the point from which on more stops to pay in tokens per second; along the sequence
  // length, of the longest sequence that fits. None while a point is preliminary.
  std::optional<std::size_t> knee;
  // The reason for the knee along GPUs.
  std::optional<KneeCause> knee_cause;
  // The batch of all points along GPUs if the request leaves it open: the throughput knee on the
  // largest machine.
  std::optional<std::int64_t> chosen_batch;
  // True if the cluster has no link whose bandwidth could be swept; then there are no points.
  bool lacks_link = false;
  // True if the sweep was stopped before its end.
  bool partial = false;

  bool is_final() const;
};

// A point reaches the knee along a bandwidth if a doubling from there brings less than this gain of
// throughput; along the batch, kKneeThroughput decides.
inline constexpr double kLeastGainOfDoubling = 0.02;

// The callbacks of a sweep; either may be empty.
struct SweepWatch {
  // Gets the share of the work that is done. May be called from several threads, one at a time.
  std::function<void(double)> progress;
  // Gets all points: first those of the narrow space, then again after each point whose whole space
  // was searched, but for the last, which is the answer. If empty, the narrow space is not
  // searched.
  std::function<void(const Sweep&)> found;
};

// The value that the scenario itself has on an axis; 0 if it leaves it open.
double own_value(SweepAxis axis, const PlanRequest& request, const ClusterSpec& cluster);

// The least number of sequences by which the batch of a plan can grow while its schedule runs it:
// whole microbatches of every replica, and whole rounds of them where the schedule asks for that.
// Replicas on several pools keep their shares.
std::int64_t batch_unit(const Plan& plan);

std::vector<double> usual_values(SweepAxis axis, const PlanRequest& request,
                                 const Scenario& scenario);

// The best plans are those of search() and, along GPUs, of scale(). Along the sequence length the
// batch keeps its tokens. Throws InputError as search() does.
Sweep run_sweep(const SweepRequest& request, const SweepWatch& watch = {});

}  // namespace shardwright::planner
