// The commands of the window, which menus, palette, the page of shortcuts and tests share.
#pragma once

#include <QAction>
#include <QObject>
#include <functional>
#include <vector>

namespace shardwright::gui {

struct Command {
  // "file.open": the object name of the action.
  QString id;
  QString group;
  QString text;
  QKeySequence shortcut;
  QString tip;
  std::function<void()> run;
};

class ActionRegistry : public QObject {
  Q_OBJECT

 public:
  explicit ActionRegistry(QWidget* window);

  QAction* add(const Command& command);
  // Takes an action that something else made (docks, undo).
  void adopt(const QString& group, QAction* action);

  // Enables a command, or disables it and says in its tool tip why. Without an `obstacle` it is
  // enabled.
  void allow(const QString& id, const QString& obstacle);

  QAction* find(const QString& id) const;
  const std::vector<QAction*>& actions() const { return actions_; }
  std::vector<QString> groups() const;
  static QString group_of(const QAction* action);

 private:
  QWidget* window_;
  std::vector<QAction*> actions_;
};

}  // namespace shardwright::gui
