// The found plans as a table beside a scatter plot.
#pragma once

#include <set>

#include "gui/models/plan_table_model.hpp"
#include "gui/models/selection.hpp"
#include "gui/views/view.hpp"

class QLabel;
class QLineEdit;
class QMenu;
class QSettings;
class QTableView;
class QToolButton;

namespace shardwright::gui {

class EmptyState;
class FilterChips;
class PlanColumns;
class PlanScatter;
class QueryCompleter;
class ScatterPane;

class PlansView : public View {
  Q_OBJECT

 public:
  explicit PlansView(Selection* selection, QWidget* parent = nullptr);

  TextTable table() const override;
  std::vector<ReportPart> report() const override;
  // Copy the chosen rows, or all rows if only one is chosen: plain numbers for other programs, or
  // the texts of the table.
  void copy_tsv() const;
  void copy_markdown() const;
  void focus_filter();
  // Shows `text` while no plan was found yet.
  void show_waiting(const QString& text);
  // Marks the plans as those of the former scenario until others come.
  void mark_outdated();

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 Q_SIGNALS:
  // The user has clicked on changes that make a plan fit.
  void remedy_wanted(const std::vector<shardwright::planner::Remedy>& remedies);
  // The user has chosen a plan to be the baseline, or wants the baseline back.
  void pin_wanted();
  void return_wanted();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QWidget* create_table();
  QWidget* create_filter();
  void create_rows();
  void connect_models();
  std::set<QString> lassoed_plans() const;
  void lasso_again(const std::set<QString>& lassoed);
  void show_set();
  void show_infeasible(const planner::NoFeasiblePlan& none);
  void update_points();
  void show_filtered_out();
  void update_summary();
  void follow_selection();
  void show_compared_row();
  void take_current(const QModelIndex& current);
  // Compares the chosen plan with this one, or stops where the two are compared already.
  void compare_or_stop(int plan);
  void press_row(const QMouseEvent& press);
  void open_menu(const QPoint& at);
  void add_filters(QMenu& menu, const QModelIndex& cell);
  std::vector<int> shown_columns() const;
  TextTable chosen_table(Qt::ItemDataRole role) const;

  Selection* selection_;
  PlanTableModel* model_;
  // False during a press that leaves the chosen plan as it is.
  bool press_chooses_ = true;
  QTableView* view_ = nullptr;
  QLineEdit* terms_ = nullptr;
  QueryCompleter* completer_ = nullptr;
  FilterChips* chips_ = nullptr;
  QLabel* terms_problem_ = nullptr;
  QToolButton* lasso_chip_ = nullptr;
  QToolButton* columns_button_ = nullptr;
  PlanColumns* columns_ = nullptr;
  QLabel* summary_ = nullptr;
  QLabel* outdated_ = nullptr;
  ScatterPane* plot_ = nullptr;
  PlanScatter* scatter_ = nullptr;
  EmptyState* empty_ = nullptr;
  EmptyState* rows_ = nullptr;
};

}  // namespace shardwright::gui
