// Plans as a table, filtered and sorted.
#pragma once

#include <QAbstractTableModel>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gui/models/plan_figures.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/query.hpp"

namespace shardwright::gui {

// The columns are the figures. The rows are the plans of the set that match every term of the
// filter line and lie in the lasso, if there is one. The model filters and sorts by itself, because
// QSortFilterProxyModel asks for an index at each comparison, which is too slow for 100,000 plans.
class PlanTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  void show(PlanSetPointer set);
  const PlanSetPointer& set() const { return set_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  // Sorts by the number or text of the column and keeps the order of equal plans. -1 restores the
  // order of the set.
  void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;

  // Heads the rows of two plans that are compared with the letters that Why calls them by, "A · 1"
  // and "B · 3"; none if nothing is compared.
  void mark_compared(std::optional<std::pair<std::size_t, std::size_t>> plans);

  const std::vector<int>& shown_plans() const { return shown_; }
  std::size_t plan_of(const QModelIndex& index) const;
  QModelIndex index_of(std::size_t plan, int column = 0) const;

  // The number that the column sorts by; 0 for names.
  double number(int plan, int column) const;
  // The text of a cell of names, and that of the whole plan, in lower case. The model keeps a
  // column of texts once somebody asks for one of them.
  const QString& name(int plan, int column) const;
  const QString& plan_words(int plan) const;

  // A term of the filter line that holds for this cell: "tp=8", "schedule=interleaved". The
  // relations '<' and '>' make one that holds for smaller or larger values. Empty if the cell has
  // no term.
  QString term_for(const QModelIndex& cell, QChar relation = u'=') const;
  // Shows the plans for which a query (gui/models/query.hpp) of columns holds; words are looked for
  // in the plan's text, and numbers are compared as they are shown. Returns the problem of the
  // line, empty if there is none.
  QString set_terms(const QString& line);

  // Shows only the plans in the lasso, or all without one.
  void set_lasso(std::optional<std::set<int>> plans);
  const std::optional<std::set<int>>& lasso() const { return lasso_; }

 private:
  using Texts = std::vector<QString>;
  struct Term {
    // -1 stands for the text of the whole plan.
    int column = -1;
    Relation relation = Relation::Equal;
    // The alternatives; the texts are in lower case.
    std::vector<double> numbers;
    QStringList texts;
    bool negated = false;
  };

  template <class Text>
  const QString& kept(Texts& texts, int plan, const Text& text) const;
  // Returns what is wrong with the term.
  static QString read_term(const QueryTerm& query, Term& term);
  bool holds(const Term& term, int plan) const;
  bool accepts(const Term& term, int plan) const;
  bool accepts(int plan) const;
  void choose_plans();
  void order_plans();
  void filter_anew();
  QString mark_of(std::size_t plan) const;

  PlanSetPointer set_;
  // Each column keeps its numbers because sorting asks for them often.
  std::vector<std::vector<double>> numbers_;
  mutable std::vector<Texts> names_;
  mutable Texts words_;
  std::vector<Term> terms_;
  std::optional<std::set<int>> lasso_;
  std::optional<std::pair<std::size_t, std::size_t>> compared_;
  int column_ = -1;
  Qt::SortOrder order_ = Qt::AscendingOrder;
  std::vector<int> shown_;
  // The row of each plan; -1 if it is hidden.
  std::vector<int> rows_;
};

}  // namespace shardwright::gui
