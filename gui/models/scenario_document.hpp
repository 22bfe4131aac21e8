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

  // Edits one field, or one part of it. Edits of the same that follow each other within
  // `kTogetherMs` are undone together.
  void edit(Field field, const ScenarioChoice& next, int part = 0);
  static constexpr int kTogetherMs = 1000;
  // Replaces everything at once; `title` names the reason.
  void replace(const QString& title, const ScenarioChoice& next);
  // Restores a session, which cannot be undone.
  void reset(const ScenarioChoice& choice);

 Q_SIGNALS:
  void changed();

 private:
  friend class ScenarioEdit;
  void set(const ScenarioChoice& choice);

  ScenarioChoice choice_;
  QUndoStack undo_stack_;
  QTimer pause_;
  int burst_ = 0;
};

}  // namespace shardwright::gui
