// shardwright calibrate
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibration/batch_fit.hpp"
#include "calibration/calibrate.hpp"
#include "calibration/nccl_tests.hpp"
#include "calibration/run_samples.hpp"
#include "cli/commands/command.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/output/calibration_report.hpp"
#include "cli/output/collective_page.hpp"
#include "cli/output/output_file.hpp"
#include "core/base/distinct_names.hpp"
#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/batch_json.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/profile_library.hpp"
#include "core/timeline/perfetto.hpp"
#include "sim/cost/measured_kernels.hpp"

namespace shardwright::cli {
namespace {

// What the runs do not tell is that of this law.
constexpr const char* kBaseLaw = "hoffmann-corrected";

struct CalibrateOptions {
  CommonOptions common;
  std::vector<std::string> runs;
  std::string cluster, out, trace, kernels, batch_law;
};

// Writes the trace of the last run that was named, which is the one that somebody looks at.
void write_trace(const CalibrateOptions& options, const calibration::CalibrationData& data,
                 const ClusterSpec& cluster) {
  if (options.trace.empty()) return;
  const Timeline both = calibration::side_by_side(data.runs.back(), cluster);
  write_file(
      options.trace, [&](std::ostream& stream) { write_perfetto(both, stream); },
      options.common.force);
}

void write_kernels(const CalibrateOptions& options, const calibration::CalibrationData& data,
                   const ClusterSpec& cluster) {
  if (options.kernels.empty()) return;
  const std::vector<MeasuredKernel> kernels = calibration::kernels_of(data.runs, cluster);
  write_file(
      options.kernels, [&](std::ostream& stream) { sim::write_kernel_table(stream, kernels); },
      options.common.force);
}

std::string note_of_empty_rows(const std::string& file, std::int64_t rows) {
  return fmt::format("{}: ignored {} rows with no bytes or with a time rounded to 0.00", file,
                     rows);
}

// Refuses a run that is named twice, in any spelling, because it would count twice.
void check_none_is_named_twice(const std::vector<std::string>& names, ProblemList& problems) {
  // A missing file is reported when it is read.
  std::error_code absent;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto first = std::find_if(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const auto& name) { return std::filesystem::equivalent(name, names[i], absent); });
    if (first == names.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    problems.add("RUN",
                 *first == names[i] ? *first + " twice"
                                    : fmt::format("{}, which is {} again", names[i], *first),
                 "each run and file once");
  }
}

// Refuses outputs that need a run if all inputs are timings of collectives.
void check_runs_for_outputs(const CalibrateOptions& options,
                            const calibration::CalibrationData& data, ProblemList& problems) {
  if (!data.runs.empty() || !problems.empty()) return;
  const auto need_run = [&](const char* option, const std::string& file) {
    if (file.empty()) return;
    problems.add(option, "output of nccl-tests alone",
                 "a run among the inputs: the --out folder of shardwright run");
  };
  need_run("--trace", options.trace);
  need_run("--kernels", options.kernels);
}

// Reads folders as runs and files as output of nccl-tests. `notes` receives remarks on them.
calibration::CalibrationData read_data(const std::vector<std::string>& paths, ProblemList& problems,
                                       std::vector<std::string>& notes) {
  calibration::CalibrationData data;
  const std::vector<std::string> names = distinct_names(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    std::error_code error;
    read_part("", problems, [&] {
      const std::filesystem::file_status status = std::filesystem::status(path, error);
      if (!is_directory(status) && !is_regular_file(status)) {
        throw InputError(path, {{"", exists(status) ? "a pipe or device" : "no such file or folder",
                                 "the --out folder of shardwright run, or a file with the output "
                                 "of nccl-tests"}});
      }
      if (is_regular_file(status)) {
        const auto [samples, empty_rows, left_out, has_wrong_data] =
            calibration::read_nccl_tests(path);
        data.exchanges.insert(data.exchanges.end(), samples.begin(), samples.end());
        if (empty_rows > 0) notes.push_back(note_of_empty_rows(path, empty_rows));
        if (has_wrong_data) notes.push_back(wrong_data_warning(path));
        if (!left_out.empty()) notes.push_back(path + ": " + timings_left_out(left_out));
      } else {
        data.runs.push_back(calibration::load_run(path));
        data.runs.back().name = names[i];
      }
      return true;
    });
  }
  return data;
}

void say_what_is_left_out(const calibration::CalibrationData& data,
                          const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_message(note);
  for (const calibration::MeasuredRun& run : data.runs) {
    if (run.left_out.torn_line)
      print_message(fmt::format(
          "run {}: ignored the last line of metrics.jsonl, which is incomplete", run.name));
    if (run.left_out.steps == 0 && run.left_out.recorded_steps == 0) continue;
    print_message(
        fmt::format("run {}: ignored {} steps and the timelines of {}, which ran under another "
                    "plan than plan.json",
                    run.name, run.left_out.steps, run.left_out.recorded_steps));
  }
}

std::string source_of(const CalibrateOptions& options) {
  return fmt::format("shardwright calibrate {}", fmt::join(distinct_names(options.runs), ", "));
}

// A law of the runs' losses, in place of a profile of their machine.
ExitCode fit_batch(const CalibrateOptions& options) {
  const BatchSpec base = load_batch(kBaseLaw);
  ProblemList problems("shardwright calibrate");
  check_none_is_named_twice(options.runs, problems);
  std::vector<calibration::LossCurve> curves;
  for (const std::string& run : options.runs) {
    curves.push_back(
        read_part("", problems, [&] { return calibration::load_loss_curve(run, base.loss); }));
  }
  problems.throw_if_any();
  const std::string name = options.batch_law == "-"
                               ? "measured"
                               : std::filesystem::path(options.batch_law).stem().string();
  const calibration::BatchFit fit =
      calibration::fit_batch_law(curves, base, name, source_of(options));
  write_file(options.batch_law, json_text(to_json(fit.spec)), options.common.force);
  Page page = new_page(options.common);
  add_batch_fit(page, fit);
  nlohmann::ordered_json document = new_document("batch_fit");
  document.update(batch_fit_json(fit));
  deliver(options.common, page, document, options.batch_law == "-");
  return ExitCode::Ok;
}

// A profile needs both, and a law of losses neither.
void check_purpose(const CalibrateOptions& options) {
  ProblemList problems("shardwright calibrate");
  const auto check = [&](const char* option, const std::string& value, bool needed) {
    if (value.empty() && needed)
      problems.add(option, "nothing",
                   "the cluster profile to refit, and a file for it, or --batch-law");
    if (!value.empty() && !options.batch_law.empty())
      problems.add(option, "beside --batch-law", "one of the two: a law has no cluster");
  };
  const bool refits = options.batch_law.empty();
  check("--cluster", options.cluster, refits);
  check("--out", options.out, refits);
  check("--trace", options.trace, false);
  check("--kernels", options.kernels, false);
  problems.throw_if_any();
}

ExitCode calibrate(const CalibrateOptions& options) {
  check_purpose(options);
  const std::vector<Destination> destinations = {{"--json", options.common.json},
                                                 {"--out", options.out},
                                                 {"--trace", options.trace},
                                                 {"--kernels", options.kernels},
                                                 {"--batch-law", options.batch_law}};
  check_destinations(destinations, options.common.force);
  if (!options.batch_law.empty()) return fit_batch(options);
  ProblemList problems("shardwright calibrate");
  std::vector<std::string> notes;
  check_none_is_named_twice(options.runs, problems);
  const calibration::CalibrationData data = read_data(options.runs, problems, notes);
  check_runs_for_outputs(options, data, problems);
  const ClusterSpec cluster = read_cluster_option(options.cluster, problems);
  problems.throw_if_any();
  for (const calibration::MeasuredRun& run : data.runs)
    calibration::check_device(run, cluster, problems);
  problems.throw_if_any();
  say_what_is_left_out(data, notes);
  const calibration::Calibration calibration =
      calibration::calibrate(cluster, data, source_of(options));
  write_file(options.out, json_text(to_json(calibration.cluster)), options.common.force);
  write_trace(options, data, calibration.cluster);
  write_kernels(options, data, cluster);
  Page page = new_page(options.common);
  add_calibration(page, calibration, true);
  nlohmann::ordered_json document = new_document("calibration");
  document.update(calibration_json(calibration));
  deliver(options.common, page, document,
          options.out == "-" || options.trace == "-" || options.kernels == "-");
  return ExitCode::Ok;
}

}  // namespace

