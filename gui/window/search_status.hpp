// The progress of the search, in the status bar.
#pragma once

#include <QWidget>

#include "gui/models/plan_search.hpp"

class QLabel;
class QProgressBar;
class QToolButton;

namespace shardwright::gui {

class SearchStatus : public QWidget {
  Q_OBJECT

 public:
  explicit SearchStatus(PlanSearch* search, QWidget* parent = nullptr);

 private:
  void show_progress(double share, qint64 checked, qint64 simulated, double best_step_s);

  QLabel* text_;
  QProgressBar* bar_;
  QToolButton* stop_;
};

}  // namespace shardwright::gui
