#include "gui/models/plan_table_model.hpp"

#include <QRegularExpression>
#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

const PlanFigure& figure_at(int column) {
  return plan_figures()[static_cast<std::size_t>(column)];
}

}  // namespace

PlanTableModel::PlanTableModel(QObject* parent) : QAbstractTableModel(parent) {}

void PlanTableModel::show(PlanSetPointer set) {
  beginResetModel();
  set_ = std::move(set);
  numbers_.assign(plan_figures().size(), {});
  for (std::size_t column = 0; set_ && column < numbers_.size(); ++column) {
    const PlanFigure& figure = plan_figures()[column];
    if (!figure.value) continue;
    numbers_[column].reserve(set_->plans.size());
    for (std::size_t plan = 0; plan < set_->plans.size(); ++plan)
      numbers_[column].push_back(figure.value(*set_, plan));
  }
  endResetModel();
}

int PlanTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !set_ ? 0 : static_cast<int>(set_->plans.size());
}

int PlanTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(plan_figures().size());
}

QVariant PlanTableModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const PlanFigure& figure = figure_at(index.column());
  const auto plan = static_cast<std::size_t>(index.row());
  switch (role) {
    case Qt::DisplayRole:
      return figure.text(*set_, plan);
    case kSortRole:
      return figure.value ? QVariant(number(index.row(), index.column()))
                          : QVariant(figure.text(*set_, plan));
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(
          Qt::Alignment((figure.value ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
    case Qt::ToolTipRole:
      return plan_text(set_->plans[plan].plan) +
             (set_->on_front[plan] ? tr("\nOn the Pareto front of step and memory") : QString());
    default:
      return {};
  }
}

QVariant PlanTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Vertical) {
    if (role == Qt::DisplayRole) return section + 1;
    return {};
  }
  if (section < 0 || section >= columnCount()) return {};
  const PlanFigure& figure = figure_at(section);
  // Two lines: numbers need less room than their unit.
  if (role == Qt::DisplayRole)
    return figure.unit.isEmpty() ? figure.title : figure.title + QLatin1Char('\n') + figure.unit;
  if (role == Qt::ToolTipRole) return figure.tip;
  return {};
}

double PlanTableModel::number(int row, int column) const {
  const auto& numbers = numbers_[static_cast<std::size_t>(column)];
  return numbers.empty() ? 0.0 : numbers[static_cast<std::size_t>(row)];
}

PlanFilter::PlanFilter(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(PlanTableModel::kSortRole);
}

const PlanTableModel* PlanFilter::table() const {
  return qobject_cast<const PlanTableModel*>(sourceModel());
}

bool PlanFilter::read_term(const QString& text, Term& term) {
  static const QRegularExpression kRelation(QStringLiteral(R"(^(\w+)\s*([=<>])\s*(\S+)$)"));
  term.negated = text.startsWith(QLatin1Char('-'));
  const QString rest = term.negated ? text.mid(1).trimmed() : text;
  const auto match = kRelation.match(rest);
  if (!match.hasMatch()) {
    term.text = rest;
    return !rest.isEmpty();
  }
  term.column = figure_index(match.captured(1).toLower());
  if (term.column < 0) return false;
  term.relation = match.captured(2).at(0).toLatin1();
  term.text = match.captured(3);
  if (!figure_at(term.column).value) return term.relation == '=';
  bool is_number = false;
  term.number = term.text.toDouble(&is_number);
  return is_number;
}

QString PlanFilter::set_terms(const QString& line) {
  std::vector<Term> terms;
  for (const QString& part : line.split(QLatin1Char(','), Qt::SkipEmptyParts)) {
    if (part.trimmed().isEmpty()) continue;
    Term term;
    if (!read_term(part.trimmed(), term))
      return tr("“%1” is no filter: use column=value, column<value, column>value or a word")
          .arg(part.trimmed());
    terms.push_back(term);
  }
  terms_ = std::move(terms);
  filter_anew();
  return {};
}

// As a reset: rows that leave one by one would be told, and moved, one by one.
void PlanFilter::filter_anew() {
  beginResetModel();
  {
    const QSignalBlocker quiet(this);
    invalidate();
  }
  endResetModel();
}

void PlanFilter::set_lasso(std::set<int> rows) {
  lasso_ = std::move(rows);
  lasso_active_ = true;
  filter_anew();
}

void PlanFilter::clear_lasso() {
  lasso_.clear();
  lasso_active_ = false;
  filter_anew();
}

bool PlanFilter::accepts(const Term& term, int row) const {
  const PlanSet& set = *table()->set();
  const auto plan = static_cast<std::size_t>(row);
  if (term.column < 0) {
    const bool found = plan_text(set.plans[plan].plan).contains(term.text, Qt::CaseInsensitive);
    return found != term.negated;
  }
  const PlanFigure& figure = figure_at(term.column);
  if (!figure.value)
    return (figure.text(set, plan).compare(term.text, Qt::CaseInsensitive) == 0) != term.negated;
  const double value = table()->number(row, term.column);
  // What a cell shows must match, however many digits stand behind it.
  const double rounding = 0.5 * std::pow(10.0, -figure.decimals);
  const bool holds = term.relation == '<'   ? value < term.number
                     : term.relation == '>' ? value > term.number
                                            : std::abs(value - term.number) <= rounding;
  return holds != term.negated;
}

bool PlanFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  if (lasso_active_ && !lasso_.contains(row)) return false;
  return std::all_of(terms_.begin(), terms_.end(),
                     [this, row](const Term& term) { return accepts(term, row); });
}

bool PlanFilter::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  if (figure_at(left.column()).value)
    return table()->number(left.row(), left.column()) <
           table()->number(right.row(), right.column());
  const PlanSet& set = *table()->set();
  const PlanFigure& figure = figure_at(left.column());
  return figure.text(set, static_cast<std::size_t>(left.row())) <
         figure.text(set, static_cast<std::size_t>(right.row()));
}

}  // namespace shardwright::gui
