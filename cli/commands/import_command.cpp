// shardwright import
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibration/calibrate.hpp"
#include "calibration/inspector_matching.hpp"
#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/layer_structure.hpp"
#include "calibration/traces/memory_snapshot.hpp"
#include "calibration/traces/program_match.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/straggler_analysis.hpp"
#include "calibration/traces/trace_predictions.hpp"
#include "calibration/traces/trace_report.hpp"
#include "calibration/traces/trace_timeline.hpp"
#include "cli/commands/command.hpp"
#include "cli/commands/import_recordings.hpp"
#include "cli/commands/import_refit.hpp"
#include "cli/commands/import_warnings.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/commands/launched_plans.hpp"
#include "cli/options/scenario_options.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/output/calibration_report.hpp"
#include "cli/output/collective_page.hpp"
#include "cli/output/memory_page.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/program_match_page.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/trace_findings_page.hpp"
#include "cli/output/trace_page.hpp"
#include "cli/output/training_log_page.hpp"
#include "core/base/error.hpp"
#include "core/base/large_json_file.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/measured_kernels.hpp"
#include "sim/step/fidelity.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kOverlapGradients = "overlap-gradients";
constexpr const char* kArguments = "--arguments";

struct ImportOptions {
  CommonOptions common;
  // The plan that was traced; of a cluster alone, the profile to refit.
  ScenarioOptions scenario;
  std::vector<std::string> files;
  // Traces that the others predict.
  std::vector<std::string> against;
  // "overlap-gradients"; empty: none.
  std::string what_if;
  // The positional parameters of launch scripts, as one text.
  std::string arguments;
  // A folder; empty if nothing is to be written.
  std::string out;
};

// The files in the folder of --out.
struct OutputFiles {
  std::string report, kernels, cluster, plan;
};

void refuse_unless_folder(const std::filesystem::path& folder, const ImportOptions& options) {
  if (!std::filesystem::is_directory(folder))
    throw InputError("--out", {{"", options.out, "a folder, or the name of a new one"}});
}

// Does not make the folder, as the files may turn out to be unreadable.
OutputFiles check_folder(const ImportOptions& options) {
  if (options.out.empty()) return {};
  const std::filesystem::path folder(options.out);
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(folder, error);
  while (there.has_relative_path() && !std::filesystem::exists(there, error))
    there = there.parent_path();
  refuse_unless_folder(there, options);
  OutputFiles files{folder / "trace_report.json", folder / "kernels.csv", folder / "cluster.json",
                    folder / "plan.json"};
  if (!std::filesystem::is_directory(folder)) return files;
  for (const std::string& file : {files.report, files.kernels, files.cluster, files.plan})
    check_destination("--out", file, options.common.force);
  return files;
}

// The traces of --against: others than those that predict them.
std::vector<calibration::Trace> read_against(const ImportOptions& options) {
  ProblemList problems("shardwright import");
  std::vector<calibration::Trace> traces;
  for (const std::string& file : files_to_read(options.against)) {
    std::error_code none;
    for (const std::string& known : options.files)
      if (std::filesystem::equivalent(known, file, none))
        problems.add("--against", file, "a trace that is not among those that predict it");
    Recordings read = read_recordings({file}, options.scenario, {}, show_progress(options.common));
    if (read.traces.empty())
      problems.add("--against", file + ", which is no trace",
                   "a trace of PyTorch's profiler or of Nsight Systems");
    for (calibration::Trace& trace : read.traces) traces.push_back(std::move(trace));
  }
  problems.throw_if_any();
  return traces;
}

// What predicts other traces, or is changed by a what-if, is a trace.
void refuse_without_traces(const ImportOptions& options, const Recordings& recordings) {
  if (!recordings.traces.empty()) return;
  for (const auto& [name, is_given] :
       {std::pair("--against", !options.against.empty()), {"--what-if", !options.what_if.empty()}})
    if (is_given)
      throw InputError("shardwright import",
                       {{name, fmt::format("{} without a trace", fmt::join(options.files, ", ")),
                         "traces of PyTorch's profiler or of Nsight Systems as FILE"}});
}

