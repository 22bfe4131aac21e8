// Starts `shardwright run` and stops it cleanly.
#pragma once

#include <QObject>
#include <QProcess>
#include <QString>
#include <QTimer>
#include <cstdint>
#include <vector>

#include "core/spec/scenario.hpp"

namespace shardwright::gui {

struct RunSettings {
  QString data;  // corpus
  QString out;   // folder
  std::int64_t steps = 100;
};

// The command `shardwright`: beside this program, or of a build tree. Empty if it is not there.
QString find_command();

// `folder` itself if no run and no plan is there, else one beside it that is not there yet.
QString free_run_folder(const QString& folder);

// The steps whose timelines a run of so many steps keeps, ascending: 2, 5, 10, 20, 50 … of its
// first half, so that a run that is stopped has some too, and those that `shardwright run` keeps by
// itself, five of the second half.
std::vector<std::int64_t> recorded_steps(std::int64_t steps);

// However this program ends, `process`, which is not started yet, is asked to end (SIGTERM).
void end_with_this_program(QProcess& process);

class RunProcess : public QObject {
  Q_OBJECT

 public:
  explicit RunProcess(QObject* parent = nullptr);
  // A run that is still going is interrupted and waited for, so that no rank outlives the window.
  ~RunProcess() override;

  // Writes the plan into the folder and starts. Throws RuntimeFailure if it cannot, and if the
  // folder holds an earlier run or a plan: they stay as they are.
  void start(const Scenario& scenario, const RunSettings& settings);
  // Like Ctrl-C; killed if it does not end within `kPatienceMs`.
  void stop();
  bool is_running() const { return process_.state() != QProcess::NotRunning; }
  const RunSettings& settings() const { return settings_; }

  static constexpr int kPatienceMs = 10000;

 Q_SIGNALS:
  void started();
  // `message`: what the run wrote to stderr, its last lines.
  void ended(bool well, const QString& message);

 private:
  void take_errors();
  void remove_plan_of_no_run() const;
  void report(int code, QProcess::ExitStatus status);

  QProcess process_;
  QTimer patience_;
  RunSettings settings_;
  QString plan_;  // the file that was written
  QByteArray errors_;
  bool stopping_ = false;
  bool killed_ = false;  // because it did not stop
};

}  // namespace shardwright::gui
