#include "gui/window/file_presenter.hpp"

#include <QFileInfo>
#include <utility>

#include "gui/models/chosen_request.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/forecast_view.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/scenario_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/docks.hpp"
#include "gui/window/scenario_planner.hpp"
#include "gui/window/step_presenter.hpp"

namespace shardwright::gui {
namespace {

QString file_name(const QString& path) {
  return QFileInfo(path).fileName();
}

// Returns both plans in one set, or null if they differ in model, cluster or stack.
PlanSetPointer joined(const PlanSet& first, const PlanSet& second) {
  const auto &a = first.request, &b = second.request;
  if (a.model != b.model || a.cluster != b.cluster || a.stack != b.stack) return nullptr;
  auto both = std::make_shared<PlanSet>(first);
  both->plans.insert(both->plans.end(), second.plans.begin(), second.plans.end());
  mark_front(*both);
  both->origin += u", "_s + second.origin;
  return both;
}

// Keys of the messages that a file cannot be read and that it has changed since.
QString key_of_problem(const QString& path) {
  return u"file:"_s + QFileInfo(path).absoluteFilePath();
}

QString key_of_change(const QString& path) {
  return u"changed:"_s + QFileInfo(path).absoluteFilePath();
}

// "a.json (cluster)".
QString named(const ReadFile& read) {
  return u"%1 (%2)"_s.arg(file_name(read.file.path), kind_of(read.file));
}

QStringList names_of_both(const ReadFile& first, const ReadFile& second) {
  return distinct_names({first.file.path, second.file.path});
}

QStringList names_of(const QStringList& paths) {
  QStringList names;
  for (const QString& path : paths) names.append(QFileInfo(path).fileName());
  return names;
}

QString repeated_text(const QStringList& repeated) {
  QStringList names = names_of(repeated);
  names.removeDuplicates();
  if (names.isEmpty()) return {};
  return FileReader::tr("These files were named more than once and are opened once: %1.")
      .arg(names.join(u", "_s));
}

}  // namespace

FilePresenter::FilePresenter(const Parts& parts, QObject* parent)
    : QObject(parent), parts_(parts), reader_(parts.document, parts.messages, this) {
  connect(&reader_, &FileReader::read_all, this, &FilePresenter::take_files);
  connect(parts_.opened, &OpenedFiles::changed, this, &FilePresenter::offer_reload);
  connect(parts_.opened, &OpenedFiles::settled, this,
          [this](const QString& path) { parts_.messages->take_back(key_of_change(path)); });
  connect(parts_.step, &StepPresenter::files_left, this,
          [this] { parts_.opened->set(OpenedKind::Timelines, {}); });
}

void FilePresenter::open_last_session(const QSettings& settings) {
  reader_.read({OpenedFiles::of_last_session(settings), true});
}

void FilePresenter::reload() {
  const QStringList paths = parts_.opened->paths();
  if (paths.isEmpty())
    return parts_.messages->say(u"command"_s, Tone::Notice,
                                tr("No file is open that could be read again."));
  reader_.read({paths, true});
}

void FilePresenter::reload_with_others(const QString& path) {
  for (const OpenedKind kind : enumerators<OpenedKind>()) {
    const QStringList& paths = parts_.opened->of(kind);
    if (paths.contains(path)) reader_.read({paths, true});
  }
}

void FilePresenter::offer_reload(const QString& path, bool exists) {
  parts_.messages->say(key_of_change(path), Tone::Notice,
                       (exists ? tr("%1 has changed.") : tr("%1 is gone.")).arg(file_name(path)),
                       {tr("Read again"), [this, path] { reload_with_others(path); }});
}

void FilePresenter::bring_forward(const QString& id) {
  if (!batch_.is_reload) parts_.docks->raise(id);
}

void FilePresenter::save(QSettings& settings, const QString& run) const {
  recent_.save(settings);
  QStringList more = reader_.unread();
  if (!run.isEmpty()) more.append(run);
  parts_.opened->save(settings, more);
}

void FilePresenter::restore(const QSettings& settings) {
  recent_.restore(settings);
  Q_EMIT recent_changed();
}

void FilePresenter::take_files(const ReadFiles& read, const ReadBatch& batch) {
  batch_ = batch;
  Files runs, tunings, timelines, traces, plans, parts, profiles, scenarios;
  for (const ReadFile& each : read.files) {
    recent_.add(each.file.path);
    const auto& content = each.file.content;
    if (std::holds_alternative<RunFolder>(content)) {
      runs.push_back(&each);
    } else if (std::holds_alternative<TuningResults>(content)) {
      tunings.push_back(&each);
    } else if (std::holds_alternative<std::shared_ptr<const Timeline>>(content)) {
      timelines.push_back(&each);
    } else if (std::holds_alternative<TracedRun>(content)) {
      traces.push_back(&each);
    } else if (std::holds_alternative<ScenarioChoice>(content)) {
      scenarios.push_back(&each);
    } else if (std::holds_alternative<RunSpec>(content) ||
               std::holds_alternative<BatchSpec>(content)) {
      profiles.push_back(&each);
    } else if (each.plans) {
      plans.push_back(&each);
    } else {
      parts.push_back(&each);
    }
  }
  Q_EMIT recent_changed();
  QStringList left_out = take_scenarios(scenarios);
  left_out += take_parts(parts);
  if (!plans.empty()) left_out += take_plans(plans);
  // Runs come first, because timelines take the place of the steps that runs have recorded.
  if (!runs.empty()) left_out += take_runs(runs);
  if (runs.empty() && !tunings.empty()) left_out += take_tunings(tunings);
  if (!timelines.empty()) left_out += take_timelines(timelines);
  if (!traces.empty()) left_out += take_traces(traces);
  if (!profiles.empty()) take_profiles(profiles);
  note_opened(OpenedKind::Scenario, scenarios);
  note_opened(OpenedKind::Plans, plans);
  note_opened(OpenedKind::Timelines, traces.empty() ? timelines : traces);
  note_opened(OpenedKind::Runs, runs.empty() ? tunings : runs);
  parts_.planner->watch_parts();
  show_problems(read);
  parts_.messages->say(u"left out"_s, Tone::Problem,
                       left_out.isEmpty()
                           ? QString()
                           : tr("The window compares two of a kind and leaves out: %1.")
                                 .arg(left_out.join(u", "_s)));
}

void FilePresenter::show_problems(const ReadFiles& read) {
  for (const ReadFile& file : read.files)
    parts_.messages->take_back(key_of_problem(file.file.path));
  for (const FileProblem& problem : read.problems)
    parts_.messages->say(key_of_problem(problem.path), Tone::Problem, problem.text);
}

void FilePresenter::note_opened(OpenedKind kind, const Files& files) {
  if (files.empty()) return;
  QStringList paths;
  for (const ReadFile* file : files) paths.append(QFileInfo(file->file.path).absoluteFilePath());
  for (const QString& before : parts_.opened->of(kind)) {
    const bool again = batch_.is_reload && batch_.paths.contains(before);
    if (again && !paths.contains(before)) paths.append(before);
  }
  parts_.opened->set(kind, paths);
}

QStringList FilePresenter::take_plans(const Files& plans) {
  parts_.planner->abandon();
  if (!batch_.is_reload) parts_.step->leave_timelines();
  QStringList left_out = show_plans(plans);
  adopt_scenario(*plans.front());
  QString text = tr("Showing %1. A change of the scenario starts a new search.")
                     .arg(file_name(plans[0]->file.path));
  if (plans.size() > 1) {
    const QStringList names = names_of_both(*plans[0], *plans[1]);
    text = tr("Comparing %1 with %2.").arg(names[0], names[1]);
  }
  parts_.messages->say(u"search"_s, Tone::Notice, text);
  return left_out;
}

// Compares the first two; more of them join the table if they are for the same scenario.
QStringList FilePresenter::show_plans(const Files& plans) {
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
  parts_.selection->show(shown);
  if (plans.size() == 1) return left_out;
  parts_.selection->choose(0);
  parts_.selection->compare_with(second);
  if (!second)
    parts_.why->compare_with(plans[1]->plans->scenario(0), names_of_both(*plans[0], *plans[1])[1]);
  bring_forward(u"why"_s);
  return left_out;
}

void FilePresenter::adopt_scenario(const ReadFile& read) {
  const Scenario scenario = read.plans->scenario(0);
  const auto choice = read.choice ? read.choice : shipped_choice_of(scenario);
  const QString origin = file_name(read.file.path);
  if (!choice) {
    parts_.planner->disown();
    return parts_.scenario->show_origin(
        tr("The plans shown are those of %1: %2 on %3, %4. A change of a field below starts a "
           "search for the scenario of the fields.")
            .arg(origin, to_qstring(scenario.model.name), to_qstring(scenario.cluster.name),
                 counted_text(scenario.plan.world_size(), accelerator_word(scenario.cluster))));
  }
  parts_.planner->adopt(tr("opening of %1").arg(origin), *choice);
  parts_.scenario->show_problems({});
  parts_.scenario->show_origin({});
}

// Takes the first, whose plans are searched for even if it is that of the fields.
QStringList FilePresenter::take_scenarios(const Files& scenarios) {
  QStringList left_out;
  for (std::size_t i = 1; i < scenarios.size(); ++i) left_out.append(named(*scenarios[i]));
  if (scenarios.empty()) return left_out;
  const ReadFile& read = *scenarios.front();
  const auto& choice = std::get<ScenarioChoice>(read.file.content);
  if (choice == parts_.document->choice()) {
    parts_.planner->plan_anew();
  } else {
    parts_.document->replace(tr("opening of %1").arg(file_name(read.file.path)), choice);
  }
  return left_out;
}

// Takes a single cluster or model, and leaves out those beyond two, which come with plans.
QStringList FilePresenter::take_parts(const Files& parts) {
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

void FilePresenter::take_part(const ReadFile& read) {
  ScenarioChoice choice = parts_.document->choice();
  const std::string path = QFileInfo(read.file.path).absoluteFilePath().toStdString();
  if (std::holds_alternative<ClusterSpec>(read.file.content)) {
    choice = on_cluster(choice, path);
    choice.accelerator = choice.node = choice.fabric = "";
  } else {
    choice.model = path;
  }
  if (choice == parts_.document->choice()) return parts_.planner->plan_anew();
  parts_.document->replace(tr("opening of %1").arg(file_name(read.file.path)), choice);
}

void FilePresenter::take_profiles(const Files& profiles) {
  for (const ReadFile* each : profiles) {
    const QString path = QFileInfo(each->file.path).absoluteFilePath();
    const bool choose = !batch_.is_reload;
    if (const auto* run = std::get_if<RunSpec>(&each->file.content))
      parts_.forecast->offer(path, *run, choose);
    if (const auto* laws = std::get_if<BatchSpec>(&each->file.content))
      parts_.forecast->offer(path, *laws, choose);
  }
  parts_.opened->set(OpenedKind::Profiles, parts_.forecast->files());
  bring_forward(u"forecast"_s);
}

QStringList FilePresenter::take_timelines(const Files& timelines) {
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
  parts_.step->show_files(std::move(shown), distinct_names(paths));
  bring_forward(u"timeline"_s);
  return left_out;
}

QStringList FilePresenter::take_traces(const Files& traces) {
  std::vector<TracedRun> shown;
  QStringList paths, left_out;
  for (const ReadFile* each : traces) {
    if (shown.size() < 2) {
      shown.push_back(std::get<TracedRun>(each->file.content));
      paths.append(each->file.path);
    } else {
      left_out.append(named(*each));
    }
  }
  parts_.step->show_traces(std::move(shown), distinct_names(paths));
  bring_forward(u"timeline"_s);
  return left_out;
}

QStringList FilePresenter::take_runs(const Files& runs) {
  QStringList left_out;
  for (std::size_t i = 2; i < runs.size(); ++i) left_out.append(named(*runs[i]));
  if (runs.size() == 1) {
    take_run(*runs.front());
    return left_out;
  }
  const ReadFile &first = *runs[0], &second = *runs[1];
  parts_.planner->abandon();
  if (first.plans && second.plans) {
    show_plans({&first, &second});
    adopt_scenario(first);
  }
  take_run(first);
  const QStringList names = names_of_both(first, second);
  if (first.measured && second.measured) show_recorded({&first, &second}, names);
  parts_.run->compare_with(std::get<RunFolder>(second.file.content));
  bring_forward(u"run"_s);
  parts_.messages->say(u"search"_s, Tone::Notice,
                       tr("Comparing the runs %1 and %2.").arg(names[0], names[1]));
  return left_out;
}

QStringList FilePresenter::take_tunings(const Files& tunings) {
  QStringList left_out;
  for (std::size_t i = 1; i < tunings.size(); ++i) left_out.append(named(*tunings[i]));
  if (!batch_.is_reload) parts_.step->leave_files();
  parts_.step->keep_measured({});
  parts_.run->show_tuning(std::get<TuningResults>(tunings.front()->file.content));
  bring_forward(u"run"_s);
  return left_out;
}

void FilePresenter::take_run(const ReadFile& run) {
  // The step that an earlier run recorded does not belong to this one.
  if (!batch_.is_reload && parts_.opened->of(OpenedKind::Timelines).isEmpty())
    parts_.step->leave_files();
  std::optional<planner::PlanCandidate> predicted;
  std::optional<MeasuredStep> measured;
  if (run.plans) {
    predicted = run.plans->plans.front();
    const Scenario own = run.plans->scenario(0);
    if (run.measured) measured = {own.model, own.plan, run.measured};
    // The plan of a run that the window started stays among the plans that it was chosen from, also
    // when these are searched for again in the next session.
    const bool is_searched_for = batch_.is_reload && describes(parts_.document->choice(), own);
    if (!is_searched_for) parts_.planner->abandon();
    if (!is_searched_for && parts_.selection->scenario() != own) {
      parts_.selection->show(run.plans);
      adopt_scenario(run);
    }
  }
  parts_.step->keep_measured(std::move(measured));
  // A run without a plan has nothing to do with the chosen one.
  if (!run.plans && run.measured) show_recorded({&run}, distinct_names({run.file.path}));
  parts_.run->follow(std::get<RunFolder>(run.file.content), predicted);
  bring_forward(u"run"_s);
}

void FilePresenter::show_recorded(const Files& runs, const QStringList& names) {
  const QString path = QFileInfo(runs.front()->file.path).absoluteFilePath();
  const bool is_read_again = batch_.is_reload && parts_.opened->of(OpenedKind::Runs).contains(path);
  const bool is_left =
      !parts_.step->shows_files() || !parts_.opened->of(OpenedKind::Timelines).isEmpty();
  if (is_read_again && is_left) return;
  std::vector<std::shared_ptr<const Timeline>> steps;
  for (const ReadFile* run : runs) steps.push_back(run->measured);
  parts_.step->show_files(std::move(steps), names);
  parts_.opened->set(OpenedKind::Timelines, {});
}

FileReader::FileReader(const ScenarioDocument* document, MessageBar* messages, QObject* parent)
    : QObject(parent),
      document_(document),
      messages_(messages),
      job_(
          this,
          [this](const auto& files) {
            Q_EMIT read_all(*files, reading_);
            read_next();
          },
          [this](const QString& error) {
            messages_->say(u"files"_s, Tone::Problem, error);
            read_next();
          }) {}

void FileReader::read(const ReadBatch& batch) {
  if (batch.paths.isEmpty()) return;
  if (job_.is_running()) {
    if (!batch.is_reload && !waiting_.empty() && !waiting_.back().is_reload) {
      waiting_.back().paths += batch.paths;
    } else {
      waiting_.push_back(batch);
    }
    return;
  }
  QStringList repeated;
  reading_ = {each_once(batch.paths, repeated), batch.is_reload};
  messages_->take_back(u"reading"_s);
  messages_->say(u"repeated"_s, Tone::Notice, repeated_text(repeated));
  progress_.begin({});
  job_.start(
      [this, paths = reading_.paths, choice = document_->choice()](const std::stop_token& stop) {
        return read_files(paths, choice, progress_, stop);
      });
  Q_EMIT busy_changed(true);
}

void FileReader::stop() {
  if (!job_.is_running()) return;
  job_.cancel();
  const QStringList names = names_of(unread());
  waiting_.clear();
  read_next();
  messages_->say(u"reading"_s, Tone::Notice,
                 tr("The reading of %1 was stopped.").arg(names.join(u", "_s)));
}

QStringList FileReader::unread() const {
  QStringList paths = reading_.paths;
  for (const ReadBatch& batch : waiting_) paths += batch.paths;
  return paths;
}

void FileReader::read_next() {
  reading_ = {};
  Q_EMIT busy_changed(false);
  if (waiting_.empty()) return;
  const ReadBatch next = waiting_.front();
  waiting_.erase(waiting_.begin());
  read(next);
}

}  // namespace shardwright::gui
