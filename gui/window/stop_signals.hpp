// SIGINT, SIGTERM and SIGHUP as signals of the event loop.
#pragma once

#include <QObject>

namespace shardwright::gui {

class MainWindow;

// Emits the signals instead of letting them end the program, except those that were ignored before,
// as under nohup. At most one of these lives at a time.
class StopSignals : public QObject {
  Q_OBJECT

 public:
  explicit StopSignals(QObject* parent = nullptr);
  ~StopSignals() override;

 Q_SIGNALS:
  void came(int signal);

 private:
  void take();

  int read_end_ = -1;
};

// Runs the event loop until the window is closed or a signal of `stop` comes. A signal asks
// nothing, saves the session, and makes 128 and its number the exit code that is returned.
int run_until_closed(MainWindow& window, const StopSignals& stop);

}  // namespace shardwright::gui
