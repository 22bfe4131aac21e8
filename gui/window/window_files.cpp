// Files, pictures and the clipboard of the window.
#include <QClipboard>
#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QMenu>
#include <QTimer>
#include <nlohmann/json.hpp>

#include "gui/models/file_names.hpp"
#include "gui/models/table_text.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/picture_export.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/save_dialog.hpp"
#include "gui/views/scenario_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/message_list.hpp"
#include "gui/window/step_presenter.hpp"

namespace shardwright::gui {
namespace {

QString file_name(const QString& path) {
  return QFileInfo(path).fileName();
}

// Both plans in one set, where they rest on the same model, cluster and stack.
PlanSetPointer joined(const PlanSet& first, const PlanSet& second) {
  const auto &a = first.request, &b = second.request;
  if (a.model != b.model || a.cluster != b.cluster || a.stack != b.stack) return nullptr;
  auto both = std::make_shared<PlanSet>(first);
  both->plans.insert(both->plans.end(), second.plans.begin(), second.plans.end());
  mark_front(*both);
  both->origin += QStringLiteral(", ") + second.origin;
  return both;
}

// Messages about a file: that it cannot be read, has changed since, or could not be written.
QString key_of_problem(const QString& path) {
  return QStringLiteral("file:") + QFileInfo(path).absoluteFilePath();
}

QString key_of_change(const QString& path) {
  return QStringLiteral("changed:") + QFileInfo(path).absoluteFilePath();
}

QString key_of_writing(const QString& path) {
  return QStringLiteral("written:") + QFileInfo(path).absoluteFilePath();
}

// "a.json (cluster)".
QString named(const ReadFile& read) {
  return QStringLiteral("%1 (%2)").arg(file_name(read.file.path), kind_of(read.file));
}

// Of the two that are compared.
QStringList names_of_both(const ReadFile& first, const ReadFile& second) {
  return telling_names({first.file.path, second.file.path});
}

// Of files that were named more than once; empty where none was.
QString text_of_repeated(const QStringList& paths) {
  QStringList names;
  for (const QString& path : paths) names.append(file_name(path));
  names.removeDuplicates();
  if (names.isEmpty()) return {};
  return MainWindow::tr("Named more than once, opened once: %1.")
      .arg(names.join(QStringLiteral(", ")));
}

// Of the view that the dock holds; no rows where it shows nothing.
LazyTable data_of(const QDockWidget& dock) {
  const auto* shown = qobject_cast<View*>(dock.widget());
  return shown == nullptr ? LazyTable() : shown->lazy_table();
}

// What is made and copied within a fifth of a second.
constexpr std::size_t kMostCopiedRows = 20'000;
// What takes no longer than that needs no word.
constexpr int kAtOnceMs = 200;

QString counted_rows(std::size_t rows) {
  return counted_text(static_cast<std::int64_t>(rows), "row");
}

}  // namespace

void MainWindow::open(const QStringList& paths) {
  read(paths, false);
}

void MainWindow::begin(const QStringList& files) {
  if (files.isEmpty()) return open_last_session();
  start();
  open(files);
}

void MainWindow::open_last_session() {
  start();
  if (settings_ == nullptr) return;
  read(OpenedFiles::of_last_session(*settings_), true);
}

void MainWindow::read_next() {
  reading_.clear();
  registry_->find(QStringLiteral("file.stop_reading"))->setEnabled(false);
  if (next_to_read_.empty()) return;
  const Reading next = next_to_read_.front();
  next_to_read_.erase(next_to_read_.begin());
  read(next.paths, next.keeps_views);
}

void MainWindow::reload() {
  const QStringList paths = opened_->paths();
  if (paths.isEmpty())
    return messages_->say(QStringLiteral("command"), Tone::Notice,
                          tr("No file is open that could be read again."));
  read(paths, true);
}

// What is compared is read again together.
void MainWindow::reload(const QString& path) {
  for (std::size_t kind = 0; kind < kOpenedKinds; ++kind) {
    const QStringList& paths = opened_->of(static_cast<OpenedKind>(kind));
    if (paths.contains(path)) read(paths, true);
  }
}

void MainWindow::offer_reload(const QString& path, bool exists) {
  messages_->say(key_of_change(path), Tone::Notice,
                 (exists ? tr("%1 has changed.") : tr("%1 is gone.")).arg(file_name(path)),
                 {tr("Read again"), [this, path] { reload(path); }});
}

void MainWindow::take_offer_back(const QString& path) {
  messages_->take_back(key_of_change(path));
}

void MainWindow::bring_forward(const QString& id) {
  if (!keeps_views_) raise_view(id);
}

// What is opened while others are read goes together; what is to be read again waits by itself.
void MainWindow::read(const QStringList& paths, bool keeps_views) {
  if (paths.isEmpty()) return;
  if (files_.is_running()) {
    if (!keeps_views && !next_to_read_.empty() && !next_to_read_.back().keeps_views) {
      next_to_read_.back().paths += paths;
    } else {
      next_to_read_.push_back({paths, keeps_views});
    }
    return;
  }
  keeps_views_ = keeps_views;
  QStringList repeated;
  reading_ = each_once(paths, repeated);
  messages_->take_back(QStringLiteral("reading"));
  messages_->say(QStringLiteral("repeated"), Tone::Notice, text_of_repeated(repeated));
  reading_progress_.begin({});
  registry_->find(QStringLiteral("file.stop_reading"))->setEnabled(true);
  files_.start([this, once = reading_, choice = document_.choice()](const std::stop_token& stop) {
    return read_files(once, choice, reading_progress_, stop);
  });
}

void MainWindow::stop_reading() {
  if (!files_.is_running()) return;
  files_.cancel();
  QStringList names;
  for (const QString& path : reading_) names.append(file_name(path));
  for (const Reading& next : std::exchange(next_to_read_, {})) {
    for (const QString& path : next.paths) names.append(file_name(path));
  }
  read_next();
  messages_->say(QStringLiteral("reading"), Tone::Notice,
                 tr("The reading of %1 was stopped.").arg(names.join(QStringLiteral(", "))));
}

void MainWindow::take_files(const ReadFiles& read) {
  Files runs, timelines, plans, parts;
  for (const ReadFile& each : read.files) {
    recent_.add(each.file.path);
    const auto& content = each.file.content;
    if (std::holds_alternative<RunFolder>(content)) {
      runs.push_back(&each);
    } else if (std::holds_alternative<std::shared_ptr<const Timeline>>(content)) {
      timelines.push_back(&each);
    } else if (each.plans) {
      plans.push_back(&each);
    } else {
      parts.push_back(&each);
    }
  }
  fill_recent();
  QStringList left_out = take_parts(parts);
  if (!plans.empty()) left_out += take_plans(plans);
  // Before timelines, which take the place of what runs have recorded.
  if (!runs.empty()) left_out += take_runs(runs);
  if (!timelines.empty()) left_out += take_timelines(timelines);
  note_opened(OpenedKind::Plans, plans);
  note_opened(OpenedKind::Timelines, timelines);
  note_opened(OpenedKind::Runs, runs);
  watch_parts();
  tell_problems(read);
  messages_->say(QStringLiteral("left out"), Tone::Problem,
                 left_out.isEmpty() ? QString()
                                    : tr("Not shown: %1. Two of a kind are compared.")
                                          .arg(left_out.join(QStringLiteral(", "))));
  read_next();
}

// What was wrong with a file is told until the file can be read or the user closes the message.
void MainWindow::tell_problems(const ReadFiles& read) {
  for (const ReadFile& file : read.files) messages_->take_back(key_of_problem(file.file.path));
  for (const FileProblem& problem : read.problems)
    messages_->say(key_of_problem(problem.path), Tone::Problem, problem.text);
}

void MainWindow::note_opened(OpenedKind kind, const Files& files) {
  if (files.empty()) return;
  QStringList paths;
  for (const ReadFile* file : files) paths.append(QFileInfo(file->file.path).absoluteFilePath());
  for (const QString& before : opened_->of(kind)) {
    const bool again = keeps_views_ && reading_.contains(before);
    if (again && !paths.contains(before)) paths.append(before);
  }
  opened_->set(kind, paths);
}

QStringList MainWindow::take_plans(const Files& plans) {
  search_.abandon();
  if (!keeps_views_) step_->leave_files();
  QStringList left_out = show_plans(plans);
  adopt_scenario(*plans.front());
  QString text =
      tr("Showing %1. A change of the scenario plans anew.").arg(file_name(plans[0]->file.path));
  if (plans.size() > 1) {
    const QStringList names = names_of_both(*plans[0], *plans[1]);
    text = tr("Comparing %1 with %2.").arg(names[0], names[1]);
  }
  messages_->say(QStringLiteral("search"), Tone::Notice, text);
  return left_out;
}

// The first two are compared; more of them join the table if they are for the same scenario.
QStringList MainWindow::show_plans(const Files& plans) {
  PlanSetPointer shown = plans.front()->plans;
  std::optional<std::size_t> second;
  QStringList left_out;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const PlanSetPointer all = joined(*shown, *plans[i]->plans);
    if (all && i == 1) second = shown->plans.size();
    if (all) {
      shown = all;
    } else if (i > 1) {
      left_out.append(named(*plans[i]));
    }
  }
  selection_.show(shown);
  if (plans.size() == 1) return left_out;
  selection_.choose(0);
  selection_.compare_with(second);
  if (!second)
    why_view_->compare_with(plans[1]->plans->scenario(0), names_of_both(*plans[0], *plans[1])[1]);
  bring_forward(QStringLiteral("why"));
  return left_out;
}

