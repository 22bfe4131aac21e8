// The visible columns of the plans table and their widths.
#pragma once

#include <QObject>
#include <map>
#include <set>

#include "gui/models/plan_table_model.hpp"

class QMenu;
class QSettings;
class QTableView;
class QToolButton;

namespace shardwright::gui {

// A column is shown while it tells the plans apart, and widened for their texts, unless the user
// has chosen or sized it.
class PlanColumns : public QObject {
  Q_OBJECT

 public:
  // The columns of `table` are plan_figures(), its rows some of `model`. `button` gets the menu in
  // which columns are chosen.
  PlanColumns(const PlanTableModel* model, QTableView* table, QToolButton* button);

  void follow(const PlanSet& set);

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 private:
  void add_action(QMenu* menu, int column);
  // Opens the menu of a column's header.
  void open_menu(const QPoint& at);
  // Shows the first columns again, in their first order and widths.
  void reset();
  void show_column(int column, bool shown);
  void widen(int column);
  // Fits the widths that the user has not set to letters of another size.
  void fit_to_letters();
  int title_width(int column) const;
  int room_of_arrow() const;
  int text_width(int column) const;

  const PlanTableModel* model_;
  QTableView* table_;
  QMenu* menu_;
  // False while this class itself changes the header.
  bool by_user_ = true;
  // Columns whose width was fitted to the texts of a set.
  std::set<int> fitted_;
  std::set<int> chosen_;
  // Widths that the user has set, in pixels.
  std::map<int, int> sized_;
};

}  // namespace shardwright::gui
