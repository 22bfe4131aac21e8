// The model of a run from its profile, its steps and its machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/run_spec.hpp"
#include "sim/run/run_model.hpp"

namespace shardwright::sim {

// The steps of one stage of a run.
struct StageSteps {
  double steps = 0.0;
  double tokens_per_step = 0.0;
  Seconds step;
  // Of the stage's plan; zero: all of the run.
  std::int64_t nodes = 0;
  // The mean over these nodes of the rate of a node's failures over that of the fleet.
  double failure_rate = 1.0;
};

struct RunMachine {
  std::int64_t nodes = 1;
  Bytes checkpoint;
  // Data-parallel replicas, and the copies that they hold of all states: on ranks, and on nodes of
  // which each has at most one.
  std::int64_t replicas = 1, copies = 1, copies_on_nodes = copies;
};

// Tokens of a second that the input pipeline supplies in the first pass over the data set, or in
// later ones; infinite without a limit (docs/models/storage.md).
double input_supply(const InputSpec& input, double nodes, bool first_pass);

// The work of all stages (RunModel::work).
RunTimes work_of(const RunSpec& run, const std::vector<StageSteps>& stages);

CheckpointCost checkpoint_cost(const CheckpointSpec& checkpoint, const RunMachine& machine);

// Intervals below it cannot be kept, because a checkpoint must have been written before the next
// one begins; zero if there is no such limit.
Seconds least_interval(const CheckpointCost& cost);

// The model; its interval is that of the profile, at least the least one, or zero if the profile
// leaves it open.
RunModel run_model(const RunSpec& run, std::vector<StageSteps> stages, const RunMachine& machine);

// The mean time between unplanned interruptions of the job while it does its work; infinite without
// any. With `losing_work` only those that take the run back to a checkpoint count.
Seconds job_mtbf(const RunModel& model, bool losing_work = false);

}  // namespace shardwright::sim
