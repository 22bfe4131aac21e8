#include "gui/views/filter_chips.hpp"

#include <QLineEdit>
#include <QRegularExpression>

#include "gui/models/query.hpp"
#include "gui/models/text.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kChipGap = 4;

}  // namespace

FilterChips::FilterChips(QLineEdit* line, QWidget* parent) : QWidget(parent), line_(line) {
  setObjectName(u"filter_chips"_s);
  auto* layout = new FlowLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(kChipGap);
  connect(line_, &QLineEdit::textChanged, this, &FilterChips::follow_line);
  hide();
}

void FilterChips::add(const QString& term) {
  const QString line = line_->text().trimmed();
  for (const QueryTerm& each : parse_query(line).terms)
    if (line.mid(each.start, each.length) == term) return;
  line_->setText(line.isEmpty() ? term : line + u", "_s + term);
}

// Takes the separators around the term out, too.
void FilterChips::take_out(qsizetype start, qsizetype length) {
  static const QRegularExpression kBefore(uR"([\s,;]+$)"_s), kAfter(uR"(^[\s,;]+)"_s);
  const QString before = line_->text().left(start).remove(kBefore);
  const QString after = line_->text().mid(start + length).remove(kAfter);
  line_->setText(before.isEmpty() || after.isEmpty() ? before + after : before + u", "_s + after);
}

void FilterChips::follow_line() {
  // The chips are deleted later, because a click on one of them may have led here.
  for (QToolButton* chip : findChildren<QToolButton*>(QString(), Qt::FindDirectChildrenOnly)) {
    chip->hide();  // The layout would show a chip later that has become a window by then.
    chip->setParent(nullptr);
    chip->deleteLater();
  }
  int number = 0;
  for (const QueryTerm& term : parse_query(line_->text()).terms) {
    const QString text = line_->text().mid(term.start, term.length);
    QToolButton* chip = tool_button(u"chip_%1"_s.arg(number++), text + u" ✕"_s,
                                    tr("Take “%1” out of the filter").arg(text));
    layout()->addWidget(chip);
    chip->setAccessibleName(chip->toolTip());
    connect(chip, &QToolButton::clicked, this,
            [this, start = term.start, length = term.length] { take_out(start, length); });
    chip->show();
  }
  setVisible(number > 0);
}

}  // namespace shardwright::gui
