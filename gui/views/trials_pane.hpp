// The trials of a tuning: a table from the best to the worst, and the loss of each over its steps.
#pragma once

#include <QFileSystemWatcher>
#include <optional>

#include "gui/models/tuning_results.hpp"
#include "gui/views/layouts.hpp"

class QTableWidget;

namespace shardwright::gui {

class Chart;

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
  TrialsPane(QTableWidget* table, Chart* chart, QWidget* parent);
  void read_again();
  void fill();
  void choose_row();
  void draw();

  QTableWidget* table_ = nullptr;
  Chart* chart_ = nullptr;
  QFileSystemWatcher watcher_;
  std::optional<TuningResults> tuning_;
  std::optional<std::size_t> chosen_;
};

}  // namespace shardwright::gui
