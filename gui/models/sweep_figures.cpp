#include "gui/models/sweep_figures.hpp"

#include <array>
#include <cmath>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using planner::PlanCandidate;
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

}  // namespace

QString title_of(SweepAxis axis) {
  return to_qstring(kAxisTexts[static_cast<std::size_t>(axis)].title);
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
  const QString change = to_qstring(kAxisTexts[static_cast<std::size_t>(axis)].change);
  return plan == SweepPlan::Chosen ? u"The chosen plan as it is, %1."_s.arg(change)
                                   : u"The best plan of each point, %1."_s.arg(change);
}

QString title_of(SweepFigure figure) {
  return to_qstring(kFigureTitles[static_cast<std::size_t>(figure)]);
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

QString lacking_link_text(SweepAxis axis, const ClusterSpec& cluster) {
  const QString link = axis == SweepAxis::ScaleOutBandwidth
                           ? u"no NIC"_s
                           : u"no such link between its accelerators"_s;
  return u"There is nothing to sweep: %1 has %2."_s.arg(to_qstring(cluster.name), link);
}

}  // namespace shardwright::gui
