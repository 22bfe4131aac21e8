#include "cli/commands/validate_timings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/options/option_values.hpp"
#include "cli/output/error_table.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "validation/collective_rows.hpp"
#include "validation/kernel_rows.hpp"

namespace shardwright::cli {
namespace {

constexpr std::size_t kLongestName = 48;

std::string shortened(const std::string& text) {
  return text.size() <= kLongestName ? text : text.substr(0, kLongestName - 1) + "…";
}

void add_timing_summaries(Page& page, const std::string& what,
                          const calibration::ErrorsByName& summaries) {
  if (summaries.empty()) return;
  Table table = error_table(what);
  for (const auto& [name, summary] : summaries) add_errors(table, shortened(name), summary);
  page.table(table);
}

void add_rows(Page& page, const validation::TimingReport& report) {
  Table table({{"row"},
               {"measured", kNumber},
               {"predicted", kNumber},
               {"error", kNumber, "%"},
               {"assumed", ColumnKind::Prose}});
  for (const validation::TimingComparison& row : report.rows) {
    if (row.skipped) continue;
    table.add_row({row.id, format_time(row.measured), format_time(row.predicted),
                   format_signed_percent(row.error()),
                   fmt::format("{}", fmt::join(row.filled_in, "; "))});
  }
  page.table(table);
}

void add_skipped(Page& page, const validation::TimingReport& report) {
  if (report.skipped == 0) return;
  Table table({{"skipped because"}, {"rows", kNumber}});
  for (const auto& [reason, count] : report.skipped_by_reason)
    table.add_row({reason, format_count(static_cast<std::int64_t>(count))});
  table.add_row({"in all", format_count(static_cast<std::int64_t>(report.skipped))});
  page.table(table);
}

}  // namespace

ExitCode validate_timings(const TimingOptions& options, const CommonOptions& common) {
  const ErrorLimits limits = read_error_limits(options.fail_over);
  const bool kernels = !options.kernels.empty();
  const validation::TimingReport report =
      kernels ? validation::validate_kernels(options.kernels)
              : validation::validate_collectives(options.collectives);
  if (report.rows.empty()) {
    throw InputError(kernels ? options.kernels : options.collectives,
                     {{"", "no rows", "at least one measured row"}});
  }
  const bool within =
      !options.fail_over || validation::within_tolerance(report, limits.median, limits.p90);
  Page page = new_page(common);
  if (options.every_row) add_rows(page, report);
  Table overall = error_table("absolute error of the time");
  add_errors(overall, kernels ? "all kernels" : "all collectives", report.all);
  page.table(overall);
  add_timing_summaries(page, kernels ? "device and op" : "device and collective",
                       report.by_device_and_op);
  add_timing_summaries(page, "device", report.by_device);
  add_timing_summaries(page, "source", report.by_source);
  add_skipped(page, report);
  if (!within) {
    page.warning(report.all.n == 0 ? fmt::format("no measured {} to compare with --fail-over",
                                                 kernels ? "kernel" : "collective")
                                   : "the errors exceed --fail-over " + *options.fail_over);
  }
  nlohmann::ordered_json document =
      new_document(kernels ? "kernel-validation" : "collective-validation");
  document["within_tolerance"] = within;
  document.update(validation::to_json(report));
  deliver(common, page, document);
  return within ? ExitCode::Ok : ExitCode::OutsideTolerance;
}

}  // namespace shardwright::cli
