#include "gui/views/plan_columns.hpp"

#include <QFontMetrics>
#include <QHeaderView>
#include <QMenu>
#include <QScopedValueRollback>
#include <QSettings>
#include <QStyle>
#include <QTableView>
#include <QToolButton>
#include <algorithm>

#include "gui/models/plan_figures.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kPlansMeasured = 500;
// The pixels beside a cell's text.
constexpr int kAroundCell = 16;

// Writes one text, "step=90 mb=24", because a session does not keep an empty list.
QString text_by_id(const std::map<int, int>& values) {
  QStringList texts;
  for (const auto& [column, value] : values)
    texts.append(u"%1=%2"_s.arg(plan_figure(column).id).arg(value));
  return texts.join(u' ');
}

// Returns the values by column without those of figures that no longer exist.
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

// Returns the ids of all figures in the order in which the state of a header counts them.
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
  menu_->addSeparator();
  menu_->addAction(tr("Reset the columns"), this, &PlanColumns::reset)
      ->setToolTip(tr("Shows the columns that tell the plans apart, in their first order"));
  menu_->setTitle(tr("Columns"));
  menu_->setToolTipsVisible(true);
  table->horizontalHeader()->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(table->horizontalHeader(), &QHeaderView::customContextMenuRequested, this,
          &PlanColumns::open_menu);
  button->setMenu(menu_);
  follow_letters(*table, [this] { fit_to_letters(); });
  connect(table->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, [this](int column) {
    const QScopedValueRollback<bool> own(by_user_, false);
    if (column >= 0) widen(column);
  });
  connect(table->horizontalHeader(), &QHeaderView::sectionResized, this,
          [this](int column, int before, int after) {
            const bool comes_or_goes = before == 0 || after == 0;
            if (by_user_ && !comes_or_goes) sized_[column] = after;
          });
}

void PlanColumns::add_action(QMenu* menu, int column) {
  const PlanFigure& figure = plan_figure(column);
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

void PlanColumns::open_menu(const QPoint& at) {
  const int column = table_->horizontalHeader()->logicalIndexAt(at);
  auto* menu = new QMenu(table_);
  menu->setObjectName(u"header_menu"_s);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const auto sort = [&](const QString& text, int by, Qt::SortOrder order) {
    menu->addAction(text, table_, [this, by, order] { table_->sortByColumn(by, order); });
  };
  if (column >= 0) {
    const PlanFigure& figure = plan_figure(column);
    const bool is_number = !figure.name;
    sort(is_number ? tr("Sort: smallest first") : tr("Sort: A to Z"), column, Qt::AscendingOrder);
    sort(is_number ? tr("Sort: largest first") : tr("Sort: Z to A"), column, Qt::DescendingOrder);
    sort(tr("Sort: best first, as the search has them"), -1, Qt::AscendingOrder);
    menu->addSeparator();
    menu->addAction(
        tr("Hide “%1”").arg(with_accelerator(figure.title, accelerator_word(model_->set()))), this,
        [this, column] { menu_->actions().at(column)->setChecked(false); });
  }
  menu->addMenu(menu_);
  menu->popup(table_->horizontalHeader()->mapToGlobal(at));
}

void PlanColumns::reset() {
  chosen_.clear();
  sized_.clear();
  fitted_.clear();
  QHeaderView* header = table_->horizontalHeader();
  for (int column = 0; column < header->count(); ++column)
    header->moveSection(header->visualIndex(column), column);
  table_->sortByColumn(-1, Qt::AscendingOrder);
  if (model_->set()) follow(*model_->set());
}

void PlanColumns::show_column(int column, bool shown) {
  menu_->actions().at(column)->setChecked(shown);
  table_->setColumnHidden(column, !shown);
}

void PlanColumns::follow(const PlanSet& set) {
  const QScopedValueRollback<bool> own(by_user_, false);
  const char* word = accelerator_word(set.request.cluster);
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column) {
    const PlanFigure& figure = plan_figure(column);
    QAction* action = menu_->actions().at(column);
    action->setText(figure.heading(word));
    action->setToolTip(with_accelerator(figure.tip, word));
    if (!chosen_.contains(column))
      show_column(column, figure.is_shown(set) && figure.tells_apart(set));
    widen(column);
  }
}

// Makes a column as narrow as its texts at first, so that many columns are in view, and later only
// wider, so that nothing moves to and fro while plans come in.
void PlanColumns::widen(int column) {
  if (sized_.contains(column) || table_->isColumnHidden(column)) return;
  int width = text_width(column) + kAroundCell;
  if (table_->horizontalHeader()->sortIndicatorSection() == column)
    width = std::max(width, title_width(column) + room_of_arrow());
  if (!fitted_.contains(column) || width > table_->columnWidth(column))
    table_->setColumnWidth(column, width);
  fitted_.insert(column);
}

void PlanColumns::fit_to_letters() {
  const QScopedValueRollback<bool> own(by_user_, false);
  fitted_.clear();
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column) widen(column);
}

int PlanColumns::title_width(int column) const {
  const QFontMetrics metrics(table_->horizontalHeader()->font());
  int widest = 0;
  for (const QString& line :
       model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString().split(u'\n'))
    widest = std::max(widest, metrics.horizontalAdvance(line));
  return widest;
}

// The arrow of sorting and the margins, as QCommonStyle::subElementRect() has them.
int PlanColumns::room_of_arrow() const {
  const QHeaderView* header = table_->horizontalHeader();
  const int margin = table_->style()->pixelMetric(QStyle::PM_HeaderMargin, nullptr, header);
  return header->sizeHint().height() / 2 + 4 * margin;
}

// Measures the texts of the best plans, and further down the largest number, which is the longest.
// Most numbers differ, and the shorter ones need not be measured.
int PlanColumns::text_width(int column) const {
  const QFontMetrics metrics(table_->font());
  const bool is_number = !plan_figure(column).name;
  int widest = title_width(column);
  std::set<QString> measured;
  qsizetype longest = 0;
  const PlanSetPointer& set = model_->set();
  const auto measure = [&](int plan) {
    const QString text = plan_figure(column).text(*set, static_cast<std::size_t>(plan));
    if ((is_number && text.size() < longest) || !measured.insert(text).second) return;
    longest = text.size();
    widest = std::max(widest, metrics.horizontalAdvance(text));
  };
  const int plans = set ? static_cast<int>(set->plans.size()) : 0;
  const int first = std::min(plans, kPlansMeasured);
  for (int plan = 0; plan < first; ++plan) measure(plan);
  int largest = first;
  for (int plan = first; plan < plans; ++plan) {
    if (model_->number(plan, column) > model_->number(largest, column)) largest = plan;
  }
  if (largest < plans) measure(largest);
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
  // A version with other figures counts its columns in another order.
  if (kept("of") == all_ids())
    table_->horizontalHeader()->restoreState(settings.value(u"plans/columns"_s).toByteArray());
  const std::map<int, int> chosen = values_of(kept("chosen"));
  sized_ = values_of(kept("sized"));
  chosen_.clear();
  for (int column = 0; column < static_cast<int>(plan_figures().size()); ++column) {
    const auto choice = chosen.find(column);
    if (choice != chosen.end()) chosen_.insert(column);
    show_column(column, choice != chosen.end() ? choice->second != 0 : plan_figure(column).shown);
  }
  for (const auto& [column, width] : sized_) table_->setColumnWidth(column, width);
}

}  // namespace shardwright::gui
