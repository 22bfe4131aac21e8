#include "tests/executor/launch/started_run.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "core/base/stop_signals.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
using RunClock = std::chrono::steady_clock;

std::filesystem::path plan_file() {
  Scenario scenario;
  scenario.model = small_llama();
  scenario.cluster = load_cluster("h100-pcie-server");
  scenario.stack = load_stack("shardwright");
  scenario.plan = one_rank_plan();
  scenario.plan.dp = scenario.plan.pp = 2;
  scenario.plan.zero_stage = 1;
  auto file = scratch_path("plan.json");
  std::ofstream(file) << to_json(scenario).dump();
  return file;
}

std::filesystem::path text_file() {
  auto file = scratch_path("corpus.txt");
  std::ofstream stream(file);
  for (int i = 0; i < 2000; ++i) stream << "token " << i * i % 97 << ' ';
  return file;
}

// Returns the figure of each line of the metrics in which it is a number.
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

}  // namespace

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
  arguments.insert(arguments.end(), more.begin(), more.end());
  const std::vector<char*> pointers = argument_pointers(arguments);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages_.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  EXPECT_EQ(
      posix_spawn(&launcher_, SHARDWRIGHT_EXECUTOR, &actions, nullptr, pointers.data(), environ),
      0);
  posix_spawn_file_actions_destroy(&actions);
}

StartedRun::~StartedRun() {
  if (has_ended()) return;
  kill(launcher_, SIGKILL);
  waitpid(launcher_, &status_, 0);
}

std::vector<pid_t> StartedRun::first_ranks(std::size_t count) const {
  std::vector<pid_t> found;
  const auto deadline = RunClock::now() + 30s;
  while (found.size() < count && RunClock::now() < deadline) {
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
  const auto deadline = RunClock::now() + 120s;
  while (!has_ended()) {
    if (RunClock::now() > deadline) return -1;
    std::this_thread::sleep_for(5ms);
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -2;
}

std::string StartedRun::messages() const {
  std::ostringstream text;
  text << std::ifstream(messages_).rdbuf();
  return text.str();
}

std::size_t StartedRun::steps_done() const {
  return losses_in(out_).size();
}

void StartedRun::wait_for_steps(std::size_t steps) {
  while (steps_done() < steps && !has_ended()) std::this_thread::sleep_for(2ms);
}

std::filesystem::path empty_run_folder(const std::string& name) {
  auto folder = scratch_path(name);
  std::filesystem::remove_all(folder);
  return folder;
}

std::vector<double> losses_in(const std::filesystem::path& folder) {
  return figures_in(folder, "loss");
}

std::vector<double> noise_scales_in(const std::filesystem::path& folder) {
  return figures_in(folder, "gradient_noise_scale_tokens");
}

}  // namespace shardwright::executor
