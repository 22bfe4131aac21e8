// The commands of the window and its menus.
#include <QActionGroup>
#include <QDockWidget>
#include <QFileDialog>
#include <QMenu>
#include <QMenuBar>

#include "gui/models/text.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/docks.hpp"
#include "gui/window/file_export.hpp"
#include "gui/window/file_presenter.hpp"
#include "gui/window/help_pages.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/pick_list.hpp"
#include "gui/window/scenario_planner.hpp"
#include "gui/window/shortcut_overlay.hpp"
#include "gui/window/step_presenter.hpp"

namespace shardwright::gui {
namespace {

// The commands that a line in their menu stands above.
bool begins_section(const QString& id) {
  static const QStringList kFirst = {u"file.reload"_s,
                                     u"file.save_scenario"_s,
                                     u"file.export_png"_s,
                                     u"file.export_report_html"_s,
                                     u"file.quit"_s,
                                     u"edit.copy_tsv"_s,
                                     u"edit.filter"_s,
                                     u"plan.stop_comparing"_s,
                                     u"plan.pin"_s,
                                     u"plan.example"_s,
                                     u"plan.export_megatron"_s,
                                     u"plan.run"_s,
                                     u"view.maximise"_s,
                                     u"view.go_to"_s,
                                     u"view.close_messages"_s,
                                     u"view.reset"_s,
                                     u"view.theme_system"_s,
                                     u"help.glossary"_s};
  return kFirst.contains(id);
}

QKeySequence keys(const char* text) {
  return QKeySequence(to_qstring(text));
}

}  // namespace

void MainWindow::create_actions() {
  create_file_actions();
  create_edit_actions();
  create_plan_actions();
  create_view_actions();
  create_help_actions();
  create_menus();
  connect(files_, &FilePresenter::recent_changed, this, &MainWindow::fill_recent);
  connect(&files_->reader(), &FileReader::busy_changed, this, &MainWindow::update_commands);
}

void MainWindow::create_file_actions() {
  const QString group = tr("File");
  registry_->add(
      {u"file.open"_s, group, tr("&Open …"), QKeySequence::Open,
       tr("Plans, search results, clusters, models, timelines, traces: two are compared"),
       [this] { choose_files(); }});
  registry_->add({u"file.open_folder"_s, group, tr("Open a &folder …"), keys("Ctrl+Shift+O"),
                  tr("Opens the folder of a run or of a Hugging Face model"),
                  [this] { choose_folder(); }});
  registry_->add({u"file.reload"_s, group, tr("&Read again"), keys("F5"),
                  tr("Reads the files that are open again"), [this] { files_->reload(); }});
  registry_->add({u"file.stop_reading"_s, group, tr("Stop the reading"), keys("Esc"),
                  tr("Stops opening files; the shown content stays"),
                  [this] { files_->reader().stop(); }});
  registry_->add({u"file.save_scenario"_s, group, tr("Save the s&cenario …"), keys("Ctrl+Alt+S"),
                  tr("Saves the fields of Scenario, which opening the file restores"), [this] {
                    take_typed_text();
                    export_->save_scenario(document_.choice());
                  }});
  registry_->add({u"file.save_plan"_s, group, tr("&Save the chosen plan …"), QKeySequence::Save,
                  tr("Saves a plan file for shardwright run and simulate"),
                  [this] { export_->save_plan(); }});
  for (const char* suffix : {"png", "svg", "pdf", "csv"}) {
    const QString name = to_qstring(suffix);
    const bool is_data = name == u"csv"_s;
    registry_->add({u"file.export_"_s + name, group,
                    is_data ? tr("Export the view's data as CSV …")
                            : tr("Export the view as %1 …").arg(name.toUpper()),
                    name == u"png"_s ? keys("Ctrl+E") : QKeySequence(),
                    tr("Exports the view that had the focus last"),
                    [this, name] { export_->export_view(name); }});
  }
  for (const char* suffix : {"html", "pdf"}) {
    const QString name = to_qstring(suffix);
    registry_->add(
        {u"file.export_report_"_s + name, group, tr("Export a report as %1 …").arg(name.toUpper()),
         QKeySequence(), tr("Writes the scenario, the best plans and all charts into one file"),
         [this, name] {
           export_->export_report(scenario_title(), name,
                                  [this](auto ready) { fill_views_then(std::move(ready)); });
         }});
  }
  registry_->add(
      {u"file.quit"_s, group, tr("&Quit"), keys("Ctrl+Q"), QString(), [this] { close(); }});
}

void MainWindow::create_edit_actions() {
  const QString group = tr("Edit");
  QUndoStack* stack = document_.undo_stack();
  QAction* undo = stack->createUndoAction(this, tr("Undo"));
  undo->setObjectName(u"edit.undo"_s);
  undo->setShortcut(keys("Ctrl+Z"));
  QAction* redo = stack->createRedoAction(this, tr("Redo"));
  redo->setObjectName(u"edit.redo"_s);
  // Desktops differ in which of the two is theirs.
  redo->setShortcuts({keys("Ctrl+Shift+Z"), keys("Ctrl+Y")});
  for (QAction* action : {undo, redo}) {
    addAction(action);
    registry_->adopt(group, action);
  }
  registry_->add({u"edit.copy_tsv"_s, group, tr("Copy plans as TSV"), keys("Ctrl+Shift+C"),
                  tr("Copies the chosen rows, or all if only one is chosen"),
                  [this] { plans_view_->copy_tsv(); }});
  registry_->add({u"edit.copy_markdown"_s, group, tr("Copy plans as Markdown"),
                  keys("Ctrl+Shift+M"), tr("Copies the chosen rows, or all if only one is chosen"),
                  [this] { plans_view_->copy_markdown(); }});
  registry_->add({u"edit.copy_data"_s, group, tr("Copy the view's data"), QKeySequence(),
                  tr("Copies the data of the view that had the focus last, as TSV"),
                  [this] { export_->copy_data(); }});
  registry_->add({u"edit.copy_picture"_s, group, tr("Copy the view as a picture"), QKeySequence(),
                  tr("Copies the view that had the focus last"),
                  [this] { export_->copy_picture(); }});
  registry_->add({u"edit.filter"_s, group, tr("&Filter plans"), QKeySequence::Find,
                  tr("Terms such as tp=8, mfu>45"), [this] {
                    raise_view(u"plans"_s);
                    plans_view_->focus_filter();
                  }});
}

void MainWindow::create_plan_actions() {
  const QString group = tr("Plan");
  registry_->add({u"plan.search"_s, group, tr("Search again"), keys("Shift+F5"),
                  tr("Searches for plans of the scenario as it is"), [this] {
                    take_typed_text();
                    step_->leave_timelines();
                    start();
                  }});
  registry_->add({u"plan.stop"_s, group, tr("Stop the search"), keys("Ctrl+."),
                  tr("Keeps what was found"), [this] { planner_->search().stop(); }});
  registry_->add({u"plan.stop_comparing"_s, group, tr("Stop comparing"), QKeySequence(),
                  tr("Shows the chosen plan alone again"),
                  [this] { why_view_->stop_comparing(); }});
  registry_->add(
      {u"plan.pin"_s, group, tr("Pin the chosen plan as the baseline"), keys("Ctrl+B"),
       tr("Holds what is chosen from now on against it, and marks the fields that change"),
       [this] { planner_->pin(); }});
  registry_->add({u"plan.to_baseline"_s, group, tr("Back to the baseline"), keys("Ctrl+Shift+B"),
                  tr("Brings its fields and its plan back"),
                  [this] { planner_->return_to_baseline(); }});
  registry_->add({u"plan.unpin"_s, group, tr("Unpin the baseline"), QKeySequence(),
                  tr("Forgets the baseline"), [this] { selection_.unpin(); }});
  registry_->add({u"plan.example"_s, group, tr("Worked example"), QKeySequence(),
                  tr("Llama 3 70B on 512 H100"), [this] { planner_->plan_example(); }});
  registry_->add({u"plan.here"_s, group, tr("Plan on this machine"), QKeySequence(),
                  tr("Plans for all of its ranks; a machine that was never probed is probed first, "
                     "in half a minute"),
                  [this] { planner_->plan_on_this_machine(); }});
  registry_->add(
      {u"plan.try_here"_s, group, tr("Try a tiny model on this machine"), QKeySequence(),
       tr("Plans for a model that this machine trains in seconds, and names a text and a "
          "folder for its run: then press Start"),
       [this] { try_on_this_machine(); }});
  for (const planner::ExportFormat& format : planner::kExportFormats) {
    registry_->add(
        {u"plan.export_"_s + to_qstring(format.name), group,
         tr("Export the plan for %1 …").arg(to_qstring(format.title)), QKeySequence(),
         tr("Writes the chosen plan as the settings of %1").arg(to_qstring(format.title)),
         [this, &format] { export_->export_plan(format); }});
  }
  registry_->add({u"plan.run"_s, group, tr("Start a run"), keys("Ctrl+R"),
                  tr("Trains with the chosen plan"), [this] {
                    raise_view(u"run"_s);
                    run_view_->start();
                  }});
  registry_->add({u"plan.stop_run"_s, group, tr("Stop the run"), QKeySequence(),
                  tr("Interrupts the run as Ctrl-C does"), [this] { run_view_->stop(); }});
  registry_->add({u"plan.calibrate"_s, group, tr("Calibrate from the run"), QKeySequence(),
                  tr("Refits the cluster's profile to what the run measured"), [this] {
                    raise_view(u"run"_s);
                    run_view_->calibrate();
                  }});
}

void MainWindow::create_view_actions() {
  const QString group = tr("View");
  int number = 1;
  for (const QDockWidget* dock : docks()) {
    registry_->add({u"view."_s + dock->objectName(), group, dock->windowTitle(),
                    keys(qPrintable(u"Alt+%1"_s.arg(number++))), tr("Brings the view to the front"),
                    [this, id = dock->objectName()] { raise_view(id); }});
  }
  QAction* maximise =
      registry_->add({u"view.maximise"_s, group, tr("Maximise the view"), keys("F11"),
                      tr("Gives it the whole window, or takes it back"),
                      [this] { docks_->maximise(!docks_->is_maximised()); }});
  maximise->setCheckable(true);
  connect(docks_, &Docks::maximised_changed, maximise, &QAction::setChecked);
  registry_->add({u"view.go_to"_s, group, tr("Go to a rank or an op …"), keys("Ctrl+P"),
                  tr("In the Timeline, by its name"), [this] { open_places(); }});
  registry_->add({u"view.reset_rows"_s, group, tr("Reset the order of Timeline rows"),
                  QKeySequence(), tr("Undoes the dragging of rows"),
                  [this] { timeline_view_->reset_order(); }});
  registry_->add({u"view.close_messages"_s, group, tr("Close all messages"), QKeySequence(),
                  tr("Their offers go with them; F5 still reads changed files again"),
                  [this] { messages_->close_all(); }});
  const auto add_layout = [&](const char* id, const QString& text, const QString& tip,
                              Layout layout) {
    registry_->add({to_qstring(id), group, text, QKeySequence(), tip,
                    [this, layout] { docks_->lay_out(layout); }});
  };
  add_layout("view.reset", tr("Reset the layout"), tr("Moves all views to their first places"),
             Layout::First);
  add_layout("view.columns", tr("Layout of three columns"),
             tr("For wide screens: scenario, plans and the other views beside each other"),
             Layout::Columns);
  add_layout("view.one_at_a_time", tr("Layout of one view at a time"),
             tr("For small screens: plans are a tab as the other views are"), Layout::OneAtATime);
  create_theme_actions(group);
}

void MainWindow::create_theme_actions(const QString& group) {
  const EnumArray<Theme, QString> titles = {
      {{tr("Colours of the desktop"), tr("Light colours"), tr("Dark colours")}}};
  auto* themes = new QActionGroup(this);
  for (const Theme theme : enumerators<Theme>()) {
    QAction* action = registry_->add({u"view.theme_"_s + to_qstring(name_of(theme)), group,
                                      titles[theme], QKeySequence(), tr("Restyles the window"),
                                      [this, theme] { take_theme(theme); }});
    action->setCheckable(true);
    action->setChecked(theme == theme_);
    themes->addAction(action);
  }
}

void MainWindow::take_theme(Theme theme) {
  theme_ = theme;
  registry_->find(u"view.theme_"_s + to_qstring(name_of(theme)))->setChecked(true);
  apply_theme(theme);
}

void MainWindow::create_help_actions() {
  const QString group = tr("Help");
  registry_->add({u"help.shortcuts"_s, group, tr("Keyboard and mouse"), keys("?"),
                  tr("All shortcuts"), [this] { shortcuts_->toggle(); }});
  registry_->add({u"help.palette"_s, group, tr("Command palette"), keys("Ctrl+Shift+P"),
                  tr("All commands by name"), [this] { open_palette(); }});
  registry_->add({u"help.glossary"_s, group, tr("Glossary"), keys("F1"),
                  tr("What the words of the window mean"), [this] { show_glossary(this); }});
  registry_->add({u"help.about"_s, group, tr("About Shardwright"), QKeySequence(),
                  tr("Version and licences"), [this] { show_about(this); }});
}

void MainWindow::choose_files() {
  open(QFileDialog::getOpenFileNames(
      this, tr("Open"), QString(),
      tr("Plans, models, timelines, traces (*.json *.json.gz *.sqlite);;All (*)")));
}

void MainWindow::choose_folder() {
  const QString folder = QFileDialog::getExistingDirectory(this, tr("Open a folder"));
  if (!folder.isEmpty()) open({folder});
}

void MainWindow::fill_recent() {
  const QStringList& paths = files_->recent().paths();
  recent_menu_->clear();
  for (const QString& path : paths)
    recent_menu_->addAction(path, this, [this, path] { open({path}); });
  if (paths.isEmpty())
    recent_menu_->addAction(tr("No file has been opened yet."))->setEnabled(false);
}

void MainWindow::open_palette() {
  std::vector<Pick> commands;
  for (QAction* action : registry_->actions()) {
    const QString text = action->text().remove(u'&');
    if (!action->isEnabled() || text.isEmpty()) continue;
    commands.push_back({ActionRegistry::group_of(action) + u": "_s + text,
                        action->shortcut().toString(QKeySequence::NativeText), action->toolTip(),
                        [action] { action->trigger(); }});
  }
  palette_->open(std::move(commands));
}

void MainWindow::open_places() {
  raise_view(u"timeline"_s);
  places_->open(places());
}

std::vector<Pick> MainWindow::places() const {
  std::vector<Pick> places;
  for (const QString& rank : timeline_view_->ranks())
    places.push_back(
        {rank, {}, tr("Scrolls there"), [this, rank] { timeline_view_->go_to_rank(rank); }});
  for (const QString& op : timeline_view_->ops())
    places.push_back(
        {op, {}, tr("Selects the first one"), [this, op] { timeline_view_->go_to_op(op); }});
  return places;
}

void MainWindow::create_menus() {
  for (const QString& group : registry_->groups()) {
    QMenu* menu = menuBar()->addMenu(u"&"_s + group);
    menu->setToolTipsVisible(true);
    for (QAction* action : registry_->actions()) {
      if (ActionRegistry::group_of(action) != group) continue;
      if (begins_section(action->objectName())) menu->addSeparator();
      menu->addAction(action);
      if (action->objectName() != u"file.open_folder"_s) continue;
      recent_menu_ = menu->addMenu(tr("Open &recent"));
      fill_recent();
    }
  }
}

}  // namespace shardwright::gui
