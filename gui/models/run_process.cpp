#include "gui/models/run_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QRegularExpression>
#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/program/executable.hpp"
#include "gui/models/run_follower.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

constexpr qint64 kKeptErrors = 4096;
// The exit codes after Ctrl-C and of bad input.
constexpr int kInterrupted = 130, kRefused = 2;

constexpr char kLetGo = 'g';

// Runs in a child of the run until `lifeline` is closed or says that the run is let go.
[[noreturn]] void watch_lifeline(int lifeline, pid_t run) {
  // Closes all other files, among them this program's end of the lifeline.
  dup2(lifeline, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // The watcher ends with the run.
  if (getppid() != run) _exit(0);
  char said = 0;
  ssize_t got = 0;
  do {
    got = read(STDIN_FILENO, &said, sizeof said);
  } while (got < 0 && errno == EINTR);
  if (got == 0) ::kill(run, SIGTERM);
  _exit(0);
}

bool holds_a_run(const QString& folder) {
  const QDir files(folder);
  return files.exists(u"metrics.jsonl"_s) || files.exists(u"plan.json"_s);
}

// Returns the number of steps in the log of the run; its last line is that of the last step.
std::int64_t steps_done(const QString& folder) {
  QFile log(QDir(folder).filePath(u"metrics.jsonl"_s));
  if (!log.open(QIODevice::ReadOnly)) return 0;
  constexpr qint64 kLastLines = 4096;
  log.seek(std::max<qint64>(0, log.size() - kLastLines));
  const QList<QByteArray> lines = log.readAll().trimmed().split('\n');
  const auto last = read_run_step(lines.last());
  return last ? static_cast<std::int64_t>(last->step) + 1 : 0;
}

// The standard error of a run goes to a file, which a run that was let go can still write to.
QString errors_file(const QString& folder) {
  return QDir(folder).filePath(u"errors.txt"_s);
}

// Says what the command says of a run in the words of the window, which knows neither options nor
// the file of the plan.
QString in_words_of_the_window(const QString& errors, const QString& plan) {
  static const QRegularExpression kPlace(u"^(/[^:]*): found "_s);
  QStringList lines = errors.split(u'\n');
  for (QString& line : lines) {
    for (const auto& [option, field] :
         {std::pair{u"--data: "_s, u"Corpus: "_s}, {u"--out: "_s, u"Folder: "_s}}) {
      if (line.startsWith(option)) line.replace(0, option.size(), field);
    }
    const QString source = plan + u": "_s;
    if (!line.startsWith(source)) continue;
    line.remove(0, source.size());
    if (const auto found = kPlace.match(line); found.hasMatch()) {
      const std::string field = planner::plan_field_text(found.captured(1).toStdString());
      line.replace(0, found.capturedEnd(1), to_qstring(field));
    }
    line.prepend(u"The chosen plan: "_s);
  }
  return lines.join(u'\n');
}

}  // namespace

QString free_run_folder(const QString& folder) {
  if (!holds_a_run(folder)) return folder;
  for (int number = 2;; ++number) {
    QString next = u"%1-%2"_s.arg(QDir::cleanPath(folder)).arg(number);
    if (!QFileInfo::exists(next)) return next;
  }
}

QString what_the_executor_lacks(const Scenario& scenario) {
  // The executor takes a GPU for plans in bf16 where it finds one. The driver has this file.
  const bool on_gpu =
      scenario.plan.precision == Precision::Bf16 && QFileInfo::exists(u"/dev/nvidiactl"_s);
  try {
    check_executable(scenario.model, scenario.plan, scenario.stack, on_gpu, {});
  } catch (const InputError& error) {
    constexpr qsizetype kMostLines = 3;
    QStringList lines;
    for (Problem problem : error.problems()) {
      problem.where = planner::plan_field_text(problem.where);
      lines.append(problem_text(problem));
    }
    if (const qsizetype more = lines.size() - kMostLines; more > 1) {
      lines.resize(kMostLines);
      lines.append(RunProcess::tr("and %1").arg(counted_text(more, "further reason")));
    }
    return RunProcess::tr("This machine cannot train under the chosen plan:\n") + lines.join(u'\n');
  }
  return {};
}

