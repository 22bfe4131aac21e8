// The timeline with its filter, its search and the statistics of the range selected.
#pragma once

#include <memory>
#include <vector>

#include "gui/timeline/range_statistics.hpp"
#include "gui/timeline/timeline_canvas.hpp"
#include "gui/views/view.hpp"

class QLabel;
class QLineEdit;
class QMenu;
class QSettings;
class QTableView;
class QToolButton;

namespace shardwright::gui {

class ElidedLabel;
class EmptyState;
class FilterChips;

class TimelineView : public View {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);

  // One timeline, or two that are compared: a prediction and a measurement of the same plan, or
  // those of two files; none shows how to get one.
  // `program` may be null; where it is that of a prediction, the critical path follows its waits.
  // Of the `limits` the memory is drawn as a line; zero leaves it out. `reserved` is what a
  // prediction holds beside what is allocated. `names`, of timelines of files alone, say above the
  // rows whose step is shown, and tell two of one origin apart.
  void set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                     std::shared_ptr<const Program> program = nullptr,
                     const DeviceLimits& limits = {}, const sim::ReservedMemory& reserved = {},
                     const QStringList& names = {});

  TimelineCanvas& canvas() { return *canvas_; }
  const TimelineCanvas& canvas() const { return *canvas_; }
  const RangeStatisticsModel& statistics() const { return *statistics_; }

  // The spans in the window shown.
  TextTable table() const override;
  LazyTable lazy_table() const override;

  // For the other views' selections; they tell nothing back where nothing changes.
  void select_range(double from, double to);
  void clear_range();
  void find(const QString& text);
  void filter(const QString& text);
  void find_next();
  void find_previous();

  // The names of ranks and of ops, each once.
  QStringList ranks() const;
  QStringList ops() const;
  // Scrolls to the rank of that name; selects the first op of that name.
  void go_to_rank(const QString& label);
  void go_to_op(const QString& name);

  // Ranks and rows as they stood before the user moved them.
  void reset_order();
  // What is folded, pinned and moved.
  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 Q_SIGNALS:
  void range_selected(double from, double to);  // in seconds
  void range_cleared();
  void op_selected(shardwright::gui::SpanRef ref);
  void op_cleared();
  void timelines_changed();
  // Instead of the files': the chosen plan's step.
  void plan_wanted();

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void create_bar();
  void create_source();
  void create_statistics();
  void create_details();
  void connect_parts();
  QToolButton* add_button(const QString& text, const QString& tip);
  QToolButton* add_toggle(const QString& text, const QString& tip);
  QToolButton* add(QToolButton* button, const QString& text, const QString& tip);
  void show_problems(QLineEdit& edit, const QStringList& problems);
  void update_statistics();
  void update_status();
  void update_details();
  void update_hint();
  void update_source(const QStringList& sources);
  void step_match(int step);
  // Of the ranks that are there, these and no others.
  void fold_only(const QStringList& labels);
  // The first op of this name that is shown; false if there is none.
  bool select_first(const std::string& wanted);
  void open_menu(const QPointF& position);
  void add_filters(QMenu& menu, const Span& span);
  void add_arrangement(QMenu& menu, const Track& track);
  void add_order(QMenu& menu, const Track& track);

  TimelineCanvas* canvas_;
  EmptyState* empty_ = nullptr;
  RangeStatisticsModel* statistics_;
  QLineEdit *filter_edit_ = nullptr, *find_edit_ = nullptr;
  FilterChips* chips_ = nullptr;
  QLabel *match_label_ = nullptr, *summary_ = nullptr;
  ElidedLabel *status_ = nullptr, *source_ = nullptr;
  QToolButton *arrows_ = nullptr, *critical_ = nullptr, *details_toggle_ = nullptr;
  QLabel* details_ = nullptr;
  QTableView* table_ = nullptr;
  QWidget *bar_ = nullptr, *source_bar_ = nullptr, *statistics_panel_ = nullptr;
  std::vector<SpanRef> matches_;
  std::size_t match_ = 0;
  bool has_match_ = false;  // `match_` is selected
};

}  // namespace shardwright::gui
