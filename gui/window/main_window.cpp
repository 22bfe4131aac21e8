#include "gui/window/main_window.hpp"

#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLayout>
#include <QLineEdit>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QSettings>
#include <QStatusBar>
#include <QStyle>
#include <QToolBar>
#include <QUrl>
#include <algorithm>

#include "gui/models/text.hpp"
#include "gui/schedule/schedule_view.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/topology/topology_view.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/scenario_view.hpp"
#include "gui/views/sweep_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/dock_tabs.hpp"
#include "gui/window/message_list.hpp"
#include "gui/window/pick_list.hpp"
#include "gui/window/reading_status.hpp"
#include "gui/window/search_status.hpp"
#include "gui/window/shortcut_overlay.hpp"
#include "gui/window/step_presenter.hpp"

namespace shardwright::gui {
namespace {

QString key_of_view(const QDockWidget& dock) {
  return QStringLiteral("view:") + dock.objectName();
}

// Qt moves what is behind the tab of another dock out of the window and leaves it visible.
bool is_in_front(const QDockWidget& dock) {
  return dock.isVisible() && !dock.visibleRegion().isEmpty();
}

QStringList local_files(const QMimeData& dragged) {
  QStringList paths;
  for (const QUrl& url : dragged.urls()) {
    if (url.isLocalFile()) paths.append(url.toLocalFile());
  }
  return paths;
}

bool takes_tab(const QWidget& widget) {
  return (widget.focusPolicy() & Qt::TabFocus) != 0 && widget.focusProxy() == nullptr &&
         widget.isVisible() && widget.isEnabled();
}

}  // namespace

MainWindow::MainWindow(QSettings* settings)
    : settings_(settings),
      registry_(new ActionRegistry(this)),
      files_(
          this, [this](const auto& files) { take_files(*files); },
          [this](const QString& error) {
            messages_->say(QStringLiteral("files"), Tone::Problem, error);
            read_next();
          }),
      exports_(
          this, [this](const auto& file) { tell_written(*file, tr("Exported %1.")); },
          [this](const QString& error) { tell_not_written(exported_, error); }) {
  setObjectName(QStringLiteral("main_window"));
  setWindowTitle(QStringLiteral("Shardwright"));
  setDockNestingEnabled(true);
  keep_tab_titles_whole(*this);
  setAcceptDrops(true);
  // Docks that are squeezed scroll or cut their content; the window itself may be as small as this.
  layout()->setSizeConstraint(QLayout::SetNoConstraint);
  setMinimumSize(640, 480);
  resize(QSize(1440, 900).boundedTo(largest_size()));
  opened_ = new OpenedFiles(this);
  create_docks();
  create_actions();
  palette_ = new PickList(QStringLiteral("command_palette"), tr("Type a command"), this);
  places_ = new PickList(QStringLiteral("go_to"), tr("A rank or an op of the Timeline"), this);
  shortcuts_ = new ShortcutOverlay(registry_, this);
  statusBar()->addWidget(new SearchStatus(&search_), 1);
  statusBar()->addWidget(
      new ReadingStatus(&reading_progress_, registry_->find(QStringLiteral("file.stop_reading"))));
  statusBar()->setSizeGripEnabled(false);
  default_layout_ = saveState();
  restore_session();  // before its scenario would be searched for: files may be opened instead
  connect_search();
  connect_views();
}

// Views read members of the window and lose their focus as they go, which the base class would do
// to them only after the members are gone.
MainWindow::~MainWindow() {
  disconnect(qApp, nullptr, this, nullptr);
  disconnect(this, &QMainWindow::tabifiedDockWidgetActivated, nullptr, nullptr);
  while (!docks_.empty()) {  // one by one: the focus moves on to those that are left
    QDockWidget* dock = docks_.back();
    docks_.pop_back();
    delete dock;
  }
}

QDockWidget* MainWindow::add_dock(const QString& id, const QString& title, QWidget* view,
                                  Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(id);
  dock->setWidget(view);
  addDockWidget(area, dock);
  docks_.push_back(dock);
  return dock;
}

void MainWindow::create_docks() {
  auto* message_bar = new MessageBar;
  messages_ = new MessageList(message_bar, this);
  auto* bar = new QToolBar(tr("Messages"));
  bar->setObjectName(QStringLiteral("messages"));
  bar->setMovable(false);
  bar->toggleViewAction()->setVisible(false);
  bar->addWidget(message_bar);
  addToolBar(Qt::TopToolBarArea, bar);
  bar->hide();
  connect(message_bar, &MessageBar::wanted, bar, &QToolBar::setVisible);

  scenario_view_ = new ScenarioView(&document_);
  plans_view_ = new PlansView(&selection_);
  why_view_ = new WhyView(&selection_);
  sweep_view_ = new SweepView(&selection_);
  run_view_ = new RunView(&selection_);
  add_dock(QStringLiteral("scenario"), tr("Scenario"), scenario_view_, Qt::LeftDockWidgetArea);
  add_dock(QStringLiteral("plans"), tr("Plans"), plans_view_, Qt::RightDockWidgetArea);
  add_dock(QStringLiteral("why"), tr("Why"), why_view_, Qt::RightDockWidgetArea);
  timeline_view_ = new TimelineView;
  auto* topology = new TopologyView;
  auto* schedule = new ScheduleView;
  step_ = new StepPresenter(&selection_, {timeline_view_, topology, schedule}, this);
  add_dock(QStringLiteral("timeline"), tr("Timeline"), timeline_view_, Qt::RightDockWidgetArea);
  add_dock(QStringLiteral("topology"), tr("Topology"), topology, Qt::RightDockWidgetArea);
  add_dock(QStringLiteral("schedule"), tr("Schedule"), schedule, Qt::RightDockWidgetArea);
  add_dock(QStringLiteral("sweeps"), tr("Sweeps"), sweep_view_, Qt::RightDockWidgetArea);
  add_dock(QStringLiteral("run"), tr("Run"), run_view_, Qt::RightDockWidgetArea);
  arrange_docks();
  docks_.front()->installEventFilter(this);
  // Files that are dropped over a field are for the window: a field would take their names as text.
  for (QLineEdit* field : findChildren<QLineEdit*>()) field->setAcceptDrops(false);
}

// Scenario on the left over the whole height, Plans above all others, which share a place.
void MainWindow::arrange_docks() {
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  for (std::size_t i = 3; i < docks_.size(); ++i) tabifyDockWidget(docks_[2], docks_[i]);
  docks_[2]->raise();
  resizeDocks({docks_[0], docks_[1]}, {320, 1120}, Qt::Horizontal);
  resizeDocks({docks_[1], docks_[2]}, {410, 440}, Qt::Vertical);
  last_dock_ = docks_[1];
}

// Without a central widget the docks on both sides share what a window gains by halves. The views
// shall have it: Scenario keeps the width that it was given.
void MainWindow::hold_scenario_width() {
  QDockWidget* scenario = docks_.front();
  const bool is_beside = dockWidgetArea(scenario) == Qt::LeftDockWidgetArea ||
                         dockWidgetArea(scenario) == Qt::RightDockWidgetArea;
  if (!is_beside || scenario->isFloating() || scenario->isHidden()) return;
  const int width = scenario_width_ > 0 ? scenario_width_ : scenario->width();
  scenario->setMaximumWidth(std::max(width, scenario->minimumSizeHint().width()));
  layout()->activate();
  scenario->setMaximumWidth(QWIDGETSIZE_MAX);
  layout()->activate();
  scenario_width_ = width;
}

// The layout was there before.
void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  if (docks_.empty()) return;
  hold_scenario_width();
  laid_out_ = size();
}

