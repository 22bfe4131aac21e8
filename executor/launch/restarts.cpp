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

// A killed rank may have written its last step to the metrics but not to metrics.prom.
LaunchResult launch_once(const RunOptions& options, std::int64_t world, LoadBalancer& balancer,
                         const std::vector<std::string>& arguments) {
  std::function<void(LocalStore&)> meanwhile;
  if (options.rebalance) meanwhile = [&](LocalStore& store) { balancer.poll(store); };
  LaunchResult result = launch_ranks(world, arguments, {options.timeout()}, meanwhile);
  try {
    if (result.status != 0) write_prometheus_of_last_line(options.metrics_file());
  } catch (const RuntimeFailure& error) {
    log_warning(printable(error.what()));
  }
  return result;
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

// Ranks that end well before the last step ask for another plan.
bool ended_early(const RunOptions& options) {
  if (!options.grows_batch() && !options.rebalance) return false;
  const auto steps = CheckpointFolder(options.checkpoint_folder()).steps();
  return !steps.empty() && steps.front() < options.last_step();
}

LaunchResult continue_under(const RunOptions& options, std::int64_t world, const std::string& plan,
                            LoadBalancer& balancer, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--resume", "--continue-under", plan});
  const std::vector<std::string> more = balancer.options();
  arguments.insert(arguments.end(), more.begin(), more.end());
  return launch_once(options, world, balancer, arguments);
}

// Goes on under plans with the batches, or the shares of work, that ranks ask for; `plan` becomes
// the last of them.
LaunchResult go_on(const RunOptions& options, std::int64_t world, std::string& plan,
                   LoadBalancer& balancer, const std::vector<std::string>& given,
                   LaunchResult result) {
  while (result.status == 0 && !result.stopped && ended_early(options)) {
    if (options.grows_batch()) plan = plan_with_twice_the_batch(options, plan);
    plan = balancer.take_plan().value_or(plan);
    result = continue_under(options, world, plan, balancer, given);
  }
  return result;
}

// Waits before restarts that would otherwise repeat a failure again and again: not after the run has
// got on, else a second, and twice as long each time up to a minute.
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

}  // namespace

int launch_with_restarts(const RunOptions& options, std::int64_t world,
                         const std::vector<std::string>& given) {
  std::string plan = options.plan_now();
  LoadBalancer balancer(options.planner, plan, options.out);
  RestartPause pauses(options);
  LaunchResult result =
      go_on(options, world, plan, balancer, given, launch_once(options, world, balancer, given));
  const std::int64_t all = world;
  // The plan may use fewer ranks than are left.
  std::int64_t left = all;
  for (std::int64_t restart = 1; restart <= options.restarts; ++restart) {
    if (result.status == 0 || result.status == kBadInputStatus || result.stopped) break;
    const std::chrono::seconds pause = pauses.next();
    log_info(fmt::format("restart {} of {}{}", restart, options.restarts,
                         pause.count() == 0
                             ? ""
                             : fmt::format(" in {} s: there is no new checkpoint", pause.count())));
    if (!RestartPause::wait(pause)) return stop_status();
    if (options.elastic && !result.lost.empty()) {
      left -= static_cast<std::int64_t>(result.lost.size());
      plan = plan_for_remaining_ranks(options, plan, left, all);
      world = load_scenario(plan).plan.world_size();
    }
    plan = balancer.take_plan().value_or(plan);
    result = go_on(options, world, plan, balancer, given,
                   continue_under(options, world, plan, balancer, given));
  }
  return result.status;
}

}  // namespace shardwright::executor
