// A training run as the simulation of weeks sees it: seconds of work, what saves it, what stops it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/spec/run_spec.hpp"

namespace shardwright::sim {

// The uses of the wall time of a run. They add up to it.
enum class RunPart : std::uint8_t {
  // Steps that were kept, as one step takes.
  Step,
  InputStall,
  Straggler,
  Evaluation,
  // The run stands still for checkpoints that were kept.
  Checkpoint,
  // Everything that was done since the state that the run went back to.
  LostWork,
  Detection,
  Restart,
  // Waiting for a spare node.
  Waiting,
  Startup,
};
constexpr auto enum_names(RunPart) {
  return std::array{"step",      "input_stall", "straggler", "evaluation", "checkpoint",
                    "lost_work", "detection",   "restart",   "waiting",    "startup"};
}
using RunTimes = EnumArray<RunPart, Seconds>;

Seconds total(const RunTimes& times);

// The interruptions of one cause: a Poisson process over the whole job. Its rate changes with the
// age of the fleet like the hazard of a Weibull distribution. A repaired or replaced component is
// taken to be as old as the fleet (minimal repair), which holds while few components fail.
struct FailureProcess {
  // The rate of the whole job at the beginning of the run.
  Hertz rate;
  double shape = 1.0;
  Seconds age;
  // Share of the failures that happen; the others are left out. It compares runs with fewer
  // failures that are otherwise the same.
  double kept = 1.0;
  // Nodes that one failure stops together.
  std::int64_t nodes = 1;
  double replaced = 1.0;
  Seconds detection;
  // The run saves its state before it stops.
  bool planned = false;
  // It stops without having saved its state, but when it does is known.
  bool announced = false;
  // The mean repair time; zero: that of the model.
  Seconds repair;
  // The run goes on during the detection, in vain.
  bool silent = false;
};

// What a checkpoint costs.
struct CheckpointCost {
  // The run stands still.
  Seconds stall;
  // Time from the beginning of the stall until a failure does not lose the checkpoint any more, and
  // until it has reached the store.
  Seconds safe, stored;
  // Each n-th checkpoint is stored; more than 1 only in host memory.
  std::int64_t stored_every = 1;
  // Time to load it, from the memory of other hosts where they have it, and from the store.
  Seconds load, load_stored;
  // A planned stop waits this long.
  Seconds save;
  // Its size, once over all replicas.
  Bytes bytes{};
  // Hosts hold it, and each one overwrites the last.
  bool in_host_memory = false;
};

// Steps whose input takes so long; they wait for what it takes longer than they do.
struct InputWait {
  double steps = 0.0;
  Seconds step, input;
};

// What they wait if each step takes `factor` times as long.
Seconds input_stall(const std::vector<InputWait>& waits, double factor);

struct RunModel {
  // The kept work, and its uses: only Step, InputStall, Straggler and Evaluation.
  RunTimes work{};
  // The training time between checkpoints.
  Seconds interval;
  CheckpointCost checkpoint;
  Seconds startup;
  EnumArray<FailureCause, FailureProcess> failures{};
  // Standard deviation of the logarithm of a factor on all rates, drawn once a run.
  double rate_spread = 0.0;
  double correlated = 0.0;
  std::int64_t correlated_nodes = 2;
  // Failures of so many nodes at once lose what only other nodes hold: the copies in host memory or
  // the states of other replicas.
  std::int64_t nodes_losing_copies = 2;
  double manual = 0.0;
  Seconds manual_time;
  // Without loading the checkpoint.
  Seconds restart;
  Seconds repair;
  std::int64_t spares = 0;
  // Whole replicas of so many nodes that hold all states. One takes the place of a replica that
  // lacks a node, in this time.
  std::int64_t spare_replicas = 0, nodes_of_replica = 1;
  Seconds swap;
  // Of one node's failure no work is lost: the states come from another replica in this time.
  bool from_replicas = false;
  Seconds load_replica;
  // Without a spare node the run goes on with as many replicas as the rest of the nodes holds, each
  // of which holds so many; with one replica it waits.
  std::int64_t replicas = 1;
  double replicas_of_node = 1.0;
  // The speed without one node, without two, …, over that with all of them; without more, and where
  // it is empty, it falls in proportion to the replicas.
  std::vector<double> shrunk_speeds;
  // The 80 % interval of the step time over the predicted one. Runs draw from it.
  double step_low = 1.0, step_high = 1.0;
  // What InputStall of the work consists of; empty: it keeps its length.
  std::vector<InputWait> input_waits{};

  // The work if steps take `factor` times as long: longer steps wait less for their input, and
  // evaluations are no steps.
  RunTimes work_at(double factor) const;
  Seconds total_work() const { return total(work); }
  std::int64_t spare_nodes() const { return spares + spare_replicas * nodes_of_replica; }
};

// The outcome of one simulated run.
struct RunOutcome {
  RunTimes times{};
  // The clock at the end, which the times add up to.
  Seconds wall;
  EnumArray<FailureCause, std::int64_t> interruptions{};
  // False if the run was given up because failures leave it no progress; the times are then those
  // until that moment, and all that it had not lost counts as steps.
  bool finished = true;

  std::int64_t total_interruptions() const;
};

struct Percentiles {
  double p10 = 0.0, p50 = 0.0, p90 = 0.0;
};
// Returns the percentiles of a sample in any order, interpolated linearly between neighbours.
Percentiles percentiles(std::vector<double> sample);

// Many simulated runs of one model.
struct RunStatistics {
  // Seconds, and a number; infinite where so many runs do not finish.
  Percentiles wall;
  Percentiles interruptions;
  // Means over the runs that finish.
  RunTimes mean{};
  EnumArray<FailureCause, double> by_cause{};
  std::int64_t runs = 0, unfinished = 0;

  // The means of a minority that ends say little of the runs.
  bool most_end() const { return 2 * unfinished <= runs; }
  Seconds mean_wall() const { return total(mean); }
};

}  // namespace shardwright::sim
