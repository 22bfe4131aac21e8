#include "executor/runtime/training_options.hpp"

#include <algorithm>
#include <cmath>

namespace shardwright::executor {

double learning_rate(const TrainingOptions& options, std::int64_t step) {
  const auto number = static_cast<double>(step + 1);
  const auto warmup = static_cast<double>(options.warmup_steps);
  if (step < options.warmup_steps) return options.learning_rate * number / warmup;
  const double rest = std::max(1.0, static_cast<double>(options.steps) - warmup);
  const double share = std::min(1.0, (number - warmup) / rest);
  const double fall = 0.5 * (1.0 + std::cos(M_PI * share));
  const double least = options.learning_rate * options.least_rate_ratio;
  return least + (options.learning_rate - least) * fall;
}

AdamStep adam_step(const TrainingOptions& options, std::int64_t step) {
  AdamStep adam;
  adam.learning_rate = static_cast<float>(learning_rate(options, step));
  adam.beta1 = static_cast<float>(options.beta1);
  adam.beta2 = static_cast<float>(options.beta2);
  adam.epsilon = static_cast<float>(options.epsilon);
  adam.weight_decay = static_cast<float>(options.weight_decay);
  adam.clip_norm = static_cast<float>(options.clip_norm);
  adam.step = step + 1;
  return adam;
}

}  // namespace shardwright::executor
