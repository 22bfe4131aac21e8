#include "executor/launch/rank_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"
#include "core/lowering/lowering.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/parameter_files.hpp"
#include "executor/checkpoint/resumed_state.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/comm/socket.hpp"
#include "executor/data/batch_loader.hpp"
#include "executor/data/hash.hpp"
#include "executor/launch/agreement.hpp"
#include "executor/launch/heartbeat.hpp"
#include "executor/launch/load_balance.hpp"
#include "executor/launch/rendezvous.hpp"
#include "executor/launch/run_folder.hpp"
#include "executor/launch/run_inputs.hpp"
#include "executor/launch/run_signals.hpp"
#include "executor/launch/server_process.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/runtime/run_checks.hpp"
#include "executor/telemetry/log.hpp"
#include "executor/telemetry/metrics_log.hpp"
#include "executor/telemetry/run_files.hpp"
#include "executor/telemetry/run_summary.hpp"

namespace shardwright::executor {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{100};

enum class Activity : std::uint8_t { Starting, Training, Validating, Saving };

std::string name_of_rank(std::int64_t rank) {
  return fmt::format("rank {} on {}", rank, host_name());
}

// The data of a run; its checksum is computed once.
struct Corpus {
  TokenFile file;
  std::string checksum = file.checksum();
};

class RankRun {
 public:
  RankRun(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
          Device device, const Corpus& data, Rendezvous& rendezvous, Heartbeat& heartbeat,
          std::function<void()> check_others)
      : options_(options),
        scenario_(scenario),
        plan_(scenario.plan),
        rank_(place.rank),
        recorded_(options.recorded_steps()),
        device_(device),
        store_(rendezvous.store()),
        heartbeat_(heartbeat),
        loader_(data.file, scenario.plan, scenario.model.vocab, options.training.seed,
                options.validation_ratio),
        program_(lower(scenario.model, scenario.plan, scenario.stack)),
        backend_(open_backend(device, rendezvous.store(), place,
                              {options.timeout(), options.share_gpu, plan_.precision})),
        trainer_(scenario.model, program_, place.rank, backend_->kernels(),
                 with_log(backend_->opener()), options.training, backend_->queues()),
        checkpoint_store_(rendezvous.connect()),
        checkpoints_(options.checkpoints(std::move(check_others)), scenario.model, trainer_,
                     *checkpoint_store_, log_warning) {
    state_.seed = options.training.seed;
    state_.seq_len = plan_.seq_len;
    state_.model = scenario.model.name;
    state_.model_checksum = architecture_checksum(scenario.model);
    state_.data_tokens = loader_.training_tokens();
    state_.data_checksum = data.checksum;
    state_.options = hyperparameters_of(options, plan_);
    if (options.rebalance && rank_ == 0)
      slow_ranks_.emplace(program_, options.slowdowns, *rendezvous.store());
    heartbeat_.describe_activity([this] { return describe_activity(); });
  }
  ~RankRun() { heartbeat_.describe_activity(nullptr); }
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  void train() {
    if (!options_.resume || !resume()) {
      options_.init_from.empty() ? trainer_.set_initial_parameters() : read_published_weights();
    }
    const std::unique_ptr<MetricsLog> metrics = begin_files();
    take_requests();
    began_ = std::chrono::steady_clock::now();
    ProgressLine progress(rank_ == 0 && !options_.no_progress && !options_.verbose, kBetweenLines);
    while (state_.steps < options_.last_step() && !wants_other_plan_ && !requested_.stop) {
      const std::int64_t step = state_.steps;
      step_ = step;
      activity_ = Activity::Training;
      StepReport report = run_step(step);
      requested_ = report.requested;
      wants_other_plan_ = requested_.replan;
      if (slow_ranks_) {
        slow_ranks_->add(step, report.rank_compute_s);
        report.slowest = slow_ranks_->slowest();
      }
      if (options_.validates_after(step + 1) && std::isfinite(report.loss))
        report.validation_loss = validate();
      const double stalled = checkpoints_.times().stalled_s;
      if (metrics) {
        try_telemetry([&] {
          metrics->write(report, memory_of(trainer_, backend_->kernels()),
                         stalled - stalled_before_);
        });
      }
      stalled_before_ = stalled;
      if (metrics && trainer_.reports_small_batches()) state_.noise = metrics->noise();
      if (options_.grows_batch() && report.small_batch_squares) decide_on_batch();
      progress.show(
          fmt::format("step {}/{}  loss {:.4f}", step + 1, options_.training.steps, report.loss));
      if (rank_ == 0)
        log_debug(fmt::format("step {}: loss {:.4f}, gradient norm {:.4f}, {:.4f} s", step,
                              report.loss, report.gradient_norm, report.seconds));
      if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm))
        report.update ? fail_alone(report) : fail_for_not_finite(report);
      last_ = report;
      summary_.add(report);
      ++state_.steps;
      state_.samples += static_cast<std::uint64_t>(plan_.global_batch);
      const bool asked = requested_.save || requested_.stop;
      if (options_.saves_after(state_.steps) || wants_other_plan_ || asked) save();
      if (asked) report_requested_checkpoint();
    }
    activity_ = Activity::Saving;
    checkpoints_.finish();
    if (metrics) try_telemetry([&] { metrics->finish(); });
  }

  bool was_terminated() const { return requested_.stop; }

  void print_result() const {
    if (!last_)
      return fmt::print("nothing to do: {} steps are complete, and --steps is {}\n", state_.steps,
                        options_.training.steps);
    fmt::print("{} steps, loss {:.4f}, {}\n", state_.steps, last_->loss,
               options_.metrics_file().string());
    const CheckpointTimes& times = checkpoints_.times();
    if (times.count > 0)
      fmt::print("checkpoints: {}; each stalled training for {:.4f} s\n", times.count,
                 times.stalled_s / static_cast<double>(times.count));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began_;
    fmt::print("{}\n", summary_.limit(elapsed.count(), times.stalled_s));
  }

 private:
  // Signals before the first step end the process: it has nothing to save. Plans whose state is in
  // no checkpoint, or whose replicas do not agree in each step, end at once.
  void take_requests() {
    const bool saves = allows_checkpoints(plan_) && !plan_.replicas.stale();
    if (saves) listen_for_termination();
    trainer_.poll_requests([this, saves] {
      RankRequests requests = saves ? requests_by_signals() : RankRequests();
      const bool grows = saves && options_.elastic && take_growth_request();
      requests.replan = grows || (slow_ranks_ && slow_ranks_->has_other_plan());
      return requests;
    });
  }

  void save() {
    activity_ = Activity::Saving;
    trainer_.collect_states();
    checkpoints_.save(state_);
    if (rank_ == 0)
      log_debug(fmt::format("checkpoint of step {}: training stalled for {:.4f} s", state_.steps,
                            checkpoints_.times().stalled_s - stalled_before_));
  }

  // All ranks call it after a checkpoint that a signal asked for.
  void report_requested_checkpoint() {
    checkpoints_.finish();
    if (rank_ != 0) return;
    const std::string file = CheckpointFolder(options_.checkpoint_folder()).path(state_.steps);
    log_info(requested_.stop
                 ? fmt::format("stopped by SIGTERM after {} of {} steps, with the checkpoint {}; "
                               "the same command with --resume trains the rest",
                               state_.steps, options_.training.steps, file)
                 : fmt::format("checkpoint after {} of {} steps, as SIGUSR1 asked: {}; training "
                               "goes on, and the same command with --resume goes on from here",
                               state_.steps, options_.training.steps, file));
  }

  // All ranks call it. Rank 0 knows the noise scale.
  void decide_on_batch() {
    const double tokens =
        static_cast<double>(plan_.global_batch) * static_cast<double>(plan_.seq_len);
    const NoiseScale noise(tokens / static_cast<double>(plan_.dp), tokens, state_.noise);
    const bool wants =
        rank_ == 0 && 2 * plan_.global_batch <= options_.most_batch && noise.asks_for_twice();
    wants_other_plan_ = trainer_.sum_over_world(wants ? 1.0 : 0.0) > 0.0;
  }

  // The mean loss of the same held-out batches each time. All ranks call it.
  double validate() {
    activity_ = Activity::Validating;
    const auto batches = std::min(static_cast<std::uint64_t>(options_.validation_batches),
                                  loader_.held_out_batches());
    double sum = 0.0;
    for (std::uint64_t i = 0; i < batches; ++i) {
      sum += trainer_.validation_loss(loaded([&] {
        return loader_.load_held_out(i, trainer_.place()[Axis::Data],
                                     trainer_.place()[Axis::Context]);
      }));
    }
    return sum / static_cast<double>(batches);
  }

  // All ranks call it. Throws InputError on the first rank that finds a value that is not finite.
  void read_published_weights() {
    std::optional<InputError> refused;
    try {
      read_weights(WeightFiles(options_.init_from), scenario_.model, trainer_.parameters());
    } catch (const InputError& error) {
      refused = error;
    }
    const std::optional<std::int64_t> first = first_rank_with(refused.has_value());
    if (!first) return;
    if (*first == rank_) throw *refused;
    throw BadInputReportedElsewhere("--init-from");
  }

  // Returns the lowest rank whose `condition` is true, on all ranks.
  std::optional<std::int64_t> first_rank_with(bool condition) {
    if (trainer_.sum_over_world(condition ? 1.0 : 0.0) == 0.0) return std::nullopt;
    std::int64_t rank = 0;
    while (trainer_.sum_over_world(condition && rank == rank_ ? 1.0 : 0.0) == 0.0) ++rank;
    return rank;
  }

  // Replicas that do not agree in each step find it one by one.
  [[noreturn]] static void fail_alone(const StepReport& report) {
    throw RuntimeFailure(fmt::format("step {}: the loss is {}, the gradient norm {}", report.step,
                                     report.loss, report.gradient_norm));
  }

  // All ranks fail in the same step, before the values get into a checkpoint.
  [[noreturn]] void fail_for_not_finite(const StepReport& report) {
    const auto found = trainer_.find_not_finite(report.step, load_batch());
    const std::optional<std::int64_t> origin = first_rank_with(found && !found->received);
    std::string text = fmt::format("step {}", report.step);
    if (found && !(found->received && origin)) {
      text += ", " + describe_not_finite(*found);
    } else if (origin) {
      text += fmt::format(": the first value that is not finite is on rank {}", *origin);
    }
    text +=
        fmt::format("; the loss is {}, the gradient norm {}", report.loss, report.gradient_norm);
    // The first rank that fails ends the others, so all wait here until the one with the cause has
    // said it.
    if (origin == rank_) log_error(fmt::format("{}: {}", name_of_rank(rank_), text));
    trainer_.sum_over_world(0.0);
    if (origin == rank_) throw ReportedElsewhere(text);
    throw RuntimeFailure(text);
  }

  // The other ranks fail as soon as this one leaves, and the launcher then ends it: it says before
  // what it could not write. Returns null on ranks other than 0.
  std::unique_ptr<MetricsLog> begin_files() const {
    if (rank_ != 0) return nullptr;
    try {
      if (state_.steps < options_.last_step()) {
        remove_timelines(options_.out, state_.steps);
        write_json(options_.out / "plan.json", to_json(scenario_));
      }
      return begin_metrics();
    } catch (const RuntimeFailure& error) {
      const std::string text = fmt::format("{}: {}", name_of_rank(rank_), printable(error.what()));
      log_error(text);
      throw ReportedElsewhere(text);
    }
  }

  // Under plans that measure no noise scale, the metrics have none, and checkpoints keep the
  // earlier means.
  std::unique_ptr<MetricsLog> begin_metrics() const {
    auto metrics = std::make_unique<MetricsLog>(
        options_.metrics_file(), figures_of(scenario_, name_of(device_)), state_.steps,
        trainer_.reports_small_batches() ? state_.noise : NoiseMeans{});
    if (metrics->truncated())
      log_warning(
          fmt::format("ignored the truncated last line of {}", options_.metrics_file().string()));
    if (!metrics->missing().empty())
      log_warning(fmt::format("{} lacks {}", options_.metrics_file().string(), metrics->missing()));
    return metrics;
  }

  Batch load_batch() {
    return loaded([&] {
      return loader_.load(state_.samples, trainer_.place()[Axis::Data],
                          trainer_.place()[Axis::Context]);
    });
  }

  // All ranks learn of bad data.
  template <class Load>
  Batch loaded(const Load& load) {
    try {
      return load();
    } catch (const InputError& error) {
      if (store_ != nullptr) report_bad_input(*store_, error.what());
      throw;
    }
  }

  // Describes the rank's activity for messages on other ranks; another thread calls it.
  std::string describe_activity() const {
    const std::int64_t step = step_;
    switch (activity_) {
      case Activity::Starting:
        return "the start";
      case Activity::Saving:
        return fmt::format("the checkpoint after step {}", step);
      case Activity::Validating:
        return fmt::format("the validation after step {}, {}", step, trainer_.last_op());
      case Activity::Training:
        break;
    }
    return fmt::format("step {}, {}", step, trainer_.last_op());
  }

  // Returns false if there is no checkpoint.
  bool resume() {
    const std::optional<RunState> found =
        checkpoints_.load_newest([this](const RunState& state) { check_resumed(state); });
    if (!found) {
      if (rank_ == 0)
        log_info(fmt::format("no checkpoint in {}: starting at step 0",
                             options_.checkpoint_folder().string()));
      return false;
    }
    if (rank_ == 0) {
      for (const std::string& change : changes_since(*found, state_, options_.data.string()))
        log_warning(change);
      log_debug(fmt::format("resuming from the checkpoint of step {}", found->steps));
    }
    state_.steps = found->steps;
    state_.samples = found->samples;
    state_.noise = found->noise;
    return true;
  }

  // Throws InputError on rank 0 and BadInputReportedElsewhere on the others.
  void check_resumed(const RunState& found) const {
    try {
      check_continues(found, state_);
    } catch (const InputError& error) {
      if (rank_ == 0) throw;
      throw BadInputReportedElsewhere(error.what());
    }
  }

  StepReport run_step(std::int64_t step) {
    const Batch batch = load_batch();
    if (std::find(recorded_.begin(), recorded_.end(), step) == recorded_.end())
      return trainer_.step(step, batch);
    StepRecorder recorder(plan_, rank_);
    const StepReport report = trainer_.step(step, batch, &recorder);
    try_telemetry([&] { write_timeline(options_.out, step, rank_, recorder.take()); });
    return report;
  }

  // Training goes on without what cannot be written, for instance on a full disk.
  void try_telemetry(const std::function<void()>& write) {
    try {
      write();
    } catch (const RuntimeFailure& error) {
      if (std::exchange(warned_of_telemetry_, true)) return;
      log_warning(
          fmt::format("{}; training goes on without what cannot be written, and tries again",
                      printable(error.what())));
    }
  }

  const RunOptions& options_;
  const Scenario& scenario_;
  const Plan& plan_;
  std::int64_t rank_;
  std::vector<std::int64_t> recorded_;
  Device device_;
  // Shared by all ranks; null for a single rank.
  Store* store_;
  Heartbeat& heartbeat_;
  BatchLoader loader_;
  Program program_;
  std::unique_ptr<RankBackend> backend_;
  RankTrainer trainer_;
  std::unique_ptr<Store> checkpoint_store_;
  RunCheckpoints checkpoints_;
  RunState state_;
  std::optional<StepReport> last_;
  RunSummary summary_;
  // The beginning of the first step.
  std::chrono::steady_clock::time_point began_;
  // Time spent waiting for checkpoints up to the last step.
  double stalled_before_ = 0.0;
  // The run is to continue under another plan: with twice the batch, or other shares of the work.
  bool wants_other_plan_ = false;
  bool warned_of_telemetry_ = false;
  // What signals asked any rank for during the last step.
  RankRequests requested_;
  // Rank 0 of a run that moves work has it.
  std::optional<SlowRankReports> slow_ranks_;
  std::atomic<std::int64_t> step_{0};
  std::atomic<Activity> activity_{Activity::Starting};
};

