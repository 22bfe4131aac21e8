// Which columns of the plans table are shown, and how wide they are.
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

// A column is shown while it has something to tell of the plans, and widened for their texts,
// unless the user has chosen or sized it.
class PlanColumns : public QObject {
  Q_OBJECT

 public:
  // Of a table whose columns are plan_figures() and whose rows are some of `model`. `button` gets
  // the menu in which they are chosen.
  PlanColumns(const PlanTableModel* model, QTableView* table, QToolButton* button);

  // Of the set that the model shows.
  void follow(const PlanSet& set);

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 private:
  void add_action(QMenu* menu, int column);
  void show_column(int column, bool shown);
  void widen(int column);
  int text_width(int column) const;

  const PlanTableModel* model_;
  QTableView* table_;
  QMenu* menu_;
  bool by_user_ = true;       // false: what changes now is of this class's doing
  std::set<int> fitted_;      // to any set
  std::set<int> chosen_;      // shown or hidden by the user
  std::map<int, int> sized_;  // by the user, in pixels
};

}  // namespace shardwright::gui
