#include "gui/views/scrolled_column.hpp"

#include <QScrollArea>
#include <QVBoxLayout>

namespace shardwright::gui {

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

}  // namespace shardwright::gui
