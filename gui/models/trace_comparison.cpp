#include "gui/models/trace_comparison.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "calibration/trace_samples.hpp"
#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_timeline.hpp"
#include "core/spec/pools.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using calibration::MatchedOp;
using calibration::ProgramMatch;
using calibration::TraceReport;

// A plan of which fewer matrix products are found in the trace, by their predicted time, is
// another.
constexpr double kLeastFound = 0.5;
constexpr std::size_t kLongestAbout = 26;

// The share of the plan's matrix products that the trace has, by their predicted time.
double share_found(const ProgramMatch& match) {
  Seconds planned, found;
  for (const MatchedOp& op : match.ops) {
    if (!is_matrix_product(op.kind)) continue;
    planned += op.planned;
    found += op.predicted;
  }
  return planned > Seconds() ? found / planned : 0.0;
}

QString obstacle_of(const TraceReport& report, const ProgramMatch& match,
                    const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (report.world_size && *report.world_size != plan.world_size()) {
    return u"The chosen plan is for %1, the trace is of a run on %2. Choose the plan that was "
           u"traced "
           "in Plans, or open its file."_s.arg(
               counted_text(plan.world_size(), accelerator_word(scenario.cluster)),
               count_text(*report.world_size));
  }
  const double found = share_found(match);
  if (found >= kLeastFound) return {};
  return u"The trace has %1 of the chosen plan's matrix products, by their time: it is the trace "
         u"of "
         "another model or plan. Choose the one that was traced in Plans, or open its "
         "file."_s.arg(percent_text(found));
}

// The time at which the first compared step begins in the timeline of a trace.
Seconds first_step_of(const TracedRun& run) {
  const auto steps = calibration::device_steps(*run.trace);
  return calibration::from_ns(steps.front().begin - run.trace->activities.front().start);
}

// The predicted step of a stage, moved to where the trace's step begins.
std::shared_ptr<const Timeline> beside(const TracedRun& run, const Timeline& predicted,
                                       std::int64_t stage) {
  auto shown = std::make_shared<Timeline>();
  const TimelineRank& rank = predicted.ranks[static_cast<std::size_t>(stage)];
  shown->origin = TimelineOrigin::Predicted;
  shown->ranks = {{rank.rank, run.timeline->ranks.front().label}};
  const Seconds begin = first_step_of(run);
  for (const Span& span : predicted.spans) {
    if (span.rank != rank.rank) continue;
    shown->spans.push_back(span);
    shown->spans.back().start += begin;
  }
  return shown;
}

void set_step(const TracedRun& run, TraceComparison& comparison) {
  const auto step = calibration::device_steps(*run.trace).front();
  comparison.step_begin = first_step_of(run);
  comparison.step_end = comparison.step_begin + calibration::from_ns(step.end - step.begin);
  for (const Span& span : comparison.predicted->spans)
    comparison.step_end = std::max(comparison.step_end, span.end());
}

std::shared_ptr<const Timeline> later(const std::shared_ptr<const Timeline>& timeline,
                                      Seconds delay) {
  if (!(delay > Seconds())) return timeline;
  auto moved = std::make_shared<Timeline>(*timeline);
  for (Span& span : moved->spans) span.start += delay;
  return moved;
}

const char* cause_text(calibration::DifferenceCause cause) {
  constexpr EnumArray<calibration::DifferenceCause, const char*> kTexts{
      {"slower kernel", "faster kernel", "other number format", "the plan fuses more",
       "the trace fuses more", "exposed communication", "hidden communication",
       "waiting for the host", "waiting for a stream or stage", "not in the plan",
       "not in the trace"}};
  return kTexts[cause];
}

const char* change_text(calibration::DifferenceCause cause) {
  constexpr EnumArray<calibration::DifferenceCause, const char*> kTexts{
      {"slower", "faster", "other number format", "more kernels", "fewer kernels",
       "less of it hidden", "more of it hidden", "waiting for the host",
       "waiting for a stream or stage", "not in the first", "not in the second"}};
  return kTexts[cause];
}

QString signed_time_text(Seconds time) {
  if (is_no_time(time) || is_no_time(-time)) return u"0 s"_s;
  return time < Seconds() ? u"−"_s + time_text(-time) : u"+"_s + time_text(time);
}

QStringList compared(const QString& name, Seconds predicted, Seconds measured) {
  return {name, time_text(predicted), time_text(measured), signed_time_text(measured - predicted)};
}

// The headers of what is compared.
using ComparedNames = std::array<QStringView, 2>;
constexpr ComparedNames kPredictedAndMeasured = {u"predicted", u"measured"};
constexpr ComparedNames kFirstAndSecond = {u"first", u"second"};

TextTable compared_table(const QString& title, const ComparedNames& names) {
  return {{title, names[0].toString(), names[1].toString(), u"difference"_s}, {}};
}

