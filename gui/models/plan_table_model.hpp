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
  // In lower case: the text of a column of names, and that of the whole plan. Kept from the first
  // time that one of the column is asked for.
  const QString& name(int row, int column) const;
  const QString& plan_words(int row) const;
  // A term of the filter line that holds for this cell: "tp=8", "schedule=interleaved"; with '<' or
  // '>' for the relation one that holds for smaller or larger ones. Empty where there is none.
  QString term_for(const QModelIndex& cell, QChar relation = QLatin1Char('=')) const;

 private:
  using Texts = std::vector<QString>;
  template <class Text>
  const QString& kept(Texts& texts, int row, const Text& text) const;

  PlanSetPointer set_;
  std::vector<std::vector<double>> numbers_;  // by column: sorting asks often
  mutable std::vector<Texts> names_;          // likewise
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
  // By the column's number or text, equal ones as the source has them; -1: as the source has all.
  void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;

  // The plans that are shown, in their order.
  const std::vector<int>& source_rows() const { return rows_; }

  // Terms separated by commas: "tp=8", "mfu>45", "memory<60", "interleaved", "-full". A term that
  // names no column is looked for in the plan's text; a leading "-" turns it round. Returns what is
  // wrong with the line, empty if nothing.
  QString set_terms(const QString& line);

  // Source rows; empty and `active` false: no lasso.
  void set_lasso(std::set<int> rows);
  void clear_lasso();
  bool has_lasso() const { return lasso_active_; }
  const std::set<int>& lasso() const { return lasso_; }

 private:
  struct Term {
    int column = -1;  // -1: the plan's text
    char relation = '=';
    double number = 0.0;
    double rounding = 0.0;  // what a cell shows must match, however many digits stand behind it
    QString text;           // in lower case
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
  std::vector<int> rows_;    // of the source, by row
  std::vector<int> places_;  // the row of each of the source's; -1: hidden
};

}  // namespace shardwright::gui
