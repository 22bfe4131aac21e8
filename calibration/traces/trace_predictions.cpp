#include "calibration/traces/trace_predictions.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/step_replay.hpp"
#include "calibration/traces/trace_report.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

// Ranks of one run are replayed together; of others the first one stands for all.
std::vector<Trace> of_one_run(const std::vector<Trace>& traces) {
  if (traces.size() < 2 || match_ranks(traces)) return traces;
  return {traces.front()};
}

std::optional<Seconds> usual_device_step(const std::vector<Trace>& traces) {
  Seconds sum;
  double steps = 0.0;
  for (const Trace& trace : traces)
    for (const DeviceStep& step : device_steps(trace)) {
      sum += from_ns(step.end - step.begin);
      steps += 1.0;
    }
  return steps > 0.0 ? std::optional(sum / steps) : std::nullopt;
}

// A replay leaves out what follows the last activity of the last step: its times are brought to
// those of a step.
double scale_of_replay(const std::vector<Trace>& run, const ReplayedSteps& replayed) {
  const std::optional<Seconds> step = usual_device_step(run);
  return step && replayed.recorded > Seconds() ? *step / replayed.recorded : 1.0;
}

}  // namespace

HeldOut predict_held_out(const std::vector<Trace>& known, const std::vector<Trace>& held_out) {
  HeldOut result;
  const KernelTimes times(known);
  for (const Trace& trace : held_out) result.kernels.push_back(errors_on(trace, times));
  const bool knows_any = std::ranges::any_of(
      result.kernels, [](const KernelErrors& each) { return each.median.has_value(); });
  if (knows_any) {
    const std::vector<Trace> run = of_one_run(known);
    const auto replayed = replay_steps(run, {.times = &times});
    if (replayed) result.predicted_step = replayed->replayed * scale_of_replay(run, *replayed);
  }
  result.measured_step = usual_device_step(held_out);
  return result;
}

std::optional<OverlappedGradients> overlap_gradients(const std::vector<Trace>& traces) {
  const std::vector<Trace> run = of_one_run(traces);
  const auto as_recorded = replay_steps(run, {});
  const auto changed = replay_steps(run, {.reduce_when_ready = true});
  if (!as_recorded || !changed) return std::nullopt;
  const double scale = scale_of_replay(run, *as_recorded);
  return OverlappedGradients{as_recorded->recorded * scale, as_recorded->replayed * scale,
                             changed->replayed * scale, changed->moved};
}

nlohmann::ordered_json to_json(const HeldOut& held_out) {
  auto kernels = nlohmann::ordered_json::array();
  const auto error_or_null = [](const std::optional<double>& error) {
    return error ? nlohmann::ordered_json(*error) : nlohmann::ordered_json(nullptr);
  };
  for (const KernelErrors& each : held_out.kernels)
    kernels.push_back({{"path", printable(each.file)},
                       {"kernels", each.kernels},
                       {"unknown", each.unknown},
                       {"median_abs_error_ratio", error_or_null(each.median)},
                       {"p90_abs_error_ratio", error_or_null(each.p90)},
                       {"predicted_s", each.predicted.value()},
                       {"measured_s", each.measured.value()}});
  const auto or_null = [](const std::optional<Seconds>& time) {
    return time ? nlohmann::ordered_json(time->value()) : nlohmann::ordered_json(nullptr);
  };
  return {{"kernels", std::move(kernels)},
          {"step",
           {{"predicted_s", or_null(held_out.predicted_step)},
            {"measured_s", or_null(held_out.measured_step)}}}};
}

nlohmann::ordered_json to_json(const OverlappedGradients& what_if) {
  return {{"moved_reductions", what_if.moved},
          {"recorded_s", what_if.recorded.value()},
          {"replayed_s", what_if.replayed.value()},
          {"changed_s", what_if.changed.value()},
          {"predicted_s", what_if.predicted().value()}};
}

}  // namespace shardwright::calibration
