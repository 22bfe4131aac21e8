// The program `shardwright-executor`: trains a model under a plan. `shardwright run` starts it, and
// so do torchrun, Slurm and mpirun.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/lowering/lowering.hpp"
#include "core/program/executable.hpp"
#include "core/spec/parameter_servers.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/scenario.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/checkpoint/weight_export.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/comm/socket.hpp"
#include "executor/data/batch_loader.hpp"
#include "executor/launch/agreement.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/load_balance.hpp"
#include "executor/launch/local_launcher.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/launch/rank_process.hpp"
#include "executor/launch/restarts.hpp"
#include "executor/launch/run_folder.hpp"
#include "executor/launch/run_options.hpp"
#include "executor/launch/run_signals.hpp"
#include "executor/probe/probe_process.hpp"
#include "executor/runtime/run_checks.hpp"
#include "executor/telemetry/log.hpp"

namespace {

using namespace shardwright;
using namespace shardwright::executor;

constexpr int kFailure = 1, kBadInput = kBadInputStatus;

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Checks the GPUs before ranks start. Other launchers may show each process a GPU of its own; there
// the ranks themselves check that they do not share one (claim_gpu).
void prepare_gpus(bool share_gpu, const std::optional<LaunchPlace>& place, std::int64_t world) {
  if (!place) check_gpus(world, share_gpu);
  if (share_gpu && (!place || place->serves_rendezvous))
    log_warning("ranks share GPUs: measured times do not apply to a cluster");
}

std::string token_of(const LaunchPlace& place) {
  const auto token = environment("SHARDWRIGHT_TOKEN");
  // 16 characters of `openssl rand -hex` are 64 bits.
  constexpr std::size_t kLeast = 16;
  if (place.world > 1 && token.value_or("").size() < kLeast) {
    throw InputError(
        "the environment",
        {{"SHARDWRIGHT_TOKEN", token ? fmt::format("{} characters", token->size()) : "nothing",
          fmt::format("a secret of at least {} characters that all ranks of the run share, for "
                      "instance from `openssl rand -hex 16`",
                      kLeast)}});
  }
  return token.value_or("");
}

// Reads a plan file and sets the number of its parameter servers, if it has any and leaves that
// open.
Scenario load_executed(const std::string& file) {
  Scenario scenario = load_scenario(file);
  ReplicaAgreement& replicas = scenario.plan.replicas;
  if (replicas.has_servers())
    replicas.servers = server_nodes(scenario.plan, scenario.cluster).processes;
  return scenario;
}

// Ranks and parameter servers.
std::int64_t processes_of(const Plan& plan) {
  return plan.world_size() + (plan.replicas.has_servers() ? plan.replicas.servers : 0);
}

// The checked inputs of this process.
struct CheckedRun {
  Scenario scenario;
  Device device = Device::Cpu;
  std::optional<LaunchPlace> place;
};

// Returns this process's place in a world of as many ranks as the plan uses. Throws InputError.
std::optional<LaunchPlace> place_under(const RunOptions& options, const Plan& plan) {
  const std::int64_t ranks = processes_of(plan);
  std::optional<LaunchPlace> place;
  try {
    place = read_launch_place(environment, options.local);
  } catch (RefusedRank& refused) {
    refused.place.world = std::max(refused.place.world, ranks);
    throw;
  }
  if (!place || place->world == ranks) return place;
  const InputError error(
      options.plan_now(),
      {{"/plan", fmt::format("a plan for {} {}", ranks, ranks == 1 ? "rank" : "ranks"),
        fmt::format("one for the {} that {} started", place->world, place->launcher)}});
  place->world = std::max(place->world, ranks);
  throw RefusedRank(error, *place);
}

// Throws InputError if the ranks would not know their gradients' noise.
void check_grows_batch(const RunOptions& options, const Scenario& scenario) {
  ProblemList problems(options.plan_now());
  if (!knows_own_gradients(scenario.model, lower(scenario.model, scenario.plan, scenario.stack))) {
    problems.add("/plan", "ranks that do not know the noise of their gradients",
                 "for --global-batch auto: dp above 1, cp 1, ZeRO 0 or 1, no experts, no embedding "
                 "tied over stages; shardwright plan --fix zero=1 --fix cp=1 finds such plans");
  }
  if (options.most_batch < scenario.plan.global_batch) {
    problems.add("--max-global-batch", fmt::format("{}", options.most_batch),
                 fmt::format("at least the plan's {}", scenario.plan.global_batch));
  }
  problems.throw_if_any();
}

// Throws InputError if a validation would be part of what replicas agree on.
void check_validation(const RunOptions& options, const Scenario& scenario) {
  if (options.validation_ratio <= 0.0 || scenario.plan.replicas == ReplicaAgreement()) return;
  throw InputError(options.plan_now(),
                   {{"/plan/data_parallel", "replicas that keep something between exchanges",
                     "for --validation-ratio: all-reduced gradients, uncompressed"}});
}

// Throws InputError if a lost parameter server would count as a lost rank, or if no plan for the
// remaining ranks could be found.
void check_elastic(const RunOptions& options, const Plan& plan) {
  if (!options.elastic) return;
  ProblemList problems(options.plan_now());
  if (plan.replicas.has_servers()) {
    problems.add("/plan/data_parallel/sync", name_of(plan.replicas.sync),
                 "for --elastic: all-reduce or local-steps");
  }
  if (names_pools(plan)) {
    const bool stages = !plan.stage_pools.empty();
    problems.add(stages ? "/plan/stage_pools" : "/plan/replica_pools",
                 fmt::format("{}", fmt::join(pools_of(plan), ", ")),
                 fmt::format("for --elastic: {} on one pool, and no such key",
                             stages ? "stages" : "replicas"));
  }
  problems.throw_if_any();
}

// Throws InputError if the run cannot move work between its ranks.
void check_rebalance(const RunOptions& options, const Plan& plan, Device device) {
  if (!options.rebalance) return;
  if (!options.slowdowns.empty() &&
      static_cast<std::int64_t>(options.slowdowns.size()) != plan.world_size()) {
    throw InputError("--slowdowns", {{"", fmt::format("{} numbers", options.slowdowns.size()),
                                      fmt::format("one for each of {} ranks", plan.world_size())}});
  }
  // A plan to continue with has pools by the ranks' speeds.
  if (options.continued_plan.empty()) check_can_rebalance(plan, options.plan);
  if (device == Device::Cuda) {
    throw InputError("--rebalance", {{"", "a run on GPUs",
                                      "a run on CPUs, where the time of each kernel is known "
                                      "without slowing it down"}});
  }
}

// Throws InputError if another launcher started this process: the ranks of some runs start anew.
void check_own_launcher(const RunOptions& options, const std::optional<LaunchPlace>& place) {
  if (!place || place->launcher == kOwnLauncher) return;
  const auto refuse = [&](const char* option, const std::string& found) {
    throw InputError(option, {{"", fmt::format("{} under {}", found, place->launcher),
                               "the ranks of `shardwright run`, which it starts anew"}});
  };
  if (options.grows_batch()) refuse("--global-batch", "auto");
  if (options.rebalance) refuse("--rebalance", "the option");
}

// Checks everything that one process can check before the rendezvous. Throws InputError.
CheckedRun check_run(const RunOptions& options) {
  check_run_options(options);
  const Scenario scenario = load_executed(options.plan_now());
  check_elastic(options, scenario.plan);
  const Device device = choose_device(options.device, scenario.plan.precision);
  check_executable(scenario.model, scenario.plan, scenario.stack, device == Device::Cuda,
                   options.plan_now());
  if (options.grows_batch()) check_grows_batch(options, scenario);
  check_validation(options, scenario);
  check_balance_loss(scenario.model, scenario.plan, options.training.balance_loss);
  check_rebalance(options, scenario.plan, device);
  check_checkpoints(scenario.plan, options.checkpoint_every > 0 || options.resume);
  // Errors in data and weights are reported once, before ranks start.
  const TokenFile file(options.data);
  const BatchLoader loader(file, scenario.plan, scenario.model.vocab, options.training.seed,
                           options.validation_ratio);
  if (!options.init_from.empty()) WeightFiles(options.init_from).check(scenario.model);
  const std::int64_t world = scenario.plan.world_size();
  std::optional<LaunchPlace> place = place_under(options, scenario.plan);
  check_own_launcher(options, place);
  // Our own launcher has checked it already. Tokens beyond the checked part are found during
  // training (report_bad_input).
  if (!place || place->launcher != kOwnLauncher) loader.check(options.training.steps);
  if (device == Device::Cuda) prepare_gpus(options.share_gpu, place, world);
  if (device == Device::Cpu && options.share_gpu && (!place || place->serves_rendezvous))
    log_warning("--share-gpu has no effect: the run uses CPUs");
  // Only one process checks the folder: our launcher, or rank 0 under another one, where the folder
  // does not change before the ranks have agreed (run_rank).
  if (!place || place->serves_rendezvous) {
    check_run_folder(options);
    check_free_space(options, scenario.model);
    for (const std::string& remark : remarks_on(options)) log_warning(remark);
  }
  return {scenario, device, place};
}

int run(const RunOptions& options, const CheckedRun& checked,
        const std::vector<std::string>& arguments) {
  const std::int64_t world = processes_of(checked.scenario.plan);
  std::optional<LaunchPlace> place = checked.place;
  const bool launches = !place && (world > 1 || options.restarts > 0);
  start_log(options.verbose,
            fmt::format("{} on {}",
                        launches ? "launcher" : fmt::format("rank {}", place ? place->rank : 0),
                        host_name()));
  const Plan& plan = checked.scenario.plan;
  log_debug(fmt::format("{}: model {}, device {}, dp {} tp {} pp {}, global batch {}",
                        options.plan_now(), checked.scenario.model.name, name_of(checked.device),
                        plan.dp, plan.tp, plan.pp, plan.global_batch));
  std::optional<FolderLock> folder;
  if (!place) folder.emplace(prepare_run_folder(options));
  if (launches) return launch_with_restarts(options, world, arguments);
  if (!place) place = LaunchPlace{};
  return run_rank(options, checked.scenario, *place, checked.device, token_of(*place));
}

// Returns this rank's place as the other ranks may see it.
std::optional<LaunchPlace> place_among_others(bool only_own, const InputError& error) {
  if (const auto* refused = dynamic_cast<const RefusedRank*>(&error)) return refused->place;
  try {
    return read_launch_place(environment, only_own);
  } catch (const RefusedRank& refused) {
    return refused.place;
  }
}

// Reports to the other ranks why this one exits.
int refuse(const RunOptions& options, bool only_own, const InputError& error) {
  try {
    const auto place = place_among_others(only_own, error);
    if (place) report_to_other_ranks(*place, token_of(*place), error, options.timeout());
  } catch (const InputError&) {
    // This rank's number or the secret is unknown.
  }
  return kBadInput;
}

int probe(const ProbeOptions& options, const std::vector<std::string>& arguments) {
  std::optional<LaunchPlace> place = read_launch_place(environment, options.local);
  const Device device = probe_device(options);
  const std::int64_t ranks = probe_ranks(options, device);
  if (place && options.ranks > 0 && place->world != options.ranks) {
    throw InputError("shardwright-executor probe",
                     {{"--ranks", std::to_string(options.ranks),
                       fmt::format("{}, as many as {} started", place->world, place->launcher)}});
  }
  if (device == Device::Cuda) prepare_gpus(options.share_gpu, place, ranks);
  if (!place && ranks > 1) return launch_ranks(ranks, arguments, {}).status;
  if (!place) place = LaunchPlace{};
  probe_rank(options, *place, device, token_of(*place));
  return 0;
}

// Returns `status`, or a failure if standard output could not be written.
int status_after_output(int status) {
  // The reason for failures of earlier writes.
  errno = EIO;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  // A reader that has closed the pipe needs no message.
  if (errno != EPIPE)
    log_error(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
  return status == 0 ? kFailure : status;
}

void add_export_options(CLI::App& app, WeightExport& options) {
  app.add_option("--weights", options.run, "Folder of the run")->required()->type_name("FOLDER");
  app.add_option("--out", options.out, "Folder for the model")->required()->type_name("FOLDER");
  app.add_option("--dtype", options.dtype, "bf16 or fp32")->capture_default_str();
  app.add_option("--shard-bytes", options.shard_bytes, "Most bytes of a file of several tensors")
      ->check(integer_from(1))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--force", options.force, "Replace the model in a folder that is not empty");
}

// Parses the arguments behind the name of a subcommand. Returns the status to exit with where they
// ask for help or are wrong.
std::optional<int> parse_subcommand(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }
  return std::nullopt;
}

// `shardwright-executor probe …`
int parse_and_probe(int argc, char** argv) {
  CLI::App app("Times kernels and communication on this machine", "shardwright-executor probe");
  ProbeOptions options;
  add_probe_options(app, options);
  if (const auto status = parse_subcommand(app, argc, argv)) return *status;
  return probe(options, std::vector<std::string>(argv, argv + argc));
}

// `shardwright-executor export …`, as `shardwright export` starts it.
int parse_and_export(int argc, char** argv) {
  CLI::App app("Writes the weights of a run's last checkpoint in Hugging Face's format",
               "shardwright-executor export");
  WeightExport options;
  add_export_options(app, options);
  if (const auto status = parse_subcommand(app, argc, argv)) return *status;
  const ExportedWeights exported = export_weights(options);
  log_info(fmt::format("{}: the weights of {} after step {}: {} in {} {}", options.out.string(),
                       printable(exported.model), exported.steps,
                       format_bytes(Bytes(static_cast<double>(exported.bytes))), exported.files,
                       exported.files == 1 ? "file" : "files"));
  return 0;
}

int parse_and_run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "probe") return parse_and_probe(argc, argv);
  if (argc > 1 && std::string(argv[1]) == "export") return parse_and_export(argc, argv);
  const bool by_command = std::find(argv, argv + argc, std::string("--local")) != argv + argc;
  CLI::App app("Train a model under a plan, on one or many ranks",
               by_command ? "shardwright run" : "shardwright-executor");
  RunOptions options;
  listen_for_requests();
  add_run_options(app, options);
  if (by_command)
    app.footer("--options FILE takes options from a file in YAML or JSON, as in steps: 40.");
  std::optional<CheckedRun> checked;
  try {
    app.parse(argc, argv);
    start_log(options.verbose, "process on " + host_name());
    checked = check_run(options);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return 0;
    // A command line that cannot be parsed may not have set options.local.
    return refuse(options, by_command,
                  {"the command line", {{"", error.what(), "what --help says"}}});
  } catch (const InputError& error) {
    log_error(error.what());
    return refuse(options, by_command, error);
  }
  return run(options, *checked, std::vector<std::string>(argv, argv + argc));
}

}  // namespace

int main(int argc, char** argv) {
  // Ignoring SIGPIPE also suits Gloo's sockets to ranks that have died.
  prepare_standard_streams();
  try {
    return status_after_output(parse_and_run(argc, argv));
  } catch (const InputError& error) {
    log_error(error.what());
    return kBadInput;
  } catch (const BadInputReportedElsewhere&) {
    return kBadInput;
  } catch (const ReportedElsewhere&) {
    return stop_status() != 0 ? stop_status() : kFailure;
  } catch (const std::exception& error) {
    log_error(fmt::format("shardwright-executor: {}", printable(error.what())));
    return kFailure;
  }
}
