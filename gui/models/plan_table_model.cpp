#include "gui/models/plan_table_model.hpp"

#include <QRegularExpression>
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
  names_.assign(plan_figures().size(), {});
  words_.clear();
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
    case Qt::EditRole:  // for other programs: neither rounded nor grouped
      return figure.value ? QString::number(figure.value(*set_, plan), 'g', 9)
                          : figure.text(*set_, plan);
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(
          Qt::Alignment((figure.value ? Qt::AlignRight : Qt::AlignHCenter) | Qt::AlignVCenter));
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
    return figure.unit.isEmpty() ? figure.title : figure.title + u'\n' + figure.unit;
  if (role == Qt::ToolTipRole) return figure.tip;
  return {};
}

double PlanTableModel::number(int row, int column) const {
  const auto& numbers = numbers_[static_cast<std::size_t>(column)];
  return numbers.empty() ? 0.0 : numbers[static_cast<std::size_t>(row)];
}

template <class Text>
const QString& PlanTableModel::kept(Texts& texts, int row, const Text& text) const {
  if (texts.empty()) {
    texts.reserve(set_->plans.size());
    for (std::size_t plan = 0; plan < set_->plans.size(); ++plan)
      texts.push_back(text(plan).toLower());
  }
  return texts[static_cast<std::size_t>(row)];
}

const QString& PlanTableModel::name(int row, int column) const {
  return kept(names_[static_cast<std::size_t>(column)], row,
              [&](std::size_t plan) { return figure_at(column).text(*set_, plan); });
}

const QString& PlanTableModel::plan_words(int row) const {
  return kept(words_, row, [&](std::size_t plan) { return plan_text(set_->plans[plan].plan); });
}

QString PlanTableModel::term_for(const QModelIndex& cell, QChar relation) const {
  const PlanFigure& figure = figure_at(cell.column());
  const auto plan = static_cast<std::size_t>(cell.row());
  const bool compares = relation != u'=';
  if (compares && (!figure.value || figure.kind != FigureKind::Measure)) return {};
  // Commas between thousands are removed.
  const QString value = figure.value
                            ? QString::number(figure.value(*set_, plan), 'f', figure.decimals)
                            : figure.text(*set_, plan).simplified();
  if (value.isEmpty() || value.contains(u',')) return {};
  return figure.id + relation + value;
}

PlanFilter::PlanFilter(QObject* parent) : QAbstractProxyModel(parent) {}

void PlanFilter::setSourceModel(QAbstractItemModel* model) {
  beginResetModel();
  QAbstractProxyModel::setSourceModel(model);
  choose_rows();
  endResetModel();
  connect(model, &QAbstractItemModel::modelAboutToBeReset, this, [this] { beginResetModel(); });
  connect(model, &QAbstractItemModel::modelReset, this, [this] {
    choose_rows();
    endResetModel();
  });
}

QModelIndex PlanFilter::mapFromSource(const QModelIndex& index) const {
  if (!index.isValid()) return {};
  const int row = places_[static_cast<std::size_t>(index.row())];
  return row < 0 ? QModelIndex() : createIndex(row, index.column());
}

QModelIndex PlanFilter::mapToSource(const QModelIndex& index) const {
  if (!index.isValid() || sourceModel() == nullptr) return {};
  return sourceModel()->index(rows_[static_cast<std::size_t>(index.row())], index.column());
}

QModelIndex PlanFilter::index(int row, int column, const QModelIndex& parent) const {
  return hasIndex(row, column, parent) ? createIndex(row, column) : QModelIndex();
}

QModelIndex PlanFilter::parent(const QModelIndex&) const {
  return {};
}

int PlanFilter::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

bool PlanFilter::hasChildren(const QModelIndex& parent) const {
  return rowCount(parent) > 0;
}

int PlanFilter::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || sourceModel() == nullptr ? 0 : sourceModel()->columnCount();
}

// Without a row the base class knows no column either.
QVariant PlanFilter::headerData(int section, Qt::Orientation orientation, int role) const {
  if (sourceModel() == nullptr) return {};
  const bool is_row = orientation == Qt::Vertical && section >= 0 && section < rowCount();
  const int of_source = is_row ? rows_[static_cast<std::size_t>(section)] : section;
  return sourceModel()->headerData(of_source, orientation, role);
}

