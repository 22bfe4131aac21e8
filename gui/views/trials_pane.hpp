// The trials of a tuning: a table from the best to the worst, and the loss of each over its steps.
#pragma once

#include <QFileSystemWatcher>
#include <optional>
#include <vector>

#include "gui/models/tuning_results.hpp"
#include "gui/views/layouts.hpp"

class QTableWidget;

namespace shardwright::gui {

class PointChart;

// Follows the folder while the tuning goes on.
class TrialsPane : public PaneRow {
  Q_OBJECT

 public:
  explicit TrialsPane(QWidget* parent = nullptr);

  // Chooses the best trial.
  void show_tuning(TuningResults tuning);
  void forget();
  const TuningResults& tuning() const { return *tuning_; }

 Q_SIGNALS:
  void chosen(std::size_t trial);

 private:
  TrialsPane(QTableWidget* table, PointChart* chart, QWidget* parent);
  void read_again();
  void fill();
  void choose_row();
  void draw();
  // Lets each loss say whose it is, and a click on it choose its trial.
  void answer_for_points();

  QTableWidget* table_ = nullptr;
  PointChart* chart_ = nullptr;
  QFileSystemWatcher watcher_;
  std::optional<TuningResults> tuning_;
  std::optional<std::size_t> chosen_;
  // The trial of each graph of the chart.
  std::vector<std::size_t> drawn_;
};

}  // namespace shardwright::gui
