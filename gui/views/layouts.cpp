#include "gui/views/layouts.hpp"

#include <QBoxLayout>
#include <QLabel>
#include <QResizeEvent>
#include <QScrollArea>
#include <algorithm>

#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// The pixels of a pane beside others.
constexpr int kLeastWidth = 220, kLeastHeight = 170;

// A widget that expands gets its minimum and a part of the rest of the line.
int wanted_width(const QLayoutItem& item) {
  const bool expands = item.expandingDirections().testFlag(Qt::Horizontal);
  return std::max(item.minimumSize().width(), expands ? 0 : item.sizeHint().width());
}

int height_of(const std::vector<QLayoutItem*>& line) {
  int height = 0;
  for (const QLayoutItem* item : line) height = std::max(height, item->sizeHint().height());
  return height;
}

template <class Layout>
QWidget* pane_of(std::initializer_list<QWidget*> widgets, const QWidget* grows) {
  auto* pane = new QWidget;
  auto* layout = new Layout(pane);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QWidget* widget : widgets) layout->addWidget(widget, widget == grows ? 1 : 0);
  return pane;
}

}  // namespace

QWidget* row_of(std::initializer_list<QWidget*> widgets, const QWidget* grows) {
  return pane_of<QHBoxLayout>(widgets, grows);
}

QWidget* column_of(std::initializer_list<QWidget*> widgets, const QWidget* grows) {
  return pane_of<QVBoxLayout>(widgets, grows);
}

QWidget* titled(const QString& title, QWidget* content, QWidget* note) {
  auto* label = new QLabel(title);
  make_bold(*label);
  QWidget* pane = note != nullptr ? column_of({label, note, content}, content)
                                  : column_of({label, content}, content);
  pane->layout()->setSpacing(2);
  return pane;
}

QVBoxLayout* scrolled_column(QWidget& view) {
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  auto* scroll = new QScrollArea;
  scroll->setWidget(content);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* around = new QVBoxLayout(&view);
  around->setContentsMargins(0, 0, 0, 0);
  around->addWidget(scroll);
  return column;
}

PaneRow::PaneRow(std::initializer_list<QWidget*> panes, const QList<int>& sizes, QWidget* parent)
    : QSplitter(Qt::Horizontal, parent), sizes_(sizes) {
  for (QWidget* pane : panes) addWidget(pane);
  setChildrenCollapsible(false);
  setMinimumHeight(kLeastHeight);
  setSizes(sizes_);
}

QSize PaneRow::minimumSizeHint() const {
  int width = 0, height = (count() - 1) * handleWidth();
  for (int i = 0; i < count(); ++i) {
    const QSize least = widget(i)->minimumSizeHint();
    width = std::max(width, least.width());
    height += std::max(stacked_height_, least.height());
  }
  return {width, is_stacked() ? height : minimumHeight()};
}

int PaneRow::width_beside_each_other() const {
  int width = (count() - 1) * handleWidth();
  for (int i = 0; i < count(); ++i)
    width += std::max(kLeastWidth, widget(i)->minimumSizeHint().width());
  return width;
}

void PaneRow::arrange() {
  const bool stacked = width() < width_beside_each_other();
  if (stacked == is_stacked()) return;
  setOrientation(stacked ? Qt::Vertical : Qt::Horizontal);
  setMinimumHeight(stacked ? count() * stacked_height_ : kLeastHeight);
  setSizes(stacked ? QList<int>(count(), stacked_height_) : sizes_);
}

void PaneRow::resizeEvent(QResizeEvent* event) {
  if (event->oldSize().width() != event->size().width()) arrange();
  QSplitter::resizeEvent(event);
}

FlowLayout::~FlowLayout() {
  for (QLayoutItem* item : items_) delete item;
}

QLayoutItem* FlowLayout::itemAt(int index) const {
  return index >= 0 && index < count() ? items_[static_cast<std::size_t>(index)] : nullptr;
}

QLayoutItem* FlowLayout::takeAt(int index) {
  QLayoutItem* item = itemAt(index);
  if (item != nullptr) items_.erase(items_.begin() + index);
  return item;
}

std::vector<FlowLayout::Line> FlowLayout::lines(int width) const {
  std::vector<Line> all;
  int used = 0;
  for (QLayoutItem* item : items_) {
    if (item->isEmpty()) continue;
    const int wanted = wanted_width(*item);
    if (all.empty() || used + spacing() + wanted > width) {
      all.emplace_back();
      used = wanted;
    } else {
      used += spacing() + wanted;
    }
    all.back().push_back(item);
  }
  return all;
}

int FlowLayout::heightForWidth(int width) const {
  const QMargins around = contentsMargins();
  int height = around.top() + around.bottom();
  const std::vector<Line> all = lines(width - around.left() - around.right());
  for (const Line& line : all) height += height_of(line);
  return height + static_cast<int>(std::max<std::size_t>(all.size(), 1) - 1) * spacing();
}

QSize FlowLayout::minimumSize() const {
  const QMargins around = contentsMargins();
  QSize size;
  for (const QLayoutItem* item : items_) {
    if (!item->isEmpty()) size = size.expandedTo(item->minimumSize());
  }
  return size.grownBy(around);
}

QSize FlowLayout::sizeHint() const {
  const QMargins around = contentsMargins();
  QSize size;
  for (const QLayoutItem* item : items_) {
    if (item->isEmpty()) continue;
    const int before = size.width() > 0 ? size.width() + spacing() : 0;
    size = QSize(before + item->sizeHint().width(),
                 std::max(size.height(), item->sizeHint().height()));
  }
  return size.grownBy(around);
}

void FlowLayout::setGeometry(const QRect& rect) {
  QLayout::setGeometry(rect);
  const QRect inside = rect.marginsRemoved(contentsMargins());
  int top = inside.top();
  for (const Line& line : lines(inside.width())) {
    const int height = height_of(line);
    place(line, QRect(inside.left(), top, inside.width(), height));
    top += height + spacing();
  }
}

void FlowLayout::place(const Line& line, const QRect& rect) const {
  int left_over = rect.width() - spacing() * static_cast<int>(line.size() - 1);
  int expanding = 0;
  for (const QLayoutItem* item : line) {
    left_over -= wanted_width(*item);
    expanding += item->expandingDirections().testFlag(Qt::Horizontal) ? 1 : 0;
  }
  int x = rect.left();
  for (QLayoutItem* item : line) {
    int width = wanted_width(*item);
    if (item->expandingDirections().testFlag(Qt::Horizontal) && left_over > 0) {
      const int share = left_over / expanding--;
      width += share;
      left_over -= share;
    }
    width = std::min(width, rect.right() + 1 - x);
    const int height = std::min(rect.height(), item->sizeHint().height());
    item->setGeometry(QRect(x, rect.top() + (rect.height() - height) / 2, width, height));
    x += width + spacing();
  }
}

}  // namespace shardwright::gui
