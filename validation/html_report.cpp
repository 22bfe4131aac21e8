#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "validation/report_charts.hpp"
#include "validation/validation.hpp"

namespace shardwright::validation {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #8884; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { background: #fff; max-width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: #333; }
svg .grid { stroke: #ddd; }
svg .diagonal { stroke: #555; stroke-dasharray: 4 3; }
.note { opacity: .75; font-size: 12px; }
)";

std::string summary_line(const std::string& name, const calibration::ErrorSummary& summary,
                         bool has_interval = true) {
  if (summary.n == 0) return fmt::format("<tr><td>{}</td><td>none</td></tr>\n", html_escaped(name));
  return fmt::format(
      R"(<tr><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>)"
      "\n",
      html_escaped(name), summary.n, format_percent(summary.median_abs),
      format_percent(summary.mean_abs), format_percent(summary.p90_abs),
      format_percent(summary.bias), has_interval ? format_percent(summary.coverage) : "",
      summary.rank_correlation ? fmt::format("{:.2f}", *summary.rank_correlation) : "");
}

std::string summary_head(const std::string& what) {
  return fmt::format(
      R"(<table><tr><th>{}</th><th class="n">rows</th><th class="n">median %</th><th class="n">mean %</th><th class="n">p90 %</th><th class="n">bias %</th><th class="n">in interval %</th><th class="n">tau</th></tr>)"
      "\n",
      what);
}

std::string summary_table(const std::string& what, const calibration::ErrorsByName& summaries) {
  if (summaries.empty()) return {};
  std::string html = summary_head(what);
  for (const auto& [name, summary] : summaries) html += summary_line(name, summary);
  return html + "</table>\n";
}

std::string overall_table(const ValidationReport& report) {
  return summary_head("absolute error of") + summary_line("step time", report.time) +
         summary_line("peak memory", report.memory, false) + "</table>\n";
}

std::string fit_table(const OutOfMemoryTable& table) {
  return fmt::format(
      R"(<table><tr><th></th><th class="n">predicted: does not fit</th><th class="n">predicted: fits</th></tr>)"
      R"(<tr><td>measured: does not fit</td><td class="n">{}</td><td class="n">{}</td></tr>)"
      R"(<tr><td>measured: fits</td><td class="n">{}</td><td class="n">{}, {} of them with a plan that was chosen among those that fit</td></tr></table>)"
      "\n",
      table.true_positive, table.false_negative, table.false_positive, table.true_negative,
      table.chosen_to_fit);
}

std::string notes_of(const RowComparison& row) {
  std::string notes = fmt::format("simulated with {}, {}, {}", row.accelerator_profile,
                                  row.cluster_profile, row.stack_profile);
  for (const std::string& each : row.filled_in)
    notes += (&each == &row.filled_in.front() ? "; assumed: " : "; ") + each;
  return R"(<br><span class="note">)" + html_escaped(notes) + "</span>";
}

// "41.2 of 40.0": predicted of measured, or the predicted figure alone.
std::string memory_of(const RowComparison& row) {
  std::string predicted = format_gigabytes(row.predicted_memory);
  if (!row.measured_memory) return predicted;
  return fmt::format("{} of {}", predicted, format_gigabytes(*row.measured_memory));
}

std::string row_line(const RowComparison& row) {
  return fmt::format(
      R"(<tr><td>{}{}</td><td>{}</td><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{} to {}</td><td class="n">{}</td><td class="n">{}</td><td>{}</td></tr>)"
      "\n",
      html_escaped(row.id), notes_of(row), html_escaped(row.stack), row.metric,
      format_number(row.measured, 4), format_number(row.predicted, 4),
      format_number(row.interval_low, 4), format_number(row.interval_high, 4),
      format_signed_percent(row.error), memory_of(row), breakdown_bar(row.predicted_time));
}

std::string verdicts_table(const ValidationReport& report) {
  std::string html;
  for (const RowComparison& row : report.rows) {
    if (row.skipped || row.out_of_memory_measured == row.out_of_memory_predicted) continue;
    html += fmt::format(R"(<tr><td>{}{}</td><td>{}</td><td>{}</td><td class="n">{}</td></tr>)"
                        "\n",
                        html_escaped(row.id), notes_of(row),
                        row.out_of_memory_measured ? "does not fit" : "fits",
                        row.out_of_memory_predicted ? "does not fit" : "fits", memory_of(row));
  }
  if (html.empty()) return {};
  return R"(<table><tr><th>wrong verdict</th><th>measured</th><th>predicted</th><th class="n">peak memory, GB</th></tr>)"
         "\n" +
         html + "</table>\n";
}

std::string rows_table(const std::vector<const RowComparison*>& rows) {
  std::string html =
      R"(<table><tr><th>row</th><th>stack</th><th>metric</th><th class="n">measured</th><th class="n">predicted</th><th class="n">80 % interval</th><th class="n">error %</th><th class="n">peak memory, GB: predicted of measured</th><th>predicted time by part, which each bar names when the pointer rests on it</th></tr>)"
      "\n";
  for (const RowComparison* row : rows) html += row_line(*row);
  return html + "</table>\n";
}

std::string skipped_table(const ValidationReport& report) {
  if (report.skipped == 0) return {};
  std::string html = "<h2>Skipped</h2>\n<table><tr><th>row</th><th>reason</th></tr>\n";
  for (const RowComparison& row : report.rows) {
    if (row.skipped)
      html += "<tr><td>" + html_escaped(row.id) + "</td><td>" + html_escaped(row.reason) +
              "</td></tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace

std::string html_report(const ValidationReport& report) {
  std::vector<const RowComparison*> rows;
  for (const RowComparison& row : report.rows) {
    if (row.timed && !row.skipped) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const RowComparison* a, const RowComparison* b) {
    return std::abs(a->error) > std::abs(b->error);
  });
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<title>Predicted against measured</title><style>";
  html += kStyle;
  html += "</style></head><body>\n<h1>Predicted against measured training steps</h1>\n";
  html += overall_table(report);
  if (report.time.rank_correlation) {
    html +=
        fmt::format("<p>Plans of one group are ranked as measured with Kendall's tau {:.2f}.</p>",
                    *report.time.rank_correlation);
  }
  html += "<h2>Step time</h2>\n" + scatter_chart(rows) + "\n<h2>Errors</h2>\n";
  html += error_histogram(rows);
  html += "\n<h2>By class</h2>\n" + summary_table("source", report.by_source);
  html += summary_table("accelerator", report.by_accelerator);
  html += summary_table("stack", report.by_stack);
  html += summary_table("parallelism", report.by_parallelism);
  html += "<h2>Does it fit into memory</h2>\n" + fit_table(report.out_of_memory);
  html += verdicts_table(report);
  html += "<h2>Rows, the worst first</h2>\n" + rows_table(rows) + skipped_table(report);
  return html + "</body></html>\n";
}

}  // namespace shardwright::validation
