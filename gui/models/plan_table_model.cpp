#include "gui/models/plan_table_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
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
  choose_plans();
  endResetModel();
}

int PlanTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(shown_.size());
}

int PlanTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(plan_figures().size());
}

QVariant PlanTableModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const PlanFigure& figure = plan_figure(index.column());
  const std::size_t plan = plan_of(index);
  switch (role) {
    case Qt::DisplayRole:
      return figure.text(*set_, plan);
    case Qt::EditRole:  // Other programs read numbers that are neither rounded nor grouped.
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
    if (role != Qt::DisplayRole || section < 0 || section >= rowCount()) return {};
    const int plan = shown_[static_cast<std::size_t>(section)];
    const QString mark = mark_of(static_cast<std::size_t>(plan));
    return mark.isEmpty() ? QVariant(plan + 1) : QVariant(u"%1 · %2"_s.arg(mark).arg(plan + 1));
  }
  if (section < 0 || section >= columnCount()) return {};
  const PlanFigure& figure = plan_figure(section);
  // The unit gets a line of its own, because numbers need less room than it.
  const char* word = accelerator_word(set_);
  if (role == Qt::DisplayRole)
    return with_accelerator(
        figure.unit.isEmpty() ? figure.title : figure.title + u'\n' + figure.unit, word);
  if (role == Qt::ToolTipRole) return with_accelerator(figure.tip, word);
  return {};
}

void PlanTableModel::mark_compared(std::optional<std::pair<std::size_t, std::size_t>> plans) {
  if (compared_ == plans) return;
  compared_ = plans;
  if (rowCount() > 0) Q_EMIT headerDataChanged(Qt::Vertical, 0, rowCount() - 1);
}

QString PlanTableModel::mark_of(std::size_t plan) const {
  if (!compared_) return {};
  return plan == compared_->first ? u"A"_s : plan == compared_->second ? u"B"_s : QString();
}

std::size_t PlanTableModel::plan_of(const QModelIndex& index) const {
  return static_cast<std::size_t>(shown_[static_cast<std::size_t>(index.row())]);
}

QModelIndex PlanTableModel::index_of(std::size_t plan, int column) const {
  return plan < rows_.size() && rows_[plan] >= 0 ? index(rows_[plan], column) : QModelIndex();
}

double PlanTableModel::number(int plan, int column) const {
  const auto& numbers = numbers_[static_cast<std::size_t>(column)];
  return numbers.empty() ? 0.0 : numbers[static_cast<std::size_t>(plan)];
}

template <class Text>
const QString& PlanTableModel::kept(Texts& texts, int plan, const Text& text) const {
  if (texts.empty()) {
    texts.reserve(set_->plans.size());
    for (std::size_t each = 0; each < set_->plans.size(); ++each)
      texts.push_back(text(each).toLower());
  }
  return texts[static_cast<std::size_t>(plan)];
}

const QString& PlanTableModel::name(int plan, int column) const {
  return kept(names_[static_cast<std::size_t>(column)], plan,
              [&](std::size_t each) { return plan_figure(column).text(*set_, each); });
}

const QString& PlanTableModel::plan_words(int plan) const {
  return kept(words_, plan, [&](std::size_t each) { return plan_text(set_->plans[each].plan); });
}

QString PlanTableModel::term_for(const QModelIndex& cell, QChar relation) const {
  const PlanFigure& figure = plan_figure(cell.column());
  const std::size_t plan = plan_of(cell);
  const bool compares = relation != u'=';
  if (compares && (!figure.value || figure.kind != FigureKind::Measure)) return {};
  const QString value =
      figure.value ? QString::number(figure.shown_number(figure.value(*set_, plan)), 'g', 9)
                   : quoted(figure.text(*set_, plan));
  return figure.id + relation + value;
}

void PlanTableModel::choose_plans() {
  const int count = set_ ? static_cast<int>(set_->plans.size()) : 0;
  shown_.clear();
  for (int plan = 0; plan < count; ++plan) {
    if (accepts(plan)) shown_.push_back(plan);
  }
  order_plans();
}