// Sets `watch` and `rendezvous` as soon as they exist, since reports of failures use them. Returns
// the exit status.
int join_and_train(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
                   Device device, const std::string& token, std::optional<RankWatch>& watch,
                   std::optional<Rendezvous>& rendezvous) {
  const Corpus data{TokenFile(options.data)};
  const RunInputs inputs = inputs_of(options, scenario, device, data.file, data.checksum);
  rendezvous.emplace(place, token, options.timeout());
  if (rendezvous->local_store() != nullptr)
    watch.emplace(*rendezvous->local_store(), place.world, "an unknown host");
  Heartbeat heartbeat(rendezvous->connect(), place.rank, heartbeat_interval(options.timeout()));
  std::function<void()> check_others;
  if (watch) check_others = [&] { check_no_rank_is_lost(*watch, place, options.timeout()); };
  std::optional<FolderLock> folder;
  const auto prepare = [&] {
    if (place.serves_rendezvous) folder.emplace(prepare_run_folder(options));
  };
  if (rendezvous->store() != nullptr) {
    log_debug(
        fmt::format("joined the rendezvous at {}:{}", place.master_address, place.master_port));
    agree_on_inputs(*rendezvous->store(), place.rank, place.world, inputs, options.timeout(),
                    prepare);
    log_debug(fmt::format("the inputs of all {} ranks agree", place.world));
  } else {
    prepare();
  }
  if (place.rank >= scenario.plan.world_size()) {
    serve_parameters(options, scenario, place, *rendezvous, heartbeat);
    return 0;
  }
  RankRun run(options, scenario, place, device, data, *rendezvous, heartbeat, check_others);
  run.train();
  if (place.rank == 0) run.print_result();
  return run.was_terminated() ? kTerminatedStatus : 0;
}

}  // namespace