void MainWindow::adopt_scenario(const ReadFile& read) {
  const Scenario scenario = read.plans->scenario(0);
  const auto choice = read.choice ? read.choice : shipped_choice_of(scenario);
  const QString origin = file_name(read.file.path);
  if (!choice) {
    return scenario_view_->show_origin(
        tr("The plans shown are of %1: %2 on %3, %4. A change of the fields below plans for "
           "what they say instead.")
            .arg(origin, to_qstring(scenario.model.name), to_qstring(scenario.cluster.name),
                 counted_text(scenario.plan.world_size(), "GPU")));
  }
  keeps_plans_ = true;
  document_.replace(tr("opening of %1").arg(origin), *choice);
  keeps_plans_ = false;
  scenario_view_->show_problems({});
  scenario_view_->show_origin({});
}

// Two clusters or two models come with plans; what is left is one alone, or one more.
QStringList MainWindow::take_parts(const Files& parts) {
  QStringList left_out;
  for (const ReadFile* part : parts) {
    if (part->is_one_of_many) {
      left_out.append(named(*part));
    } else {
      take_part(*part);
    }
  }
  return left_out;
}

void MainWindow::take_part(const ReadFile& read) {
  ScenarioChoice choice = document_.choice();
  const std::string path = QFileInfo(read.file.path).absoluteFilePath().toStdString();
  if (std::holds_alternative<ClusterSpec>(read.file.content)) {
    choice = on_cluster(choice, path);
    choice.accelerator = choice.node = choice.fabric = "";
  } else {
    choice.model = path;
  }
  if (choice == document_.choice()) return edit_scenario();  // the file may be another one now
  document_.replace(tr("opening of %1").arg(file_name(read.file.path)), choice);
}

