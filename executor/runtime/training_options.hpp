// How a model is trained, besides the plan.
#pragma once

#include <cstdint>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

struct TrainingOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 100;
  double learning_rate = 3e-4;     // at its peak
  double least_rate_ratio = 0.1;   // of the peak, at the last step
  std::int64_t warmup_steps = 10;  // over which the rate rises from 0 to the peak
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of matrices
  double clip_norm = 1.0;     // of all gradients together; 0: not clipped

  bool operator==(const TrainingOptions&) const = default;
};

// Linear warm-up, then half a cosine down to the least rate (arXiv 1608.03983). Steps count from 0.
double learning_rate(const TrainingOptions& options, std::int64_t step);

// The optimizer's step of this number.
AdamStep adam_step(const TrainingOptions& options, std::int64_t step);

}  // namespace shardwright::executor
