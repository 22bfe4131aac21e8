#include "gui/views/run_view.hpp"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QThread>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/point_chart.hpp"
#include "gui/views/profile_row.hpp"
#include "gui/views/run_charts.hpp"
#include "gui/views/trials_pane.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastFieldWidth = 90;
// The most ranks that a run may have here on a machine of fewer cores: those of the largest nodes.
constexpr std::int64_t kMostLocalRanks = 16;
constexpr int kSampleLines = 2000;

// Keeps a field beside its name and its button where the line is broken.
QWidget* together(std::initializer_list<QWidget*> widgets) {
  QWidget* group = row_of(widgets);
  for (QWidget* widget : widgets) {
    if (qobject_cast<QLineEdit*>(widget) == nullptr) continue;
    widget->setMinimumWidth(kLeastFieldWidth);
    group->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  }
  return group;
}

// Shows the hint without scrolling.
constexpr int kLeastRunHeight = 180;

QString loss_text(double loss) {
  // The loss of a run that diverges has too many digits for its line.
  constexpr double kLarge = 1e6;
  return std::abs(loss) < kLarge ? fixed_text(loss, 4) : QString::number(loss, 'g', 4);
}

QString step_number(const RunStep& step) {
  return count_text(static_cast<std::int64_t>(step.step));
}

// What the last validation of the run has found; empty if there was none.
QString text_of_validation(const std::vector<RunStep>& steps) {
  const auto last = std::find_if(steps.rbegin(), steps.rend(), [](const RunStep& step) {
    return std::isfinite(step.validation_loss);
  });
  if (last == steps.rend()) return {};
  return RunView::tr(" Validation loss after step %1: %2.")
      .arg(step_number(*last), loss_text(last->validation_loss));
}

QString text_of_last(const std::vector<RunStep>& steps) {
  const RunStep& last = steps.back();
  return RunView::tr("  Step %1: loss %2, %3 tokens/s, %4 for the step's tensors.")
             .arg(step_number(last), std::isfinite(last.loss) ? loss_text(last.loss) : u"–"_s,
                  fixed_text(last.tokens_per_s, 0), bytes_text(Bytes(last.memory_bytes))) +
         text_of_validation(steps);
}

// What is left of a run of `wanted` steps, by the median of its steps; empty before its first step.
QString text_of_progress(const std::vector<RunStep>& steps, int wanted) {
  if (steps.empty() || wanted <= 0) return {};
  const double step_s = median_step_time(steps);
  const double done = std::min<double>(steps.back().step + 1.0, wanted);
  // An estimate has no parts of a second.
  const Seconds left(std::ceil((wanted - done) * step_s));
  return RunView::tr(" %1 is done; %2 are left at a median of %3 a step.")
      .arg(share_text(done / wanted), long_time_text(left), time_text(Seconds(step_s)));
}

QString text_of_damage(const RunFollower& run, const QString& metrics) {
  const int lines = run.damaged_lines();
  if (lines == 0) return {};
  if (lines == 1)
    return RunView::tr("  1 line of %1 cannot be read: line %2.")
        .arg(metrics, count_text(run.first_damaged_line()));
  return RunView::tr("  %1 lines of %2 cannot be read, first line %3.")
      .arg(count_text(lines), metrics, count_text(run.first_damaged_line()));
}

}  // namespace

RunView::RunView(Selection* selection, QWidget* parent)
    : View(parent),
      selection_(selection),
      process_(this),
      follower_(this),
      other_(this),
      calibration_(
          this, [this](const auto& calibration) { take_calibration(*calibration); },
          [this](const QString& error) { Q_EMIT problem(error); }) {
  charts_ = new RunCharts;
  // The charts give way to the lines above them before the view scrolls.
  charts_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  connect(charts_, &RunCharts::restyled, this, &RunView::update_charts);
  trials_ = new TrialsPane;
  connect(trials_, &TrialsPane::chosen, this, &RunView::follow_trial);
  empty_ = new EmptyState(charts_);
  QVBoxLayout* layout = scrolled_column(*this);
  setMinimumHeight(kLeastRunHeight);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(create_controls());
  layout->addWidget(trials_);
  layout->addWidget(empty_, 1);
  connect(&process_, &RunProcess::started, this, &RunView::started);
  connect(&process_, &RunProcess::ended, this, &RunView::take_end);
  connect(&follower_, &RunFollower::grown, this, &RunView::update_charts);
  connect(&other_, &RunFollower::grown, this, &RunView::update_charts);
  connect(selection_, &Selection::chosen_changed, this, &RunView::update_start);
  connect(empty_, &EmptyState::link_clicked, this, &RunView::try_wanted);
  update_controls();
}

