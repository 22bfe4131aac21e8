#include "gui/window/pick_list.hpp"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kWidth = 520;
constexpr int kHeight = 380;

bool has_letters(const QString& text, const QString& word) {
  qsizetype at = 0;
  for (const QChar letter : word) {
    at = text.indexOf(letter, at, Qt::CaseInsensitive) + 1;
    if (at == 0) return false;
  }
  return true;
}

TypedMatch match_word(const QString& text, const QString& word) {
  qsizetype at = text.indexOf(word, 0, Qt::CaseInsensitive);
  if (at < 0) return has_letters(text, word) ? TypedMatch::Letters : TypedMatch::None;
  for (; at >= 0; at = text.indexOf(word, at + 1, Qt::CaseInsensitive)) {
    if (at == 0 || !text[at - 1].isLetterOrNumber()) return TypedMatch::WordStart;
  }
  return TypedMatch::Whole;
}

}  // namespace

TypedMatch match_typed(const QString& text, const QString& typed) {
  TypedMatch weakest = TypedMatch::WordStart;
  for (const QString& word : typed.split(u' ', Qt::SkipEmptyParts))
    weakest = std::max(weakest, match_word(text, word));
  return weakest;
}

PickList::PickList(const QString& id, const QString& hint, QWidget* window)
    : QFrame(window), line_(new QLineEdit), list_(new QListWidget) {
  setObjectName(id);
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  line_->setObjectName(id + u"_line"_s);
  line_->setPlaceholderText(hint);
  list_->setObjectName(id + u"_entries"_s);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setFrameShape(QFrame::NoFrame);
  list_->setUniformItemSizes(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 8);
  layout->addWidget(line_);
  layout->addWidget(list_, 1);
  line_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &PickList::narrow);
  connect(list_, &QListWidget::itemClicked, this, &PickList::run_current);
  hide();
}

void PickList::open(std::vector<Pick> picks) {
  picks_ = std::move(picks);
  const QSize around = parentWidget()->size();
  const int width = std::min(kWidth, around.width() - 20);
  setGeometry((around.width() - width) / 2, 60, width, std::min(kHeight, around.height() - 80));
  if (window()->focusWidget() != line_) focus_before_ = window()->focusWidget();
  line_->clear();
  narrow({});
  show();
  raise();
  line_->setFocus();
}

void PickList::replace(std::vector<Pick> picks) {
  picks_ = std::move(picks);
  narrow(line_->text());
}

void PickList::narrow(const QString& text) {
  list_->clear();
  std::vector<std::pair<TypedMatch, std::size_t>> found;
  for (std::size_t i = 0; i < picks_.size(); ++i) {
    const TypedMatch match = match_typed(picks_[i].text, text);
    if (match != TypedMatch::None) found.emplace_back(match, i);
  }
  std::sort(found.begin(), found.end());
  for (const auto& [match, i] : found) {
    const Pick& pick = picks_[i];
    auto* item =
        new QListWidgetItem(pick.keys.isEmpty() ? pick.text : pick.text + u"    "_s + pick.keys);
    item->setData(Qt::UserRole, QVariant::fromValue(i));
    item->setToolTip(pick.tip);
    list_->addItem(item);
  }
  if (found.empty()) {
    auto* note = new QListWidgetItem(tr("Nothing here has “%1” in its name.").arg(text), list_);
    note->setFlags(Qt::NoItemFlags);
    return;
  }
  list_->setCurrentRow(0);
}

void PickList::run_current() {
  const QListWidgetItem* item = list_->currentItem();
  if (item != nullptr && !item->flags().testFlag(Qt::ItemIsEnabled)) return;
  close_list();
  if (item == nullptr) return;
  // The copy outlives the entries if the action opens the list again.
  const std::function<void()> run = picks_[item->data(Qt::UserRole).value<std::size_t>()].run;
  run();
}

// A line that is hidden with the focus would give it to the first field of the window.
void PickList::close_list() {
  if (line_->hasFocus() && focus_before_ != nullptr) focus_before_->setFocus();
  hide();
}

bool PickList::eventFilter(QObject* watched, QEvent* event) {
  if (watched != line_) return QFrame::eventFilter(watched, event);
  if (event->type() == QEvent::FocusOut) hide();
  // Esc is the list's own while it is open, not a shortcut of the window.
  if (event->type() == QEvent::ShortcutOverride &&
      static_cast<const QKeyEvent*>(event)->key() == Qt::Key_Escape)
    event->accept();
  if (event->type() != QEvent::KeyPress) return false;
  const auto* key = static_cast<QKeyEvent*>(event);
  const int last = list_->count() - 1;
  switch (key->key()) {
    case Qt::Key_Escape:
      close_list();
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