// Sorts the order of the set, so that equal plans keep theirs.
void PlanTableModel::order_plans() {
  const bool down = order_ == Qt::DescendingOrder;
  const auto order_by = [&](const auto& value) {
    std::stable_sort(shown_.begin(), shown_.end(), [&](int a, int b) {
      return down ? value(b) < value(a) : value(a) < value(b);
    });
  };
  if (column_ >= 0 && !shown_.empty()) {
    if (plan_figure(column_).value) {
      order_by([&](int plan) { return number(plan, column_); });
    } else {
      order_by([&](int plan) -> const QString& { return name(plan, column_); });
    }
  }
  rows_.assign(set_ ? set_->plans.size() : 0, -1);
  for (std::size_t row = 0; row < shown_.size(); ++row)
    rows_[static_cast<std::size_t>(shown_[row])] = static_cast<int>(row);
}

void PlanTableModel::sort(int column, Qt::SortOrder order) {
  Q_EMIT layoutAboutToBeChanged({}, VerticalSortHint);
  const QModelIndexList before = persistentIndexList();
  std::vector<std::size_t> plans;
  for (const QModelIndex& index : before) plans.push_back(plan_of(index));
  column_ = column;
  order_ = order;
  std::sort(shown_.begin(), shown_.end());
  order_plans();
  QModelIndexList after;
  for (qsizetype i = 0; i < before.size(); ++i)
    after.append(index_of(plans[static_cast<std::size_t>(i)], before[i].column()));
  changePersistentIndexList(before, after);
  Q_EMIT layoutChanged({}, VerticalSortHint);
}

QString PlanTableModel::read_term(const QueryTerm& query, Term& term) {
  term.negated = query.negated;
  term.relation = query.relation;
  for (const QString& value : query.values) term.texts.append(value.toLower());
  if (query.field.isEmpty()) return {};
  term.column = figure_index(figure_name(query.field));
  if (term.column < 0)
    return tr("“%1”: there is no column %2; the menu Columns has all")
        .arg(query.text(), query.field);
  const PlanFigure& figure = plan_figure(term.column);
  if (!figure.value)
    return term.relation == Relation::Equal
               ? QString()
               : tr("“%1”: %2 has names, which only = compares").arg(query.text(), figure.title);
  for (const QString& value : query.values) {
    const auto number = number_in(value, figure.unit);
    if (!number)
      return tr("“%1”: expected a number%2")
          .arg(query.text(), figure.unit.isEmpty() ? QString() : tr(" in %1").arg(figure.unit));
    term.numbers.push_back(*number);
  }
  return {};
}

QString PlanTableModel::set_terms(const QString& line) {
  const Query query = parse_query(line);
  QString problem = query.problem();
  std::vector<Term> terms;
  for (const QueryTerm& each : query.terms) {
    Term term;
    const QString of_term = read_term(each, term);
    if (of_term.isEmpty()) terms.push_back(std::move(term));
    if (problem.isEmpty()) problem = of_term;
  }
  terms_ = std::move(terms);
  filter_anew();
  return problem;
}

// Resets the model, because it would report, and views would move, rows that leave one by one.
void PlanTableModel::filter_anew() {
  beginResetModel();
  choose_plans();
  endResetModel();
}

void PlanTableModel::set_lasso(std::optional<std::set<int>> plans) {
  lasso_ = std::move(plans);
  filter_anew();
}

bool PlanTableModel::holds(const Term& term, int plan) const {
  const auto is_any = [&](const QString& text, bool whole) {
    return std::any_of(term.texts.begin(), term.texts.end(), [&](const QString& wanted) {
      return whole ? text == wanted : text.contains(wanted);
    });
  };
  if (term.column < 0) return is_any(plan_words(plan), false);
  const PlanFigure& figure = plan_figure(term.column);
  if (!figure.value) return is_any(name(plan, term.column), true);
  const double shown = figure.shown_number(number(plan, term.column));
  return std::any_of(term.numbers.begin(), term.numbers.end(),
                     [&](double wanted) { return gui::holds(term.relation, shown, wanted); });
}

bool PlanTableModel::accepts(const Term& term, int plan) const {
  return holds(term, plan) != term.negated;
}

bool PlanTableModel::accepts(int plan) const {
  if (lasso_ && !lasso_->contains(plan)) return false;
  return std::all_of(terms_.begin(), terms_.end(),
                     [this, plan](const Term& term) { return accepts(term, plan); });
}

}  // namespace shardwright::gui