TextTable step_rows(const ComparedNames& names, const calibration::TracedStepTimes& first,
                    const calibration::TracedStepTimes& second) {
  TextTable table = compared_table(u"In a step"_s, names);
  table.rows = {compared(u"step"_s, first.step, second.step),
                compared(u"exposed communication"_s, first.exposed, second.exposed),
                compared(u"waiting for the host"_s, first.host_gaps, second.host_gaps),
                compared(u"other gaps"_s, first.other_gaps, second.other_gaps)};
  return table;
}

// What differs and, in a second line, why: "aten::mm" and "32768×768, 768×3072: slower" of
// "aten::mm [[32768, 768], [768, 3072], [32768, 3072]]", whose first two shapes are those that are
// multiplied.
QString about_text(const std::string& about, const char* cause) {
  const std::size_t lists = about.find(" [[");
  if (lists == std::string::npos)
    return to_qstring(short_kernel_name(about, kLongestAbout)) + u'\n' + to_qstring(cause);
  QStringList shapes;
  for (QString shape : to_qstring(about.substr(lists + 3)).split(u"["_s)) {
    shape = shape.section(u']', 0, 0).remove(u' ');
    if (!shape.isEmpty() && shapes.size() < 2) shapes.append(shape.replace(u',', u'×'));
  }
  return u"%1\n%2: %3"_s.arg(to_qstring(about.substr(0, lists)), shapes.join(u", "_s),
                             to_qstring(cause));
}

TextTable difference_rows(const ComparedNames& names,
                          const std::vector<calibration::StepDifference>& differences,
                          const char* (*text_of)(calibration::DifferenceCause)) {
  TextTable table = compared_table(u"Largest differences"_s, names);
  for (const calibration::StepDifference& each : differences) {
    table.rows.push_back(
        compared(about_text(each.about, text_of(each.cause)), each.predicted, each.measured));
  }
  return table;
}

}  // namespace

TracedRun read_trace(const QString& path, const ReadingWatch& watch) {
  calibration::Recording recording = calibration::read_recording(path.toStdString(), watch);
  auto* trace = std::get_if<calibration::Trace>(&recording);
  if (trace == nullptr) {
    throw InputError(path.toStdString(),
                     {{"", "no trace of a device",
                       "a trace of PyTorch's profiler or of Nsight Systems; “shardwright import” "
                       "explains logs and records of jobs"}});
  }
  if (trace->activities.empty()) {
    throw InputError(path.toStdString(), {{"", "a trace in which nothing runs on a device",
                                           "one that was recorded with the activities of GPUs"}});
  }
  TracedRun run;
  std::future<TraceReport> report =
      std::async(std::launch::async, [trace] { return calibration::report_of(*trace); });
  run.timeline = std::make_shared<const Timeline>(calibration::timeline_of(*trace));
  run.report = report.get();
  run.trace = std::make_shared<const calibration::Trace>(std::move(*trace));
  return run;
}

TraceComparison compare_with_plan(const TracedRun& run, const Scenario& scenario,
                                  const std::stop_token& stop) {
  TraceComparison comparison{scenario, std::nullopt, nullptr, {}, {}, {}, false};
  if (names_pools(scenario.plan)) {
    comparison.obstacle =
        u"The chosen plan lies on several pools, and a trace is compared with plans on one pool "
        "alone. Choose one of these in Plans, or open its file."_s;
    return comparison;
  }
  const Scenario at_clock = calibration::at_clock_of({run.trace.get(), 1}, scenario);
  comparison.at_higher_clock = at_clock.cluster.accelerator.sustained_clock_ratio >
                               scenario.cluster.accelerator.sustained_clock_ratio;
  const std::optional<sim::TracedStep> step = sim::trace_step(at_clock, stop);
  if (!step) return comparison;
  const std::int64_t stage = calibration::stage_of(*run.trace, scenario.plan);
  comparison.match = calibration::match_program(*run.trace, calibration::planned_step(*step, stage),
                                                &scenario.cluster.accelerator);
  if (!comparison.match) return comparison;
  comparison.obstacle = obstacle_of(run.report, *comparison.match, scenario);
  if (comparison.obstacle.isEmpty()) {
    comparison.predicted = beside(run, step->timeline, stage);
    set_step(run, comparison);
  }
  return comparison;
}

TracePair compare_traces(const TracedRun& first, const TracedRun& second) {
  // Traces in which nothing runs on a device are not opened.
  const Seconds lead = first_step_of(first) - first_step_of(second);
  return {*calibration::change_between(*first.trace, *second.trace), later(first.timeline, -lead),
          later(second.timeline, lead)};
}

