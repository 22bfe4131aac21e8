#include "gui/window/main_window.hpp"

#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QLineEdit>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QStatusBar>
#include <QUrl>

#include "gui/schedule/schedule_view.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/topology/topology_view.hpp"
#include "gui/views/chart.hpp"
#include "gui/views/forecast_view.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/scenario_view.hpp"
#include "gui/views/sweep_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/docks.hpp"
#include "gui/window/file_export.hpp"
#include "gui/window/file_presenter.hpp"
#include "gui/window/pick_list.hpp"
#include "gui/window/progress_status.hpp"
#include "gui/window/scenario_planner.hpp"
#include "gui/window/shortcut_overlay.hpp"
#include "gui/window/step_presenter.hpp"
#include "gui/window/wrapped_tips.hpp"

namespace shardwright::gui {
namespace {

QString key_of_view(const QDockWidget& dock) {
  return u"view:"_s + dock.objectName();
}

QStringList local_files(const QMimeData& dragged) {
  QStringList paths;
  for (const QUrl& url : dragged.urls()) {
    if (url.isLocalFile()) paths.append(url.toLocalFile());
  }
  return paths;
}

// Asks what becomes of a run, and closes `window` once the run is stopped or let go. Returns at
// once.
void ask_what_becomes_of_run(QMainWindow& window, RunView& run) {
  auto* question = new QMessageBox(
      QMessageBox::Question, RunView::tr("A run is in progress"),
      RunView::tr("Close the window while it trains? A run that is stopped keeps its files. A run "
                  "that is kept goes on without the window. The next window follows it and can "
                  "stop it, as “kill -INT %1” does.")
          .arg(run.process_id()),
      QMessageBox::Cancel, &window);
  question->setObjectName(u"run_question"_s);
  question->setAttribute(Qt::WA_DeleteOnClose);
  const auto add = [&](const char* id, const QString& text, QMessageBox::ButtonRole role) {
    QPushButton* button = question->addButton(text, role);
    button->setObjectName(to_qstring(id));
    return button;
  };
  QObject::connect(
      add("stop_and_close", RunView::tr("Stop the run and close"), QMessageBox::DestructiveRole),
      &QPushButton::clicked, &window, [&window, &run] {
        constexpr int kOnceLater = Qt::QueuedConnection | Qt::SingleShotConnection;
        QObject::connect(&run, &RunView::ended, &window, &QMainWindow::close,
                         static_cast<Qt::ConnectionType>(kOnceLater));
        run.stop();
      });
  QObject::connect(
      add("keep_running", RunView::tr("Keep it running and close"), QMessageBox::AcceptRole),
      &QPushButton::clicked, &window, [&window, &run] {
        run.release_run();
        QMetaObject::invokeMethod(&window, &QMainWindow::close, Qt::QueuedConnection);
      });
  question->setDefaultButton(QMessageBox::Cancel);
  question->defaultButton()->setObjectName(u"cancel"_s);
  QObject::connect(&run, &RunView::ended, question, &QMessageBox::reject);
  question->open();
}

}  // namespace

MainWindow::MainWindow(QSettings* settings)
    : settings_(settings),
      registry_(new ActionRegistry(this)),
      docks_(new Docks(this)),
      opened_(new OpenedFiles(this)) {
  setObjectName(u"main_window"_s);
  setAcceptDrops(true);
  style_tool_tips();
  new WrappedTips(this);
  resize(QSize(1440, 900).boundedTo(docks_->largest_size()));
  messages_ = new MessageBar(statusBar());
  create_views();
  create_parts();
  create_actions();
  create_toolbar();
  palette_ = new PickList(u"command_palette"_s, tr("Type a command"), this);
  places_ = new PickList(u"go_to"_s, tr("A rank or an op of the Timeline"), this);
  shortcuts_ = new ShortcutOverlay(registry_, this);
  statusBar()->addPermanentWidget(new SearchStatus(&planner_->search()));
  statusBar()->addPermanentWidget(
      new ReadingStatus(&files_->reader().progress(), registry_->find(u"file.stop_reading"_s)));
  statusBar()->setSizeGripEnabled(false);
  docks_->keep_as_default();
  if (docks_->has_small_room()) docks_->lay_out(Layout::OneAtATime);
  // A field of Scenario, the first widget, would take the keys of commands as text.
  plans_view_->setFocus();
  // The search for the restored scenario waits, because files may be opened instead.
  restore_session();
  planner_->follow_document();
  connect_views();
  follow_commands();
}

MainWindow::~MainWindow() {
  docks_->clear();
  // It empties itself as it goes, when commands can no longer be updated.
  document_.undo_stack()->disconnect(this);
}

void MainWindow::create_views() {
  scenario_view_ = new ScenarioView(&document_);
  plans_view_ = new PlansView(&selection_);
  why_view_ = new WhyView(&selection_);
  timeline_view_ = new TimelineView;
  topology_view_ = new TopologyView;
  schedule_view_ = new ScheduleView;
  sweep_view_ = new SweepView(&selection_);
  forecast_view_ = new ForecastView(&selection_);
  run_view_ = new RunView(&selection_);
  const auto add = [this](const char* id, const QString& title, QWidget* view) {
    const bool is_first = docks_->all().empty();
    docks_->add(to_qstring(id), title, view,
                is_first ? Qt::LeftDockWidgetArea : Qt::RightDockWidgetArea);
  };
  add("scenario", tr("Scenario"), scenario_view_);
  add("plans", tr("Plans"), plans_view_);
  add("why", tr("Why"), why_view_);
  add("timeline", tr("Timeline"), timeline_view_);
  add("topology", tr("Topology"), topology_view_);
  add("schedule", tr("Schedule"), schedule_view_);
  add("sweeps", tr("Sweeps"), sweep_view_);
  add("forecast", tr("Forecast"), forecast_view_);
  add("run", tr("Run"), run_view_);
  docks_->arrange();
  // The window takes files that are dropped over a field, which would take their names as text.
  for (QLineEdit* field : findChildren<QLineEdit*>()) field->setAcceptDrops(false);
}

void MainWindow::create_parts() {
  step_ = new StepPresenter(&selection_, {timeline_view_, topology_view_, schedule_view_}, this);
  planner_ = new ScenarioPlanner(
      {&document_, &selection_, opened_, messages_, step_, scenario_view_, plans_view_, why_view_},
      this);
  files_ = new FilePresenter({&document_, &selection_, planner_, opened_, messages_, step_, docks_,
                              scenario_view_, why_view_, forecast_view_, run_view_},
                             this);
  export_ = new FileExport(docks_, &selection_, messages_, this);
  for (Chart* chart : findChildren<Chart*>())
    connect(chart, &Chart::export_wanted, export_,
            [this, chart](const QString& suffix) { export_->export_chart(*chart, suffix); });
}

void MainWindow::connect_views() {
  for (const QDockWidget* dock : docks()) {
    if (View* each = qobject_cast<View*>(dock->widget()))
      connect(each, &View::problem, this, [this, key = key_of_view(*dock)](const QString& text) {
        messages_->say(key, Tone::Problem, text);
      });
  }
  // The step may be predicted while the list is open already.
  connect(timeline_view_, &TimelineView::timelines_changed, places_, [this] {
    if (places_->isVisible()) places_->replace(places());
  });
  for (const QDockWidget* dock : docks()) {
    const auto drop_pictures = [dock] {
      for (Chart* chart : dock->findChildren<Chart*>()) chart->drop_unseen_picture();
    };
    connect(dock, &QDockWidget::visibilityChanged, this, drop_pictures, Qt::QueuedConnection);
  }
  connect(docks_, &Docks::came_to_front, step_, &StepPresenter::look_again);
  connect(docks_, &Docks::came_to_front, sweep_view_, &View::look_again);
  connect(docks_, &Docks::came_to_front, forecast_view_, &View::look_again);
  connect(step_, &StepPresenter::problem, this,
          [this](const QString& text) { messages_->say(u"step"_s, Tone::Problem, text); });
  // A sweep of other plans does not fail for the same reason.
  connect(&selection_, &Selection::set_changed, this,
          [this] { messages_->take_back(u"view:sweeps"_s); });
  connect(forecast_view_, &ForecastView::file_wanted, this,
          [this](const QString& path) { open({path}); });
  connect(run_view_, &RunView::measured, this, [this](const QString& folder) { open({folder}); });
  connect(run_view_, &RunView::replan_wanted, this,
          [this](const Scenario& scenario, const QString& cluster) {
            raise_view(u"plans"_s);
            planner_->plan_on(scenario, cluster);
          });
  connect(plans_view_, &PlansView::remedy_wanted, planner_, &ScenarioPlanner::plan_with);
  connect(plans_view_, &PlansView::pin_wanted, planner_, &ScenarioPlanner::pin);
  connect(plans_view_, &PlansView::return_wanted, planner_, &ScenarioPlanner::return_to_baseline);
  connect(&selection_, &Selection::baseline_changed, this, [this] {
    const auto& baseline = selection_.baseline();
    scenario_view_->mark_changes_from(baseline ? baseline->choice : std::nullopt);
  });
  connect(why_view_, &WhyView::more_wanted, planner_, &ScenarioPlanner::plan_with_more);
  connect(sweep_view_, &SweepView::point_wanted, planner_, &ScenarioPlanner::plan_at);
  connect(run_view_, &RunView::try_wanted, this, &MainWindow::try_on_this_machine);
  connect(scenario_view_, &ScenarioView::this_machine_wanted, planner_,
          [this] { planner_->plan_on_this_machine(); });
}

void MainWindow::begin(const QStringList& files) {
  start();
  if (!files.isEmpty()) return open(files);
  if (settings_ != nullptr) files_->open_last_session(*settings_);
}

void MainWindow::start() {
  planner_->start();
}

void MainWindow::open(const QStringList& paths) {
  files_->open(paths);
}

const std::vector<QDockWidget*>& MainWindow::docks() const {
  return docks_->all();
}

QWidget* MainWindow::view(const QString& id) const {
  return docks_->view(id);
}

void MainWindow::raise_view(const QString& id) {
  docks_->raise(id);
}

// Sweeps come last, because a sweep may take long and the report may do without it.
void MainWindow::fill_views_then(std::function<void()> ready) {
  step_->predict_then([this, ready = std::move(ready)] {
    why_view_->fill_then([this, ready] {
      forecast_view_->fill_then([this, ready] { sweep_view_->fill_then(ready); });
    });
  });
}

bool MainWindow::is_busy() const {
  return planner_->is_busy() || why_view_->is_busy() || sweep_view_->is_busy() ||
         forecast_view_->is_busy() || step_->is_busy() || timeline_view_->is_busy() ||
         run_view_->is_busy() || files_->reader().is_busy() || export_->is_busy();
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) style_tool_tips();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  docks_->hold_first_width();
}

bool MainWindow::focusNextPrevChild(bool next) {
  return docks_->focus_next(next);
}

void MainWindow::try_on_this_machine() {
  planner_->plan_on_this_machine(true);
  run_view_->fill_in_sample();
  raise_view(u"run"_s);
}

void MainWindow::take_typed_text() {
  QWidget* field = focusWidget();
  if (field == nullptr) return;
  field->clearFocus();
  field->setFocus();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (run_view_->is_own_running()) {
    event->ignore();
    return ask_what_becomes_of_run(*this, *run_view_);
  }
  save_session();
  QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (!local_files(*event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QStringList paths = local_files(*event->mimeData());
  if (paths.isEmpty()) return;
  event->acceptProposedAction();
  open(paths);
}

}  // namespace shardwright::gui
