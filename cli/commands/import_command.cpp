// shardwright import
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_report.hpp"
#include "cli/commands/command.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/trace_page.hpp"
#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"
#include "sim/cost/measured_kernels.hpp"

namespace shardwright::cli {
namespace {

struct ImportOptions {
  CommonOptions common;
  std::vector<std::string> files;
  // A folder; empty if nothing is to be written.
  std::string out;
};

// The files in the folder of --out.
struct OutputFiles {
  std::string report, kernels;
};

// Makes the folder if it is not there.
OutputFiles prepare_folder(const ImportOptions& options) {
  if (options.out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (!std::filesystem::is_directory(options.out))
    throw InputError("--out", {{"", options.out, "a folder, or the name of a new one"}});
  const std::filesystem::path folder(options.out);
  OutputFiles files{folder / "trace_report.json", folder / "kernels.csv"};
  check_destination("--out", files.report, options.common.force);
  check_destination("--out", files.kernels, options.common.force);
  return files;
}

struct Recordings {
  std::vector<calibration::Trace> traces;
  std::vector<calibration::TrainingLog> logs;
};

Recordings read_recordings(const std::vector<std::string>& files) {
  ProblemList problems("shardwright import");
  Recordings recordings;
  for (const std::string& file : files)
    read_part("", problems, [&] {
      calibration::Recording recording = calibration::read_recording(file);
      if (auto* trace = std::get_if<calibration::Trace>(&recording))
        recordings.traces.push_back(std::move(*trace));
      else
        recordings.logs.push_back(std::move(std::get<calibration::TrainingLog>(recording)));
      return true;
    });
  problems.throw_if_any();
  return recordings;
}

// A table of measured kernels is of one device.
void write_kernels(const std::string& file, const std::vector<calibration::Trace>& traces,
                   bool force) {
  std::set<std::string> gpus;
  for (const calibration::Trace& trace : traces) gpus.insert(trace.gpu);
  if (gpus.size() > 1) {
    print_message("shardwright import: no kernels.csv, because the traces are of different GPUs");
    return;
  }
  const std::vector<MeasuredKernel> kernels = calibration::gemm_timings(traces);
  write_file(
      file, [&](std::ostream& stream) { sim::write_kernel_table(stream, kernels); }, force);
}

ExitCode import_traces(const ImportOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const OutputFiles files = prepare_folder(options);
  const auto [traces, logs] = read_recordings(options.files);
  std::vector<calibration::TraceReport> reports;
  nlohmann::ordered_json document = new_document("trace-report");
  document["files"] = nlohmann::ordered_json::array();
  for (const calibration::Trace& trace : traces) {
    reports.push_back(calibration::report_of(trace));
    document["files"].push_back(calibration::to_json(reports.back()));
  }
  const auto matching = calibration::match_ranks(traces);
  document["logs"] = nlohmann::ordered_json::array();
  for (const calibration::TrainingLog& log : logs)
    document["logs"].push_back(calibration::to_json(log));
  document["across_ranks"] = matching ? calibration::to_json(*matching) : nullptr;
  if (!options.out.empty()) {
    write_file(files.report, json_text(document), options.common.force);
    write_kernels(files.kernels, traces, options.common.force);
  }
  Page page = new_page(options.common);
  if (!reports.empty()) add_traces(page, reports, matching);
  if (!logs.empty()) add_training_logs(page, logs);
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

}  // namespace

void add_import_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("import", "Explain traces of profilers and logs of training runs");
  command->footer(R"(Examples:
  shardwright import trace.json.gz
  shardwright import rank*.json.gz --json report.json
  nsys export --type sqlite report.nsys-rep && shardwright import report.sqlite)");
  const auto options = std::make_shared<ImportOptions>();
  add_option(*command, "files", options->files, "FILE...",
             "Traces: JSON of PyTorch's profiler or SQLite of nsys export, a file for each rank; "
             "logs of Megatron-LM, NeMo, torchtitan and DeepSpeed; plain or compressed with gzip")
      ->required();
  add_option(*command, "--out", options->out, "FOLDER",
             "Folder for trace_report.json and kernels.csv, made if it is not there");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return import_traces(*options); }; });
}

}  // namespace shardwright::cli