QString trace_title(const TraceReport& report) {
  QStringList parts;
  if (report.rank) {
    parts.append(report.world_size ? u"rank %1 of %2"_s.arg(*report.rank).arg(*report.world_size)
                                   : u"rank %1"_s.arg(*report.rank));
  }
  if (report.devices > 1) parts.append(counted_text(report.devices, "GPU"));
  if (!report.gpu.empty()) parts.append(to_qstring(report.gpu));
  return parts.isEmpty() ? u"a trace of one GPU"_s : parts.join(u", "_s);
}

QString trace_summary(const TraceReport& report) {
  QString text = counted_text(report.kernels, "kernel");
  if (report.step) {
    text += report.timed_steps > 1
                ? u"; a step takes %1, the mean of %2"_s.arg(
                      time_text(*report.step), counted_text(report.timed_steps, "step"))
                : u"; its one whole step takes %1"_s.arg(time_text(*report.step));
  } else {
    text += u"; it marks no steps"_s;
  }
  if (report.unusable_events > 0)
    text +=
        u"; %1 without a usable time left out"_s.arg(counted_text(report.unusable_events, "event"));
  return text;
}

TextTable category_table(const std::vector<TraceReport>& reports) {
  QStringList devices;
  bool is_sum = false;
  for (const TraceReport& report : reports) {
    devices.append(count_text(report.devices));
    is_sum = is_sum || report.devices > 1;
  }
  devices.removeDuplicates();
  const QString title =
      is_sum ? u"Time, sum over %1 GPUs"_s.arg(devices.join(u" and "_s)) : u"Time on the GPU"_s;
  const bool compares = reports.size() > 1;
  TextTable table = compares ? compared_table(title, kFirstAndSecond)
                             : TextTable{{title, u"time"_s, u"share\nof kernels"_s}, {}};
  std::vector<Seconds> totals;
  for (const TraceReport& report : reports) {
    Seconds& total = totals.emplace_back();
    for (const Seconds each : report.by_category) total += each;
  }
  // Nothing stands for less than a billionth.
  const auto add = [&](const QString& name, const auto& time_of, const auto& whole_of) {
    bool any = false;
    for (std::size_t i = 0; i < reports.size(); ++i)
      any = any || time_of(reports[i]) > whole_of(i) * 1e-9;
    if (!any) return;
    const Seconds time = time_of(reports.front()), whole = whole_of(0);
    table.rows.push_back(
        compares ? compared(name, time, time_of(reports.back()))
                 : QStringList{name, time_text(time),
                               whole > Seconds() ? percent_text(time / whole) : QString()});
  };
  auto order = enumerators<KernelCategory>();
  std::stable_sort(order.begin(), order.end(), [&](KernelCategory a, KernelCategory b) {
    return reports.front().by_category[a] > reports.front().by_category[b];
  });
  for (const KernelCategory category : order) {
    add(
        to_qstring(title_of(category)),
        [category](const TraceReport& report) { return report.by_category[category]; },
        [&](std::size_t i) { return totals[i]; });
  }
  add(
      u"of these in the optimizer's step"_s,
      [](const TraceReport& report) { return report.optimizer; },
      [&](std::size_t i) { return totals[i]; });
  const auto of_window = [&](std::size_t i) { return reports[i].times.window; };
  const auto time = [](Seconds calibration::BusyTimes::*member) {
    return [member](const TraceReport& report) { return report.times.*member; };
  };
  add(u"from the first kernel to the last"_s, time(&calibration::BusyTimes::window), of_window);
  // The shares below are of this time, in which kernels leave gaps and overlap.
  if (!compares) table.rows.back().back() = u"share of this"_s;
  add(u"something runs"_s, time(&calibration::BusyTimes::busy), of_window);
  add(u"exposed communication"_s, time(&calibration::BusyTimes::exposed_collective), of_window);
  add(u"idle, waiting for the host"_s, time(&calibration::BusyTimes::host_bound_gaps), of_window);
  return table;
}

TextTable step_table(const ProgramMatch& match) {
  return step_rows(kPredictedAndMeasured,
                   {.step = match.predicted_step,
                    .exposed = match.predicted_exposed,
                    .host_gaps = match.predicted_host_gaps,
                    .other_gaps = match.predicted_other_gaps},
                   {.step = match.measured_step,
                    .exposed = match.measured_exposed,
                    .host_gaps = match.measured_host_gaps,
                    .other_gaps = match.measured_other_gaps});
}

TextTable difference_table(const ProgramMatch& match) {
  return difference_rows(kPredictedAndMeasured, match.differences, cause_text);
}

TextTable step_table(const calibration::TraceChange& change) {
  return step_rows(kFirstAndSecond, change.first, change.second);
}

TextTable difference_table(const calibration::TraceChange& change) {
  return difference_rows(kFirstAndSecond, change.differences, change_text);
}

}  // namespace shardwright::gui
