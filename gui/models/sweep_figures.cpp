#include "gui/models/sweep_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using planner::PlanCandidate;
using planner::Sweep;
using planner::SweepAxis;
using planner::SweepPlan;
using planner::SweepPoint;

struct AxisText {
  const char* title;
  const char* change;
};
constexpr std::array<AxisText, planner::kSweepAxes> kAxisTexts = {{
    {"GPUs", "on other numbers of GPUs"},
    {"Global batch (sequences)", "with other global batches"},
    {"Sequence length (tokens)",
     "with other sequence lengths; the batch keeps its number of tokens"},
    {"Inter-node bandwidth (GB/s per NIC)", "with faster and slower NICs"},
    {"Scale-up bandwidth (GB/s per GPU)", "with faster and slower scale-up links"},
    {"Memory bandwidth (GB/s)", "with faster and slower memory"},
}};

constexpr std::array<const char*, kSweepFigures> kFigureTitles = {
    "Tokens/s",
    "Tokens/s per GPU",
    "Step (s)",
    "MFU (%)",
    "Memory (GB)",
    "Cost ($ per Mtoken)",
    "Energy (kJ per ktoken)",
    "HFU (%)",
    "Exposed communication (% of step)",
    "Bubble (% of step)",
    "Waiting for the host (% of step)"};

QString share_text(const PlanCandidate& candidate, Seconds part) {
  return percent_text(part / candidate.result.step);
}

// "95 %", of a constant.
QString whole_percent_text(double ratio) {
  return fixed_text(100.0 * ratio, 0) + QStringLiteral(" %");
}

QString no_knee_text(const Sweep& sweep) {
  const bool any_fits = std::any_of(sweep.points.begin(), sweep.points.end(),
                                    [](const SweepPoint& point) { return point.fits; });
  switch (sweep.axis) {
    case SweepAxis::Gpus:
      return QStringLiteral("Tokens/s of the whole cluster grow up to the largest number of GPUs.");
    case SweepAxis::GlobalBatch:
      return QStringLiteral("No batch fits.");
    case SweepAxis::SeqLen:
      return any_fits ? QStringLiteral("Every sequence length fits.")
                      : QStringLiteral("No sequence length fits.");
    default:
      return QStringLiteral("No knee: each doubling still brings more than %1 of tokens/s.")
          .arg(whole_percent_text(planner::kLeastGainOfDoubling));
  }
}

}  // namespace

QString title_of(SweepAxis axis) {
  return QString::fromUtf8(kAxisTexts[static_cast<std::size_t>(axis)].title);
}

double axis_value(SweepAxis axis, double value) {
  return planner::is_bandwidth(axis) ? value / 1e9 : value;
}

