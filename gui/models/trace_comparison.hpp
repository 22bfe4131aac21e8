// A trace of another program's run beside the step that a plan predicts.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "calibration/traces/program_match.hpp"
#include "calibration/traces/trace.hpp"
#include "calibration/traces/trace_change.hpp"
#include "calibration/traces/trace_report.hpp"
#include "core/base/large_json_file.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/table_text.hpp"

namespace shardwright::gui {

struct TracedRun {
  std::shared_ptr<const calibration::Trace> trace;
  std::shared_ptr<const Timeline> timeline;
  calibration::TraceReport report;
};

// Throws InputError where the file is no trace, and ReadingStopped if `watch` asks for it.
TracedRun read_trace(const QString& path, const ReadingWatch& watch = {});

struct TraceComparison {
  Scenario scenario;
  // None if nothing ran on a device.
  std::optional<calibration::ProgramMatch> match;
  // The predicted step of the trace's stage, which begins where that of the trace does; null if the
  // plan is not the one that was traced.
  std::shared_ptr<const Timeline> predicted;
  // Where both steps begin in the trace's timeline, and where the longer one ends; nothing without
  // `predicted`.
  Seconds step_begin{}, step_end{};
  // Why the plan is not the one that was traced; empty if it may be.
  QString obstacle;
  // True if the device kept a higher clock than plans are predicted at, because kernels do not fill
  // the traced steps.
  bool at_higher_clock = false;
};

// Two traces beside each other.
struct TracePair {
  calibration::TraceChange change;
  // Their timelines, moved so that the first compared steps begin together.
  std::shared_ptr<const Timeline> first, second;
};

TracePair compare_traces(const TracedRun& first, const TracedRun& second);

// Returns a comparison without a match once `stop` is requested.
TraceComparison compare_with_plan(const TracedRun& run, const Scenario& scenario,
                                  const std::stop_token& stop);

// "rank 3 of 8, NVIDIA H100 80GB HBM3".
QString trace_title(const calibration::TraceReport& report);
// The time of a step, and the number of kernels.
QString trace_summary(const calibration::TraceReport& report);

// The time of a trace by category, and how busy its devices were, with shares; of two, with their
// differences.
TextTable category_table(const std::vector<calibration::TraceReport>& reports);
// The step, its exposed communication and its gaps: predicted, measured, difference.
TextTable step_table(const calibration::ProgramMatch& match);
// The largest differences, each with its cause in a second line.
TextTable difference_table(const calibration::ProgramMatch& match);

// The same of two traces.
TextTable step_table(const calibration::TraceChange& change);
TextTable difference_table(const calibration::TraceChange& change);

}  // namespace shardwright::gui