// Where the window stays as it is, a new width is the user's wish.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && size() == laid_out_)
    scenario_width_ = docks_.front()->width();
  return QMainWindow::eventFilter(watched, event);
}

void MainWindow::connect_search() {
  connect(&document_, &ScenarioDocument::changed, this, &MainWindow::edit_scenario);
  connect(&search_, &PlanSearch::started, this, [this] {
    plans_view_->show_waiting(tr("Searching …"));
    why_view_->show_obstacle({});
  });
  connect(&search_, &PlanSearch::found, this, [this](const PlanSetPointer& set) {
    scenario_view_->show_problems({});
    scenario_view_->show_origin({});
    messages_->take_back(QStringLiteral("search"));
    opened_->set(OpenedKind::Plans, {});
    selection_.show(set);
  });
  connect(&search_, &PlanSearch::failed, this, [this](const std::vector<Problem>& problems) {
    QStringList texts;
    for (const Problem& problem : scenario_view_->show_problems(problems))
      texts.append(problem_text(problem));
    messages_->say(QStringLiteral("search"), Tone::Problem, texts.join(QLatin1Char('\n')));
    const QString obstacle = tr("The scenario has a problem: see its fields.");
    plans_view_->show_waiting(obstacle);
    why_view_->show_obstacle(obstacle);
  });
}