void refuse_without_a_script(const ImportOptions& options, const Recordings& recordings) {
  if (options.arguments.empty() || !recordings.plans.empty()) return;
  throw InputError("shardwright import", {{kArguments, "no launch script",
                                           "a script that takes these arguments as FILE"}});
}

bool names_a_plan(const ScenarioOptions& options) {
  return !options.plan_file.empty() || !options.row.empty() || !options.model.empty();
}

// Refuses options that change a plan where there is none.
void refuse_without_a_plan(const ScenarioOptions& options, const Recordings& recordings) {
  if (names_a_plan(options)) return;
  ProblemList problems("shardwright import");
  const bool launches = !recordings.plans.empty();
  const auto refuse = [&](const std::string& option) {
    problems.add(option, launches ? "plans of launches, which it does not change" : "no plan",
                 launches ? "`simulate --plan` with it, and the plan.json that --out writes"
                          : "--plan FILE, or --model and --cluster, beside it");
  };
  for (const std::string& option : stated_plan_options(options)) refuse(option);
  if (!options.gpus.empty() && !launches) refuse("--gpus " + options.gpus);
  if (!options.stack.empty() && options.cluster.empty() && !launches)
    refuse("--stack " + options.stack);
  problems.throw_if_any();
}

void write_kernels(const std::string& file, const std::vector<calibration::Trace>& traces,
                   bool force) {
  if (!are_of_one_gpu(traces)) {
    print_message("shardwright import: no kernels.csv, because the traces are of different GPUs");
    return;
  }
  const std::vector<MeasuredKernel> kernels = calibration::gemm_timings(traces);
  write_file(
      file, [&](std::ostream& stream) { sim::write_kernel_table(stream, kernels); }, force);
}

void write_plan(const std::string& file, const std::vector<LaunchedPlan>& plans, bool force) {
  if (plans.size() > 1)
    print_message("shardwright import: no plan.json, because several files launch runs");
  if (plans.size() != 1) return;
  write_file(file, json_text(to_json(plans.front().imported.scenario)), force);
}

std::optional<Profile> profile_of(const ImportOptions& options,
                                  const std::optional<ChosenScenario>& chosen) {
  if (chosen) return Profile{chosen->scenario.cluster, chosen->scenario.stack};
  if (options.scenario.cluster.empty()) return std::nullopt;
  ProblemList problems("shardwright import");
  Profile profile;
  profile.cluster = read_cluster_option(options.scenario.cluster, problems);
  profile.stack = read_stack_option(options.scenario.stack, profile.cluster, problems);
  problems.throw_if_any();
  return profile;
}

// What all traces together tell.
struct Findings {
  std::vector<calibration::TraceReport> reports;
  // One entry for each trace; the device is empty where no profile has its GPU.
  std::vector<std::optional<calibration::LayerStructure>> structures;
  std::vector<std::optional<AcceleratorSpec>> devices;
  std::optional<calibration::RankMatching> matching;
  std::optional<ChosenScenario> chosen;
  std::vector<calibration::ProgramMatch> matches;
  // Of a profile that traces refit.
  std::optional<calibration::Calibration> refitted;
  // What the refit and the comparison with a plan leave out, and why.
  std::vector<std::string> warnings;
  std::optional<calibration::HeldOut> held_out;
  std::optional<calibration::OverlappedGradients> overlap;
  // The predicted step of the plan, if there are logs or memory snapshots.
  std::optional<sim::StepResult> planned;

  // Returns the predicted memory of the plan's fullest stage.
  std::optional<sim::MemoryPeak> planned_memory() const {
    return planned ? std::optional(planned->memory()) : std::nullopt;
  }
};

const AcceleratorSpec* device_of(const std::optional<AcceleratorSpec>& device) {
  return device ? &*device : nullptr;
}

