#include "gui/window/action_registry.hpp"

#include <QWidget>
#include <algorithm>

namespace shardwright::gui {
namespace {

constexpr const char* kGroup = "group";

}  // namespace

ActionRegistry::ActionRegistry(QWidget* window) : QObject(window), window_(window) {}

QAction* ActionRegistry::add(const Command& command) {
  auto* action = new QAction(command.text, window_);
  action->setObjectName(command.id);
  action->setShortcut(command.shortcut);
  action->setToolTip(command.tip);
  action->setStatusTip(command.tip);
  connect(action, &QAction::triggered, window_, [run = command.run] { run(); });
  window_->addAction(action);
  adopt(command.group, action);
  return action;
}

void ActionRegistry::adopt(const QString& group, QAction* action) {
  action->setProperty(kGroup, group);
  actions_.push_back(action);
}

void ActionRegistry::allow(const QString& id, const QString& obstacle) {
  QAction* action = find(id);
  action->setEnabled(obstacle.isEmpty());
  action->setToolTip(obstacle.isEmpty() ? action->statusTip() : obstacle);
}

QAction* ActionRegistry::find(const QString& id) const {
  const auto found = std::find_if(actions_.begin(), actions_.end(), [&](const QAction* action) {
    return action->objectName() == id;
  });
  return found == actions_.end() ? nullptr : *found;
}

std::vector<QString> ActionRegistry::groups() const {
  std::vector<QString> groups;
  for (const QAction* action : actions_) {
    const QString group = group_of(action);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

QString ActionRegistry::group_of(const QAction* action) {
  return action->property(kGroup).toString();
}

}  // namespace shardwright::gui
