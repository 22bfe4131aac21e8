#include "gui/views/filter_chips.hpp"

#include <QLineEdit>
#include <QResizeEvent>
#include <algorithm>

#include "gui/models/text.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kChipGap = 4;

}  // namespace

FilterChips::FilterChips(QLineEdit* line, QChar separator, QWidget* parent)
    : QWidget(parent), line_(line), separator_(separator) {
  setObjectName(u"filter_chips"_s);
  connect(line_, &QLineEdit::textChanged, this, &FilterChips::follow_line);
  hide();
}

QStringList FilterChips::terms() const {
  QStringList terms;
  for (const QString& part : line_->text().split(separator_, Qt::SkipEmptyParts)) {
    const QString term = part.trimmed();
    if (!term.isEmpty()) terms.append(term);
  }
  return terms;
}

void FilterChips::set_terms(const QStringList& terms) {
  const bool blank = separator_ == u' ';
  line_->setText(terms.join(blank ? u" "_s : separator_ + u" "_s));
}

void FilterChips::add(const QString& term) {
  QStringList all = terms();
  if (all.contains(term)) return;
  all.append(term);
  set_terms(all);
}

void FilterChips::follow_line() {
  // The chips are deleted later, because a click on one of them may have led here.
  for (QToolButton* chip : findChildren<QToolButton*>(QString(), Qt::FindDirectChildrenOnly)) {
    chip->setParent(nullptr);
    chip->deleteLater();
  }
  const QStringList all = terms();
  for (int i = 0; i < all.size(); ++i) {
    QToolButton* chip = tool_button(u"chip_%1"_s.arg(i), all[i] + u" ✕"_s,
                                    tr("Take “%1” out of the filter").arg(all[i]));
    chip->setParent(this);
    chip->setAccessibleName(chip->toolTip());
    connect(chip, &QToolButton::clicked, this, [this, i] {
      QStringList left = terms();
      left.removeAt(i);
      set_terms(left);
    });
    chip->show();
  }
  setVisible(!all.isEmpty());
  arrange();
}

// Places the chips beside each other, in further lines if there is no more room.
void FilterChips::arrange() {
  int x = 0, y = 0, bottom = 0;
  for (QToolButton* chip : findChildren<QToolButton*>(QString(), Qt::FindDirectChildrenOnly)) {
    const QSize size = chip->sizeHint().boundedTo(QSize(std::max(40, width()), 1000));
    if (x > 0 && x + size.width() > width()) {
      x = 0;
      y = bottom + kChipGap;
    }
    chip->setGeometry(QRect(QPoint(x, y), size));
    x += size.width() + kChipGap;
    bottom = y + size.height();
  }
  setFixedHeight(bottom);
}

void FilterChips::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (event->oldSize().width() != event->size().width()) arrange();
}

}  // namespace shardwright::gui