QString find_command() {
  const QDir here(QCoreApplication::applicationDirPath());
  for (const QString& candidate :
       {u"shardwright"_s, u"../cli/shardwright"_s, u"../../cli/shardwright"_s}) {
    const QFileInfo info(here.filePath(candidate));
    if (info.isFile() && info.isExecutable()) return info.canonicalFilePath();
  }
  return {};
}

std::vector<std::int64_t> recorded_steps(std::int64_t steps) {
  constexpr std::int64_t kOfSecondHalf = 5;
  const std::int64_t half = steps / 2;
  std::vector<std::int64_t> recorded;
  // The first two warm up.
  for (std::int64_t power = 1; power < half; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit * power > 1 && digit * power < half) recorded.push_back(digit * power);
    }
  }
  for (std::int64_t i = 0; i < kOfSecondHalf; ++i) {
    const std::int64_t step = half + i * (steps - half) / kOfSecondHalf;
    if (recorded.empty() || step > recorded.back()) recorded.push_back(step);
  }
  return recorded;
}

RunProcess::RunProcess(QObject* parent) : QObject(parent) {
  make_process();
  patience_.setSingleShot(true);
  patience_.setInterval(kPatienceMs);
  connect(&patience_, &QTimer::timeout, this, [this] {
    killed_ = true;
    if (is_own()) return process_->kill();
    other_.send(SIGKILL);
  });
  connect(&other_, &OtherRun::ended, this, &RunProcess::report_other);
}

RunProcess::~RunProcess() {
  if (!is_own()) return;
  process_->disconnect(this);
  stop();
  if (!process_->waitForFinished(kPatienceMs)) {
    process_->kill();
    process_->waitForFinished(kPatienceMs);
  }
  cut_lifeline();
}

void RunProcess::make_process() {
  process_ = new QProcess(this);
  process_->setStandardInputFile(QProcess::nullDevice());
  process_->setStandardOutputFile(QProcess::nullDevice());
  connect(process_, &QProcess::started, this, &RunProcess::started);
  connect(process_, &QProcess::finished, this, &RunProcess::report);
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;
    cut_lifeline();
    Q_EMIT ended(false, process_->errorString());
  });
}

void RunProcess::start_tied(const QString& command, const QStringList& arguments) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw RuntimeFailure("no socket can be opened");
  process_->setChildProcessModifier([watched = ends[1]] {
    setsid();                 // The terminal of this program must not end a run that was let go.
    signal(SIGINT, SIG_DFL);  // A shell ignores it in programs that it starts in the background.
    const pid_t run = getpid();
    const pid_t watcher = fork();
    if (watcher < 0) _exit(1);
    if (watcher == 0) watch_lifeline(watched, run);
  });
  lifeline_ = ends[0];
  process_->start(command, arguments);
  ::close(ends[1]);
}

void RunProcess::cut_lifeline() {
  if (lifeline_ >= 0) ::close(std::exchange(lifeline_, -1));
}

void RunProcess::release() {
  if (!is_own()) return;
  [[maybe_unused]] const ssize_t sent = ::send(lifeline_, &kLetGo, sizeof kLetGo, MSG_NOSIGNAL);
  cut_lifeline();
  patience_.stop();
  // The destructor of a QProcess kills its process, so that this one is never destroyed, and
  // neither is the list, through which leak checkers find it at exit.
  static auto& let_go = *new std::vector<QProcess*>;
  let_go.push_back(process_);
  process_->disconnect(this);
  process_->setParent(nullptr);
  make_process();
}

void RunProcess::start(const Scenario& scenario, const RunSettings& settings) {
  if (is_running()) throw RuntimeFailure("a run is still in progress");
  const QString command = find_command();
  if (command.isEmpty()) throw RuntimeFailure("the command shardwright is not beside this program");
  if (!QFileInfo(settings.data).isFile())
    throw RuntimeFailure("the corpus " + settings.data.toStdString() + " is no file");
  if (holds_a_run(settings.out)) {
    throw RuntimeFailure(settings.out.toStdString() +
                         " holds an earlier run or a plan: name another folder");
  }
  if (!QDir().mkpath(settings.out))
    throw RuntimeFailure("the folder " + settings.out.toStdString() + " cannot be made");
  settings_ = settings;
  stopping_ = killed_ = false;
  plan_ = QDir(settings.out).filePath(u"plan.json"_s);
  write_text_file(plan_, to_qstring(to_json(scenario).dump(2) + "\n"));
  QStringList recorded;
  for (const std::int64_t step : recorded_steps(settings.steps))
    recorded.append(QString::number(step));
  process_->setStandardErrorFile(errors_file(settings_.out));
  start_tied(command, {u"run"_s, plan_, u"--data"_s, settings.data, u"--out"_s, settings.out,
                       u"--steps"_s, QString::number(settings.steps), u"--timeline-steps"_s,
                       recorded.join(u','), u"--no-progress"_s});
}

