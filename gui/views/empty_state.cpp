#include "gui/views/empty_state.hpp"

#include <QVariant>

namespace shardwright::gui {
namespace {

constexpr const char* kLeastHeight = "least_height";

}  // namespace

EmptyState::EmptyState(QWidget* content, QWidget* parent)
    : QStackedWidget(parent), label_(new QLabel) {
  label_->setObjectName(QStringLiteral("hint"));
  label_->setAlignment(Qt::AlignCenter);
  label_->setWordWrap(true);
  label_->setTextFormat(Qt::RichText);
  label_->setMargin(12);
  label_->setForegroundRole(QPalette::PlaceholderText);
  addWidget(label_);
  addWidget(content);
  connect(this, &QStackedWidget::currentChanged, this, &QWidget::updateGeometry);
}

// The content claims no height while it is not seen: the hint would be scrolled out of sight.
void EmptyState::show_hint(const QString& text) {
  label_->setText(text);
  QWidget* content = widget(1);
  if (!content->property(kLeastHeight).isValid()) {
    content->setProperty(kLeastHeight, content->minimumHeight());
    content->setMinimumHeight(0);
  }
  setCurrentIndex(0);
}

void EmptyState::show_content() {
  QWidget* content = widget(1);
  if (const QVariant least = content->property(kLeastHeight); least.isValid()) {
    content->setMinimumHeight(least.toInt());
    content->setProperty(kLeastHeight, {});
  }
  setCurrentIndex(1);
}

// Of what is shown alone: a hint is not scrolled because the content would be.
QSize EmptyState::minimumSizeHint() const {
  return currentWidget()->minimumSizeHint().expandedTo(currentWidget()->minimumSize());
}

bool EmptyState::is_empty() const {
  return currentIndex() == 0;
}

}  // namespace shardwright::gui
