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

namespace shardwright::gui {
namespace {

constexpr int kRowsMeasured = 50;  // of numbers, which are about as wide in all rows
constexpr int kNamesMeasured = 500;
constexpr int kAroundCell = 16;  // pixels beside a cell's text, for the arrow of sorting too

const PlanFigure& figure_at(int column) {
  return plan_figures()[static_cast<std::size_t>(column)];
}

// As one text: an empty list is not read back.
QString ids_text(const std::set<int>& columns) {
  QStringList ids;
  for (const int column : columns) ids.append(figure_at(column).id);
  return ids.join(u' ');
}

std::set<int> columns_of(const QString& ids) {
  std::set<int> columns;
  for (const QString& id : ids.split(u' ', Qt::SkipEmptyParts)) {
    const int column = figure_index(id);
    if (column >= 0) columns.insert(column);
  }
  return columns;
}

// Of all figures in their order: what a header's state counts by.
QString all_ids() {
  QStringList ids;
  for (const PlanFigure& figure : plan_figures()) ids.append(figure.id);
  return ids.join(u' ');
}

}  // namespace

PlanColumns::PlanColumns(QTableView* table, QToolButton* button)
    : QObject(table), table_(table), menu_(new QMenu(button)) {
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column)
    add_action(menu_, column);
  menu_->setToolTipsVisible(true);
  button->setMenu(menu_);
  connect(table->horizontalHeader(), &QHeaderView::sectionResized, this,
          [this](int column, int before, int after) {
            const bool comes_or_goes = before == 0 || after == 0;
            if (by_user_ && !comes_or_goes) sized_.insert(column);
          });
}

void PlanColumns::add_action(QMenu* menu, int column) {
  const PlanFigure& figure = figure_at(column);
  QAction* action = menu->addAction(figure.heading());
  action->setObjectName(QStringLiteral("column_") + figure.id);
  action->setCheckable(true);
  action->setChecked(figure.shown);
  action->setToolTip(figure.tip);
  table_->setColumnHidden(column, !figure.shown);
  connect(action, &QAction::toggled, this, [this, column](bool on) {
    if (by_user_) chosen_.insert(column);
    table_->setColumnHidden(column, !on);
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
  }
  widen();
}

// Close together at first, so that as much as possible is seen without scrolling; then as wide as
// any set needed, so that nothing moves to and fro while plans come in.
void PlanColumns::widen() {
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column) {
    if (sized_.contains(column) || table_->isColumnHidden(column)) continue;
    const int width = text_width(column) + kAroundCell;
    if (!fitted_.contains(column) || width > table_->columnWidth(column))
      table_->setColumnWidth(column, width);
    fitted_.insert(column);
  }
}

int PlanColumns::text_width(int column) const {
  const QFontMetrics metrics(table_->font());
  const QAbstractItemModel& model = *table_->model();
  int widest = 0;
  for (const QString& line :
       model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString().split(u'\n'))
    widest = std::max(widest, metrics.horizontalAdvance(line));
  const int rows =
      std::min(figure_at(column).name ? kNamesMeasured : kRowsMeasured, model.rowCount());
  std::set<QString> measured;
  for (int row = 0; row < rows; ++row) {
    const QString text = model.index(row, column).data().toString();
    if (measured.insert(text).second) widest = std::max(widest, metrics.horizontalAdvance(text));
  }
  return widest;
}

void PlanColumns::save(QSettings& settings) const {
  settings.setValue(QStringLiteral("plans/columns"), table_->horizontalHeader()->saveState());
  settings.setValue(QStringLiteral("plans/columns_of"), all_ids());
  settings.setValue(QStringLiteral("plans/columns_chosen"), ids_text(chosen_));
  settings.setValue(QStringLiteral("plans/columns_sized"), ids_text(sized_));
}

void PlanColumns::restore(const QSettings& settings) {
  const QScopedValueRollback<bool> own(by_user_, false);
  // A version with other columns counts them otherwise.
  if (settings.value(QStringLiteral("plans/columns_of")).toString() != all_ids()) return;
  table_->horizontalHeader()->restoreState(
      settings.value(QStringLiteral("plans/columns")).toByteArray());
  chosen_ = columns_of(settings.value(QStringLiteral("plans/columns_chosen")).toString());
  sized_ = columns_of(settings.value(QStringLiteral("plans/columns_sized")).toString());
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column) {
    const bool shown =
        chosen_.contains(column) ? !table_->isColumnHidden(column) : figure_at(column).shown;
    show_column(column, shown);
  }
}

}  // namespace shardwright::gui
