#include "gui/models/sweep_figures.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using planner::PlanCandidate;
using planner::SweepAxis;
using planner::SweepPlan;
using planner::SweepPoint;

struct AxisText {
  const char* title;
  // What changes from point to point.
  const char* change;
};
constexpr EnumArray<SweepAxis, AxisText> kAxisTexts{{{
    {"GPUs", "number of GPUs"},
    {"Global batch (sequences)", "global batch"},
    {"Sequence length (tokens)", "sequence length; the batch keeps its number of tokens"},
    {"Inter-node bandwidth (GB/s per NIC)", "bandwidth of the NICs"},
    {"Scale-up bandwidth (GB/s per GPU)", "bandwidth of the scale-up links"},
    {"Memory bandwidth (GB/s)", "bandwidth of the memory"},
}}};

// The prediction interval of a figure follows from that of the step time, unless it has none.
enum class Interval : std::uint8_t { None, OfTime, OfRate };

using SweptPlan = const PlanCandidate&;

double percent_of_step(SweptPlan plan, Seconds part) {
  return 100.0 * (part / plan.result.step);
}

struct FigureTraits {
  const char* title;
  Interval interval;
  double (*value)(SweptPlan);
};

constexpr EnumArray<SweepFigure, FigureTraits> kFigures{{{
    {"Tokens/s", Interval::OfRate,
     [](SweptPlan plan) { return plan.tokens() / plan.result.step.value(); }},
    {"Tokens/s per GPU", Interval::OfRate,
     [](SweptPlan plan) { return plan.result.throughput.tokens_per_s_per_gpu; }},
    {"Step (s)", Interval::OfTime, [](SweptPlan plan) { return plan.result.step.value(); }},
    {"MFU (%)", Interval::OfRate,
     [](SweptPlan plan) { return 100.0 * plan.result.throughput.mfu; }},
    {"Memory (GB)", Interval::None,
     [](SweptPlan plan) { return plan.result.memory().peak / gigabytes(1.0); }},
    {"Cost ($ per Mtoken)", Interval::OfTime,
     [](SweptPlan plan) { return 1e6 * plan.dollars_per_token(); }},
    {"Energy (kJ per ktoken)", Interval::OfTime,
     [](SweptPlan plan) { return plan.joules_per_step.value() / plan.tokens(); }},
    {"HFU (%)", Interval::OfRate,
     [](SweptPlan plan) { return 100.0 * plan.result.throughput.hfu; }},
    {"Exposed communication (% of step)", Interval::None,
     [](SweptPlan plan) { return percent_of_step(plan, plan.result.time().exposed_total()); }},
    {"Bubble (% of step)", Interval::None,
     [](SweptPlan plan) { return percent_of_step(plan, plan.result.time().bubble); }},
    {"Waiting for the host (% of step)", Interval::None,
     [](SweptPlan plan) { return percent_of_step(plan, plan.result.time().host); }},
}}};

const FigureTraits& traits_of(SweepFigure figure) {
  return kFigures[figure];
}

}  // namespace

QString title_of(SweepAxis axis, const char* accelerator) {
  return with_accelerator(to_qstring(kAxisTexts[axis].title), accelerator);
}

double axis_value(SweepAxis axis, double value) {
  return planner::is_bandwidth(axis) ? BytesPerSecond(value) / gigabytes_per_second(1.0) : value;
}