QStringList MainWindow::take_timelines(const Files& timelines) {
  std::vector<std::shared_ptr<const Timeline>> shown;
  QStringList paths, left_out;
  for (const ReadFile* each : timelines) {
    if (shown.size() < 2) {
      shown.push_back(std::get<std::shared_ptr<const Timeline>>(each->file.content));
      paths.append(each->file.path);
    } else {
      left_out.append(named(*each));
    }
  }
  step_->show_files(std::move(shown), telling_names(paths));
  bring_forward(QStringLiteral("timeline"));
  return left_out;
}

QStringList MainWindow::take_runs(const Files& runs) {
  QStringList left_out;
  for (std::size_t i = 2; i < runs.size(); ++i) left_out.append(named(*runs[i]));
  if (runs.size() == 1) {
    take_run(*runs.front());
    return left_out;
  }
  const ReadFile &first = *runs[0], &second = *runs[1];
  search_.abandon();
  if (first.plans && second.plans) {
    show_plans({&first, &second});
    adopt_scenario(first);
  }
  take_run(first);
  const QStringList names = names_of_both(first, second);
  if (first.measured && second.measured) show_recorded({&first, &second}, names);
  run_view_->compare_with(std::get<RunFolder>(second.file.content));
  bring_forward(QStringLiteral("run"));
  messages_->say(QStringLiteral("search"), Tone::Notice,
                 tr("Comparing the runs %1 and %2.").arg(names[0], names[1]));
  return left_out;
}

