// The machine that the window runs on, as a cluster to plan for.
#pragma once

#include <QObject>
#include <QProcess>

#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

// True if this machine was measured before and its profile is kept.
bool is_probed();

// Returns `choice` on all of this machine, as `shardwright plan --cluster here` plans for it: all
// of its ranks, a few sequences for each, the precision that it computes in. Sequences keep their
// length unless the model is published for shorter ones. Throws InputError if the kept profile is
// damaged or missing.
ScenarioChoice on_this_machine(const ScenarioChoice& choice);

// `process`, which is not started yet, will get SIGTERM when this program ends, however that
// happens.
void end_with_this_program(QProcess& process);

class MachineProbe : public QObject {
  Q_OBJECT

 public:
  explicit MachineProbe(QObject* parent = nullptr);
  ~MachineProbe() override;

  // Does nothing while a probe is at work.
  void start();
  void stop();
  bool is_running() const { return process_.state() != QProcess::NotRunning; }

 Q_SIGNALS:
  // `problem` is the error of the command; empty if the profile is there or the probe was stopped.
  void ended(const QString& problem);

 private:
  void report(int code, QProcess::ExitStatus status);

  QProcess process_;
  bool stopping_ = false;
};

}  // namespace shardwright::gui
