// Runs the built command and catches what it prints.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/stop_signals.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::cli {

struct CommandResult {
  // 128 + n if signal n ended the command.
  int exit_code = -1;
  std::string output, errors;
};

class ScratchFolder : public TemporaryFolder {
 public:
  std::string file(const std::string& name) const { return path() / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  std::string read(const std::string& name) const { return content_of(file(name)); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path()), {}));
  }
};

// Returns the words of a command line, which blanks separate.
inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

struct CommandSetting {
  std::string input{};
  std::vector<std::pair<std::string, std::string>> environment{};
  // Standard output goes to this file instead of being caught.
  std::string output_file{};
  bool close_output = false;
  // Standard error goes to this file instead of being caught.
  std::string errors_file{};
};

// A running command. Standard output and error go to files, so that the command never blocks.
class RunningCommand {
 public:
  explicit RunningCommand(const std::vector<std::string>& arguments,
                          const CommandSetting& setting = {}) {
    const std::string input = folder_.write("in", setting.input);
    const std::string output =
        setting.output_file.empty() ? folder_.file("out") : setting.output_file;
    const std::string errors =
        setting.errors_file.empty() ? folder_.file("err") : setting.errors_file;
    process_ = fork();
    if (process_ != 0) return;
    redirect(input, O_RDONLY, STDIN_FILENO);
    redirect(output, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(errors, O_WRONLY | O_CREAT, STDERR_FILENO);
    if (setting.close_output) close(STDOUT_FILENO);
    unsetenv("COLUMNS");
    for (const auto& [name, value] : setting.environment) setenv(name.c_str(), value.c_str(), 1);
    execute(arguments);
  }
  explicit RunningCommand(const std::string& line, const CommandSetting& setting = {})
      : RunningCommand(words_of(line), setting) {}

  // Sends the signal after the command catches SIGINT and has worked for a moment.
  void interrupt_at_work(std::chrono::milliseconds working = std::chrono::milliseconds(700),
                         int signal = SIGINT) const {
    for (int waited = 0; waited < 600 && !catches_interrupts(); ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::this_thread::sleep_for(working);
    send(signal);
  }

  // Waits for the first process that the command starts and the processes that this one starts,
  // `count` in total.
  std::vector<pid_t> wait_for_processes(std::size_t count) const {
    std::vector<pid_t> found;
    for (int waited = 0; waited < 6000 && found.size() < count; ++waited) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      found = children_of(process_);
      if (found.size() != 1) continue;
      for (const pid_t each : children_of(found.front())) found.push_back(each);
    }
    return found;
  }
  void send(int signal) const { kill(process_, signal); }

  CommandResult finish() {
    int status = 0;
    waitpid(process_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), folder_.read("out"),
            folder_.read("err")};
  }

 private:
  bool catches_interrupts() const {
    std::ifstream status("/proc/" + std::to_string(process_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigCgt:", 0) == 0)
        return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1U) != 0;
    }
    return false;
  }

  static std::vector<pid_t> children_of(pid_t process) {
    const std::string task = std::to_string(process);
    std::ifstream stream("/proc/" + task + "/task/" + task + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; stream >> child;) children.push_back(child);
    return children;
  }

  static void redirect(const std::string& file, int flags, int descriptor) {
    constexpr int kMode = 0600;
    const int opened = open(file.c_str(), flags, kMode);
    if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
    close(opened);
  }

  [[noreturn]] static void execute(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {SHARDWRIGHT_COMMAND};
    words.insert(words.end(), arguments.begin(), arguments.end());
    execv(SHARDWRIGHT_COMMAND, argument_pointers(words).data());
    _exit(127);
  }

  ScratchFolder folder_;
  pid_t process_ = -1;
};

inline CommandResult run_command(const std::vector<std::string>& arguments,
                                 const CommandSetting& setting = {}) {
  return RunningCommand(arguments, setting).finish();
}

inline CommandResult run_command(const std::string& line, const CommandSetting& setting = {}) {
  return RunningCommand(line, setting).finish();
}

// Runs a command that succeeds, with its result as JSON.
inline nlohmann::json json_of(const std::string& line) {
  const CommandResult result = run_command(line + " --json -");
  EXPECT_EQ(result.exit_code, 0) << line << '\n' << result.errors;
  return nlohmann::json::parse(result.output, nullptr, false);
}

// Interrupts a command at work, whose result is then partial.
inline nlohmann::json interrupted_json(
    const std::string& line, std::chrono::milliseconds working = std::chrono::milliseconds(700),
    int signal = SIGINT) {
  RunningCommand running(line + " --json -");
  running.interrupt_at_work(working, signal);
  const CommandResult result = running.finish();
  EXPECT_EQ(result.exit_code, 130) << line << '\n' << result.errors;
  const nlohmann::json document = nlohmann::json::parse(result.output, nullptr, false);
  EXPECT_TRUE(document.is_object() && document.value("partial", false)) << result.output;
  return document;
}

// Checks that the command ends with this code, and that its messages have all fragments.
inline void expect_errors(int exit_code, const std::string& line,
                          const std::vector<std::string>& fragments,
                          const CommandSetting& setting = {}) {
  const CommandResult result = run_command(line, setting);
  EXPECT_EQ(result.exit_code, exit_code) << line << '\n' << result.errors;
  for (const std::string& fragment : fragments)
    EXPECT_THAT(result.errors, testing::HasSubstr(fragment)) << line;
}

// Checks that the command refuses its input with all fragments.
inline void expect_refused(const std::string& line, const std::vector<std::string>& fragments,
                           const CommandSetting& setting = {}) {
  expect_errors(2, line, fragments, setting);
}

}  // namespace shardwright::cli
