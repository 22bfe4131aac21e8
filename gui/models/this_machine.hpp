// The machine that the window runs on, as a cluster to plan for.
#pragma once

#include <QObject>
#include <QProcess>

#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

// The profile of this machine was measured before and is kept.
bool is_probed();

// `choice` on this machine, planned for as a whole as by `shardwright plan --cluster here`: all of
// its ranks, a few sequences for each, the precision that it computes in; sequences as they are, if
// the model is not published for shorter ones. Throws InputError where the kept profile is damaged
// or missing.
ScenarioChoice on_this_machine(const ScenarioChoice& choice);

// Has the command measure this machine and keep its profile.
class MachineProbe : public QObject {
  Q_OBJECT

 public:
  explicit MachineProbe(QObject* parent = nullptr);
  ~MachineProbe() override;

  // Nothing where it goes on already.
  void start();
  void stop();
  bool is_running() const { return process_.state() != QProcess::NotRunning; }

 Q_SIGNALS:
  // `problem`: what the command says; empty where the profile is there, or the probe was stopped.
  void ended(const QString& problem);

 private:
  void report(int code, QProcess::ExitStatus status);

  QProcess process_;
  bool stopping_ = false;
};

}  // namespace shardwright::gui