QLineEdit* RunView::add_path(QWidget& pane, const QString& id, const QString& hint) {
  auto* line = named<QLineEdit>(id, &pane);
  line->setPlaceholderText(hint);
  connect(line, &QLineEdit::textChanged, this, &RunView::update_start);
  return line;
}

QWidget* RunView::create_controls() {
  auto* pane = new QWidget;
  data_ = add_path(*pane, u"run_data"_s, tr("text, or .bin of tokens"));
  out_ = add_path(*pane, u"run_out"_s, tr("folder of results"));
  steps_ = named<PowerSpinBox>(u"run_steps"_s);
  leave_wheel_to_scrolling(*steps_);
  steps_->setRange(1, 1'000'000'000);
  steps_->setValue(100);
  const auto browse = [pane](const char* id, auto choose) {
    QToolButton* button = tool_button(to_qstring(id), u"…"_s);
    connect(button, &QToolButton::clicked, pane, choose);
    return button;
  };
  browse_data_ = browse("run_browse_data", [this] {
    const QString file = QFileDialog::getOpenFileName(this, tr("Corpus"), data_->text());
    if (!file.isEmpty()) data_->setText(file);
  });
  browse_out_ = browse("run_browse_out", [this] {
    const QString folder = QFileDialog::getExistingDirectory(this, tr("Folder"), out_->text());
    if (!folder.isEmpty()) out_->setText(folder);
  });
  start_ = named<QPushButton>(u"run_start"_s, tr("Start"));
  stop_ = named<QPushButton>(u"run_stop"_s, tr("Stop"));
  calibrate_ = named<QPushButton>(u"run_calibrate"_s, tr("Calibrate"));
  profile_ = new ProfileRow;
  state_ = wrapped_label(u"run_state"_s);
  warning_ = wrapped_label(u"run_warning"_s);
  warning_->hide();
  QWidget* folder = together({new QLabel(tr("Folder")), out_, browse_out_});
  auto* line = new FlowLayout;
  line->addWidget(together({new QLabel(tr("Corpus")), data_, browse_data_}));
  line->addWidget(folder);
  line->addWidget(together({new QLabel(tr("Steps")), steps_}));
  for (QWidget* button : {start_, stop_, calibrate_}) line->addWidget(button);
  auto* column = new QVBoxLayout(pane);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(line);
  column->addWidget(state_);
  column->addWidget(profile_);
  column->addWidget(warning_);
  connect(start_, &QPushButton::clicked, this, &RunView::start);
  connect(stop_, &QPushButton::clicked, this, &RunView::stop);
  connect(calibrate_, &QPushButton::clicked, this, &RunView::calibrate);
  connect(profile_, &ProfileRow::problem, this, &RunView::problem);
  connect(profile_, &ProfileRow::saved, this, [this](const QString& file) {
    last_message_ = tr("Saved the refitted profile as %1.").arg(file);
    update_state();
  });
  connect(profile_, &ProfileRow::replan_wanted, this,
          [this](const QString& file) { Q_EMIT replan_wanted(calibrated_->scenario, file); });
  return pane;
}

void RunView::start() {
  const QString obstacle = obstacle_to_starting();
  if (!obstacle.isEmpty()) return Q_EMIT problem(obstacle);
  const auto scenario = selection_->scenario();
  if (!folder_is_free()) return;
  steps_->interpretText();  // A shortcut starts the run while the number is still being typed.
  try {
    process_.start(*scenario, {data_->text(), out_->text(), steps_->value()});
  } catch (const RuntimeFailure& failure) {
    Q_EMIT problem(to_qstring(failure.what()));
    return;
  }
  Q_EMIT problem({});
  predicted_ = selection_->set()->plans[*selection_->chosen()];
  last_message_ = tr("Running %1 …").arg(plan_text(scenario->plan));
  ended_here_.clear();
  ended_ = {};
  trials_->forget();
  begin_following(out_->text(), steps_->value());
}

void RunView::release_run() {
  process_.release();
  released_run_ = QFileInfo(followed_).absoluteFilePath();
}

bool RunView::folder_is_free() {
  const QString taken = out_->text();
  const QString free = free_run_folder(taken);
  if (free == taken) return true;
  out_->setText(free);
  Q_EMIT problem(tr("%1 holds an earlier run or a plan, which stay as they are. %2 is free: Start "
                    "again to run there.")
                     .arg(taken, free));
  return false;
}

void RunView::stop() {
  if (!process_.is_running()) return;
  process_.stop();
  if (shows_its_run()) last_message_ = tr("Stopping …");
  update_state();
}

void RunView::calibrate() {
  const QString obstacle = obstacle_to_calibrating();
  if (!obstacle.isEmpty()) return Q_EMIT problem(obstacle);
  Q_EMIT problem({});
  calibration_.start(
      [folder = followed_](const std::stop_token&) { return calibrate_run(folder); });
}

void RunView::take_calibration(const RunCalibration& calibration) {
  calibrated_ = calibration;
  const calibration::StepComparison& step = calibration.step;
  last_message_ =
      tr("Calibrated: %1 figures refitted. The step takes %2; predicted %3 (%4) before, %5 (%6) "
         "after.")
          .arg(count_text(calibration.figures), time_text(step.measured), time_text(step.before),
               signed_percent_text(step.error_before()), time_text(step.after),
               signed_percent_text(step.error_after()));
  profile_->offer(calibration.cluster, free_profile_name(followed_));
  update_charts();
}

void RunView::follow(const RunFolder& folder, std::optional<planner::PlanCandidate> predicted) {
  predicted_ = std::move(predicted);
  // The view shows the end of a run that it has started already.
  if (std::exchange(ended_here_, {}) == folder.folder) return update_charts();
  const auto wanted_steps = process_.take_up(folder.folder);
  last_message_ = (wanted_steps ? tr("%1 trains.") : tr("Run of %1")).arg(folder.folder);
  if (!wanted_steps && folder.folder == ended_.first) last_message_ = ended_.second;
  trials_->forget();
  begin_following(folder.folder, static_cast<int>(wanted_steps.value_or(0)));
}

void RunView::show_tuning(TuningResults tuning) {
  predicted_.reset();
  last_message_ = tr("Tuning of %1").arg(tuning.folder);
  begin_following(tuning.folder);
  trials_->show_tuning(std::move(tuning));
}

void RunView::follow_trial(std::size_t trial) {
  last_message_ =
      tr("Tuning of %1, %2").arg(trials_->tuning().folder, trials_->tuning().name_of(trial));
  begin_following(trials_->tuning().folder_of(trial));
}

void RunView::compare_with(const RunFolder& other) {
  other_.follow(other.metrics);
  const QStringList names = distinct_names({followed_, other.folder});
  name_ = names[0];
  other_name_ = names[1];
  last_message_ = tr("Runs %1 and %2").arg(followed_, other.folder);
  update_charts();
}

void RunView::begin_following(const QString& folder, int wanted_steps) {
  wanted_steps_ = wanted_steps;
  calibration_.cancel();
  calibrated_.reset();
  profile_->hide();
  other_.forget();
  other_name_.clear();
  followed_ = folder;
  follower_.follow(QDir(folder).filePath(u"metrics.jsonl"_s));
  empty_->show_content();
  update_controls();
  update_charts();
}

void RunView::take_end(bool well, const QString& message) {
  const bool is_shown = shows_its_run();
  if (is_shown) {
    follower_.finish();
    last_message_ = message;
    ended_ = {followed_, message};
  }
  if (!well) Q_EMIT problem(message);
  update_controls();
  update_charts();
  Q_EMIT ended(well);
  // A run that was stopped before its first step has measured nothing.
  if (!well || !is_shown || !find_run(followed_)) return;
  ended_here_ = followed_;
  Q_EMIT measured(followed_);
}

void RunView::update_start() {
  starting_is_off_ = obstacle_to_starting();
  start_->setEnabled(starting_is_off_.isEmpty());
  start_->setToolTip(starting_is_off_.isEmpty() ? tr("Trains on this machine under the chosen plan")
                                                : starting_is_off_);
  if (empty_->is_empty()) empty_->show_hint(hint());
  Q_EMIT controls_changed();
}

QString RunView::hint() const {
  QString text = obstacle_of_plan().toHtmlEscaped().replace(u"\n"_s, u"<br>"_s);
  QString open = tr("Open");
  if (text.isEmpty()) {
    open = tr("Or open");
    const QString first = starting_is_off_.isEmpty()
                              ? tr("Press <b>Start</b>")
                              : tr("Name a corpus and a folder, then press <b>Start</b>");
    text = tr("%1: this machine trains under the chosen plan, one process a rank on its CPU cores.")
               .arg(first);
  }
  return text + tr("<br>%1 the folder of an earlier run, or <a href=\"try\">try a tiny model on "
                   "this machine</a>.")
                    .arg(open);
}

void RunView::update_controls() {
  const bool running = process_.is_running();
  stop_->setEnabled(running);
  stop_->setToolTip(running ? tr("Interrupts the run as Ctrl-C does; its files stay")
                            : tr("No run is in progress."));
  update_calibrate();
  for (QWidget* field :
       std::initializer_list<QWidget*>{data_, browse_data_, out_, browse_out_, steps_})
    field->setEnabled(!running);
  update_state();
  update_start();
}

QString RunView::obstacle_of_plan() const {
  const auto scenario = selection_->scenario();
  if (!scenario) return {};
  const std::int64_t ranks = scenario->plan.world_size();
  const auto most = std::max<std::int64_t>(kMostLocalRanks, QThread::idealThreadCount());
  if (ranks <= most) return what_the_executor_lacks(*scenario);
  return tr("The chosen plan is for %1, and a run here has at most %2.")
      .arg(counted_text(ranks, accelerator_word(scenario->cluster)), counted_text(most, "rank"));
}

QString RunView::obstacle_to_starting() const {
  if (process_.is_running()) return tr("A run is in progress: stop it first.");
  if (!selection_->scenario()) return tr("Choose a plan in Plans first.");
  if (const QString obstacle = obstacle_of_plan(); !obstacle.isEmpty())
    return tr("%1\n“Try a tiny model on this machine” in the menu Plan plans for one that fits.")
        .arg(obstacle);
  if (data_->text().isEmpty()) return tr("Name a corpus: a text to train on.");
  if (out_->text().isEmpty()) return tr("Name a folder for the files of the run.");
  return {};
}

void RunView::fill_in_sample() {
  const QDir home(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation));
  try {
    if (data_->text().isEmpty()) {
      const QString sample = home.filePath(u"sample.txt"_s);
      home.mkpath(u"."_s);
      write_text_file(sample, tr("What is trained is what was simulated. ").repeated(kSampleLines));
      data_->setText(sample);
    }
  } catch (const RuntimeFailure& failure) {
    return Q_EMIT problem(to_qstring(failure.what()));
  }
  if (out_->text().isEmpty()) out_->setText(free_run_folder(home.filePath(u"runs/tiny"_s)));
}

