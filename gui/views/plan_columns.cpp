#include "gui/views/plan_columns.hpp"

#include <QFontMetrics>
#include <QHeaderView>
#include <QMenu>
#include <QScopedValueRollback>
#include <QSettings>
#include <QTableView>
#include <QToolButton>
#include <algorithm>

#include "gui/models/plan_figures.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kRowsMeasured = 500;
constexpr int kAroundCell = 16;  // pixels beside a cell's text, for the arrow of sorting too

const PlanFigure& figure_at(int column) {
  return plan_figures()[static_cast<std::size_t>(column)];
}

// "step=90 mb=24", as one text: an empty list is not read back.
QString text_by_id(const std::map<int, int>& values) {
  QStringList texts;
  for (const auto& [column, value] : values)
    texts.append(u"%1=%2"_s.arg(figure_at(column).id).arg(value));
  return texts.join(u' ');
}

// The values by column. Figures that exist no more are left out.
std::map<int, int> values_of(const QString& texts) {
  std::map<int, int> values;
  for (const QString& text : texts.split(u' ', Qt::SkipEmptyParts)) {
    const int column = figure_index(text.section(u'=', 0, 0));
    bool is_number = false;
    const int value = text.section(u'=', 1).toInt(&is_number);
    if (column >= 0 && is_number) values[column] = value;
  }
  return values;
}

// The ids of all figures in their order, by which the state of a header counts.
QString all_ids() {
  QStringList ids;
  for (const PlanFigure& figure : plan_figures()) ids.append(figure.id);
  return ids.join(u' ');
}

}  // namespace

PlanColumns::PlanColumns(const PlanTableModel* model, QTableView* table, QToolButton* button)
    : QObject(table), model_(model), table_(table), menu_(new QMenu(button)) {
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column)
    add_action(menu_, column);
  menu_->setToolTipsVisible(true);
  button->setMenu(menu_);
  connect(table->horizontalHeader(), &QHeaderView::sectionResized, this,
          [this](int column, int before, int after) {
            const bool comes_or_goes = before == 0 || after == 0;
            if (by_user_ && !comes_or_goes) sized_[column] = after;
          });
}

void PlanColumns::add_action(QMenu* menu, int column) {
  const PlanFigure& figure = figure_at(column);
  QAction* action = menu->addAction(figure.heading());
  action->setObjectName(u"column_"_s + figure.id);
  action->setCheckable(true);
  action->setChecked(figure.shown);
  action->setToolTip(figure.tip);
  table_->setColumnHidden(column, !figure.shown);
  connect(action, &QAction::toggled, this, [this, column](bool on) {
    if (by_user_) chosen_.insert(column);
    table_->setColumnHidden(column, !on);
    const QScopedValueRollback<bool> own(by_user_, false);
    widen(column);
  });
}

void PlanColumns::show_column(int column, bool shown) {
  menu_->actions().at(column)->setChecked(shown);
  table_->setColumnHidden(column, !shown);
}

void PlanColumns::follow(const PlanSet& set) {
  const QScopedValueRollback<bool> own(by_user_, false);
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column) {
    if (!chosen_.contains(column)) show_column(column, figure_at(column).is_shown(set));
    widen(column);
  }
}

// Close together at first, so that as much as possible is seen without scrolling; then as wide as
// any set needed, so that nothing moves to and fro while plans come in.
void PlanColumns::widen(int column) {
  if (sized_.contains(column) || table_->isColumnHidden(column)) return;
  const int width = text_width(column) + kAroundCell;
  if (!fitted_.contains(column) || width > table_->columnWidth(column))
    table_->setColumnWidth(column, width);
  fitted_.insert(column);
}

// Measures the texts of the best plans, and further down the largest number, which is the longest.
// Most numbers differ, and the shorter ones need not be measured.
int PlanColumns::text_width(int column) const {
  const QFontMetrics metrics(table_->font());
  const bool is_number = !figure_at(column).name;
  int widest = 0;
  for (const QString& line :
       model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString().split(u'\n'))
    widest = std::max(widest, metrics.horizontalAdvance(line));
  std::set<QString> measured;
  qsizetype longest = 0;
  const auto measure = [&](int row) {
    const QString text = model_->index(row, column).data().toString();
    if ((is_number && text.size() < longest) || !measured.insert(text).second) return;
    longest = text.size();
    widest = std::max(widest, metrics.horizontalAdvance(text));
  };
  const int rows = model_->rowCount(), first = std::min(rows, kRowsMeasured);
  for (int row = 0; row < first; ++row) measure(row);
  int largest = first;
  for (int row = first; row < rows; ++row) {
    if (model_->number(row, column) > model_->number(largest, column)) largest = row;
  }
  if (largest < rows) measure(largest);
  return widest;
}

void PlanColumns::save(QSettings& settings) const {
  std::map<int, int> chosen;
  for (const int column : chosen_)
    chosen[column] = menu_->actions().at(column)->isChecked() ? 1 : 0;
  settings.setValue(u"plans/columns"_s, table_->horizontalHeader()->saveState());
  settings.setValue(u"plans/columns_of"_s, all_ids());
  settings.setValue(u"plans/columns_chosen"_s, text_by_id(chosen));
  settings.setValue(u"plans/columns_sized"_s, text_by_id(sized_));
}

void PlanColumns::restore(const QSettings& settings) {
  const QScopedValueRollback<bool> own(by_user_, false);
  const auto kept = [&](const char* key) {
    return settings.value(u"plans/columns_"_s + to_qstring(key)).toString();
  };
  // A version with other columns counts them otherwise.
  if (kept("of") == all_ids())
    table_->horizontalHeader()->restoreState(settings.value(u"plans/columns"_s).toByteArray());
  const std::map<int, int> chosen = values_of(kept("chosen"));
  sized_ = values_of(kept("sized"));
  chosen_.clear();
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column) {
    const auto choice = chosen.find(column);
    if (choice != chosen.end()) chosen_.insert(column);
    show_column(column, choice != chosen.end() ? choice->second != 0 : figure_at(column).shown);
  }
  for (const auto& [column, width] : sized_) table_->setColumnWidth(column, width);
}

}  // namespace shardwright::gui
