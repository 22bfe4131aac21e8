// Training hyperparameters besides the plan.
#pragma once

#include <cstdint>

namespace shardwright::executor {

struct TrainingOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 100;
  // The peak of the learning rate.
  double learning_rate = 3e-4;
  // The learning rate of the last step relative to the peak.
  double least_rate_ratio = 0.1;
  // Steps in which the rate rises from 0 to the peak.
  std::int64_t warmup_steps = 10;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  // Applies to matrices.
  double weight_decay = 0.1;
  // The limit on the norm of all gradients; 0 disables clipping.
  double clip_norm = 1.0;

  bool operator==(const TrainingOptions&) const = default;
};

}  // namespace shardwright::executor
