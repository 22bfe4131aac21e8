#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "calibration/figure_fit.hpp"
#include "calibration/part_calibration.hpp"
#include "calibration/profile_fit.hpp"
#include "calibration/timing.hpp"
#include "sim/cost/curve_cost.hpp"

namespace shardwright::calibration {
namespace {

using CurveFigure = Figure<KernelCurve>;

// The start of a fit without a known curve, with small values of the optional terms.
KernelCurve usual_curve(const AcceleratorSpec& device, OpKind kind, Phase phase) {
  KernelCurve curve;
  curve.kind = kind;
  curve.phase = phase;
  curve.overhead = microseconds(1.0);
  curve.flop_rate = FlopPerSecond(2e10);
  curve.edge_m = curve.edge_n = curve.edge_k = 0.5;
  curve.score = Seconds(2e-10);
  curve.bandwidth = is_cpu(device) ? BytesPerSecond(2e9) : device.memory_bandwidth;
  return curve;
}

CurveFigure overhead() {
  return figure_at<KernelCurve>("overhead_s", 1e-7, 1e-2,
                                [](KernelCurve& c) -> Seconds& { return c.overhead; });
}

CurveFigure flop_rate() {
  return figure_at<KernelCurve>("flop_per_s", 1e6, 1e17,
                                [](KernelCurve& c) -> FlopPerSecond& { return c.flop_rate; });
}

// The rate of a kernel, its overhead, and the figures of its kind.
Figures<KernelCurve> figures_of(OpKind kind) {
  if (is_matrix_product(kind)) {
    const auto edge = [](const char* key, double KernelCurve::*member) {
      return figure_at<KernelCurve>(key, 1e-2, 1e4,
                                    [member](KernelCurve& c) -> double& { return c.*member; });
    };
    return {flop_rate(), overhead(), edge("edge_m", &KernelCurve::edge_m),
            edge("edge_n", &KernelCurve::edge_n), edge("edge_k", &KernelCurve::edge_k)};
  }
  if (kind == OpKind::Attention) {
    return {flop_rate(), overhead(),
            figure_at<KernelCurve>("score_s", 1e-12, 1e-5,
                                   [](KernelCurve& c) -> Seconds& { return c.score; })};
  }
  return {figure_at<KernelCurve>("bandwidth_bytes_per_s", 1e5, 1e14,
                                 [](KernelCurve& c) -> BytesPerSecond& { return c.bandwidth; }),
          overhead()};
}

std::optional<std::size_t> index_of_curve(const AcceleratorSpec& device, OpKind kind, Phase phase) {
  const std::vector<KernelCurve>& curves = device.kernel_curves;
  for (std::size_t i = 0; i < curves.size(); ++i)
    if (curves[i].kind == kind && curves[i].phase == phase) return i;
  return std::nullopt;
}

std::string pointer_to(std::size_t index, const std::string& figure) {
  return fmt::format("/kernel_curves/{}/{}", index, figure);
}

// Notes figures that hold until timings determine them.
void note_guess(std::size_t index, OpKind kind, Sources& sources) {
  for (const CurveFigure& figure : figures_of(kind)) {
    sources[pointer_to(index, figure.pointer)] = {"a guess that no timing determined",
                                                  Confidence::Assumed};
  }
}

Seconds total_time(const KernelCurve& curve, const std::vector<const KernelSample*>& samples) {
  Seconds sum;
  for (const KernelSample* sample : samples) sum += sim::curve_time(curve, sample->work);
  return sum;
}

// The time by which a figure moves the prediction of such kernels, up or down, within the limits
// that the profile gives: its interval, or a factor of 30 if it has none.
Seconds reach(const KernelCurve& curve, const CurveFigure& figure, const Provenance& known, bool up,
              const std::vector<const KernelSample*>& samples) {
  constexpr double kUnknown = 30.0;
  const double value = figure.get(curve);
  const bool has_interval = known.low > 0.0 && known.high > 0.0;
  KernelCurve most = curve, least = curve;
  figure.set(most, has_interval ? known.high : value * kUnknown);
  figure.set(least, has_interval ? known.low : value / kUnknown);
  const Seconds now = total_time(curve, samples), one = total_time(most, samples),
                other = total_time(least, samples);
  return up ? std::max(one, other) - now : now - std::min(one, other);
}

// A figure of a curve by its pointer within the curve.
using KnownFigure = std::function<Provenance(const std::string& pointer)>;

// Orders the figures so that the fit changes the rate if the timings do not separate it from the
// overhead; the overhead instead, if it leaves more of the time open, and enough for the timings.
Figures<KernelCurve> ordered_figures(const KernelCurve& curve, const KnownFigure& known,
                                     const std::vector<const KernelSample*>& samples) {
  Figures<KernelCurve> figures = figures_of(curve.kind);
  Seconds measured;
  for (const KernelSample* sample : samples) measured += middle_mean(sample->times);
  const Seconds missing = measured - total_time(curve, samples);
  const bool up = missing > Seconds(0);
  const auto reach_of = [&](const CurveFigure& figure) {
    return reach(curve, figure, known(figure.pointer), up, samples);
  };
  const Seconds by_overhead = reach_of(figures[1]);
  if (by_overhead > reach_of(figures[0]) && by_overhead >= (up ? missing : Seconds(0) - missing))
    std::swap(figures[0], figures[1]);
  return figures;
}

FitResult fit_to(KernelCurve& curve, const KnownFigure& known,
                 const std::vector<const KernelSample*>& samples) {
  return fit_first_figure_first<KernelCurve>(
      curve, ordered_figures(curve, known, samples), [&](const KernelCurve& changed) {
        std::vector<double> residuals;
        for (const KernelSample* sample : samples) {
          const Seconds predicted = sim::curve_time(changed, sample->work);
          for (const Seconds time : sample->times) residuals.push_back(std::log(predicted / time));
        }
        return residuals;
      });
}

std::string describe(OpKind kind, Phase phase) {
  return fmt::format("{} {}", name_of(kind), name_of(phase));
}

// False where the curve would be a new one of which nothing is determined: what such kernels were
// priced by before is better than a guess.
bool fit_curve(AcceleratorSpec& device, OpKind kind, Phase phase,
               const std::vector<const KernelSample*>& samples, const FigureLog& log) {
  const std::optional<std::size_t> own = index_of_curve(device, kind, phase);
  const std::size_t index = own.value_or(device.kernel_curves.size());
  const KnownFigure known = [&](const std::string& pointer) {
    const auto found = device.sources.find(pointer_to(index, pointer));
    return own && found != device.sources.end() ? found->second : Provenance{};
  };
  KernelCurve curve = own ? device.kernel_curves[index] : usual_curve(device, kind, phase);
  FitResult result = fit_to(curve, known, samples);
  if (!own && !determines_any(result)) return false;
  if (!own) note_guess(index, kind, device.sources);
  if (!own) device.kernel_curves.emplace_back();
  device.kernel_curves[index] = curve;
  for (FittedParameter& each : result.parameters) each.name = pointer_to(index, each.name);
  log.add("/accelerator", describe(kind, phase), result, device.sources);
  return true;
}

// Returns the kinds that stay without a curve.
std::vector<std::string> fit_curves(AcceleratorSpec& device,
                                    const std::vector<KernelSample>& samples,
                                    const FigureLog& log) {
  std::vector<std::pair<OpKind, Phase>> kinds;
  for (const KernelSample& sample : samples) {
    const std::pair kind(sample.kind, sample.phase);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::string> without_curve;
  for (const auto& [kind, phase] : kinds) {
    std::vector<const KernelSample*> own;
    for (const KernelSample& sample : samples)
      if (sample.kind == kind && sample.phase == phase) own.push_back(&sample);
    if (!fit_curve(device, kind, phase, own, log)) without_curve.push_back(describe(kind, phase));
  }
  return without_curve;
}

// Rates that were measured in training steps have the clock of those steps, so that a factor for it
// would count it twice.
void contain_the_clock(const FitResult& fit, const std::string& rate, const std::string& clock,
                       double AcceleratorSpec::*ratio, AcceleratorSpec& device,
                       const FigureLog& log) {
  const bool is_measured = std::any_of(
      fit.parameters.begin(), fit.parameters.end(), [&rate](const FittedParameter& each) {
        return each.name.ends_with(rate) && is_determined(each.verdict);
      });
  // Zero stands for the other ratio.
  if (!is_measured || device.*ratio == 0.0) return;
  const std::string pointer = "/efficiency/" + clock;
  log.add_contained("/accelerator" + pointer, "clock of training steps", device.*ratio);
  device.*ratio = 1.0;
  device.sources[pointer] = {
      "the matrix rates of this profile were measured at the clock of training steps",
      Confidence::Measured};
}

void rates_contain_the_clock(const FitResult& fit, AcceleratorSpec& device, const FigureLog& log) {
  contain_the_clock(fit, "matrix_main_loop_ratio", "sustained_clock_ratio",
                    &AcceleratorSpec::sustained_clock_ratio, device, log);
  contain_the_clock(fit, "matrix_fp8_ratio", "sustained_fp8_clock_ratio",
                    &AcceleratorSpec::sustained_fp8_clock_ratio, device, log);
}

void fit_efficiency(AcceleratorSpec& device, const std::vector<KernelSample>& samples,
                    const StackSpec& stack, bool at_training_clock, const FigureLog& log) {
  std::vector<KernelTiming> timings;
  for (const KernelSample& sample : samples) {
    KernelTiming timing;
    timing.precision = sample.precision;
    timing.kernels.push_back({sample.kind, sample.work, Seconds(0)});
    timing.stack = stack;
    for (const Seconds time : sample.times) {
      timing.measured = time;
      timings.push_back(timing);
    }
  }
  for (const FitStage& stage : fit_own_kernels(device, timings, "")) {
    log.add("/accelerator", stage.name, stage.result, device.sources);
    if (at_training_clock && stage.name == "gemm")
      rates_contain_the_clock(stage.result, device, log);
  }
}

}  // namespace

std::vector<std::string> calibrate_kernels(ClusterSpec& cluster,
                                           const std::vector<KernelSample>& samples,
                                           const StackSpec& stack, bool at_training_clock,
                                           const FigureLog& log) {
  if (samples.empty()) return {};
  AcceleratorSpec& device = cluster.accelerator;
  const bool products_have_curves =
      is_cpu(device) || sim::curve_of(device, OpKind::Gemm, Phase::Forward) != nullptr;
  if (products_have_curves) return fit_curves(device, samples, log);
  std::vector<KernelSample> products, others;
  for (const KernelSample& sample : samples)
    (std::holds_alternative<MemoryWork>(sample.work) ? others : products).push_back(sample);
  fit_efficiency(device, products, stack, at_training_clock, log);
  return fit_curves(device, others, log);
}

}  // namespace shardwright::calibration