std::optional<AcceleratorSpec> shipped_device(const std::string& gpu) {
  const std::optional<std::string> name = find_accelerator(gpu);
  return name ? std::optional(load_accelerator(*name)) : std::nullopt;
}

void check_what_if(const std::string& what_if) {
  if (!what_if.empty() && what_if != kOverlapGradients)
    throw InputError("shardwright import",
                     {{"--what-if", fmt::format("\"{}\"", what_if), kOverlapGradients}});
}

std::optional<calibration::RankMatching> match_ranks(const std::vector<calibration::Trace>& traces,
                                                     const ImportOptions& options) {
  const InterruptWatch interrupt;
  ProgressLine line(show_progress(options.common));
  return calibration::match_ranks(
      traces, {[&](double share) { line.show(share, "matching collectives across ranks"); },
               interrupt.token()});
}

// The ranks of all files of NCCL's Inspector.
std::vector<calibration::InspectorProcess> inspector_processes(const Recordings& recordings) {
  std::vector<calibration::InspectorProcess> processes;
  for (const calibration::CollectiveFile& file : recordings.collectives)
    processes.insert(processes.end(), file.processes.begin(), file.processes.end());
  return processes;
}

// Logs take times from the plan where they need them.
Findings explain(const ImportOptions& options, Recordings& recordings) {
  const std::vector<calibration::Trace>& traces = recordings.traces;
  Findings findings;
  for (const calibration::Trace& trace : traces) {
    findings.reports.push_back(calibration::report_of(trace));
    findings.structures.push_back(calibration::layer_structure(trace));
    findings.devices.push_back(shipped_device(trace.gpu));
  }
  // Of a job that was traced and watched by Inspector, the traces tell more.
  findings.matching = traces.empty() ? calibration::match_processes(inspector_processes(recordings))
                                     : match_ranks(traces, options);
  findings.warnings = warnings_about(traces);
  if (names_a_plan(options.scenario)) {
    findings.chosen = choose_scenario(options.scenario, "shardwright import");
    findings.matches = match_plan(traces, findings.chosen->scenario);
    std::ranges::move(take_times_from_throughput(recordings.logs, findings.chosen->scenario.plan),
                      std::back_inserter(findings.warnings));
    std::ranges::move(warnings_of_batches(recordings.logs, findings.chosen->scenario.plan),
                      std::back_inserter(findings.warnings));
    if (!recordings.memory.empty() || !recordings.logs.empty())
      findings.planned = sim::simulate_at(findings.chosen->scenario, sim::Fidelity::Event).result;
  }
  const std::optional<Profile> profile = profile_of(options, findings.chosen);
  if (profile && !traces.empty()) {
    Refit refit = refit_profile(*profile, traces, findings.matches, findings.matching);
    findings.refitted = std::move(refit.calibration);
    std::ranges::move(refit.warnings, std::back_inserter(findings.warnings));
  }
  if (std::string warning = other_shapes_warning(findings.matches); !warning.empty())
    findings.warnings.insert(findings.warnings.begin(), std::move(warning));
  if (profile && !findings.chosen && traces.empty() && recordings.plans.empty())
    findings.warnings.emplace_back(
        "No profile is refitted: there is no trace. `shardwright calibrate` refits one from the "
        "output of nccl-tests and of NCCL's Inspector.");
  if (!options.against.empty()) {
    const std::vector<calibration::Trace> held_out = read_against(options);
    findings.held_out = calibration::predict_held_out(traces, held_out);
    std::ranges::move(warnings_of_other_gpus(traces, held_out),
                      std::back_inserter(findings.warnings));
  }
  if (!options.what_if.empty()) findings.overlap = calibration::overlap_gradients(traces);
  return findings;
}

template <class Parts>
nlohmann::ordered_json array_of(const Parts& parts) {
  auto array = nlohmann::ordered_json::array();
  for (const auto& each : parts) array.push_back(calibration::to_json(each));
  return array;
}

