#include "executor/launch/local_launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/stop_signals.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/comm/socket.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/launch/heartbeat.hpp"
#include "executor/launch/rendezvous.hpp"
#include "executor/launch/run_signals.hpp"
#include "executor/telemetry/log.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::chrono::milliseconds kProcessPollInterval{5};
// Ends a rank at once, also one that has something to save.
constexpr int kEndAtOnce = SIGINT;

// Returns the environment of a rank: this process's own and the rank's place.
std::vector<std::string> environment_of(std::int64_t rank, std::int64_t world,
                                        const TcpStoreServer& rendezvous,
                                        const std::string& token) {
  std::vector<std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool replaced = text.rfind("SHARDWRIGHT_", 0) == 0 || text.rfind("MASTER_", 0) == 0;
    if (!replaced) values.push_back(text);
  }
  values.push_back(fmt::format("SHARDWRIGHT_RANK={}", rank));
  values.push_back(fmt::format("SHARDWRIGHT_WORLD_SIZE={}", world));
  values.push_back(fmt::format("SHARDWRIGHT_LOCAL_RANK={}", rank));
  values.push_back(fmt::format("SHARDWRIGHT_LOCAL_WORLD_SIZE={}", world));
  values.push_back(fmt::format("SHARDWRIGHT_TOKEN={}", token));
  values.push_back(fmt::format("MASTER_ADDR={}", kLoopback));
  values.push_back(fmt::format("MASTER_PORT={}", rendezvous.port()));
  return values;
}

class RankProcesses {
 public:
  explicit RankProcesses(const RankWatch& watch) : watch_(watch) {}
  ~RankProcesses() {
    stop_all(SIGKILL);
    while (running() > 0) poll();
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void start(std::vector<std::string> arguments, std::vector<std::string> environment) {
    const std::vector<char*> argv = argument_pointers(arguments);
    const std::vector<char*> envp = argument_pointers(environment);
    const pid_t launcher = getpid();
    // No signal may arrive between the two handlers.
    const StopSignalsHeld held;
    const pid_t process = fork();
    if (process < 0)
      throw RuntimeFailure(std::string("cannot start a process: ") + std::strerror(errno));
    if (process == 0) {
      // The child of a process with threads may only call async-signal-safe functions.
      forget_signals();
      held.release();
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != launcher) _exit(1);
      execve("/proc/self/exe", argv.data(), envp.data());
      _exit(1);
    }
    log_debug(fmt::format("started rank {} as process {}", ranks_.size(), process));
    ranks_.push_back({process, true});
  }

  // Records which processes have ended and reports those that a signal ended.
  void poll() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      int status = 0;
      if (!ranks_[rank].running || waitpid(ranks_[rank].process, &status, WNOHANG) <= 0) continue;
      ranks_[rank].running = false;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kLostStatus;
      log_debug(fmt::format("rank {} ended with status {}", rank, code));
      // Bad input on one rank makes the others fail, so its status takes precedence.
      if (code != 0 && (first_failure_ == 0 || code == kBadInputStatus)) first_failure_ = code;
      if (!WIFSIGNALED(status) || stopping_ || stop_status() != 0) continue;
      const auto number = static_cast<std::int64_t>(rank);
      log_error(fmt::format("signal {} ({}) ended {}", WTERMSIG(status),
                            strsignal(WTERMSIG(status)), watch_.name(number)));
      lost_.insert(number);
    }
    std::this_thread::sleep_for(kProcessPollInterval);
  }

  // Reports running ranks without a heartbeat for `limit`.
  void check_heartbeats(std::chrono::milliseconds limit) {
    for (const std::int64_t rank : watch_.silent(limit)) {
      if (!ranks_[static_cast<std::size_t>(rank)].running || !lost_.insert(rank).second) continue;
      log_error(watch_.describe_silence(rank));
      if (first_failure_ == 0) first_failure_ = kLostStatus;
    }
  }

  void signal_all(int signal) const {
    for (const Rank& rank : ranks_) {
      if (rank.running) kill(rank.process, signal);
    }
  }

  // Ranks that a signal ends from now on are not lost.
  void stop_all(int signal) {
    stopping_ = true;
    signal_all(signal);
  }

  std::ptrdiff_t running() const {
    return std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; });
  }
  int first_failure() const { return first_failure_; }
  std::vector<std::int64_t> lost() const { return {lost_.begin(), lost_.end()}; }

 private:
  struct Rank {
    pid_t process;
    bool running;
  };

  const RankWatch& watch_;
  std::vector<Rank> ranks_;
  std::set<std::int64_t> lost_;
  int first_failure_ = 0;
  bool stopping_ = false;
};

// Passes on a request for the ranks that are left out. Returns true if there are any.
bool ask_to_grow(const RankProcesses& ranks, std::int64_t left_out) {
  if (left_out == 0) log_info("SIGUSR2 has no effect: no rank is left out");
  if (left_out > 0) ranks.signal_all(SIGUSR2);
  return left_out > 0;
}

