#include "cli/output/run_validation_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "cli/output/calibration_report.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

using validation::RunRow;

std::string hours_text(double hours) {
  return format_parameters(static_cast<std::int64_t>(std::llround(hours)));
}

std::string signed_text(const std::optional<double>& ratio) {
  return ratio ? format_signed_percent(*ratio) : "";
}

// Runs whose plan is known come first.
void add_hours(Page& page, const validation::RunReport& report) {
  for (const bool known : {true, false}) {
    Table table({{known ? "run, plan known" : "run, plan inferred"},
                 {"GPUs", kNumber},
                 {"tokens", kNumber},
                 {"published", kNumber, "GPU-hours"},
                 {"predicted", kNumber, "GPU-hours"},
                 {"error", kNumber, "%"},
                 {"of steps", kNumber, "%"},
                 {"of the rest", kNumber, "%"},
                 {"MFU", kNumber, "%"},
                 {"goodput", kNumber, "%"}});
    bool any = false;
    for (const RunRow& row : report.rows) {
      if (!row.skipped.empty() || row.plan_known != known) continue;
      any = true;
      const bool steps_only = row.counted == validation::CountedHours::Steps;
      table.add_row({row.id, format_count(row.gpus), hours_text(row.tokens),
                     hours_text(row.measured_gpu_hours), hours_text(row.predicted_gpu_hours),
                     format_signed_percent(row.error()), signed_text(row.step_error),
                     steps_only ? "" : signed_text(row.run_error), format_percent(row.step_mfu),
                     steps_only ? "not counted" : format_percent(row.goodput)});
    }
    if (any) page.table(table);
  }
}

void add_interruptions(Page& page, const validation::RunReport& report) {
  Table table({{"interruptions of"},
               {"days", kNumber},
               {"published", kNumber},
               {"predicted", kNumber},
               {"80 % of runs"},
               {"inside"}});
  bool any = false;
  for (const RunRow& row : report.rows) {
    for (const validation::ComparedInterruptions& stops : row.interruptions) {
      any = true;
      table.add_row({row.id + (stops.unexpected ? ", unexpected" : ""), format_number(stops.days),
                     format_number(stops.measured), format_number(stops.predicted.p50),
                     fmt::format("{} to {}", format_number(stops.predicted.p10),
                                 format_number(stops.predicted.p90)),
                     stops.inside() ? "yes" : "no"});
    }
  }
  if (any) page.table(table);
}

void add_goodputs(Page& page, const validation::RunReport& report) {
  Table table({{"goodput of"}, {"published", kNumber, "%"}, {"predicted", kNumber, "%"}});
  bool any = false;
  for (const RunRow& row : report.rows) {
    if (!row.skipped.empty() || row.published_goodput <= 0.0) continue;
    any = true;
    table.add_row({row.id, format_percent(row.published_goodput), format_percent(row.goodput)});
  }
  if (any) page.table(table);
}

void add_intervals(Page& page, const validation::RunReport& report) {
  Table table({{"checkpoints of"},
               {"published", kNumber},
               {"best", kNumber},
               {"Young", kNumber},
               {"Daly", kNumber},
               {"longer run", kNumber, "%"}});
  bool any = false;
  for (const RunRow& row : report.rows) {
    if (!row.interval) continue;
    any = true;
    const validation::ComparedInterval& interval = *row.interval;
    table.add_row({row.id, format_time(interval.published), format_time(interval.best),
                   format_time(interval.young), format_time(interval.daly),
                   format_percent(interval.extra, 2)});
  }
  if (!any) return;
  page.table(table);
  page.paragraph(
      "\"longer run\" is what the published interval adds to the run with the best one.");
}

void add_disagreements(Page& page, const validation::RunReport& report) {
  std::vector<std::string> lines;
  for (const RunRow& row : report.rows) {
    for (const validation::OtherFigure& other : row.others) {
      std::string line = fmt::format("{}: {} GPU-hours", row.id, hours_text(other.gpu_hours));
      if (row.measured_gpu_hours > 0.0) {
        line += fmt::format(" ({} % of those above)",
                            format_percent(other.gpu_hours / row.measured_gpu_hours));
      }
      lines.push_back(fmt::format("{}, {}", line, other.where));
    }
  }
  if (lines.empty()) return;
  page.heading("Published tables that disagree");
  page.bullets(lines);
}

void add_skipped(Page& page, const validation::RunReport& report) {
  if (report.skipped == 0) return;
  Table table({{"skipped"}, {"because", ColumnKind::Prose}});
  for (const RunRow& row : report.rows)
    if (!row.skipped.empty()) table.add_row({row.id, row.skipped});
  page.table(table);
}

}  // namespace

void add_run_report(Page& page, const validation::RunReport& report) {
  add_hours(page, report);
  Table overall = error_table("absolute error of GPU-hours");
  add_errors(overall, "plan known", report.known);
  add_errors(overall, "of them whole runs, not steps alone", report.whole);
  add_errors(overall, "plan inferred", report.inferred);
  add_errors(overall, "all", report.all);
  add_errors(overall, "steps, where published", report.steps);
  add_errors(overall, "all but steps, where published", report.overheads);
  page.table(overall);
  if (report.all.n > 0) {
    page.paragraph(
        fmt::format("{} % of the published GPU-hours lie in the 80 % interval of their prediction.",
                    format_percent(report.all.coverage)));
  }
  add_interruptions(page, report);
  add_goodputs(page, report);
  add_intervals(page, report);
  add_disagreements(page, report);
  add_skipped(page, report);
}

}  // namespace shardwright::cli
