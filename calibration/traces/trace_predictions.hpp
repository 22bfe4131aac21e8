// What traces predict: of other traces, and of the same run under another order of its ops.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "calibration/traces/kernel_times.hpp"
#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// Traces that a calibration did not see, predicted by those that it saw.
struct HeldOut {
  // By file.
  std::vector<KernelErrors> kernels;
  // The replay of the known ranks with the usual times of their kernels, beside the mean of the
  // held-out ranks by their devices' clocks. None where no step is there; nothing is predicted
  // without a known kernel.
  std::optional<Seconds> predicted_step, measured_step;
};

HeldOut predict_held_out(const std::vector<Trace>& known, const std::vector<Trace>& held_out);

// The step if each reduction of a single gradient began as soon as the gradient is there.
struct OverlappedGradients {
  // As it was recorded, and replayed with and without the change.
  Seconds recorded, replayed, changed;
  // The reductions of a step that begin earlier.
  double moved = 0.0;

  // The recorded step, shortened by what the replay gains.
  Seconds predicted() const { return recorded * (changed / replayed); }
};

// None where nothing ran on a device.
std::optional<OverlappedGradients> overlap_gradients(const std::vector<Trace>& traces);

nlohmann::ordered_json to_json(const HeldOut& held_out);
nlohmann::ordered_json to_json(const OverlappedGradients& what_if);

}  // namespace shardwright::calibration
