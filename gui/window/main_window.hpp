// The window: a dock for each view and one shared selection. It puts the parts together that have
// one subject each: docks, search, files, export, steps, commands.
#pragma once

#include <QMainWindow>
#include <functional>
#include <vector>

#include "gui/models/scenario_document.hpp"
#include "gui/models/selection.hpp"
#include "gui/window/action_registry.hpp"
#include "gui/window/theme.hpp"

class QDockWidget;
class QMenu;
class QSettings;

namespace shardwright::gui {

class Docks;
class FileExport;
class FilePresenter;
class ForecastView;
class MessageBar;
class OpenedFiles;
class PickList;
struct Pick;
class PlansView;
class RunView;
class ScenarioPlanner;
class ScenarioView;
class ScheduleView;
class ShortcutOverlay;
class StepPresenter;
class SweepView;
class TimelineView;
class TopologyView;
class WhyView;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  // Opens on the worked example, or on what `settings` remembers. If null, nothing is remembered.
  explicit MainWindow(QSettings* settings = nullptr);
  ~MainWindow() override;

  // Opens the files, or those of the last session if there are none. The scenario is searched for
  // until plans of files take the place of its own.
  void begin(const QStringList& files);
  void start();
  // Reads files in the background; two of a kind are compared. A search goes on until plans of
  // files take the place of its own.
  void open(const QStringList& paths);

  // The docks in their order; the object name of a dock is the id of its view.
  const std::vector<QDockWidget*>& docks() const;
  QWidget* view(const QString& id) const;
  void raise_view(const QString& id);
  const ActionRegistry& actions() const { return *registry_; }
  Selection& selection() { return selection_; }
  ScenarioDocument& document() { return document_; }
  // True while a search, an explanation, a sweep, a file or an export is at work.
  bool is_busy() const;
  void save_session();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool focusNextPrevChild(bool next) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  // main_window.cpp
  void create_views();
  void create_parts();
  void connect_views();
  // Takes the text that was typed into a field, by leaving the field.
  void take_typed_text();
  // Lets the views compute what they lack, also those that nobody looks at, and then calls `ready`.
  void fill_views_then(std::function<void()> ready);

  // window_toolbar.cpp
  void create_toolbar();
  // Keeps commands that can do nothing disabled from now on.
  void follow_commands();
  void update_commands();
  QString scenario_title() const;
  void update_title();

  // window_session.cpp
  void restore_session();
  void report_replaced(const QStringList& damaged, const std::vector<Problem>& replaced);

  // window_actions.cpp
  void create_actions();
  void create_file_actions();
  void create_edit_actions();
  void create_plan_actions();
  void create_view_actions();
  void create_theme_actions(const QString& group);
  void create_help_actions();
  void create_menus();
  void take_theme(Theme theme);
  void try_on_this_machine();
  void choose_files();
  void choose_folder();
  void fill_recent();
  void open_palette();
  void open_places();
  std::vector<Pick> places() const;

  QSettings* settings_;
  ScenarioDocument document_;
  Selection selection_;
  ActionRegistry* registry_;
  Docks* docks_;
  OpenedFiles* opened_;
  MessageBar* messages_ = nullptr;
  ScenarioView* scenario_view_ = nullptr;
  PlansView* plans_view_ = nullptr;
  WhyView* why_view_ = nullptr;
  TimelineView* timeline_view_ = nullptr;
  TopologyView* topology_view_ = nullptr;
  ScheduleView* schedule_view_ = nullptr;
  SweepView* sweep_view_ = nullptr;
  ForecastView* forecast_view_ = nullptr;
  RunView* run_view_ = nullptr;
  StepPresenter* step_ = nullptr;
  ScenarioPlanner* planner_ = nullptr;
  FilePresenter* files_ = nullptr;
  FileExport* export_ = nullptr;
  PickList *palette_ = nullptr, *places_ = nullptr;
  ShortcutOverlay* shortcuts_ = nullptr;
  QMenu* recent_menu_ = nullptr;
  Theme theme_ = Theme::System;
};

}  // namespace shardwright::gui
