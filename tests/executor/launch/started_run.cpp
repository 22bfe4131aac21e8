#include "tests/executor/launch/started_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/base/stop_signals.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/comm/socket.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::vector<std::string> own_environment() {
  std::vector<std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) values.emplace_back(*entry);
  return values;
}

// Standard error goes to the file `messages`.
pid_t start_executor(std::vector<std::string> arguments, std::vector<std::string> environment,
                     const std::filesystem::path& messages) {
  pid_t process = 0;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  EXPECT_EQ(posix_spawn(&process, SHARDWRIGHT_EXECUTOR, &actions, nullptr,
                        argument_pointers(arguments).data(), argument_pointers(environment).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  return process;
}

std::filesystem::path plan_file() {
  Plan plan = one_rank_plan();
  plan.dp = plan.pp = 2;
  plan.zero_stage = 1;
  auto file = scratch_path("plan.json");
  write_scenario(small_llama(), plan, file);
  return file;
}

constexpr auto kPatience = 30s;

// Polls a process until it ends and returns its exit status: -1 if it still runs after `patience`,
// -2 if a signal ended it.
template <class HasEnded>
int exit_status(Clock::duration patience, const int& status, HasEnded has_ended) {
  const auto deadline = Clock::now() + patience;
  while (!has_ended()) {
    if (Clock::now() > deadline) return -1;
    std::this_thread::sleep_for(5ms);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

std::vector<std::string> environment_of(int rank, int world, std::uint16_t rendezvous) {
  std::vector<std::string> values = own_environment();
  for (const auto& [name, value] : {std::pair("RANK", rank),
                                    {"WORLD_SIZE", world},
                                    {"LOCAL_RANK", rank},
                                    {"LOCAL_WORLD_SIZE", kRanks},
                                    // The next port is that of the rendezvous.
                                    {"MASTER_PORT", rendezvous - 1}})
    values.push_back(fmt::format("{}={}", name, value));
  values.insert(values.end(),
                {"MASTER_ADDR=127.0.0.1", "SHARDWRIGHT_TOKEN=the token of this test"});
  return values;
}

}  // namespace

void write_scenario(const ModelSpec& model, const Plan& plan, const std::filesystem::path& file) {
  Scenario scenario{model, load_cluster("h100-pcie-server"), load_stack("shardwright"), plan};
  ClusterSpec& cluster = scenario.cluster;
  // Nodes of one accelerator, so that a pool may begin at any stage.
  if (!plan.stage_pools.empty()) cluster.node.accelerators = cluster.node.scale_up.domain = 1;
  for (const std::string& pool : pools_of(plan))
    cluster.pools.push_back({pool, cluster.accelerator, cluster.node, cluster.fabric, 0, {}});
  std::ofstream(file) << to_json(scenario).dump();
}

std::filesystem::path text_file() {
  auto file = scratch_path("corpus.txt");
  std::ofstream stream(file);
  for (int i = 0; i < 4000; ++i) stream << "token " << i * i % 97 << ' ';
  return file;
}

std::vector<std::string> run_arguments(const std::filesystem::path& out, int steps,
                                       const std::filesystem::path& data) {
  return {SHARDWRIGHT_EXECUTOR,
          plan_file(),
          "--data",
          data.empty() ? text_file() : data,
          "--out",
          out,
          "--steps",
          std::to_string(steps),
          "--checkpoint-every",
          std::to_string(kCheckpointEvery)};
}

StartedRun::StartedRun(std::filesystem::path out, std::vector<std::string> more, int steps,
                       const std::filesystem::path& data, const std::filesystem::path& plan)
    : out_(std::move(out)), messages_(out_.string() + ".messages") {
  std::vector<std::string> arguments = run_arguments(out_, steps, data);
  if (!plan.empty()) arguments[1] = plan;
  const std::string option = *(arguments.end() - 2);
  if (std::find(more.begin(), more.end(), option) != more.end())
    arguments.erase(arguments.end() - 2, arguments.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  launcher_ = start_executor(std::move(arguments), own_environment(), messages_);
}

StartedRun::~StartedRun() {
  if (has_ended()) return;
  kill(launcher_, SIGKILL);
  waitpid(launcher_, &status_, 0);
}

std::vector<pid_t> StartedRun::first_ranks(std::size_t count) const {
  std::vector<pid_t> found;
  const auto deadline = Clock::now() + 30s;
  while (found.size() < count && Clock::now() < deadline) {
    found.clear();
    const std::string task = std::to_string(launcher_);
    std::ifstream children("/proc/" + task + "/task/" + task + "/children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
    if (found.size() < count) std::this_thread::sleep_for(1ms);
  }
  return found;
}

bool StartedRun::has_ended() {
  if (!ended_) ended_ = waitpid(launcher_, &status_, WNOHANG) == launcher_;
  return ended_;
}

int StartedRun::wait() {
  return exit_status(120s, status_, [this] { return has_ended(); });
}

std::string StartedRun::messages() const {
  return content_of(messages_);
}

std::size_t StartedRun::steps_done() const {
  return losses_in(out_).size();
}

void StartedRun::wait_for_steps(std::size_t steps) {
  while (steps_done() < steps && !has_ended()) std::this_thread::sleep_for(2ms);
}

std::vector<double> figures_in(const std::filesystem::path& folder, const char* name) {
  std::ifstream file(folder / "metrics.jsonl");
  std::vector<double> figures;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json read = nlohmann::json::parse(line, nullptr, false);
    // Skips a line that is being written.
    if (read.is_object() && read.contains(name) && read.at(name).is_number())
      figures.push_back(read.at(name));
  }
  return figures;
}

std::vector<double> losses_in(const std::filesystem::path& folder) {
  return figures_in(folder, "loss");
}

const std::vector<double>& undisturbed_losses() {
  static const std::vector<double> losses = [] {
    const auto folder = scratch_path("undisturbed");
    EXPECT_EQ(StartedRun(folder, kLimit).wait(), 0);
    return losses_in(folder);
  }();
  return losses;
}

void expect_intact_checkpoints(const std::filesystem::path& run) {
  CheckpointFolder checkpoints(run / "checkpoints");
  for (const std::int64_t steps : checkpoints.steps())
    EXPECT_EQ(checkpoints.find_damage(steps), std::nullopt) << steps;
}

LaunchedRanks::LaunchedRanks(std::filesystem::path out, int steps,
                             const std::vector<std::string>& more, const Change& change,
                             const World& world)
    : out_(std::move(out)) {
  const std::uint16_t rendezvous = port_of(listen_at("127.0.0.1", 0));
  std::vector<std::string> of_all = run_arguments(out_, steps);
  of_all.insert(of_all.end(), more.begin(), more.end());
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::string> arguments = of_all;
    if (change) change(rank, arguments);
    pid_t& process = processes_.emplace_back();
    if (arguments.empty()) continue;
    process = start_executor(std::move(arguments),
                             environment_of(rank, world ? world(rank) : kRanks, rendezvous),
                             messages_file(static_cast<std::size_t>(rank)));
  }
}

LaunchedRanks::~LaunchedRanks() {
  for (const pid_t process : processes_) {
    if (process == 0) continue;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

void LaunchedRanks::wait_for_steps(std::size_t steps) const {
  const auto deadline = Clock::now() + kPatience;
  while (losses_in(out_).size() < steps && Clock::now() < deadline)
    std::this_thread::sleep_for(2ms);
}

void LaunchedRanks::send(std::size_t rank, int signal) const {
  kill(processes_[rank], signal);
}

int LaunchedRanks::wait(std::size_t rank) {
  int status = 0;
  return exit_status(kPatience, status, [&] {
    if (waitpid(processes_[rank], &status, WNOHANG) == 0) return false;
    processes_[rank] = 0;
    return true;
  });
}

std::string LaunchedRanks::messages(std::size_t rank) const {
  return content_of(messages_file(rank));
}

std::filesystem::path LaunchedRanks::messages_file(std::size_t rank) const {
  return out_.string() + ".messages-" + std::to_string(rank);
}

}  // namespace shardwright::executor