void PlanFilter::choose_rows() {
  const int count = sourceModel() == nullptr ? 0 : sourceModel()->rowCount();
  rows_.clear();
  for (int row = 0; row < count; ++row) {
    if (accepts(row)) rows_.push_back(row);
  }
  order_rows();
}

// Sorts the order of the source, so that equal rows keep theirs.
void PlanFilter::order_rows() {
  const PlanTableModel* plans = table();
  const bool down = order_ == Qt::DescendingOrder;
  const auto order_by = [&](const auto& value) {
    std::stable_sort(rows_.begin(), rows_.end(), [&](int a, int b) {
      return down ? value(b) < value(a) : value(a) < value(b);
    });
  };
  if (column_ >= 0 && !rows_.empty()) {
    if (figure_at(column_).value) {
      order_by([&](int row) { return plans->number(row, column_); });
    } else {
      order_by([&](int row) -> const QString& { return plans->name(row, column_); });
    }
  }
  places_.assign(plans == nullptr ? 0 : static_cast<std::size_t>(plans->rowCount()), -1);
  for (std::size_t row = 0; row < rows_.size(); ++row)
    places_[static_cast<std::size_t>(rows_[row])] = static_cast<int>(row);
}

void PlanFilter::sort(int column, Qt::SortOrder order) {
  Q_EMIT layoutAboutToBeChanged({}, VerticalSortHint);
  const QModelIndexList before = persistentIndexList();
  QModelIndexList of_source;
  for (const QModelIndex& index : before) of_source.append(mapToSource(index));
  column_ = column;
  order_ = order;
  std::sort(rows_.begin(), rows_.end());
  order_rows();
  QModelIndexList after;
  for (const QModelIndex& index : of_source) after.append(mapFromSource(index));
  changePersistentIndexList(before, after);
  Q_EMIT layoutChanged({}, VerticalSortHint);
}

const PlanTableModel* PlanFilter::table() const {
  return qobject_cast<const PlanTableModel*>(sourceModel());
}

bool PlanFilter::read_term(const QString& text, Term& term) {
  static const QRegularExpression kRelation(uR"(^(\w+)\s*([=<>])\s*(\S.*)$)"_s);
  term.negated = text.startsWith(u'-');
  const QString rest = term.negated ? text.mid(1).trimmed() : text;
  const auto match = kRelation.match(rest);
  if (!match.hasMatch()) {
    term.text = rest.toLower();
    return !rest.isEmpty();
  }
  term.column = figure_index(match.captured(1).toLower());
  if (term.column < 0) return false;
  term.relation = match.captured(2).at(0).toLatin1();
  term.text = match.captured(3).toLower();
  if (!figure_at(term.column).value) return term.relation == '=';
  bool is_number = false;
  term.number = term.text.toDouble(&is_number);
  term.rounding = 0.5 * std::pow(10.0, -figure_at(term.column).decimals);
  return is_number;
}

QString PlanFilter::set_terms(const QString& line) {
  std::vector<Term> terms;
  for (const QString& part : line.split(u',', Qt::SkipEmptyParts)) {
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

// Resets the model: rows that leave one by one would be reported, and moved, one by one.
void PlanFilter::filter_anew() {
  beginResetModel();
  choose_rows();
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
  if (term.column < 0) return table()->plan_words(row).contains(term.text) != term.negated;
  if (!figure_at(term.column).value)
    return (table()->name(row, term.column) == term.text) != term.negated;
  const double value = table()->number(row, term.column);
  const bool holds = term.relation == '<'   ? value < term.number
                     : term.relation == '>' ? value > term.number
                                            : std::abs(value - term.number) <= term.rounding;
  return holds != term.negated;
}

bool PlanFilter::accepts(int row) const {
  if (lasso_active_ && !lasso_.contains(row)) return false;
  return std::all_of(terms_.begin(), terms_.end(),
                     [this, row](const Term& term) { return accepts(term, row); });
}

}  // namespace shardwright::gui
