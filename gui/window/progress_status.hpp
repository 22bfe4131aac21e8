// The progress of the search and of the reading of files, in the status bar.
#pragma once

#include <QTimer>
#include <QWidget>

#include "gui/models/plan_search.hpp"
#include "gui/models/read_files.hpp"

class QAction;
class QProgressBar;
class QToolButton;

namespace shardwright::gui {

class ElidedLabel;

// A text, a bar and a button that stops the work.
class ProgressStatus : public QWidget {
  Q_OBJECT

 public:
  QString text() const;

 protected:
  // `work` ends the object names of the widget ("search"), its bar and its button ("stop_search").
  ProgressStatus(const QString& work, const QString& stop_tip);

  ElidedLabel* text_;
  QProgressBar* bar_;
  QToolButton* stop_;
};

class SearchStatus : public ProgressStatus {
  Q_OBJECT

 public:
  explicit SearchStatus(PlanSearch* search);

 private:
  void show_progress(double share, const QString& text);
};

// Shown while `stop` is enabled, unless the files are read at once.
class ReadingStatus : public ProgressStatus {
  Q_OBJECT

 public:
  ReadingStatus(const ReadingProgress* progress, QAction* stop);

 private:
  void follow();
  void show_progress();

  const ReadingProgress* progress_;
  QAction* action_;
  QTimer ticks_;
};

}  // namespace shardwright::gui
