// Follows the metrics of a run while they are written.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <limits>
#include <optional>
#include <span>
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
  // The loss of samples that are held out from training; only some steps have it.
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
};

// Returns none unless the line is a JSON object with `step` and `step_s` and all numbers lie in
// their ranges.
std::optional<RunStep> read_run_step(const QByteArray& line);

// Returns seconds, and 0 if there is no step.
double median_step_time(std::span<const RunStep> steps);

class RunFollower : public QObject {
  Q_OBJECT

 public:
  explicit RunFollower(QObject* parent = nullptr);

  // Reads `file`, which need not exist yet, from its beginning, and then what is added to it. Reads
  // one part at once and the rest as the event loop comes round.
  void follow(const QString& file);
  void finish();
  void forget();
  const std::vector<RunStep>& steps() const { return steps_; }
  const QString& file() const { return path_; }
  int damaged_lines() const { return damaged_; }
  // The first of them, counted from 1; zero without any.
  int first_damaged_line() const { return first_damaged_; }
  // The time until the next look at the file, which grows while nothing is added.
  int pause_ms() const { return timer_.interval(); }

 Q_SIGNALS:
  void grown();

 private:
  void poll();
  // Reads a part of what was added. Returns true if there is more.
  bool read_on();
  void take_line(const QByteArray& line);

  QTimer timer_;
  QElapsedTimer since_grown_;
  QString path_;
  qint64 position_ = 0;
  // The part of a line that is still being written.
  QByteArray rest_;
  std::vector<RunStep> steps_;
  int lines_ = 0, damaged_ = 0, first_damaged_ = 0;
};

// Describes a run that is slower than before or than predicted; else empty.
QString bottleneck_warning(const std::vector<RunStep>& steps, double predicted_step_s);

}  // namespace shardwright::gui