void MainWindow::take_run(const ReadFile& run) {
  // A step that was recorded by the run before is none of this one's.
  if (!keeps_views_ && opened_->of(OpenedKind::Timelines).isEmpty()) step_->leave_files();
  std::optional<planner::PlanCandidate> predicted;
  std::optional<MeasuredStep> measured;
  if (run.plans) {
    search_.abandon();
    predicted = run.plans->plans.front();
    const Scenario own = run.plans->scenario(0);
    if (run.measured) measured = {own.model, own.plan, run.measured};
    // The plan of a run that was started here stays among those that it was chosen from.
    if (selection_.scenario() != own) {
      selection_.show(run.plans);
      adopt_scenario(run);
    }
  }
  step_->keep_measured(std::move(measured));
  // Nobody knows what the chosen plan has to do with a run that names none.
  if (!run.plans && run.measured) show_recorded({&run}, telling_names({run.file.path}));
  run_view_->follow(std::get<RunFolder>(run.file.content), predicted);
  bring_forward(QStringLiteral("run"));
}

void MainWindow::show_recorded(const Files& runs, const QStringList& names) {
  const QString path = QFileInfo(runs.front()->file.path).absoluteFilePath();
  const bool is_read_again = keeps_views_ && opened_->of(OpenedKind::Runs).contains(path);
  const bool is_left = !step_->shows_files() || !opened_->of(OpenedKind::Timelines).isEmpty();
  if (is_read_again && is_left) return;
  std::vector<std::shared_ptr<const Timeline>> steps;
  for (const ReadFile* run : runs) steps.push_back(run->measured);
  step_->show_files(std::move(steps), names);
  opened_->set(OpenedKind::Timelines, {});
}

void MainWindow::plan_on(const Scenario& scenario, const QString& cluster) {
  document_.replace(tr("planning on %1").arg(file_name(cluster)),
                    choice_of(scenario, cluster.toStdString()));
  raise_view(QStringLiteral("plans"));
  messages_->say(QStringLiteral("replanning"), Tone::Notice,
                 tr("Planning on %1. Undo takes the scenario back.").arg(file_name(cluster)));
}

void MainWindow::choose_files() {
  open(QFileDialog::getOpenFileNames(this, tr("Open"), QString(),
                                     tr("Shardwright and Hugging Face files (*.json);;All (*)")));
}

void MainWindow::choose_folder() {
  const QString folder = QFileDialog::getExistingDirectory(this, tr("Open a folder"));
  if (!folder.isEmpty()) open({folder});
}

void MainWindow::save_plan() {
  const auto scenario = selection_.scenario();
  if (!scenario)
    return messages_->say(QStringLiteral("command"), Tone::Problem,
                          tr("There is no chosen plan to save."));
  const QString file = ask_for_file(this, tr("Save the chosen plan"), QStringLiteral("plan.json"),
                                    tr("Plan files (*.json)"), QStringLiteral("json"));
  if (file.isEmpty()) return;
  try {
    write_text_file(file, to_qstring(to_json(*scenario).dump(2) + "\n"));
    tell_written(file, tr("Saved %1."));
  } catch (const RuntimeFailure& failure) {
    tell_not_written(file, QString::fromUtf8(failure.what()));
  }
}