void add_calibrate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Refit a cluster profile to measured runs, or a batch profile to their losses");
  command->footer(R"(Examples:
  shardwright calibrate run/ --cluster here --out here.json
  shardwright calibrate run-1/ run-2/ --batch-law mine.json
  shardwright calibrate run-1/ run-2/ all_reduce.json --cluster here.json \
      --out better.json)");
  const auto options = std::make_shared<CalibrateOptions>();
  add_option(*command, "runs", options->runs, "RUN...",
             "Folders that shardwright run --out wrote, or output files of nccl-tests (text or -J)")
      ->required();
  add_option(*command, "--cluster", options->cluster, "NAME|FILE|here", "The profile to refit");
  add_option(*command, "--out", options->out, "FILE|-", "File for the refitted profile");
  add_option(*command, "--batch-law", options->batch_law, "FILE|-",
             "In place of a cluster: write a batch profile for `plan --batch-law`, with the law of "
             "the runs' losses and the critical batch that their gradient noise tells");
  add_option(*command, "--trace", options->trace, "FILE|-",
             "Write a Perfetto trace of the last run: measured and predicted side by side");
  add_option(*command, "--kernels", options->kernels, "FILE|-",
             "Write the kernels that the runs measured, as CSV for `simulate --kernels`");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return calibrate(*options); }; });
}

}  // namespace shardwright::cli
