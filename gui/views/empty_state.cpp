#include "gui/views/empty_state.hpp"

#include <QEvent>

#include "gui/models/text.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {

EmptyState::EmptyState(QWidget* content, QWidget* parent)
    : QStackedWidget(parent), label_(named<HintLabel>(u"hint"_s)) {
  label_->setAlignment(Qt::AlignCenter);
  label_->setTextFormat(Qt::RichText);
  label_->setMargin(12);
  label_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  connect(label_, &QLabel::linkActivated, this, &EmptyState::link_clicked);
  addWidget(label_);
  addWidget(content);
  connect(this, &QStackedWidget::currentChanged, this, &QWidget::updateGeometry);
}

void EmptyState::show_hint(const QString& text) {
  label_->setText(text);
  setCurrentIndex(0);
}

// Rich text takes the colour of its links from the palette as it is read.
void EmptyState::changeEvent(QEvent* event) {
  QStackedWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  const QString text = label_->text();
  label_->clear();
  label_->setText(text);
}

void EmptyState::show_content() {
  setCurrentIndex(1);
}

// The layout would otherwise ask for the height of all pages, which scrolls the hint out of sight
// and cuts content that has no height for its width.
bool EmptyState::hasHeightForWidth() const {
  return !is_empty() && currentWidget()->hasHeightForWidth();
}

// Only the shown page counts, so that no hint is scrolled because the content would be.
QSize EmptyState::minimumSizeHint() const {
  return currentWidget()->minimumSizeHint().expandedTo(currentWidget()->minimumSize());
}

bool EmptyState::is_empty() const {
  return currentIndex() == 0;
}

QString hint_of_no_plan() {
  return EmptyState::tr("No plan fits: <b>Plans</b> says why, and what would help.");
}

QString hint_of_files(const QString& files, const QString& lack) {
  return u"<b>Timeline shows the step of %1</b><br>A recorded or saved step has %2. "
         "<i>Back to the chosen plan</i> in Timeline shows that of the plan."_s.arg(
             files.toHtmlEscaped(), lack);
}

}  // namespace shardwright::gui
