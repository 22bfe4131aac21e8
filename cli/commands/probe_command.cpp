// shardwright probe
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/command.hpp"
#include "cli/options/option_values.hpp"
#include "cli/output/calibration_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/programs/here_profile.hpp"
#include "core/base/error.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/this_machine.hpp"

namespace shardwright::cli {
namespace {

struct ProbeOptions {
  CommonOptions common;
  std::string out, from, keep, device = "auto", ranks, steps;
  bool share_gpu = false;
};

std::string heading_of(const ClusterSpec& machine) {
  std::string host = fmt::format("{} × {}", machine.node.host.cpu, machine.nodes);
  if (machine.accelerator.architecture == Architecture::Cpu) return host;
  return fmt::format("{} × {}, {}", machine.node.accelerators * machine.nodes,
                     machine.accelerator.name, host);
}

ExitCode probe(const ProbeOptions& options) {
  check_destinations({{"--json", options.common.json}, {"--out", options.out}},
                     options.common.force);
  const bool measures = !options.ranks.empty() || !options.keep.empty() || !options.steps.empty() ||
                        options.device != "auto" || options.share_gpu;
  if (!options.from.empty() && measures) {
    throw InputError("shardwright probe",
                     {{"--from", "also --ranks, --steps, --keep, --device or --share-gpu",
                       "measurements that are there"}});
  }
  ProblemList problems("shardwright probe");
  const auto count = [&](const char* option, const std::string& text, std::int64_t most) {
    return text.empty() ? 0 : read_count(option, text, most, problems);
  };
  const std::int64_t ranks = count("--ranks", options.ranks, 1024);
  const std::int64_t steps = count("--steps", options.steps, 10'000);
  problems.throw_if_any();
  const calibration::Calibration calibration =
      options.from.empty() ? probe_machine({options.device, options.share_gpu, ranks, steps,
                                            show_progress(options.common), options.keep})
                           : profile_of_probe(options.from);
  write_file(options.out, json_text(to_json(calibration.cluster)), options.common.force);
  Page page = new_page(options.common);
  page.heading(heading_of(calibration.cluster));
  page.paragraph(calibration.cluster.accelerator.notes);
  add_calibration(page, calibration, false);
  nlohmann::ordered_json document = new_document("probe");
  document.update(calibration_json(calibration));
  deliver(options.common, page, document, options.out == "-");
  return ExitCode::Ok;
}

}  // namespace

void add_probe_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("probe", "Measure this machine and describe it as a cluster profile");
  command->footer(R"(Examples:
  shardwright probe --out here.json
  shardwright probe --ranks 2 --keep measurements --out here.json
The CPUs of a machine with GPUs:
  shardwright probe --device cpu --out here.json
From the measurements of several hosts:
  shardwright probe --from measurements --out cluster.json

On several hosts start `shardwright-executor probe --out measurements` under torchrun, Slurm or
mpirun, with a folder that all of them share.)");
  const auto options = std::make_shared<ProbeOptions>();
  add_option(*command, "--out", options->out, "FILE|-", "File for the profile")->required();
  add_option(*command, "--device", options->device, "DEVICE",
             "cpu, cuda, or auto: GPUs if there are any that support bf16")
      ->check(device_problem)
      ->capture_default_str();
  command->add_flag("--share-gpu", options->share_gpu,
                    "Let ranks share a GPU (for a trial; the timings mean nothing)");
  add_option(*command, "--ranks", options->ranks, "N",
             "Number of ranks (default: one per GPU, or per core)");
  add_option(*command, "--steps", options->steps, "N",
             "Training steps of each of the probe's models (default 12)");
  add_option(*command, "--keep", options->keep, "FOLDER", "Keep the measurements in this folder");
  add_option(*command, "--from", options->from, "FOLDER",
             "Build the profile from these measurements instead of measuring");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return probe(*options); }; });
}

}  // namespace shardwright::cli
