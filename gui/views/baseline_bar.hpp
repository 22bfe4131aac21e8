// The line that holds the chosen plan against the pinned baseline.
#pragma once

#include <QWidget>

#include "gui/models/selection.hpp"

class QLabel;
class QToolButton;

namespace shardwright::gui {

// It is hidden while nothing is pinned.
class BaselineBar : public QWidget {
  Q_OBJECT

 public:
  explicit BaselineBar(Selection* selection, QWidget* parent = nullptr);

 Q_SIGNALS:
  // The user wants the scenario and the plan of the baseline back.
  void return_wanted();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_differences();

  Selection* selection_;
  QLabel* text_;
  QToolButton* return_;
};

}  // namespace shardwright::gui
