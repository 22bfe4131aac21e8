#include "gui/views/filter_chips.hpp"

#include <QLineEdit>

#include "gui/models/text.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kChipGap = 4;

}  // namespace

FilterChips::FilterChips(QLineEdit* line, QChar separator, QWidget* parent)
    : QWidget(parent), line_(line), separator_(separator) {
  setObjectName(u"filter_chips"_s);
  auto* layout = new FlowLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(kChipGap);
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
    chip->hide();  // The layout would show a chip later that has become a window by then.
    chip->setParent(nullptr);
    chip->deleteLater();
  }
  const QStringList all = terms();
  for (int i = 0; i < all.size(); ++i) {
    QToolButton* chip = tool_button(u"chip_%1"_s.arg(i), all[i] + u" ✕"_s,
                                    tr("Take “%1” out of the filter").arg(all[i]));
    layout()->addWidget(chip);
    chip->setAccessibleName(chip->toolTip());
    connect(chip, &QToolButton::clicked, this, [this, i] {
      QStringList left = terms();
      left.removeAt(i);
      set_terms(left);
    });
    chip->show();
  }
  setVisible(!all.isEmpty());
}

}  // namespace shardwright::gui
