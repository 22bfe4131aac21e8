// The timeline with its filter, its search and the statistics of the range selected.
#pragma once

#include <memory>
#include <vector>

#include "gui/models/background_job.hpp"
#include "gui/timeline/timeline_canvas.hpp"
#include "gui/views/view.hpp"

class QLabel;
class QLineEdit;
class QMenu;
class QSettings;
class QTableWidget;
class QToolButton;

namespace shardwright::gui {

class ElidedLabel;
class EmptyState;
class FilterChips;
class TracePanel;

class TimelineView : public View {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);

  // Shows one timeline, or compares two: a prediction and a measurement of the same plan, or those
  // of two files. Without a timeline the view says how to get one.
  // `program` may be null; if it is that of a prediction, the critical path follows its waits.
  // The memory of `limits` is drawn as a line unless it is zero. `reserved` is the memory of a
  // predicted rank that is not allocated, for each timeline that has it. `names` are the files of
  // timelines that come from files: they stand above the rows and distinguish two of one origin.
  void set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                     std::shared_ptr<const Program> program = nullptr,
                     const RankLimits& limits = {},
                     const std::vector<sim::ReservedMemory>& reserved = {},
                     const QStringList& names = {});

  // Says, as rich text, why there is no timeline.
  void show_hint(const QString& hint);
  // Replaces what the view says of where its timelines come from.
  void show_source(const QString& text);

  bool is_busy() const override { return difference_job_.is_running() || canvas_->is_busy(); }

  TimelineCanvas& canvas() const { return *canvas_; }
  // The figures of traces, which are hidden until there is one.
  TracePanel& traces() const { return *traces_; }

  std::vector<ReportPart> report() const override;
  TextTable table() const override;
  LazyTable lazy_table() const override;

  void find(const QString& text);
  void filter(const QString& text);
  void find_next();
  void find_previous();

  // Return the labels of ranks and the names of ops, each once.
  QStringList ranks() const;
  QStringList ops() const;
  // Scrolls to the rank with this label, and selects the first op of this name and phase.
  void go_to_rank(const QString& label);
  void go_to_op(const QString& name, std::optional<Phase> phase = std::nullopt);

  // Puts ranks and rows where they stood before the user moved them.
  void reset_order();
  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 Q_SIGNALS:
  void timelines_changed();
  // The user wants the step of the chosen plan instead of that of a file.
  void plan_wanted();

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void create_bar();
  void create_source();
  void create_statistics();
  void create_differences();
  void create_details();
  void connect_parts();
  QToolButton* add(QToolButton* button, const QString& text, const QString& tip);
  // Marks the field, and says what is wrong in the message bar.
  void show_problems(QLineEdit& edit, const QStringList& problems);
  void update_statistics();
  void show_tables();
  // Colours and lists the differences of two timelines, if they are asked for.
  void update_difference();
  void take_difference(std::shared_ptr<const TimelineDifference> difference);
  void update_status();
  void update_details();
  void update_hint();
  void update_source(const QStringList& sources);
  void step_match(int step);
  // Folds these ranks and unfolds the others that are shown.
  void fold_only(const QStringList& labels);
  // Selects the first op of a name, and of a phase if one is given.
  bool select_first(const std::string& name, std::optional<Phase> phase);
  void open_menu(const QPointF& position);
  void add_filters(QMenu& menu, const Span& span);
  void add_arrangement(QMenu& menu, const Track& track);
  void add_order(QMenu& menu, const Track& track);

  TimelineCanvas* canvas_;
  EmptyState* empty_ = nullptr;
  QTableWidget *statistics_ = nullptr, *rows_ = nullptr, *differences_ = nullptr;
  QLabel* differences_summary_ = nullptr;
  QLineEdit *filter_edit_ = nullptr, *find_edit_ = nullptr;
  FilterChips* chips_ = nullptr;
  QLabel *match_label_ = nullptr, *summary_ = nullptr;
  ElidedLabel *status_ = nullptr, *source_ = nullptr;
  QToolButton *arrows_ = nullptr, *critical_ = nullptr, *details_toggle_ = nullptr,
              *differences_toggle_ = nullptr;
  QLabel* details_ = nullptr;
  TracePanel* traces_ = nullptr;
  QWidget *bar_ = nullptr, *source_bar_ = nullptr, *statistics_panel_ = nullptr,
          *differences_panel_ = nullptr, *tables_beside_ = nullptr;
  std::vector<SpanRef> matches_;
  std::size_t match_ = 0;
  bool has_match_ = false;
  QStringList filter_problems_, find_problems_;
  BackgroundJob<TimelineDifference> difference_job_;
};

}  // namespace shardwright::gui
