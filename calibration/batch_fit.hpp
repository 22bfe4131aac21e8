// A batch profile from runs of the executor: the law of their loss, and the critical batch that
// their gradient noise tells. docs/models/batch.md has the equations.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibration/measured_run.hpp"
#include "core/spec/batch_spec.hpp"
#include "core/spec/model_spec.hpp"

namespace shardwright::calibration {

// What a run has trained, whatever its plan was.
struct LossCurve {
  std::string name;
  // Those that the law counts.
  double parameters = 0.0;
  std::vector<TrainedStep> steps;
};

// Reads `plan.json` and `metrics.jsonl` of the folder that `shardwright run --out` names; the
// parameters are counted as `base` does. Throws InputError, also if the run has too few steps or a
// loss that is not finite.
LossCurve load_loss_curve(const std::filesystem::path& folder, const LossSpec& base);

struct BatchFit {
  BatchSpec spec;
  // The median of the absolute error of the loss over its value, over the points of the fit.
  double residual = 0.0;
  // Runs that measured a noise scale.
  std::size_t with_noise = 0;
};

// Fits the law of loss, and the critical batch if a run measured it; the rest, and how the loss
// depends on the model if all curves are of one size, is that of `base`. `source` is the command
// that the figures come from.
BatchFit fit_batch_law(const std::vector<LossCurve>& curves, const BatchSpec& base,
                       const std::string& name, const std::string& source);

}  // namespace shardwright::calibration
