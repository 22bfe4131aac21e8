// The one window: a dock for each view, one shared selection.
#pragma once

#include <QMainWindow>
#include <memory>
#include <vector>

#include "gui/models/background_job.hpp"
#include "gui/models/plan_search.hpp"
#include "gui/models/read_files.hpp"
#include "gui/models/scenario_document.hpp"
#include "gui/models/selection.hpp"
#include "gui/models/table_text.hpp"
#include "gui/models/this_machine.hpp"
#include "gui/window/action_registry.hpp"
#include "gui/window/opened_files.hpp"
#include "gui/window/recent_files.hpp"

class QDockWidget;
class QMenu;
class QSettings;

namespace shardwright::gui {

class MessageList;
class PickList;
struct Pick;
class PlansView;
class RunView;
class ScenarioView;
class StepPresenter;
class ShortcutOverlay;
class SweepView;
class TimelineView;
class View;
class WhyView;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  // Opens on the worked example, or on what `settings` remembers. Null: remembers nothing.
  explicit MainWindow(QSettings* settings = nullptr);
  ~MainWindow() override;

  // What the program begins with: its files, or the last session's where it names none. The
  // scenario is searched for until plans of files take the place of its own.
  void begin(const QStringList& files);
  // Begins to search for plans of the scenario.
  void start();
  // In the background; two of a kind are compared. A search goes on until plans of files take the
  // place of its own.
  void open(const QStringList& paths);
  // The files that were open when the last session ended, if they are still there; else as start().
  void open_last_session();

  // The docks in their order; object names are the views' ids.
  const std::vector<QDockWidget*>& docks() const { return docks_; }
  QWidget* view(const QString& id) const;
  void raise_view(const QString& id);
  const ActionRegistry& actions() const { return *registry_; }
  Selection& selection() { return selection_; }
  ScenarioDocument& document() { return document_; }
  // A search, an explanation, a sweep, the reading of files or an export goes on.
  bool is_busy() const;
  void save_session();

 protected:
  // Asks first while a run is going, which would end with the window.
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  // Passes over views that are behind the tab of another: Qt counts them as visible.
  bool focusNextPrevChild(bool next) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  // main_window.cpp
  QDockWidget* add_dock(const QString& id, const QString& title, QWidget* view,
                        Qt::DockWidgetArea area);
  void create_docks();
  void arrange_docks();
  void hold_scenario_width();
  void connect_search();
  void connect_views();
  void edit_scenario();
  QSize largest_size() const;
  void take_typed_text();
  void ask_what_becomes_of_run();
  // Those of the scenario's parts that are files.
  void watch_parts();
  // Probes this machine first where no profile of it is kept.
  void plan_on_this_machine();
  void take_this_machine(const QString& problem);

  // window_files.cpp
  // Files of which one kind is shown, or two side by side. Whoever takes them says which were left
  // out.
  using Files = std::vector<const ReadFile*>;
  void take_files(const ReadFiles& read);
  void tell_problems(const ReadFiles& read);
  // What was read of one kind, with those that are damaged now and were shown before: they are read
  // again when they are mended.
  void note_opened(OpenedKind kind, const Files& files);
  void read_next();
  QStringList take_plans(const Files& plans);
  QStringList take_timelines(const Files& timelines);
  QStringList take_runs(const Files& runs);
  QStringList take_parts(const Files& parts);
  void take_part(const ReadFile& read);
  void take_run(const ReadFile& run);
  // Recorded steps of one run or two, instead of the chosen plan's. When the runs are read again,
  // only where they are shown.
  void show_recorded(const Files& runs, const QStringList& names);
  QStringList show_plans(const Files& plans);
  // Lets the fields name what the plans of a file are for, or says that they do not.
  void adopt_scenario(const ReadFile& read);
  // Searches for what `scenario` trains, on the cluster of a file.
  void plan_on(const Scenario& scenario, const QString& cluster);
  void read(const QStringList& paths, bool keeps_views);
  // Drops what is being read and what waits for it; what is shown stays.
  void stop_reading();
  // Where what was opened is seen.
  void bring_forward(const QString& id);
  // Reads what is open again, and leaves the views where they are.
  void reload();
  // That one, and what is shown beside it.
  void reload(const QString& path);
  void offer_reload(const QString& path, bool exists);
  void take_offer_back(const QString& path);
  void choose_files();
  void choose_folder();
  void save_plan();
  void fill_recent();
  void export_view(const QString& suffix);
  // In the background, with a message by which it is stopped if it takes long.
  void export_data(const LazyTable& shown, const QString& file);
  void stop_export();
  void tell_written(const QString& file, const QString& text);
  void tell_not_written(const QString& file, const QString& problem);
  void copy_view_picture();
  void copy_view_data();
  void restore_session();
  // Returns the keys of what no window has written.
  QStringList restore_layout();
  void tell_replaced(const QStringList& damaged, const std::vector<Problem>& replaced);

  // window_actions.cpp
  void create_actions();
  void create_file_actions();
  void create_edit_actions();
  void create_plan_actions();
  void create_view_actions();
  void create_help_actions();
  void create_menus();
  void open_palette();
  void open_places();
  std::vector<Pick> places() const;

  // The view that the user looks at: with the focus, else the last that had it; never one that is
  // closed or behind another while any is in front.
  QDockWidget* current_dock() const;
  QDockWidget* dock_of(const QWidget* widget) const;
  void bring_focus_to_front(QDockWidget* dock);

  QSettings* settings_;
  ScenarioDocument document_;
  PlanSearch search_;
  MachineProbe probe_;
  Selection selection_;
  RecentFiles recent_;
  ActionRegistry* registry_;
  MessageList* messages_ = nullptr;
  ScenarioView* scenario_view_ = nullptr;
  PlansView* plans_view_ = nullptr;
  WhyView* why_view_ = nullptr;
  SweepView* sweep_view_ = nullptr;
  RunView* run_view_ = nullptr;
  TimelineView* timeline_view_ = nullptr;
  StepPresenter* step_ = nullptr;
  PickList *palette_ = nullptr, *places_ = nullptr;
  OpenedFiles* opened_ = nullptr;
  ShortcutOverlay* shortcuts_ = nullptr;
  QMenu* recent_menu_ = nullptr;
  std::vector<QDockWidget*> docks_;
  QDockWidget* last_dock_ = nullptr;
  QSize laid_out_;          // of the window when its docks had their places
  int scenario_width_ = 0;  // as the user or the session has it; 0: not known yet
  QByteArray default_layout_;
  bool keeps_views_ = false;  // while files are read again: what is in front stays there
  QStringList reading_;       // files that are being read …
  // … and that were opened, or are to be read again, meanwhile.
  struct Reading {
    QStringList paths;
    bool keeps_views;
  };
  std::vector<Reading> next_to_read_;
  bool keeps_plans_ = false;  // while the scenario of shown plans is taken over
  ReadingProgress reading_progress_;
  BackgroundJob<ReadFiles> files_;
  QString exported_;  // the file that is written in the background
  BackgroundJob<QString> exports_;
};

}  // namespace shardwright::gui
