// The progress of reading files, in the status bar.
#pragma once

#include <QTimer>
#include <QWidget>

#include "gui/models/reading_progress.hpp"

class QAction;
class QLabel;
class QProgressBar;
class QToolButton;

namespace shardwright::gui {

// Shown while `stop` is enabled, unless the files are read at once.
class ReadingStatus : public QWidget {
  Q_OBJECT

 public:
  ReadingStatus(const ReadingProgress* progress, QAction* stop, QWidget* parent = nullptr);

  QString text() const;

 private:
  void follow();
  void show_progress();

  const ReadingProgress* progress_;
  QAction* stop_;
  QLabel* text_;
  QProgressBar* bar_;
  QToolButton* button_;
  QTimer ticks_;
};

}  // namespace shardwright::gui
