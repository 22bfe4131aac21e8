// Starts `shardwright run`, or takes up one that trains already, and stops it cleanly.
#pragma once

#include <QObject>
#include <QProcess>
#include <QString>
#include <QTimer>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/spec/scenario.hpp"
#include "gui/models/other_run.hpp"

namespace shardwright::gui {

struct RunSettings {
  QString data;
  QString out;
  std::int64_t steps = 100;
};

// Says what the executor lacks to train under the plan of `scenario` on this machine, in up to four
// lines; empty if it lacks nothing.
QString what_the_executor_lacks(const Scenario& scenario);

// Finds the command `shardwright` beside this program or in a build tree. Empty if it is missing.
QString find_command();

// Returns `folder` itself if it holds no run and no plan, else a free folder beside it.
QString free_run_folder(const QString& folder);

// Returns the steps whose timelines a run keeps, ascending: 2, 5, 10, 20, 50 … of its first half,
// so that a stopped run has some too, and the five of the second half that `shardwright run` keeps
// by itself.
std::vector<std::int64_t> recorded_steps(std::int64_t steps);

class RunProcess : public QObject {
  Q_OBJECT

 public:
  explicit RunProcess(QObject* parent = nullptr);
  // Interrupts the run that it started, if that is in progress, and waits for its end.
  ~RunProcess() override;

  // Writes the plan into the folder and starts. Throws RuntimeFailure if it cannot, and if the
  // folder holds an earlier run or a plan: they stay as they are.
  void start(const Scenario& scenario, const RunSettings& settings);
  // Takes up the run that trains in `folder`, whoever started it, and leaves the former one that it
  // took up. The run that is in progress stays as it is if it is that one. Returns the number of
  // its steps; none if no run trains there or if another one that it started is in progress.
  std::optional<std::int64_t> take_up(const QString& folder);
  // Interrupts the run as Ctrl-C does; it is killed if it does not end within `kPatienceMs`.
  void stop();
  // Lets the run go: it goes on when this program ends, and is_running() is false from now on.
  void release();
  bool is_running() const { return is_own() || other_.is_running(); }
  // True while a run is in progress that it started, and that ends with it.
  bool is_own() const { return process_->state() != QProcess::NotRunning; }
  // The folder of the run that is in progress, or of the last one.
  const QString& folder() const { return settings_.out; }
  qint64 id() const { return is_own() ? process_->processId() : other_.id(); }

  static constexpr int kPatienceMs = 10000;

 Q_SIGNALS:
  void started();
  // `message`: how the run ended, or the last lines that it wrote to standard error.
  void ended(bool well, const QString& message);

 private:
  void make_process();
  // Starts the run so that it gets SIGTERM if this program ends without letting it go.
  void start_tied(const QString& command, const QStringList& arguments);
  void cut_lifeline();
  QString take_errors();
  void remove_plan_of_no_run() const;
  void report(int code, QProcess::ExitStatus status);
  // Reports the end of a run that was taken up, whose exit code nobody but its parent gets.
  void report_other();
  void report_killed();

  QProcess* process_ = nullptr;
  OtherRun other_;
  // A socket whose other end a child of the run watches; -1 if there is no run.
  int lifeline_ = -1;
  QTimer patience_;
  RunSettings settings_;
  QString plan_;
  bool stopping_ = false;
  bool killed_ = false;
};

}  // namespace shardwright::gui