void MainWindow::watch_parts() {
  QStringList files;
  for (const std::string& part : {document_.choice().model, document_.choice().cluster}) {
    const QString path = to_qstring(part);
    if (QFileInfo(path).isAbsolute() && QFileInfo(path).isFile()) files.append(path);
  }
  opened_->set(OpenedKind::Parts, files);
}

// Plans that are shown stay until there are better ones, but not as those of the new scenario.
void MainWindow::edit_scenario() {
  watch_parts();
  messages_->take_back(QStringLiteral("replanning"));
  if (keeps_plans_) return;
  step_->leave_files();
  scenario_view_->show_origin({});
  plans_view_->mark_outdated();
  start();
}

void MainWindow::plan_on_this_machine() {
  if (is_probed()) return take_this_machine({});
  probe_.start();
  messages_->say(QStringLiteral("probe"), Tone::Notice,
                 tr("This machine is being probed: half a minute if it is idle, longer on GPUs. "
                    "Then it is planned for."),
                 {tr("Stop"), [this] { probe_.stop(); }});
}

void MainWindow::take_this_machine(const QString& problem) {
  messages_->say(QStringLiteral("probe"), Tone::Problem, problem);
  if (!problem.isEmpty() || !is_probed()) return;  // stopped
  try {
    document_.replace(tr("planning on this machine"), on_this_machine(document_.choice()));
  } catch (const InputError& error) {
    messages_->say(QStringLiteral("probe"), Tone::Problem, error_text(error));
  }
}

void MainWindow::connect_views() {
  for (const QDockWidget* dock : docks_) {
    if (View* each = qobject_cast<View*>(dock->widget()))
      connect(each, &View::problem, this, [this, key = key_of_view(*dock)](const QString& text) {
        messages_->say(key, Tone::Problem, text);
      });
  }
  connect(opened_, &OpenedFiles::changed, this, &MainWindow::offer_reload);
  connect(opened_, &OpenedFiles::settled, this, &MainWindow::take_offer_back);
  connect(step_, &StepPresenter::files_left, this,
          [this] { opened_->set(OpenedKind::Timelines, {}); });
  // The step may be predicted while the list is open already.
  connect(timeline_view_, &TimelineView::timelines_changed, places_, [this] {
    if (places_->isVisible()) places_->replace(places());
  });
  connect(step_, &StepPresenter::problem, this, [this](const QString& text) {
    messages_->say(QStringLiteral("step"), Tone::Problem, text);
  });
  // A sweep of other plans does not fail for the same reason.
  connect(&selection_, &Selection::set_changed, this,
          [this] { messages_->take_back(QStringLiteral("view:sweeps")); });
  connect(run_view_, &RunView::measured, this, [this](const QString& folder) { open({folder}); });
  connect(run_view_, &RunView::replan_wanted, this, &MainWindow::plan_on);
  connect(scenario_view_, &ScenarioView::this_machine_wanted, this,
          &MainWindow::plan_on_this_machine);
  connect(&probe_, &MachineProbe::ended, this, &MainWindow::take_this_machine);
  connect(this, &QMainWindow::tabifiedDockWidgetActivated, this, &MainWindow::bring_focus_to_front);
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, const QWidget* now) {
    if (QDockWidget* dock = dock_of(now)) last_dock_ = dock;
  });
}

QDockWidget* MainWindow::dock_of(const QWidget* widget) const {
  const auto found = std::find_if(docks_.begin(), docks_.end(), [&](const QDockWidget* dock) {
    return widget != nullptr && dock->isAncestorOf(widget);
  });
  return found == docks_.end() ? nullptr : *found;
}

// A tab takes no focus where it is clicked, and a view that goes behind another keeps its own: keys
// would change what nobody sees.
void MainWindow::bring_focus_to_front(QDockWidget* dock) {
  last_dock_ = dock;
  QDockWidget* focused = dock_of(focusWidget());
  if (focused != nullptr && tabifiedDockWidgets(dock).contains(focused)) dock->widget()->setFocus();
}

