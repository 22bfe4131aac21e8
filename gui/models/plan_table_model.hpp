// Plans as a table, and the filter and order in which they are shown.
#pragma once

#include <QAbstractProxyModel>
#include <QAbstractTableModel>
#include <set>
#include <vector>

#include "gui/models/plan_figures.hpp"
#include "gui/models/plan_set.hpp"

namespace shardwright::gui {

// Rows are the plans of the set, columns the figures.
class PlanTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  explicit PlanTableModel(QObject* parent = nullptr);

  void show(PlanSetPointer set);
  const PlanSetPointer& set() const { return set_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  // The number that column `column` sorts by; 0 for names.
  double number(int row, int column) const;
  // The text of a cell of names, and that of the whole plan, in lower case. A column of texts is kept
  // from the first time that one of them is asked for.
  const QString& name(int row, int column) const;
  const QString& plan_words(int row) const;
  // A term of the filter line that holds for this cell: "tp=8", "schedule=interleaved". The relations
  // '<' and '>' make one that holds for smaller or larger values. Empty if the cell has no term.
  QString term_for(const QModelIndex& cell, QChar relation = u'=') const;

 private:
  using Texts = std::vector<QString>;
  template <class Text>
  const QString& kept(Texts& texts, int row, const Text& text) const;

  PlanSetPointer set_;
  // By column. Sorting asks for them often.
  std::vector<std::vector<double>> numbers_;
  // By column, filled on demand.
  mutable std::vector<Texts> names_;
  mutable Texts words_;
};

// Shows the rows that match every term of the filter line and lie in the lasso, if there is one.
// A plain list of rows: QSortFilterProxyModel asks for an index at each comparison, which is too
// slow for 100,000 plans.
class PlanFilter : public QAbstractProxyModel {
  Q_OBJECT

 public:
  explicit PlanFilter(QObject* parent = nullptr);

  // A PlanTableModel.
  void setSourceModel(QAbstractItemModel* model) override;
  QModelIndex mapFromSource(const QModelIndex& index) const override;
  QModelIndex mapToSource(const QModelIndex& index) const override;
  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& index) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  bool hasChildren(const QModelIndex& parent = {}) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  // Sorts by the number or text of the column and keeps the order of equal rows. -1 restores the
  // order of the source.
  void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;

  // The plans that are shown, in their order.
  const std::vector<int>& source_rows() const { return rows_; }

  // Takes terms separated by commas: "tp=8", "mfu>45", "memory<60", "interleaved", "-full". A term that
  // names no column is looked for in the plan's text; a leading "-" negates it. Returns the problem
  // of the line, empty if there is none.
  QString set_terms(const QString& line);

  // Shows only these source rows.
  void set_lasso(std::set<int> rows);
  void clear_lasso();
  bool has_lasso() const { return lasso_active_; }
  const std::set<int>& lasso() const { return lasso_; }

 private:
  struct Term {
    // -1 stands for the text of the whole plan.
    int column = -1;
    char relation = '=';
    double number = 0.0;
    // Half of the last digit that a cell shows: the cell of a plan must match its own text.
    double rounding = 0.0;
    // In lower case.
    QString text;
    bool negated = false;
  };

  static bool read_term(const QString& text, Term& term);
  bool accepts(const Term& term, int row) const;
  bool accepts(int row) const;
  const PlanTableModel* table() const;
  void choose_rows();
  void order_rows();
  void filter_anew();

  std::vector<Term> terms_;
  std::set<int> lasso_;
  bool lasso_active_ = false;
  int column_ = -1;
  Qt::SortOrder order_ = Qt::AscendingOrder;
  // The source row of each shown row.
  std::vector<int> rows_;
  // The shown row of each source row; -1 if it is hidden.
  std::vector<int> places_;
};

}  // namespace shardwright::gui
