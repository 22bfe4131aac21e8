// The exit status of the command, as scripts read it.
#pragma once

namespace shardwright::cli {

enum class ExitCode : int {
  Ok = 0,
  // The input was good, but the run failed.
  Failure = 1,
  // Wrong usage, or a wrong input file.
  BadInput = 2,
  // No plan fits the cluster and the limits, or the plan asked about does not.
  NoFeasiblePlan = 4,
  // A validation outside of the tolerance that was asked for.
  OutsideTolerance = 5,
  // Ctrl-C or SIGTERM. What was found until then was printed.
  Interrupted = 130,
};

}  // namespace shardwright::cli
