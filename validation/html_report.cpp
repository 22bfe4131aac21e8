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

std::string fit_table(const OutOfMemoryTable& table) {
  return fmt::format(
      R"(<div class="wide"><table><tr><th></th><th class="n">predicted: does not fit</th><th class="n">predicted: fits</th></tr>)"
      R"(<tr><td>measured: does not fit</td><td class="n">{}</td><td class="n">{}</td></tr>)"
      R"(<tr><td>measured: fits</td><td class="n">{}</td><td class="n">{}, {} of them with a plan that was chosen among those that fit</td></tr></table></div>)"
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
  return R"(<div class="wide"><table><tr><th>wrong verdict</th><th>measured</th><th>predicted</th><th class="n">peak memory, GB</th></tr>)"
         "\n" +
         html + "</table></div>\n";
}

std::string rows_table(const std::vector<const RowComparison*>& rows) {
  std::string html =
      R"(<div class="wide"><table><tr><th>row</th><th>stack</th><th>metric</th><th class="n">measured</th><th class="n">predicted</th><th class="n">80 % interval</th><th class="n">error %</th><th class="n">peak memory, GB: predicted of measured</th><th>predicted time by part, which each bar names when the pointer rests on it</th></tr>)"
      "\n";
  for (const RowComparison* row : rows) html += row_line(*row);
  return html + "</table></div>\n";
}

std::string skipped_table(const ValidationReport& report) {
  if (report.skipped == 0) return {};
  std::string html =
      "<h2>Skipped</h2>\n<div class=\"wide\"><table><tr><th>row</th><th>reason</th></tr>\n";
  for (const RowComparison& row : report.rows) {
    if (row.skipped)
      html += "<tr><td>" + html_escaped(row.id) + "</td><td>" + html_escaped(row.reason) +
              "</td></tr>\n";
  }
  return html + "</table></div>\n";
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
  return "<h2>Step time</h2>\n" + scatter_chart(rows) + "\n<h2>Errors</h2>\n" +
         error_histogram(rows) + "\n<h2>Does it fit into memory</h2>\n" +
         fit_table(report.out_of_memory) + verdicts_table(report) +
         fmt::format("<h2>Rows, the worst first</h2>\n<details><summary>{}</summary>\n",
                     format_plural(std::ssize(rows), "row")) +
         rows_table(rows) + "</details>\n" + skipped_table(report);
}

}  // namespace shardwright::validation
