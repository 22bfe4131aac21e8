// Follows one rank of a full replay to say where its time goes.
#pragma once

#include <array>
#include <vector>

#include "sim/step/flat_program.hpp"
#include "sim/step/gap_blame.hpp"
#include "sim/step/lane_program.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

class RankWatch {
 public:
  RankWatch(const Program& program, const FlatProgram& flat, const LaneProgram& lanes);

  void arrive(const LaneOp& op, const OpStart& arrival);
  // `free`: when the op before it in its lane finished; `factor`: of its duration.
  void compute(const LaneOp& op, const OpStart& arrival, double free, double factor);
  void communicate(const LaneOp& op, double start, double duration);

  // The parts add up to `step`, the time of the whole step.
  TimeBreakdown breakdown(double step) const;
  OpTimes op_times() const;

 private:
  const Program& program_;
  const FlatProgram& flat_;
  std::vector<OpTime> ops_;
  // The times at which the rank came to each op, and at which the op started.
  std::vector<double> arrivals_, starts_;
  // The last collective of each stream, how late that was, and whether it delayed the one at hand.
  std::array<std::uint32_t, kStreams> last_{};
  std::array<double, kStreams> late_{};
  std::array<bool, kStreams> delayed_{};
  BlockBusy busy_;
  TimeBreakdown gaps_;
  // The last finish of the compute and of the gather stream.
  double computed_ = 0.0, gathered_ = 0.0;
};

}  // namespace shardwright::sim