QString RunView::obstacle_to_calibrating() const {
  if (process_.is_running()) return tr("The run is still in progress.");
  if (followed_.isEmpty() || follower_.steps().empty())
    return tr("No run has measured anything yet.");
  return calibration_obstacle(followed_);
}

void RunView::update_calibrate() {
  calibration_is_off_ = obstacle_to_calibrating();
  calibrate_->setEnabled(calibration_is_off_.isEmpty());
  calibrate_->setToolTip(calibration_is_off_.isEmpty()
                             ? tr("Refits the cluster's profile to what the run "
                                  "measured, and predicts its step again")
                             : calibration_is_off_);
}

void RunView::update_state() {
  const auto& steps = follower_.steps();
  QString text = last_message_;
  if (!steps.empty()) text += text_of_last(steps);
  if (process_.is_running() && shows_its_run())
    text += with_whole_quantities(text_of_progress(steps, wanted_steps_));
  text += text_of_damage(follower_, tr("the metrics"));
  if (!other_name_.isEmpty())
    text += text_of_damage(other_, tr("the metrics of %1").arg(other_name_));
  state_->setText(with_whole_rates(text));
  state_->setToolTip(steps.empty() ? QString() : tip_of_tensors());
  state_->setVisible(!text.isEmpty());
  const Seconds expected = calibrated_  ? calibrated_->step.after
                           : predicted_ ? predicted_->result.step
                                        : Seconds(0);
  const QString warning = bottleneck_warning(steps, expected.value());
  warning_->setText(u"⚠ "_s + warning);
  set_text_colour(*warning_, colours_for(palette()).warning);
  warning_->setVisible(!warning.isEmpty());
}