// Waits until all ranks have ended, one has failed, or this process is asked to stop at once.
// Returns true if the ranks were asked to make room for those that are left out.
bool wait_for_ranks(RankProcesses& ranks, const LaunchLimits& limits,
                    const std::function<void()>& meanwhile) {
  bool terminated = false, grows = false;
  while (ranks.running() > 0 && ranks.first_failure() == 0 && !asked_to_end_at_once()) {
    if (take_save_request()) ranks.signal_all(SIGUSR1);
    if (take_growth_request() && ask_to_grow(ranks, limits.left_out)) grows = true;
    if (stop_status() != 0 && !std::exchange(terminated, true)) ranks.signal_all(SIGTERM);
    ranks.poll();
    meanwhile();
    if (limits.silence) ranks.check_heartbeats(*limits.silence);
  }
  if (ranks.first_failure() == 0) return grows;
  // Finds the rank that the failed ranks waited for.
  ranks.poll();
  if (limits.silence) ranks.check_heartbeats(kMissedSigns * heartbeat_interval(*limits.silence));
  return grows;
}

// Runs a program without standard output and returns its wait status. The program is stopped when
// this process is, and does not outlive it.
int run_quietly(std::vector<std::string> arguments) {
  const std::vector<char*> pointers = argument_pointers(arguments);
  const pid_t launcher = getpid();
  const pid_t process = fork();
  if (process < 0)
    throw RuntimeFailure(std::string("cannot start a process: ") + std::strerror(errno));
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execv(pointers.front(), pointers.data());
    log_error(fmt::format("{} cannot be started: {}", pointers.front(), std::strerror(errno)));
    _exit(1);
  }
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (stop_status() != 0) kill(process, SIGTERM);
    std::this_thread::sleep_for(kProcessPollInterval);
  }
  return status;
}

}  // namespace

void raise_file_limit(std::int64_t world) {
  // A rank has a few connections to the store, a few files, and at most two connections to each
  // other rank, in both directions of a pipeline or in two groups.
  constexpr std::int64_t kOthers = 64, kForEachRank = 4;
  const auto needed = static_cast<rlim_t>(kOthers + kForEachRank * world);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < needed) {
    throw InputError("the limit on open files (ulimit -Hn)",
                     {{"", fmt::format("{}", limit.rlim_max),
                       fmt::format("at least {} for {} ranks", needed, world)}});
  }
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, needed));
  setrlimit(RLIMIT_NOFILE, &limit);
}

LaunchResult launch_ranks(std::int64_t world, const std::vector<std::string>& arguments,
                          const LaunchLimits& limits,
                          const std::function<void(LocalStore& store)>& meanwhile) {
  raise_file_limit(world);
  const std::string token = new_token();
  TcpStoreServer rendezvous(kLoopback, 0, token);
  const RankWatch watch(rendezvous.local_store(), world, host_name());
  listen_for_stop_signals();
  RankProcesses ranks(watch);
  for (std::int64_t rank = 0; rank < world; ++rank)
    ranks.start(arguments, environment_of(rank, world, rendezvous, token));
  const bool grows = wait_for_ranks(ranks, limits, [&] {
    if (meanwhile) meanwhile(rendezvous.local_store());
  });
  const auto wait_for_ends = [&] {
    const auto deadline = std::chrono::steady_clock::now() + limits.grace;
    while (ranks.running() > 0 && std::chrono::steady_clock::now() < deadline) ranks.poll();
  };
  // Every rank learns of bad input and exits by itself; one of them reports it. So do ranks that
  // stop after a step.
  const bool all_end = ranks.first_failure() == kBadInputStatus ||
                       (ranks.first_failure() == kTerminatedStatus && !asked_to_end_at_once());
  if (all_end) wait_for_ends();
  if (ranks.running() > 0) ranks.stop_all(kEndAtOnce);
  wait_for_ends();
  if (stop_status() != 0) return {stop_status(), true, false, {}};
  if (ranks.first_failure() == kTerminatedStatus) return {kTerminatedStatus, true, false, {}};
  if (const auto bad = reported_bad_input(rendezvous.local_store())) {
    log_error(*bad);
    return {kBadInputStatus, false, false, {}};
  }
  return {ranks.first_failure(), false, grows, ranks.lost()};
}

void replan(const std::string& planner, const std::string& plan, std::int64_t ranks,
            const std::filesystem::path& out) {
  const int status = run_quietly({planner, "replan", plan, "--ranks", fmt::format("{}", ranks),
                                  "--out", out.string(), "--force", "--no-progress"});
  if (stop_status() != 0) throw ReportedElsewhere("stopped during the search for a plan");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw RuntimeFailure(fmt::format("no plan fits the {} ranks that are left", ranks));
}

bool rebalance(const std::string& planner, const RebalanceFiles& files) {
  // The exit status of `shardwright replan` where no plan is better.
  constexpr int kNoBetterPlan = 4;
  std::vector<std::string> arguments = {planner,      "replan",  files.plan,     "--now",
                                        files.now,    "--out",   files.out,      "--json",
                                        files.report, "--force", "--no-progress"};
  for (std::size_t rank = 0; rank < files.slowdowns.size(); ++rank) {
    if (files.slowdowns[rank] <= 1.0) continue;
    arguments.insert(arguments.end(),
                     {"--slow-rank", fmt::format("{}:{}", rank, files.slowdowns[rank])});
  }
  const int status = run_quietly(std::move(arguments));
  if (stop_status() != 0) return false;
  const bool found = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!found && !(WIFEXITED(status) && WEXITSTATUS(status) == kNoBetterPlan))
    log_warning("the search for other shares of the work failed; the run goes on as it is");
  return found;
}

}  // namespace shardwright::executor
