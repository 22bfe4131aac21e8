// The scenario that is edited, with undo and redo.
#pragma once

#include <QObject>
#include <QTimer>
#include <QUndoStack>

#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

class ScenarioDocument : public QObject {
  Q_OBJECT

 public:
  explicit ScenarioDocument(QObject* parent = nullptr);

  const ScenarioChoice& choice() const { return choice_; }
  QUndoStack* undo_stack() { return &undo_stack_; }

  // An edit of one field, or of one part of it; several of the same that follow each other within
  // `kTogetherMs` are undone together.
  void edit(Field field, const ScenarioChoice& next, int part = 0);
  static constexpr int kTogetherMs = 1000;
  // Everything at once, by what `title` says: a file was opened.
  void replace(const QString& title, const ScenarioChoice& next);
  // Without undo: a session is restored.
  void reset(const ScenarioChoice& choice);

 Q_SIGNALS:
  void changed();

 private:
  friend class ScenarioEdit;
  void set(const ScenarioChoice& choice);

  ScenarioChoice choice_;
  QUndoStack undo_stack_;
  QTimer pause_;
  // Edits of different bursts do not merge.
  int burst_ = 0;
};

}  // namespace shardwright::gui