void RunView::update_charts() {
  update_calibrate();
  Q_EMIT controls_changed();
  const bool both = !other_name_.isEmpty();
  std::vector<DrawnRun> runs = {{follower_.steps(), both ? name_ : tr("measured")}};
  if (both) runs.push_back({other_.steps(), other_name_});
  RunPrediction prediction{predicted_ ? &*predicted_ : nullptr, std::nullopt};
  if (calibrated_) prediction.calibrated = calibrated_->step.after;
  charts_->show(runs, prediction);
  update_state();
}

TextTable RunView::table() const {
  TextTable table;
  if (follower_.steps().empty()) return table;
  table.header = {tr("Run"),
                  tr("Step"),
                  tr("Loss"),
                  tr("Validation loss"),
                  tr("Gradient norm"),
                  tr("Step (s)"),
                  tr("Tokens/s"),
                  tr("MFU"),
                  tr("Step's tensors of rank 0 (bytes)"),
                  tr("Predicted step (s)"),
                  tr("Calibrated step (s)")};
  const auto number = [](double value) { return QString::number(value, 'g', 9); };
  const QString predicted = predicted_ ? number(predicted_->result.step.value()) : QString();
  const QString calibrated = calibrated_ ? number(calibrated_->step.after.value()) : QString();
  const auto add = [&](const RunFollower& run, const QString& name, const QStringList& forecast) {
    for (const RunStep& step : run.steps()) {
      // Few steps are followed by a validation.
      const QString validation =
          std::isfinite(step.validation_loss) ? number(step.validation_loss) : QString();
      QStringList row = {name, number(step.step), number(step.loss), validation};
      for (const double value :
           {step.gradient_norm, step.step_s, step.tokens_per_s, step.mfu, step.memory_bytes})
        row.append(number(value));
      table.rows.push_back(row + forecast);
    }
  };
  const QString own = other_name_.isEmpty() ? QFileInfo(followed_).fileName() : name_;
  add(follower_, own, {predicted, calibrated});
  if (!other_name_.isEmpty())
    add(other_, other_name_, {{}, {}});  // Only the first run is predicted.
  return table;
}

void RunView::save(QSettings& settings) const {
  settings.setValue(u"run/data"_s, data_->text());
  settings.setValue(u"run/out"_s, out_->text());
  settings.setValue(u"run/steps"_s, steps_->value());
}

void RunView::restore(const QSettings& settings) {
  data_->setText(settings.value(u"run/data"_s).toString());
  out_->setText(settings.value(u"run/out"_s).toString());
  steps_->setValue(settings.value(u"run/steps"_s, 100).toInt());
}

std::vector<ReportPart> RunView::report() const {
  if (follower_.steps().empty()) return {};
  std::vector<ReportPart> parts;
  for (PointChart* chart : charts_->findChildren<PointChart*>())
    parts.push_back({chart->yAxis->label(), parts.empty() ? state_->text() : QString(), chart, {}});
  return parts;
}

}  // namespace shardwright::gui