nlohmann::ordered_json document_of(const Findings& findings, const Recordings& recordings) {
  nlohmann::ordered_json document = new_document("trace-report");
  document["files"] = array_of(findings.reports);
  for (std::size_t i = 0; i < findings.structures.size(); ++i) {
    document["files"][i]["structure"] =
        findings.structures[i] ? calibration::to_json(*findings.structures[i]) : nullptr;
    document["files"][i]["products"] =
        calibration::to_json(calibration::timed_products(std::span(&recordings.traces[i], 1)),
                             device_of(findings.devices[i]));
  }
  for (const calibration::CollectiveFile& file : recordings.collectives)
    document["files"].push_back(calibration::to_json(file));
  document["logs"] = array_of(recordings.logs);
  document["jobs"] = array_of(recordings.jobs);
  document["plans"] = nlohmann::ordered_json::array();
  for (const LaunchedPlan& plan : recordings.plans) document["plans"].push_back(to_json(plan));
  document["memory"] = array_of(recordings.memory);
  document["planned_memory"] = nullptr;
  if (findings.planned && !recordings.memory.empty())
    document["planned_memory"] = planned_memory_json(findings.planned->memory());
  document["planned_step_s"] = nullptr;
  if (findings.planned && !recordings.logs.empty())
    document["planned_step_s"] = findings.planned->step.value();
  document["across_ranks"] = findings.matching ? calibration::to_json(*findings.matching) : nullptr;
  document["matched"] = nullptr;
  if (findings.chosen)
    document["matched"] = {{"filled_in", findings.chosen->filled_in},
                           {"notes", findings.chosen->notes},
                           {"files", array_of(findings.matches)}};
  document["warnings"] = findings.warnings;
  document["calibration"] = findings.refitted ? calibration_json(*findings.refitted) : nullptr;
  document["held_out"] = findings.held_out ? calibration::to_json(*findings.held_out) : nullptr;
  document["what_if"] = nullptr;
  if (findings.overlap)
    document["what_if"] = {{"overlap_gradients", calibration::to_json(*findings.overlap)}};
  return document;
}