bool MainWindow::focusNextPrevChild(bool next) {
  const auto step = [next](const QWidget* widget) {
    return next ? widget->nextInFocusChain() : widget->previousInFocusChain();
  };
  const QWidget* from = focusWidget() != nullptr ? focusWidget() : this;
  for (QWidget* widget = step(from); widget != from; widget = step(widget)) {
    const QDockWidget* dock = dock_of(widget);
    if (widget->window() != this || !takes_tab(*widget) || (dock && !is_in_front(*dock))) continue;
    widget->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
    return true;
  }
  return false;
}

void MainWindow::start() {
  search_.request(document_.choice());
}

bool MainWindow::is_busy() const {
  return search_.is_running() || probe_.is_running() || why_view_->is_busy() ||
         sweep_view_->is_busy() || step_->is_busy() || run_view_->is_busy() ||
         files_.is_running() || exports_.is_running();
}

QWidget* MainWindow::view(const QString& id) const {
  for (const QDockWidget* dock : docks_) {
    if (dock->objectName() == id) return dock->widget();
  }
  return nullptr;
}

void MainWindow::raise_view(const QString& id) {
  for (QDockWidget* dock : docks_) {
    if (dock->objectName() != id) continue;
    dock->show();
    dock->raise();
    dock->widget()->setFocus();
    last_dock_ = dock;
  }
}

QDockWidget* MainWindow::current_dock() const {
  if (is_in_front(*last_dock_)) return last_dock_;
  const auto front = [](const QDockWidget* dock) { return is_in_front(*dock); };
  const QList<QDockWidget*> beside = tabifiedDockWidgets(last_dock_);
  const auto above = std::find_if(beside.begin(), beside.end(), front);
  if (above != beside.end()) return *above;
  const auto any = std::find_if(docks_.begin(), docks_.end(), front);
  return any == docks_.end() ? last_dock_ : *any;
}

// Leaves room for the frame, whose size is unknown before the window is shown.
QSize MainWindow::largest_size() const {
  const int edge = style()->pixelMetric(QStyle::PM_MdiSubWindowFrameWidth);
  const int title = style()->pixelMetric(QStyle::PM_TitleBarHeight);
  return screen()->availableSize() - QSize(2 * edge, title + edge);
}

// Leaving a field takes what was typed into it.
void MainWindow::take_typed_text() {
  QWidget* field = focusWidget();
  if (field == nullptr) return;
  field->clearFocus();
  field->setFocus();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (run_view_->is_running()) {
    event->ignore();
    return ask_what_becomes_of_run();
  }
  save_session();
  QMainWindow::closeEvent(event);
}

// A run is a process of the window's own: it can go on only while the program does, unseen.
void MainWindow::ask_what_becomes_of_run() {
  auto* question = new QMessageBox(
      QMessageBox::Question, tr("A run is going"),
      tr("The window is about to close while it trains. A run that is stopped keeps its files; one "
         "that is kept running goes on without a window, and its folder can be opened."),
      QMessageBox::Cancel, this);
  question->setObjectName(QStringLiteral("run_question"));
  question->setAttribute(Qt::WA_DeleteOnClose);
  const auto offer = [&](const char* id, const QString& text, QMessageBox::ButtonRole role,
                         auto before, auto after) {
    QPushButton* button = question->addButton(text, role);
    button->setObjectName(QString::fromUtf8(id));
    connect(button, &QPushButton::clicked, this, [this, before, after] {
      constexpr int kOnceLater = Qt::QueuedConnection | Qt::SingleShotConnection;
      connect(run_view_, &RunView::ended, this, after, static_cast<Qt::ConnectionType>(kOnceLater));
      before();
    });
  };
  offer(
      "stop_and_close", tr("Stop the run and close"), QMessageBox::DestructiveRole,
      [this] { run_view_->stop(); }, [this] { close(); });
  // Qt does not end a program whose last window is closed while it is hidden.
  offer(
      "keep_running", tr("Keep it running"), QMessageBox::AcceptRole, [this] { hide(); },
      [this] {
        save_session();
        QCoreApplication::quit();
      });
  question->setDefaultButton(QMessageBox::Cancel);
  connect(run_view_, &RunView::ended, question, &QMessageBox::reject);
  question->open();
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
