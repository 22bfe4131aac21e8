#include "planner/whole_machine.hpp"

#include <algorithm>

namespace shardwright::planner {

Precision usual_precision(const ClusterSpec& cluster) {
  const MatrixPeaks& peaks = cluster.accelerator.matrix;
  const bool small = std::max(peaks.bf16, peaks.fp16) > FlopPerSecond(0);
  return small ? Precision::Bf16 : Precision::Fp32;
}

void plan_for_all_of_it(PlanRequest& request) {
  constexpr std::int64_t kSequencesEach = 4;
  request.gpus = request.cluster.nodes * request.cluster.node.accelerators;
  request.global_batch = request.gpus * kSequencesEach;
  request.seq_len = request.model.max_seq_len;
}

}  // namespace shardwright::planner
