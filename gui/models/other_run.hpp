// A run that this program did not start, or that it let go: its process is found by the folder that
// the run writes to.
#pragma once

#include <sys/types.h>

#include <QObject>
#include <QString>
#include <cstdint>
#include <memory>
#include <optional>

class QSocketNotifier;

namespace shardwright::gui {

class OtherRun : public QObject {
  Q_OBJECT

 public:
  explicit OtherRun(QObject* parent = nullptr);
  ~OtherRun() override;

  // Watches the run that trains in `folder` instead of the former one. Returns false if none does.
  bool watch(const QString& folder);
  // Looks no longer; the run goes on.
  void leave();
  bool is_running() const { return process_ >= 0; }
  pid_t id() const { return id_; }
  // The number of steps of the whole run, as `--steps` has it.
  std::int64_t steps() const { return steps_; }
  void send(int signal);

 Q_SIGNALS:
  void ended();

 private:
  // A file descriptor of the process; -1 if no run is watched.
  int process_ = -1;
  pid_t id_ = 0;
  std::int64_t steps_ = 0;
  std::unique_ptr<QSocketNotifier> end_;
};

}  // namespace shardwright::gui