QString axis_text(SweepAxis axis, double value) {
  const double x = axis_value(axis, value);
  if (x >= 100'000.0) return short_text(x);
  const int decimals = x == std::floor(x) ? 0 : x * 10.0 == std::floor(x * 10.0) ? 1 : 2;
  return fixed_text(x, decimals);
}

QString tip_of(SweepAxis axis, SweepPlan plan) {
  const QString change = QString::fromUtf8(kAxisTexts[static_cast<std::size_t>(axis)].change);
  return plan == SweepPlan::Chosen ? QStringLiteral("The chosen plan as it is, %1.").arg(change)
                                   : QStringLiteral("The best plan of each point, %1.").arg(change);
}

QString title_of(SweepFigure figure) {
  return QString::fromUtf8(kFigureTitles[static_cast<std::size_t>(figure)]);
}

bool has_interval(SweepFigure figure) {
  switch (figure) {
    case SweepFigure::Memory:
    case SweepFigure::Exposed:
    case SweepFigure::Bubble:
    case SweepFigure::Host:
      return false;
    default:
      return true;
  }
}

bool knee_is_of(SweepAxis axis, SweepFigure figure) {
  // The longest sequence that fits is a matter of memory, whatever is drawn.
  return axis == SweepAxis::SeqLen || has_interval(figure);
}

SweepValue value_of(SweepFigure figure, const PlanCandidate& candidate,
                    std::optional<validation::PredictionGround> ground) {
  const sim::StepResult& result = candidate.result;
  const auto with_interval = [&ground](double value, bool is_rate) {
    if (!ground) return SweepValue{value, value, value};
    const auto [low, high] = validation::prediction_interval(value, is_rate, *ground);
    return SweepValue{value, low, high};
  };
  const auto share_of_step = [&](Seconds part) {
    const double share = 100.0 * (part / result.step);
    return SweepValue{share, share, share};
  };
  switch (figure) {
    case SweepFigure::TokensPerSecond:
      return with_interval(candidate.tokens() / result.step.value(), true);
    case SweepFigure::TokensPerSecondPerGpu:
      return with_interval(result.throughput.tokens_per_s_per_gpu, true);
    case SweepFigure::Step:
      return with_interval(result.step.value(), false);
    case SweepFigure::Mfu:
      return with_interval(100.0 * result.throughput.mfu, true);
    case SweepFigure::Memory: {
      const double memory = result.memory().peak.value() / 1e9;
      return {memory, memory, memory};
    }
    case SweepFigure::CostPerMegatoken:
      return with_interval(1e6 * candidate.dollars_per_token(), false);
    case SweepFigure::EnergyPerKilotoken:
      return with_interval(candidate.joules_per_step.value() / candidate.tokens(), false);
    case SweepFigure::Hfu:
      return with_interval(100.0 * result.throughput.hfu, true);
    case SweepFigure::Exposed:
      return share_of_step(result.time().exposed_total());
    case SweepFigure::Bubble:
      return share_of_step(result.time().bubble);
    case SweepFigure::Host:
      return share_of_step(result.time().host);
  }
  return {};
}

QString obstacle_text(const SweepPoint& point, Bytes memory) {
  if (point.broken_rule) return problem_text(*point.broken_rule);
  if (!point.candidate) return QStringLiteral("no plan fits");
  return QStringLiteral("the plan needs %1 of %2")
      .arg(bytes_text(point.candidate->result.memory().peak), bytes_text(memory));
}

QString lacking_link_text(SweepAxis axis, const ClusterSpec& cluster) {
  const QString link = axis == SweepAxis::ScaleOutBandwidth
                           ? QStringLiteral("no NIC")
                           : QStringLiteral("no such link between its accelerators");
  return QStringLiteral("There is nothing to sweep: %1 has %2.")
      .arg(to_qstring(cluster.name), link);
}

QString knee_text(const Sweep& sweep, Bytes memory) {
  if (!sweep.knee) return no_knee_text(sweep);
  const SweepPoint& point = sweep.points[*sweep.knee];
  const QString at = axis_text(sweep.axis, point.value);
  if (sweep.axis == SweepAxis::Gpus) {
    return QStringLiteral("Knee of the whole cluster's tokens/s at %1 GPUs: %2.")
        .arg(at, to_qstring(sweep.scaling_limit));
  }
  if (sweep.axis == SweepAxis::SeqLen) {
    return QStringLiteral("%1 tokens is the longest sequence that fits; at %2, %3.")
        .arg(at, axis_text(sweep.axis, sweep.points[*sweep.knee + 1].value),
             obstacle_text(sweep.points[*sweep.knee + 1], memory));
  }
  const sim::TimeBreakdown& time = point.candidate->result.time();
  const QString exposed = share_text(*point.candidate, time.exposed_total());
  if (sweep.axis == SweepAxis::GlobalBatch) {
    return QStringLiteral(
               "Knee of tokens/s at %1 sequences, the smallest batch with %2 of the best "
               "throughput; there the bubble takes %3 and exposed communication %4 of the step.")
        .arg(at, whole_percent_text(planner::kSweepKneeThroughput),
             share_text(*point.candidate, time.bubble), exposed);
  }
  return QStringLiteral(
             "Knee of tokens/s at %1 GB/s: twice as much brings less than %2; exposed "
             "communication takes %3 of the step there, kernels %4.")
      .arg(at, whole_percent_text(planner::kLeastGainOfDoubling), exposed,
           share_text(*point.candidate, time.compute()));
}

}  // namespace shardwright::gui
