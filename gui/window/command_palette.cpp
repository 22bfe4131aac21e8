#include "gui/window/command_palette.hpp"

#include <QAction>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/window/action_registry.hpp"

namespace shardwright::gui {
namespace {

constexpr int kWidth = 520;
constexpr int kHeight = 380;

QString plain(QString text) {
  return text.remove(QLatin1Char('&'));
}

}  // namespace

bool matches_typed(const QString& text, const QString& typed) {
  for (const QString& word : typed.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
    qsizetype at = 0;
    for (const QChar letter : word) {
      at = text.indexOf(letter, at, Qt::CaseInsensitive);
      if (at < 0) return false;
      ++at;
    }
  }
  return true;
}

CommandPalette::CommandPalette(const ActionRegistry* registry, QWidget* window)
    : QFrame(window), registry_(registry), line_(new QLineEdit), list_(new QListWidget) {
  setObjectName(QStringLiteral("command_palette"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  line_->setObjectName(QStringLiteral("command_line"));
  line_->setPlaceholderText(tr("Type a command"));
  list_->setObjectName(QStringLiteral("commands"));
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setFrameShape(QFrame::NoFrame);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 8);
  layout->addWidget(line_);
  layout->addWidget(list_, 1);
  line_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &CommandPalette::narrow);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run_current);
  hide();
}

void CommandPalette::open() {
  const QSize around = parentWidget()->size();
  const int width = std::min(kWidth, around.width() - 20);
  setGeometry((around.width() - width) / 2, 60, width, std::min(kHeight, around.height() - 80));
  line_->clear();
  narrow({});
  show();
  raise();
  line_->setFocus();
}

void CommandPalette::narrow(const QString& text) {
  list_->clear();
  for (QAction* action : registry_->actions()) {
    if (!action->isEnabled() || plain(action->text()).isEmpty()) continue;
    const QString name =
        ActionRegistry::group_of(action) + QStringLiteral(": ") + plain(action->text());
    if (!matches_typed(name, text)) continue;
    const QString keys = action->shortcut().toString(QKeySequence::NativeText);
    auto* item = new QListWidgetItem(keys.isEmpty() ? name : name + QStringLiteral("    ") + keys);
    item->setData(Qt::UserRole, QVariant::fromValue(static_cast<QObject*>(action)));
    item->setToolTip(action->toolTip());
    list_->addItem(item);
  }
  list_->setCurrentRow(0);
}

void CommandPalette::run_current() {
  const QListWidgetItem* item = list_->currentItem();
  hide();
  if (item == nullptr) return;
  if (auto* action = qobject_cast<QAction*>(item->data(Qt::UserRole).value<QObject*>()))
    action->trigger();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched != line_) return QFrame::eventFilter(watched, event);
  if (event->type() == QEvent::FocusOut) hide();
  if (event->type() != QEvent::KeyPress) return false;
  const auto* key = static_cast<QKeyEvent*>(event);
  const int last = list_->count() - 1;
  switch (key->key()) {
    case Qt::Key_Escape:
      hide();
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      run_current();
      return true;
    case Qt::Key_Down:
      list_->setCurrentRow(std::min(list_->currentRow() + 1, last));
      return true;
    case Qt::Key_Up:
      list_->setCurrentRow(std::max(list_->currentRow() - 1, 0));
      return true;
    default:
      return false;
  }
}

}  // namespace shardwright::gui
