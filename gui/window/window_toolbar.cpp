// The tool bar in the corner of the menu bar, where it takes no height from the views, and which
// commands can do something.
#include <QHash>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>
#include <QToolButton>
#include <optional>

#include "core/base/quantity_text.hpp"
#include "core/spec/this_machine.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/style/icons.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/file_export.hpp"
#include "gui/window/file_presenter.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/scenario_planner.hpp"

namespace shardwright::gui {
namespace {

constexpr int kIconSide = 16;

std::optional<Icon> icon_of_command(const QString& id) {
  static const QHash<QString, Icon> kIcons = {{u"file.open"_s, Icon::Open},
                                              {u"file.open_folder"_s, Icon::Folder},
                                              {u"file.reload"_s, Icon::Reload},
                                              {u"file.stop_reading"_s, Icon::Stop},
                                              {u"file.save_scenario"_s, Icon::Save},
                                              {u"file.save_plan"_s, Icon::Save},
                                              {u"file.export_csv"_s, Icon::Data},
                                              {u"file.quit"_s, Icon::Quit},
                                              {u"edit.undo"_s, Icon::Undo},
                                              {u"edit.redo"_s, Icon::Redo},
                                              {u"edit.copy_picture"_s, Icon::Picture},
                                              {u"edit.filter"_s, Icon::Filter},
                                              {u"plan.search"_s, Icon::Search},
                                              {u"plan.stop"_s, Icon::Stop},
                                              {u"plan.stop_comparing"_s, Icon::Compare},
                                              {u"plan.pin"_s, Icon::Pin},
                                              {u"plan.to_baseline"_s, Icon::Undo},
                                              {u"plan.unpin"_s, Icon::Unpin},
                                              {u"plan.example"_s, Icon::Example},
                                              {u"plan.here"_s, Icon::Machine},
                                              {u"plan.try_here"_s, Icon::Machine},
                                              {u"plan.run"_s, Icon::Run},
                                              {u"plan.stop_run"_s, Icon::Stop},
                                              {u"plan.calibrate"_s, Icon::Calibrate},
                                              {u"view.scenario"_s, Icon::Scenario},
                                              {u"view.plans"_s, Icon::Plans},
                                              {u"view.why"_s, Icon::Why},
                                              {u"view.timeline"_s, Icon::Timeline},
                                              {u"view.topology"_s, Icon::Topology},
                                              {u"view.schedule"_s, Icon::Schedule},
                                              {u"view.sweeps"_s, Icon::Sweeps},
                                              {u"view.forecast"_s, Icon::Forecast},
                                              {u"view.run"_s, Icon::Run},
                                              {u"view.maximise"_s, Icon::Maximise},
                                              {u"view.go_to"_s, Icon::GoTo},
                                              {u"view.reset_rows"_s, Icon::Rows},
                                              {u"view.close_messages"_s, Icon::Close},
                                              {u"view.reset"_s, Icon::Layout},
                                              {u"view.columns"_s, Icon::Columns},
                                              {u"view.one_at_a_time"_s, Icon::Layout},
                                              {u"view.theme_system"_s, Icon::Theme},
                                              {u"view.theme_light"_s, Icon::Light},
                                              {u"view.theme_dark"_s, Icon::Dark},
                                              {u"help.shortcuts"_s, Icon::Keyboard},
                                              {u"help.palette"_s, Icon::Commands},
                                              {u"help.glossary"_s, Icon::Help},
                                              {u"help.about"_s, Icon::About}};
  if (const auto found = kIcons.constFind(id); found != kIcons.cend()) return *found;
  if (id.startsWith(u"edit.copy_"_s)) return Icon::Copy;
  if (id.startsWith(u"file.export_"_s)) return Icon::Picture;
  if (id.startsWith(u"plan.export_"_s)) return Icon::Export;
  return std::nullopt;
}

// Adds a button whose menu has the commands whose names begin with `prefix`.
QToolButton* add_menu_button(QToolBar& bar, const ActionRegistry& registry, Icon icon,
                             const QString& tip, const QString& prefix) {
  auto* button = new QToolButton;
  button->setIcon(icon_of(icon));
  button->setToolTip(tip);
  button->setAccessibleName(tip);
  button->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(button);
  menu->setToolTipsVisible(true);
  for (QAction* action : registry.actions())
    if (action->objectName().startsWith(prefix)) menu->addAction(action);
  button->setMenu(menu);
  bar.addWidget(button);
  return button;
}

}  // namespace

void MainWindow::create_toolbar() {
  for (QAction* action : registry_->actions())
    if (const auto icon = icon_of_command(action->objectName())) action->setIcon(icon_of(*icon));
  auto* bar = new QToolBar;
  bar->setObjectName(u"tools"_s);
  bar->setIconSize({kIconSide, kIconSide});
  const auto add = [&](const char* id) { bar->addAction(registry_->find(to_qstring(id))); };
  add("edit.undo");
  add("edit.redo");
  bar->addSeparator();
  add("plan.search");
  add("plan.stop");
  add("plan.stop_comparing");
  bar->addSeparator();
  add_menu_button(*bar, *registry_, Icon::Export, tr("Export the view"), u"file.export_"_s)
      ->setObjectName(u"tool_export"_s);
  add_menu_button(*bar, *registry_, Icon::Theme, tr("Light or dark colours"), u"view.theme_"_s)
      ->setObjectName(u"tool_theme"_s);
  add("view.maximise");
  add("help.glossary");
  menuBar()->setCornerWidget(bar);
}

void MainWindow::follow_commands() {
  const auto update = [this] { update_commands(); };
  connect(&selection_, &Selection::chosen_changed, this, update);
  connect(&selection_, &Selection::baseline_changed, this, update);
  connect(document_.undo_stack(), &QUndoStack::indexChanged, this, update);
  connect(why_view_, &WhyView::comparing, this, update);
  connect(run_view_, &RunView::controls_changed, this, update);
  connect(&planner_->search(), &PlanSearch::started, this, update);
  connect(&planner_->search(), &PlanSearch::finished, this, update);
  connect(&document_, &ScenarioDocument::changed, this, &MainWindow::update_title);
  update_commands();
  update_title();
}

void MainWindow::update_commands() {
  // Qt enables these two by itself.
  for (const auto& [id, obstacle] :
       {std::pair(u"edit.undo"_s, tr("No edit of the scenario to undo.")),
        {u"edit.redo"_s, tr("No edit of the scenario to redo.")}}) {
    QAction* action = registry_->find(id);
    action->setToolTip(action->isEnabled() ? action->text() : obstacle);
  }
  const auto unless = [](bool possible, const QString& reason) {
    return possible ? QString() : reason;
  };
  registry_->allow(u"file.stop_reading"_s,
                   unless(files_->reader().is_busy(), tr("No file is being read.")));
  const PlanSetPointer& set = selection_.set();
  const QString nothing_to_copy =
      unless(set && !set->plans.empty(), tr("Plans shows no plan that could be copied."));
  registry_->allow(u"edit.copy_tsv"_s, nothing_to_copy);
  registry_->allow(u"edit.copy_markdown"_s, nothing_to_copy);
  registry_->allow(u"plan.stop"_s,
                   unless(planner_->search().is_running(), tr("No search is in progress.")));
  registry_->allow(u"plan.stop_comparing"_s,
                   unless(why_view_->is_comparing(),
                          tr("No plans are compared: Ctrl+click one in Plans to compare it.")));
  registry_->allow(u"plan.stop_run"_s,
                   unless(run_view_->is_running(), tr("No run is in progress.")));
  registry_->allow(u"plan.run"_s, run_view_->starting_is_off());
  registry_->allow(u"plan.calibrate"_s, run_view_->calibration_is_off());
  const QString no_baseline =
      unless(selection_.baseline().has_value(), tr("No plan is pinned as the baseline."));
  registry_->allow(u"plan.to_baseline"_s, no_baseline);
  registry_->allow(u"plan.unpin"_s, no_baseline);
  const QString no_plan =
      unless(selection_.chosen().has_value(), tr("No plan is chosen in Plans yet."));
  registry_->allow(u"plan.pin"_s, no_plan);
  registry_->allow(u"file.save_plan"_s, no_plan);
  for (const planner::ExportFormat& format : planner::kExportFormats)
    registry_->allow(u"plan.export_"_s + to_qstring(format.name),
                     no_plan.isEmpty() ? export_->refusal_of(format) : no_plan);
}

QString MainWindow::scenario_title() const {
  const ScenarioChoice& choice = document_.choice();
  const auto last_part = [](const std::string& name) {
    return to_qstring(name).section(u'/', -1).remove(u".json"_s);
  };
  // Its accelerators need not be GPUs.
  if (choice.cluster == cached_profile().string())
    return tr("%1 on %2 of this machine")
        .arg(last_part(choice.model), to_qstring(format_plural(choice.gpus, "rank")));
  return tr("%1 on %2 of %3")
      .arg(last_part(choice.model), counted_text(choice.gpus, accelerator_word(choice)),
           last_part(choice.cluster));
}

void MainWindow::update_title() {
  setWindowTitle(tr("%1 – Shardwright").arg(scenario_title()));
}

}  // namespace shardwright::gui