void MainWindow::tell_written(const QString& file, const QString& text) {
  if (!exports_.is_running()) messages_->take_back(QStringLiteral("export"));
  messages_->take_back(key_of_writing(file));
  messages_->say(QStringLiteral("command"), Tone::Notice, text.arg(file));
}

void MainWindow::tell_not_written(const QString& file, const QString& problem) {
  if (!exports_.is_running()) messages_->take_back(QStringLiteral("export"));
  messages_->say(key_of_writing(file), Tone::Problem, problem);
}

void MainWindow::fill_recent() {
  recent_menu_->clear();
  for (const QString& path : recent_.paths())
    recent_menu_->addAction(path, this, [this, path] { open({path}); });
  recent_menu_->setEnabled(!recent_.paths().isEmpty());
}

void MainWindow::export_view(const QString& suffix) {
  const QDockWidget* dock = current_dock();
  const bool is_data = suffix == QStringLiteral("csv");
  const LazyTable shown = is_data ? data_of(*dock) : LazyTable();
  QString obstacle;
  if (is_data && shown.rows == 0) {
    obstacle = tr("%1 has no data to export.").arg(dock->windowTitle());
  } else if (is_data && exports_.is_running()) {
    obstacle = tr("%1 is still being written.").arg(exported_);
  }
  if (!obstacle.isEmpty())
    return messages_->say(QStringLiteral("command"), Tone::Problem, obstacle);
  const QString file = ask_for_file(this, tr("Export %1").arg(dock->windowTitle()),
                                    dock->objectName() + QLatin1Char('.') + suffix,
                                    QStringLiteral("*.%1").arg(suffix), suffix);
  if (file.isEmpty()) return;
  if (is_data) return export_data(shown, file);
  try {
    export_picture(*dock->widget(), file);
    tell_written(file, tr("Exported %1."));
  } catch (const RuntimeFailure& failure) {
    tell_not_written(file, QString::fromUtf8(failure.what()));
  }
}

void MainWindow::export_data(const LazyTable& shown, const QString& file) {
  exported_ = file;
  exports_.start([shown, file](const std::stop_token& stop) {
    const QString text = to_csv(shown.make(stop), stop);
    if (!stop.stop_requested()) write_text_file(file, text);
    return file;
  });
  QTimer::singleShot(kAtOnceMs, this, [this, file, rows = shown.rows] {
    if (!exports_.is_running() || exported_ != file) return;
    messages_->say(QStringLiteral("export"), Tone::Notice,
                   tr("%1 are being written to %2.").arg(counted_rows(rows), file),
                   {tr("Stop"), [this] { stop_export(); }});
  });
}

void MainWindow::stop_export() {
  if (!exports_.is_running()) return;
  exports_.cancel();
  messages_->say(QStringLiteral("export"), Tone::Notice,
                 tr("The export of %1 was stopped.").arg(exported_));
}

void MainWindow::copy_view_picture() {
  QGuiApplication::clipboard()->setImage(picture_of(*current_dock()->widget(), 2.0));
}

void MainWindow::copy_view_data() {
  const LazyTable shown = data_of(*current_dock());
  if (shown.rows == 0) {
    return messages_->say(QStringLiteral("command"), Tone::Problem,
                          tr("%1 has no data to copy.").arg(current_dock()->windowTitle()));
  }
  if (shown.rows > kMostCopiedRows) {
    return messages_->say(
        QStringLiteral("command"), Tone::Problem,
        tr("%1 are too many for the clipboard: export them as CSV.").arg(counted_rows(shown.rows)),
        {tr("Export as CSV"), [this] { export_view(QStringLiteral("csv")); }});
  }
  messages_->take_back(QStringLiteral("command"));  // that there was nothing
  QGuiApplication::clipboard()->setText(to_tsv(shown.make({})));
}

}  // namespace shardwright::gui
