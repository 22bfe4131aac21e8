#include "executor/launch/restarts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"
#include "core/spec/scenario.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/launch/load_balance.hpp"
#include "executor/launch/local_launcher.hpp"
#include "executor/launch/run_signals.hpp"
#include "executor/telemetry/log.hpp"
#include "executor/telemetry/prometheus_file.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

// Writes a plan for the `left` of `all` ranks and returns its file.
std::string plan_for_remaining_ranks(const RunOptions& options, const std::string& plan,
                                     std::int64_t left, std::int64_t all) {
  std::string file = (options.out / fmt::format("plan-for-{}.json", left)).string();
  replan(options.planner, plan, left, file);
  const Plan now = load_scenario(file).plan;
  log_info(fmt::format("{} of {} ranks are left; continuing with dp {} tp {} pp {}: {}", left, all,
                       now.dp, now.tp, now.pp, file));
  return file;
}

// Writes the plan with twice the batch and returns its file.
std::string plan_with_twice_the_batch(const RunOptions& options, const std::string& plan) {
  Scenario scenario = load_scenario(plan);
  scenario.plan.global_batch *= 2;
  for (PoolReplicas& part : scenario.plan.replica_pools) part.microbatches *= 2;
  const auto file = options.out / fmt::format("plan-for-batch-{}.json", scenario.plan.global_batch);
  write_json(file, to_json(scenario));
  log_info(
      fmt::format("the gradient noise scale asks for a larger batch: continuing with {} "
                  "sequences: {}",
                  scenario.plan.global_batch, file.string()));
  return file.string();
}

// Waits before restarts that would otherwise repeat a failure again and again: not after the run
// has got on, else a second, and twice as long each time up to a minute.
class RestartPause {
 public:
  explicit RestartPause(const RunOptions& options)
      : checkpoints_(options.checkpoint_folder()), newest_(newest()) {}

  // The time before the next restart.
  std::chrono::seconds next() {
    const std::int64_t now = newest();
    pause_ = now > newest_ ? std::chrono::seconds(0)
                           : std::clamp(2 * pause_, std::chrono::seconds(1), kLongest);
    newest_ = now;
    return pause_;
  }

  // Returns false if this process is asked to stop meanwhile.
  static bool wait(std::chrono::seconds pause) {
    constexpr std::chrono::milliseconds kBetweenLooks{20};
    const auto end = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < end && stop_status() == 0)
      std::this_thread::sleep_for(kBetweenLooks);
    return stop_status() == 0;
  }

 private:
  static constexpr std::chrono::seconds kLongest{60};

  std::int64_t newest() const {
    const auto steps = checkpoints_.steps();
    return steps.empty() ? 0 : steps.front();
  }

  CheckpointFolder checkpoints_;
  std::int64_t newest_;
  std::chrono::seconds pause_{0};
};

// The ranks of a run, started again and again under the plan that fits by then.
class LaunchedRun {
 public:
  LaunchedRun(const RunOptions& options, std::int64_t world, const std::vector<std::string>& given)
      : options_(options),
        given_(given),
        plan_(options.plan_now()),
        balancer_(options.planner, plan_, options.out),
        all_(world),
        left_(world),
        world_(world) {}

  LaunchResult start() { return go_on(launch_once(given_)); }

  // Starts the ranks again after a failure, in an elastic run without those that were lost.
  LaunchResult restart_after(const LaunchResult& failure) {
    if (options_.elastic && !failure.lost.empty()) {
      left_ -= static_cast<std::int64_t>(failure.lost.size());
      take_plan(plan_for_remaining_ranks(options_, plan_, left_, all_));
    }
    plan_ = balancer_.take_plan().value_or(plan_);
    return go_on(continue_under_plan());
  }

 private:
  // A killed rank may have written its last step to the metrics but not to metrics.prom.
  LaunchResult launch_once(const std::vector<std::string>& arguments) {
    std::function<void(LocalStore&)> meanwhile;
    if (options_.rebalance) meanwhile = [&](LocalStore& store) { balancer_.poll(store); };
    LaunchLimits limits{options_.timeout()};
    limits.left_out = all_ - left_;
    LaunchResult result = launch_ranks(world_, arguments, limits, meanwhile);
    try {
      if (result.status != 0) write_prometheus_of_last_line(options_.metrics_file());
    } catch (const RuntimeFailure& error) {
      log_warning(printable(error.what()));
    }
    return result;
  }

  LaunchResult continue_under_plan() {
    std::vector<std::string> arguments = given_;
    arguments.insert(arguments.end(), {"--resume", "--continue-under", plan_});
    const std::vector<std::string> more = balancer_.options();
    arguments.insert(arguments.end(), more.begin(), more.end());
    return launch_once(arguments);
  }

  // Ranks that end well before the last step ask for another plan, or were asked to make room for
  // one.
  bool ended_early(const LaunchResult& result) const {
    if (result.status != 0 || result.stopped) return false;
    if (!options_.grows_batch() && !options_.rebalance && !result.grows) return false;
    const auto steps = CheckpointFolder(options_.checkpoint_folder()).steps();
    return !steps.empty() && steps.front() < options_.last_step();
  }

  // Goes on under plans with more ranks, and with the batches or the shares of work that ranks ask
  // for.
  LaunchResult go_on(LaunchResult result) {
    while (ended_early(result)) {
      if (result.grows) {
        take_all_ranks();
      } else if (options_.grows_batch()) {
        plan_ = plan_with_twice_the_batch(options_, plan_);
      }
      plan_ = balancer_.take_plan().value_or(plan_);
      result = continue_under_plan();
    }
    return result;
  }

  // The first plan is for all ranks, but its batch may have grown since.
  void take_all_ranks() {
    left_ = all_;
    if (options_.grows_batch())
      return take_plan(plan_for_remaining_ranks(options_, plan_, left_, all_));
    take_plan(options_.plan_now());
    log_info(fmt::format("all {} ranks are back; continuing with {}", all_, plan_));
  }

  void take_plan(const std::string& plan) {
    plan_ = plan;
    world_ = load_scenario(plan_).plan.world_size();
  }

  const RunOptions& options_;
  const std::vector<std::string>& given_;
  // The plan file that the run is under.
  std::string plan_;
  LoadBalancer balancer_;
  // Ranks that the run began with and those that are not lost, of which the plan may use fewer.
  std::int64_t all_, left_, world_;
};

}  // namespace

int launch_with_restarts(const RunOptions& options, std::int64_t world,
                         const std::vector<std::string>& given) {
  LaunchedRun run(options, world, given);
  RestartPause pauses(options);
  LaunchResult result = run.start();
  for (std::int64_t restart = 1; restart <= options.restarts; ++restart) {
    if (result.status == 0 || result.status == kBadInputStatus || result.stopped) break;
    const std::chrono::seconds pause = pauses.next();
    log_info(fmt::format("restart {} of {}{}", restart, options.restarts,
                         pause.count() == 0
                             ? ""
                             : fmt::format(" in {} s: there is no new checkpoint", pause.count())));
    if (!RestartPause::wait(pause)) return stop_status();
    result = run.restart_after(result);
  }
  return result.status;
}

}  // namespace shardwright::executor
