// shardwright validate
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/option_values.hpp"
#include "cli/output/calibration_report.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/run_validation_report.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "validation/run_validation.hpp"
#include "validation/timing_report.hpp"
#include "validation/validation.hpp"

namespace shardwright::cli {

namespace {

struct TimingOptions {
  // Files; empty if not asked for.
  std::string kernels, collectives;
  // "MEDIAN,P90" in percent.
  std::optional<std::string> fail_over;
  bool every_row = false;
};

constexpr std::size_t kLongestName = 48;

std::string shortened(const std::string& text) {
  return text.size() <= kLongestName ? text : text.substr(0, kLongestName - 1) + "…";
}

// `summaries`: names and their errors.
template <class Summaries>
void add_timing_summaries(Page& page, const std::string& what, const Summaries& summaries) {
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

// Compares predicted timings with those of one of the two files and prints them.
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
      !options.fail_over || calibration::within_tolerance(report.all, limits.median, limits.p90);
  Page page = new_page(common);
  if (options.every_row) add_rows(page, report);
  Table overall = error_table("absolute error of the time");
  add_errors(overall, kernels ? "all kernels" : "all collectives", report.all);
  page.table(overall);
  add_timing_summaries(page, "size", report.by_size);
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

struct ValidateOptions {
  CommonOptions common;
  std::vector<std::string> files;
  std::optional<std::string> grades;
  std::optional<std::string> fail_over;
  bool every_row = false;
  TimingOptions timings;
  // File of whole runs; empty if not asked for.
  std::string runs;
};

void check_grades(const std::string& grades) {
  ProblemList problems("shardwright validate");
  if (grades.empty() || grades.find_first_not_of("ABC") != std::string::npos)
    problems.add("--grades", "\"" + grades + "\"", "some of the letters A, B and C");
  problems.throw_if_any();
}

std::vector<std::string> summary_row(const std::string& name,
                                     const calibration::ErrorSummary& summary) {
  if (summary.n == 0) return {name, "none", "", "", "", "", "", ""};
  return {name,
          format_count(static_cast<std::int64_t>(summary.n)),
          format_percent(summary.median_abs),
          format_percent(summary.mean_abs),
          format_percent(summary.p90_abs),
          format_percent(summary.bias),
          format_percent(summary.coverage),
          summary.rank_correlation ? format_fixed(*summary.rank_correlation, 2) : ""};
}

Table summary_table(const std::string& what) {
  return Table({{what, ColumnKind::Prose},
                {"rows", kNumber},
                {"median", kNumber, "%"},
                {"mean", kNumber, "%"},
                {"p90", kNumber, "%"},
                {"bias", kNumber, "%"},
                {"in interval", kNumber, "%"},
                {"tau", kNumber}});
}

void add_summaries(Page& page, const std::string& what,
                   const calibration::ErrorsByName& summaries) {
  if (summaries.empty()) return;
  Table table = summary_table(what);
  for (const auto& [name, summary] : summaries) table.add_row(summary_row(name, summary));
  page.table(table);
}

void add_rows(Page& page, const validation::ValidationReport& report) {
  Table table({{"row", ColumnKind::Prose},
               {"metric"},
               {"measured", kNumber},
               {"predicted", kNumber},
               {"error", kNumber, "%"}});
  for (const validation::RowComparison& row : report.rows) {
    if (row.skipped || !row.timed) continue;
    table.add_row({row.id, row.metric, format_number(row.measured, 4),
                   format_number(row.predicted, 4), format_signed_percent(row.error)});
  }
  page.table(table);
}

// Adds a table of all rows with their profiles and the values that were assumed.
void add_profiles(Page& page, const validation::ValidationReport& report) {
  Table table({{"row", ColumnKind::Prose},
               {"accelerator"},
               {"cluster"},
               {"stack"},
               {"assumed", ColumnKind::Prose}});
  for (const validation::RowComparison& row : report.rows) {
    table.add_row({row.id, row.accelerator_profile, row.cluster_profile, row.stack_profile,
                   row.skipped ? "skipped: " + row.reason
                               : fmt::format("{}", fmt::join(row.filled_in, "; "))});
  }
  page.table(table);
}

// Adds a table of the rows that were not simulated, by reason.
void add_skipped(Page& page, const validation::ValidationReport& report) {
  if (report.skipped == 0) return;
  std::map<std::string, std::vector<std::string>> ids;
  for (const validation::RowComparison& row : report.rows) {
    if (row.skipped) ids[row.reason].push_back(row.id);
  }
  Table table(
      {{"skipped because", ColumnKind::Prose}, {"rows", kNumber}, {"such as", ColumnKind::Prose}});
  for (const auto& [reason, rows] : ids)
    table.add_row({reason, format_count(static_cast<std::int64_t>(rows.size())), rows.front()});
  table.add_row({"in all", format_count(static_cast<std::int64_t>(report.skipped)), ""});
  page.table(table);
}

void add_report(Page& page, const validation::ValidationReport& report, bool every_row) {
  if (every_row) {
    add_rows(page, report);
    add_profiles(page, report);
  }
  Table overall = summary_table("absolute error of");
  overall.add_row(summary_row("step time", report.time));
  std::vector<std::string> memory = summary_row("peak memory", report.memory);
  // Memory is predicted without an interval.
  memory[memory.size() - 2].clear();
  overall.add_row(std::move(memory));
  page.table(overall);
  add_summaries(page, "step time by source", report.by_source);
  add_summaries(page, "step time by accelerator", report.by_accelerator);
  add_summaries(page, "step time by stack", report.by_stack);
  add_summaries(page, "step time by parallelism", report.by_parallelism);
  const validation::OutOfMemoryTable& oom = report.out_of_memory;
  page.paragraph(fmt::format(
      "Out of memory: predicted for {} of the {} runs that did not fit, and wrongly for {} of the "
      "{} that did. Of those predicted to fit, {} have open plan fields that were chosen to fit.",
      oom.true_positive, oom.true_positive + oom.false_negative, oom.false_positive,
      oom.false_positive + oom.true_negative, oom.chosen_to_fit));
  if (report.time.rank_correlation) {
    page.paragraph(
        fmt::format("Kendall's tau of the predicted and the measured order of plans: {}, the mean "
                    "over groups of at least three rows.",
                    format_fixed(*report.time.rank_correlation, 2)));
  }
  add_skipped(page, report);
  if (report.other_grades > 0) {
    page.paragraph(
        fmt::format("Left out: {} of other grades.",
                    format_plural(static_cast<std::int64_t>(report.other_grades), "row")));
  }
}

// True for kernels or collectives. One kind of file is compared at a time.
bool compares_timings(const ValidateOptions& options) {
  const int kinds = (options.files.empty() ? 0 : 1) + (options.timings.kernels.empty() ? 0 : 1) +
                    (options.timings.collectives.empty() ? 0 : 1) + (options.runs.empty() ? 0 : 1);
  if (kinds <= 1) return kinds == 1 && options.files.empty() && options.runs.empty();
  throw InputError("shardwright validate",
                   {{"FILE", "several kinds of measurements",
                     "files of training steps, or one of --kernels FILE, --collectives FILE and "
                     "--runs FILE"}});
}

void refuse_options_of_steps(const ValidateOptions& options) {
  ProblemList problems("shardwright validate");
  const char* expected = "files of training steps: kernels and collectives have no grades";
  if (options.grades) problems.add("--grades", "\"" + *options.grades + "\"", expected);
  problems.throw_if_any();
}

ExitCode validate_whole_runs(const ValidateOptions& options) {
  const std::string grades = options.grades.value_or("ABC");
  check_grades(grades);
  const ErrorLimits limits = read_error_limits(options.fail_over);
  const InterruptWatch interrupt;
  ProgressLine line(show_progress(options.common));
  const validation::RunReport report = validation::validate_runs(
      options.runs, grades, interrupt.token(),
      [&](double share) { line.show(share, "forecasting published runs"); });
  line.finish();
  if (report.rows.empty() && !report.partial) {
    throw InputError(options.runs,
                     {{"", "no rows of the grades asked for", "at least one published run"}});
  }
  const bool within =
      !options.fail_over || calibration::within_tolerance(report.known, limits.median, limits.p90);
  Page page = new_page(options.common);
  add_run_report(page, report);
  if (report.partial) page.warning("interrupted: these are the rows simulated so far");
  if (!within) {
    page.warning(report.known.n == 0
                     ? "no run whose plan is known to compare with --fail-over"
                     : "the errors of runs whose plan is known exceed --fail-over " +
                           *options.fail_over);
  }
  nlohmann::ordered_json document = new_document("run-validation");
  document["partial"] = report.partial;
  document["within_tolerance"] = within;
  document.update(validation::to_json(report));
  deliver(options.common, page, document);
  if (report.partial) return ExitCode::Interrupted;
  return within ? ExitCode::Ok : ExitCode::OutsideTolerance;
}

ExitCode validate(const ValidateOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const bool timings_alone = compares_timings(options);
  if (!options.runs.empty()) return validate_whole_runs(options);
  if (timings_alone) {
    refuse_options_of_steps(options);
    TimingOptions timings = options.timings;
    timings.every_row = options.every_row;
    timings.fail_over = options.fail_over;
    return validate_timings(timings, options.common);
  }
  const std::string grades = options.grades.value_or("ABC");
  check_grades(grades);
  const ErrorLimits limits = read_error_limits(options.fail_over);
  const InterruptWatch interrupt;
  const std::vector<std::string> files =
      options.files.empty() ? validation::shipped_measurements() : options.files;
  for (const std::string& file : options.files) {
    if (validation::holds_published_runs(file))
      throw InputError(file, {{"", "published runs, which have tokens",
                               "measurements of steps; --runs takes a file of runs"}});
  }
  ProgressLine line(show_progress(options.common));
  const validation::ValidationReport report = validation::validate_rows(
      files, {.grades = grades, .stop = interrupt.token(), .progress = [&](double share) {
                line.show(share, "simulating published steps");
              }});
  line.finish();
  if (report.rows.empty() && !report.partial) {
    ProblemList problems("shardwright validate");
    problems.add(fmt::format("{}", fmt::join(files, ", ")), "no rows of the grades asked for",
                 "at least one measured row");
    problems.throw_if_any();
  }
  const bool within =
      !options.fail_over || calibration::within_tolerance(report.time, limits.median, limits.p90);
  Page page = new_page(options.common);
  if (!options.common.html.empty()) {
    page.paragraph(
        "Shardwright predicts what others published of training runs, step times, rates and peak "
        "memory, from the model, cluster, stack and plan of each run alone. An error is the "
        "predicted step time divided by the measured one, minus 1.");
  }
  add_report(page, report, options.every_row);
  if (report.partial) page.warning("interrupted: these are the rows simulated so far");
  if (!within) {
    page.warning(report.time.n == 0 ? "no measured step to compare with --fail-over"
                                    : "the errors exceed --fail-over " + *options.fail_over);
  }
  nlohmann::ordered_json document = new_document("validation");
  document["partial"] = report.partial;
  document["within_tolerance"] = within;
  document.update(validation::to_json(report));
  if (!options.common.html.empty())
    page.figure("Predicted against measured", validation::html_report(report));
  deliver(options.common, page, document);
  if (report.partial) return ExitCode::Interrupted;
  return within ? ExitCode::Ok : ExitCode::OutsideTolerance;
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("validate", "Compare predictions with published measurements");
  command->footer(
      R"(The error of a row is its predicted step time divided by the measured one, minus 1: positive if the prediction is slower. median, mean and p90 (90th percentile) are those of the absolute errors, and bias is the median of the signed errors. "in interval" is the share of measurements inside their 80 % prediction interval. tau is Kendall's rank correlation of the predicted and the measured order of plans, 1 if both are the same.

Examples:
  shardwright validate
  shardwright validate measurements/training/bloom.jsonl --html steps.html
  shardwright validate --kernels measurements/kernels.jsonl --fail-over 8,25
  shardwright validate --runs measurements/runs.jsonl)");
  const auto options = std::make_shared<ValidateOptions>();
  add_option(*command, "files", options->files, "FILE...",
             "Measured steps, one JSON object per line (default: those that are shipped)");
  add_option(
      *command, "--kernels", options->timings.kernels, "FILE",
      "Compare timings of kernels instead of steps, one JSON object per line; published ones "
      "are measurements/kernels.jsonl and measurements/operators.jsonl");
  add_option(*command, "--collectives", options->timings.collectives, "FILE",
             "Compare timings of collectives instead of steps, one JSON object per line; published "
             "ones are measurements/collectives.jsonl");
  add_option(
      *command, "--runs", options->runs, "FILE",
      "Compare the GPU-hours, days and interruptions of whole runs, one JSON object per line; "
      "published ones are measurements/runs.jsonl");
  command
      ->add_option("--fail-over", options->fail_over,
                   "Exit with 5 if the median or the 90th percentile of the absolute errors "
                   "exceeds these percentages, as in 8,25")
      ->type_name("MEDIAN,P90");
  command->add_option("--grades", options->grades, "Use only rows of these grades (default ABC)")
      ->type_name("ABC");
  command->add_flag("--every-row", options->every_row,
                    "Also print each row, with its profiles and the values that were assumed");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return validate(*options); }; });
}

}  // namespace shardwright::cli
