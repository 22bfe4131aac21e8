// Plans as a table, and the filter and order in which they are shown.
#pragma once

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <set>
#include <vector>

#include "gui/models/plan_figures.hpp"
#include "gui/models/plan_set.hpp"

namespace shardwright::gui {

// Rows are the plans of the set, columns the figures.
class PlanTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  static constexpr int kSortRole = Qt::UserRole;  // a number, or the text of a name

  explicit PlanTableModel(QObject* parent = nullptr);

  void show(PlanSetPointer set);
  const PlanSetPointer& set() const { return set_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  // The number that column `column` sorts by; 0 for names.
  double number(int row, int column) const;

 private:
  PlanSetPointer set_;
  std::vector<std::vector<double>> numbers_;  // by column: sorting asks often
};

// Shows the rows that match every term of the filter line and lie in the lasso, if there is one.
class PlanFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit PlanFilter(QObject* parent = nullptr);

  // Terms separated by commas: "tp=8", "mfu>45", "memory<60", "interleaved", "-full". A term that
  // names no column is looked for in the plan's text; a leading "-" turns it round. Returns what is
  // wrong with the line, empty if nothing.
  QString set_terms(const QString& line);

  // Source rows; empty and `active` false: no lasso.
  void set_lasso(std::set<int> rows);
  void clear_lasso();
  bool has_lasso() const { return lasso_active_; }

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

 private:
  struct Term {
    int column = -1;  // -1: the plan's text
    char relation = '=';
    double number = 0.0;
    QString text;
    bool negated = false;
  };

  static bool read_term(const QString& text, Term& term);
  bool accepts(const Term& term, int row) const;
  const PlanTableModel* table() const;
  void filter_anew();

  std::vector<Term> terms_;
  std::set<int> lasso_;
  bool lasso_active_ = false;
};

}  // namespace shardwright::gui
