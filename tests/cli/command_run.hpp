// Runs the built command and catches what it prints.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/stop_signals.hpp"

namespace shardwright::cli {

struct CommandResult {
  int exit_code = -1;  // 128 + n if signal n ended it
  std::string output, errors;
};

// A folder of its own that goes away with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shardwright.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

struct CommandSetting {
  std::string input{};
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string output_file{};  // in place of catching standard output
  bool close_output = false;
  std::string errors_file{};  // in place of catching standard error
};

// A running command. Standard output and error go to files, so that nothing can block.
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

  // Ctrl-C once the command has begun its work: it catches the signal by then, and has had a
  // moment for a first result.
  void interrupt_at_work(std::chrono::milliseconds working = std::chrono::milliseconds(700)) const {
    for (int waited = 0; waited < 600 && !catches_interrupts(); ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::this_thread::sleep_for(working);
    kill(process_, SIGINT);
  }

  // The first process that it starts, and those that this one starts, once there are `count`.
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

}  // namespace shardwright::cli