void write_files(const ImportOptions& options, const OutputFiles& files, const Findings& findings,
                 const nlohmann::ordered_json& document, const Recordings& recordings) {
  if (options.out.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  refuse_unless_folder(options.out, options);
  write_file(files.report, json_text(document), options.common.force);
  if (!recordings.traces.empty() ||
      (recordings.plans.empty() && recordings.memory.empty() && recordings.collectives.empty()))
    write_kernels(files.kernels, recordings.traces, options.common.force);
  write_plan(files.plan, recordings.plans, options.common.force);
  if (findings.refitted)
    write_file(files.cluster, json_text(to_json(findings.refitted->cluster)), options.common.force);
}

// Steps, times, layers and products of the traces.
void add_trace_parts(Page& page, const Findings& findings, const Recordings& recordings,
                     bool draws_step) {
  if (findings.reports.empty()) return;
  const std::size_t shown = first_with_device(recordings.traces);
  const Timeline step =
      draws_step ? calibration::timeline_of_one_step(recordings.traces[shown]) : Timeline();
  add_traces(page, findings.reports, findings.matching, step, shown);
  const auto structure =
      std::ranges::find_if(findings.structures, [](const auto& each) { return each.has_value(); });
  if (structure != findings.structures.end()) add_structure(page, **structure);
  if (are_of_one_gpu(recordings.traces))
    add_products(page, calibration::timed_products(recordings.traces),
                 device_of(findings.devices[shown]));
}

// What files other than traces tell.
void add_other_recordings(Page& page, const Findings& findings, const Recordings& recordings) {
  if (!recordings.logs.empty())
    add_training_logs(page, recordings.logs,
                      findings.planned ? std::optional(findings.planned->step) : std::nullopt);
  for (const calibration::CollectiveFile& file : recordings.collectives)
    if (file.processes.empty()) add_collective_file(page, file);
  add_inspector(page, inspector_processes(recordings),
                recordings.traces.empty() ? findings.matching : std::nullopt);
  for (const calibration::StragglerAnalysis& job : recordings.jobs) add_job(page, job);
  for (const LaunchedPlan& plan : recordings.plans) add_launched_plan(page, plan);
  for (const calibration::MemorySnapshot& snapshot : recordings.memory)
    add_memory_snapshot(page, snapshot, findings.planned_memory());
}

// What follows for a plan, a profile and other traces.
void add_conclusions(Page& page, const Findings& findings) {
  add_program_matches(page, findings.matches);
  for (const std::string& warning : findings.warnings) page.warning(warning);
  if (findings.refitted) {
    page.heading("Refitted profile");
    add_calibration(page, *findings.refitted, true);
  }
  if (findings.held_out) add_held_out(page, *findings.held_out);
  if (findings.overlap) add_overlap(page, *findings.overlap);
}

ExitCode import_traces(ImportOptions options) {
  check_destination("--json", options.common.json, options.common.force);
  check_what_if(options.what_if);
  const OutputFiles files = check_folder(options);
  options.files = files_to_read(options.files);
  Recordings recordings = read_recordings(options.files, options.scenario,
                                          script_parameters(kArguments, options.arguments),
                                          show_progress(options.common));
  refuse_without_a_script(options, recordings);
  refuse_without_traces(options, recordings);
  refuse_without_a_plan(options.scenario, recordings);
  const Findings findings = explain(options, recordings);
  const nlohmann::ordered_json document = document_of(findings, recordings);
  write_files(options, files, findings, document, recordings);
  if (findings.chosen) print_notes("shardwright import", findings.chosen->notes);
  Page page = new_page(options.common);
  // Text shows no picture.
  add_trace_parts(page, findings, recordings, !options.common.html.empty());
  add_other_recordings(page, findings, recordings);
  add_conclusions(page, findings);
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
  shardwright import rank*.json.gz --plan plan.json --out measured
  shardwright import rank*.json.gz --cluster dgx-h100 --out measured
  shardwright import pretrain_gpt.sh --cluster dgx-h100 --out measured
  shardwright import run.sh --arguments "8B 4096 bf16" --gpus 64
  shardwright import snapshot.pickle --plan plan.json
  nsys export --type sqlite report.nsys-rep && shardwright import report.sqlite)");
  const auto options = std::make_shared<ImportOptions>();
  add_option(
      *command, "files", options->files, "FILE...",
      "Traces: JSON of PyTorch's profiler or SQLite of nsys export, a file for each rank or their "
      "folder; "
      "logs of Megatron-LM, NeMo, torchtitan and DeepSpeed; records of a job's ops (CSV); scripts "
      "that launch Megatron-LM, its checkpoints, YAML of NeMo and Megatron-Bridge; memory "
      "snapshots of PyTorch; output of nccl-tests and of NCCL's Inspector; plain or "
      "compressed with gzip")
      ->required();
  add_option(*command, "--out", options->out, "FOLDER",
             "Folder for trace_report.json, kernels.csv, with a plan or a cluster the refitted "
             "cluster.json, and the plan.json of a launch; made if it is not there");
  add_option(
      *command, "--against", options->against, "FILE...",
      "Traces of further ranks, or of another run of the same program, that the others predict: "
      "each kernel, and the step");
  add_option(*command, "--what-if", options->what_if, kOverlapGradients,
             "Also predict the step with each gradient reduced as soon as it is there");
  add_option(*command, kArguments, options->arguments, "TEXT",
             "Positional parameters of a launch script, $1, $2 and so on, as they stand behind its "
             "name");
  add_scenario_options(*command, options->scenario);
  add_common_options(*command, options->common);
  command->callback([options, &action] {
    action = [options] {
      try {
        return import_traces(*options);
      } catch (const ReadingStopped&) {
        return ExitCode::Interrupted;
      }
    };
  });
}

}  // namespace shardwright::cli