QString axis_text(SweepAxis axis, double value) {
  const double x = axis_value(axis, value);
  if (x >= 100'000.0) return short_text(x);
  const int decimals = x == std::floor(x) ? 0 : x * 10.0 == std::floor(x * 10.0) ? 1 : 2;
  return fixed_text(x, decimals);
}

SweepRange widest_range(SweepAxis axis) {
  if (planner::is_bandwidth(axis)) return {0.1, 1e6, static_cast<int>(kSweepPoints.most)};
  const Range limits = axis == SweepAxis::Gpus          ? kGpusRange
                       : axis == SweepAxis::GlobalBatch ? Range{1, kGlobalBatchRange.most}
                                                        : kSeqLenRange;
  return {static_cast<double>(limits.least), static_cast<double>(limits.most),
          static_cast<int>(kSweepPoints.most)};
}

QStringList texts_of(const SweepRange& range) {
  return {QString::number(range.from, 'g', 17), QString::number(range.to, 'g', 17),
          QString::number(range.points)};
}

std::optional<SweepRange> read_range(SweepAxis axis, const QStringList& ends_and_points) {
  if (ends_and_points.size() != 3) return std::nullopt;
  const SweepRange range = {ends_and_points[0].toDouble(), ends_and_points[1].toDouble(),
                            ends_and_points[2].toInt()};
  const SweepRange widest = widest_range(axis);
  const bool is_possible = range.from >= widest.from && range.to <= widest.to &&
                           range.from <= range.to && range.points >= kSweepPoints.least &&
                           range.points <= kSweepPoints.most;
  return is_possible ? std::optional(range) : std::nullopt;
}

std::vector<double> swept_values(SweepAxis axis, const SweepRange& range, std::int64_t gpus_of_node,
                                 std::int64_t batch_unit) {
  const auto in_multiples = [](double value, std::int64_t unit) {
    const auto size = static_cast<double>(unit);
    return std::max(1.0, std::round(value / size)) * size;
  };
  const auto possible = [&](double value) {
    if (planner::is_bandwidth(axis)) return gigabytes_per_second(value).value();
    if (axis == SweepAxis::GlobalBatch) return in_multiples(value, batch_unit);
    if (axis == SweepAxis::SeqLen) return in_multiples(value, 128);
    return value < static_cast<double>(gpus_of_node) ? std::exp2(std::round(std::log2(value)))
                                                     : in_multiples(value, gpus_of_node);
  };
  std::set<double> values;
  for (int i = 0; i < range.points; ++i)
    values.insert(possible(range.from * std::pow(range.to / range.from, i / (range.points - 1.0))));
  return {values.begin(), values.end()};
}

QString tip_of(SweepAxis axis, SweepPlan plan, const char* accelerator) {
  const QString change = with_accelerator(to_qstring(kAxisTexts[axis].change), accelerator);
  return plan == SweepPlan::Chosen ? u"Each point is the chosen plan with another %1."_s.arg(change)
                                   : u"Each point is the best plan for its %1."_s.arg(change);
}

QString preliminary_text(const planner::Sweep& sweep, bool stopped) {
  const auto searched = std::count_if(sweep.points.begin(), sweep.points.end(),
                                      [](const SweepPoint& point) { return !point.preliminary; });
  const QString points =
      u"%1 of %2 points are the best of the whole space; hollow ones are "
      "preliminary, the best of the usual schedules and shardings"_s.arg(searched)
          .arg(sweep.points.size());
  return stopped ? u"Stopped: %1. No knee."_s.arg(points)
                 : u"%1, until it is searched. The knee comes last."_s.arg(points);
}

QString title_of(SweepFigure figure, const char* accelerator) {
  return with_accelerator(to_qstring(traits_of(figure).title), accelerator);
}

bool has_interval(SweepFigure figure) {
  return traits_of(figure).interval != Interval::None;
}

bool knee_is_of(SweepAxis axis, SweepFigure figure) {
  // The longest sequence that fits is a matter of memory, whatever is drawn.
  return axis == SweepAxis::SeqLen || has_interval(figure);
}

SweepValue value_of(SweepFigure figure, const PlanCandidate& candidate,
                    std::optional<validation::PredictionClass> of) {
  const FigureTraits& traits = traits_of(figure);
  const double value = traits.value(candidate);
  if (!of || traits.interval == Interval::None) return {value, value, value};
  const auto [low, high] =
      validation::prediction_interval(value, traits.interval == Interval::OfRate, *of);
  return {value, low, high};
}

SweepValue value_of(SweepFigure figure, const SweepPoint& point, const Scenario& swept) {
  Scenario scenario = swept;
  scenario.plan = point.candidate->plan;
  return value_of(figure, *point.candidate, validation::class_of(scenario));
}

}  // namespace shardwright::gui
