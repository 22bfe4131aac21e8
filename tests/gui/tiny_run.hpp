#pragma once

#include <signal.h>

#include <QDir>
#include <QFile>
#include <QList>
#include <QString>

#include "calibration/calibrate.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {

// Links of a server, CPUs of which nothing was measured yet, and a stack that is shipped nowhere,
// as a probe writes it.
inline ClusterSpec cpu_cluster() {
  ClusterSpec cluster = load_cluster("h100-pcie-server");
  cluster.name = "cpu-server";
  cluster.accelerator.name = "cpu-rank";
  cluster.accelerator.architecture = Architecture::Cpu;
  cluster.stack = load_stack("shardwright");
  cluster.stack->name = "shardwright-cpu";
  return cluster;
}

// A server of CPUs as `probe` writes it, with two ranks that compute in fp32 alone.
inline ClusterSpec two_cpu_ranks() {
  ClusterSpec cluster = cpu_cluster();
  cluster.nodes = 1;
  cluster.node.accelerators = 2;
  cluster.accelerator.matrix.bf16 = cluster.accelerator.matrix.fp16 = FlopPerSecond(0);
  return cluster;
}

// The scenario has two ranks.
inline Scenario tiny_scenario(const ClusterSpec& cluster = cpu_cluster()) {
  Scenario scenario{
      load_model("tiny-llama"), cluster, cluster.stack.value_or(load_stack("shardwright")), {}};
  scenario.plan.tp = 2;
  scenario.plan.global_batch = 2;
  scenario.plan.seq_len = 32;
  scenario.plan.precision = Precision::Fp32;
  return scenario;
}

// Returns the processes whose command line names `text`. An ended process that nobody waited for
// has no command line.
inline QList<qint64> processes_of(const QString& text) {
  QList<qint64> found;
  for (const QString& name : QDir(u"/proc"_s).entryList(QDir::Dirs)) {
    bool is_process = false;
    const qint64 process = name.toLongLong(&is_process);
    QFile line(u"/proc/%1/cmdline"_s.arg(name));
    if (is_process && line.open(QIODevice::ReadOnly) && line.readAll().contains(text.toUtf8()))
      found.append(process);
  }
  return found;
}

// Sends SIGINT to all of them, as Ctrl-C in their terminal does.
inline void interrupt_processes_of(const QString& text) {
  for (const qint64 process : processes_of(text)) ::kill(static_cast<pid_t>(process), SIGINT);
}

}  // namespace shardwright::gui
