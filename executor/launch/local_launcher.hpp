// Starts the ranks of a run as processes on this machine and monitors them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/tcp_store.hpp"

namespace shardwright::executor {

struct LaunchResult {
  // The exit status, as in a shell, of the rank that failed first; kBadInputStatus if any rank
  // found bad input; 0 if none failed.
  int status = 0;
  // A signal asked this process or a rank to stop.
  bool stopped = false;
  // SIGUSR2 asked for the ranks that were left out; the others were asked to save and end.
  bool grows = false;
  // Ranks that a signal ended or that fell silent, ascending.
  std::vector<std::int64_t> lost;
};

struct LaunchLimits {
  // A rank without a heartbeat for this time has failed.
  std::optional<std::chrono::milliseconds> silence;
  // The time between the request to stop and SIGKILL.
  std::chrono::milliseconds grace{2000};
  // Ranks that the run has lost earlier and goes on without.
  std::int64_t left_out = 0;
};

// The exit status of a run that lost a rank.
inline constexpr int kLostStatus = 1;
// The exit status of a run with bad input.
inline constexpr int kBadInputStatus = 2;

// Raises this process's limit on open files, which the ranks inherit, as far as it may. Throws
// InputError if `world` ranks need more.
void raise_file_limit(std::int64_t world);

// Runs this program once for each of `world` ranks with the same arguments and waits for them. This
// process serves their store at the loopback address. If a rank fails or falls silent, it reports
// that on standard error and stops the others; no rank outlives the launcher. Bad input that ranks
// report (report_bad_input) is printed once. SIGTERM, SIGUSR1 and, if ranks are left out, SIGUSR2
// are passed on to the ranks, which save their states (run_signals.hpp). `meanwhile`, unless it is
// null, is called again and again with the store while all ranks run. Throws as raise_file_limit
// does.
LaunchResult launch_ranks(std::int64_t world, const std::vector<std::string>& arguments,
                          const LaunchLimits& limits,
                          const std::function<void(LocalStore& store)>& meanwhile = nullptr);

// Runs `shardwright replan`, which writes to `out` the plan with which the run of `plan` continues
// on at most `ranks` ranks. `planner` is the command shardwright. Throws RuntimeFailure if there is
// no such plan, and ReportedElsewhere if this process is asked to stop.
void replan(const std::string& planner, const std::string& plan, std::int64_t ranks,
            const std::filesystem::path& out);

// What `shardwright replan --slow-rank` reads and writes: the plan that a run began with, the one
// that it is under, the slowdown of each rank; the plan, and the report with the gain.
struct RebalanceFiles {
  std::string plan, now;
  std::vector<double> slowdowns;
  std::filesystem::path out, report;
};

// Runs `shardwright replan --slow-rank`. Returns false if it finds no better plan, if it fails,
// which is logged, or if this process is asked to stop.
bool rebalance(const std::string& planner, const RebalanceFiles& files);

}  // namespace shardwright::executor
