// What the command's exit status means to scripts.
#pragma once

namespace shardwright::cli {

enum class ExitCode : int {
  Ok = 0,
  Failure = 1,           // the input was good, the run failed
  BadInput = 2,          // wrong usage, or a file that is wrong
  NoFeasiblePlan = 4,    // no plan fits the cluster and the limits, or the one asked about does not
  OutsideTolerance = 5,  // a validation that missed the tolerance asked for
  Interrupted = 130,     // Ctrl-C; what was found until then was printed
};

}  // namespace shardwright::cli
