// Follows the metrics of a run while they are written.
#pragma once

#include <QElapsedTimer>
#include <QFile>
#include <QObject>
#include <QTimer>
#include <optional>
#include <vector>

namespace shardwright::gui {

// A line of metrics.jsonl. NaN where the run wrote null or nothing; `step` and `step_s` are always
// there.
struct RunStep {
  double step = 0.0;
  double loss = 0.0;
  double gradient_norm = 0.0;
  double step_s = 0.0;
  double tokens_per_s = 0.0;
  // A share of the peak of the plan's cluster; NaN if the run has no plan.
  double mfu = 0.0;
  // The peak of the step's tensors on rank 0.
  double memory_bytes = 0.0;
};

// Empty for what is no line of metrics: no JSON object, no `step` or `step_s`, a number that is
// none or out of its range.
std::optional<RunStep> read_run_step(const QByteArray& line);

class RunFollower : public QObject {
  Q_OBJECT

 public:
  explicit RunFollower(QObject* parent = nullptr);

  // Reads `file`, which need not be there yet, from its beginning, then what is added to it: a part
  // of it at once, the rest as the event loop comes round.
  void follow(const QString& file);
  // Reads what is left and stops.
  void finish();
  // Follows nothing any more.
  void forget();
  const std::vector<RunStep>& steps() const { return steps_; }
  const QString& file() const { return path_; }
  // Lines that were no metrics.
  int damaged_lines() const { return damaged_; }
  // The first of them, counted from 1; zero without any.
  int first_damaged_line() const { return first_damaged_; }
  // Until the file is looked at again: longer while nothing is added to it.
  int pause_ms() const { return timer_.interval(); }

 Q_SIGNALS:
  void grown();

 private:
  void poll();
  // A part of what was added; true if there is more of it.
  bool read_on();
  void take_line(const QByteArray& line);

  QTimer timer_;
  // Runs since the last `grown`.
  QElapsedTimer since_grown_;
  QString path_;
  qint64 position_ = 0;
  // The part of a line that is still being written.
  QByteArray rest_;
  std::vector<RunStep> steps_;
  int lines_ = 0, damaged_ = 0, first_damaged_ = 0;
};

// Of the steps after the first, which warms up; zero without any.
double median_step_s(const std::vector<RunStep>& steps);

// What lets a run look slower than before or than predicted, in words; empty: nothing.
QString bottleneck_warning(const std::vector<RunStep>& steps, double predicted_step_s);

}  // namespace shardwright::gui