void RunProcess::stop() {
  if (!is_running()) return;
  stopping_ = true;
  if (is_own()) {
    ::kill(static_cast<pid_t>(process_->processId()), SIGINT);
  } else {
    other_.send(SIGINT);
  }
  patience_.start();
}

std::optional<std::int64_t> RunProcess::take_up(const QString& folder) {
  // The folder may be read again while its run is being stopped.
  if (is_running() && folder == settings_.out) return settings_.steps;
  if (is_own()) return std::nullopt;
  patience_.stop();
  if (!other_.watch(folder)) return std::nullopt;
  stopping_ = killed_ = false;
  settings_ = {{}, folder, other_.steps()};
  plan_ = QDir(folder).filePath(u"plan.json"_s);
  return other_.steps();
}

QString RunProcess::take_errors() {
  QFile file(errors_file(settings_.out));
  if (!file.open(QIODevice::ReadOnly)) return {};
  file.seek(std::max<qint64>(0, file.size() - kKeptErrors));
  const QByteArray text = file.readAll();
  file.remove();
  return QString::fromUtf8(text).trimmed();
}

// A run that ended before its first step, with or without an empty log, leaves its folder free for
// the next one.
void RunProcess::remove_plan_of_no_run() const {
  const QString metrics = QDir(settings_.out).filePath(u"metrics.jsonl"_s);
  if (QFileInfo(metrics).size() > 0) return;
  // A log in a folder that the command refused is that of another run, which has just begun.
  const bool is_refused = process_->exitCode() == kRefused && !stopping_;
  if (is_refused && QFileInfo::exists(metrics)) return;
  QFile::remove(metrics);
  QFile::remove(plan_);
}

void RunProcess::report(int code, QProcess::ExitStatus status) {
  patience_.stop();
  cut_lifeline();
  const QString text = in_words_of_the_window(take_errors(), plan_);
  remove_plan_of_no_run();
  const bool crashed = status == QProcess::CrashExit;
  // A run that is interrupted before it has come to itself ends by the signal.
  const bool interrupted = crashed ? code == SIGINT : code == 0 || code == kInterrupted;
  if (killed_) {
    report_killed();
  } else if (stopping_ && interrupted) {
    Q_EMIT ended(true, tr("Stopped."));
  } else if (crashed) {
    Q_EMIT ended(false, tr("The run was ended by signal %1. %2").arg(code).arg(text).trimmed());
  } else if (code == 0 && status == QProcess::NormalExit) {
    Q_EMIT ended(true, tr("The run has ended."));
  } else {
    Q_EMIT ended(false, text.isEmpty() ? tr("The run failed with code %1.").arg(code) : text);
  }
}

void RunProcess::report_killed() {
  Q_EMIT ended(false,
               tr("The run did not stop within %1 s and was killed.").arg(kPatienceMs / 1000));
}

void RunProcess::report_other() {
  patience_.stop();
  const QString errors = in_words_of_the_window(take_errors(), plan_);
  const std::int64_t done = steps_done(settings_.out);
  if (killed_) {
    report_killed();
  } else if (stopping_) {
    Q_EMIT ended(true, tr("Stopped."));
  } else if (done >= settings_.steps) {
    Q_EMIT ended(true, tr("The run has ended."));
  } else {
    const QString early = tr("The run ended after %1 of %2.")
                              .arg(count_text(done), counted_text(settings_.steps, "step"));
    Q_EMIT ended(false, errors.isEmpty() ? early : early + u'\n' + errors);
  }
}

}  // namespace shardwright::gui
