// The native half of the Python package: runs a command of Shardwright on a thread of its own, so
// that Python's Ctrl-C and its other threads work meanwhile.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/options/common_options.hpp"
#include "cli/output/embedding.hpp"

namespace py = pybind11;

namespace shardwright {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};

struct ProgressReport {
  double share = 0.0;
  std::string text;
};

// A command that runs, as the thread that waits for it sees it.
class RunningCommand {
 public:
  RunningCommand(std::vector<std::string> arguments, bool reports_progress, std::string programs) {
    cli::Embedding host;
    host.programs = std::move(programs);
    host.stop = stop_.get_token();
    if (reports_progress) {
      host.progress = [this](double share, const std::string& text) {
        const std::lock_guard lock(mutex_);
        report_ = {share, text};
      };
    }
    thread_ = std::jthread([this, arguments = std::move(arguments), host = std::move(host)] {
      cli::EmbeddedResult result = cli::run_embedded(arguments, host);
      const std::lock_guard lock(mutex_);
      result_ = std::move(result);
      done_.notify_all();
    });
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;
  ~RunningCommand() { stop_.request_stop(); }

  // True if the command has ended; waits a moment for that.
  bool wait() {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, kBetweenLooks, [this] { return result_.has_value(); });
  }

  std::optional<ProgressReport> take_report() {
    const std::lock_guard lock(mutex_);
    return std::exchange(report_, std::nullopt);
  }

  cli::EmbeddedResult take_result() { return std::move(*result_); }

 private:
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<ProgressReport> report_;
  std::optional<cli::EmbeddedResult> result_;
  // Last, so that it has ended before what it uses does.
  std::jthread thread_;
};

py::dict to_python(cli::EmbeddedResult result) {
  py::list problems;
  for (const Problem& problem : result.problems)
    problems.append(py::make_tuple(problem.where, problem.found, to_string(problem.expected)));
  py::dict dict;
  dict["code"] = static_cast<int>(result.code);
  dict["output"] = py::bytes(result.output);
  dict["messages"] = py::bytes(result.messages);
  dict["source"] = result.source;
  dict["problems"] = problems;
  return dict;
}

// Waits without Python's lock. An exception of Ctrl-C or of the callback stops the command first.
py::dict run_command(const std::vector<std::string>& arguments, const py::object& progress,
                     const std::string& programs) {
  cli::EmbeddedResult result;
  {
    const py::gil_scoped_release release;
    RunningCommand command(arguments, !progress.is_none(), programs);
    while (!command.wait()) {
      const std::optional<ProgressReport> report = command.take_report();
      const py::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (report) progress(report->share, report->text);
    }
    // What came after the last look.
    if (const std::optional<ProgressReport> report = command.take_report()) {
      const py::gil_scoped_acquire acquire;
      progress(report->share, report->text);
    }
    result = command.take_result();
  }
  return to_python(std::move(result));
}

}  // namespace
}  // namespace shardwright

PYBIND11_MODULE(_core, module) {
  module.doc() = "The native half of the package shardwright.";
  module.def("run_command", &shardwright::run_command, py::arg("arguments"),
             py::arg("progress") = py::none(), py::arg("programs") = "");
  module.def("description", &shardwright::cli::command_description);
  module.def("version", &shardwright::cli::version);
}