int run_rank(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
             Device device, const std::string& token) {
  std::optional<RankWatch> watch;
  std::optional<Rendezvous> rendezvous;
  const auto bad_input = [&] {
    const auto limit = kMissedSigns * heartbeat_interval(options.timeout());
    return rendezvous ? reported_bad_input(*rendezvous, limit) : std::nullopt;
  };
  const auto lost_ranks = [&] {
    const bool watched = place.launcher == kOwnLauncher || place.world == 1 || !rendezvous;
    return watched
               ? ""
               : find_lost_ranks(*rendezvous, place, watch ? &*watch : nullptr, options.timeout());
  };
  try {
    return join_and_train(options, scenario, place, device, token, watch, rendezvous);
  } catch (const InputError& error) {
    if (!bad_input()) throw;
    // The launcher prints it.
    if (place.launcher == kOwnLauncher) throw BadInputReportedElsewhere(error.what());
    // Rank 0 waits until the others have read the report.
    lost_ranks();
    throw;
  } catch (const ReportedElsewhere&) {
    throw;
  } catch (const std::exception& error) {
    const std::optional<std::string> bad = bad_input();
    const std::string lost = lost_ranks();
    if (!bad) throw RuntimeFailure(name_of_rank(place.rank) + ": " + error.what() + lost);
    if (place.launcher != kOwnLauncher)
      log_error(fmt::format("{} stops because another rank found bad input: {}",
                            name_of_rank(place.rank), *bad));
    throw BadInputReportedElsewhere(*bad);
  }
}

}  // namespace shardwright::executor
