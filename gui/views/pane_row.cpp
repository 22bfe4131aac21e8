#include "gui/views/pane_row.hpp"

#include <QResizeEvent>
#include <algorithm>

namespace shardwright::gui {
namespace {

constexpr int kLeastWidth = 220;  // pixels of a pane beside others
constexpr int kLeastHeight = 170;
constexpr int kStackedHeight = 260;  // … below others

}  // namespace

PaneRow::PaneRow(std::initializer_list<QWidget*> panes, const QList<int>& sizes, QWidget* parent)
    : QSplitter(Qt::Horizontal, parent), sizes_(sizes) {
  for (QWidget* pane : panes) addWidget(pane);
  setChildrenCollapsible(false);
  setMinimumHeight(kLeastHeight);
  setSizes(sizes_);
}

QSize PaneRow::minimumSizeHint() const {
  int width = 0;
  for (int i = 0; i < count(); ++i) width = std::max(width, widget(i)->minimumSizeHint().width());
  return {width, minimumHeight()};
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
  setMinimumHeight(stacked ? count() * kStackedHeight : kLeastHeight);
  setSizes(stacked ? QList<int>(count(), kStackedHeight) : sizes_);
}

void PaneRow::resizeEvent(QResizeEvent* event) {
  if (event->oldSize().width() != event->size().width()) arrange();
  QSplitter::resizeEvent(event);
}

}  // namespace shardwright::gui
