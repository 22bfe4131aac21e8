#include "gui/models/run_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"

namespace shardwright::gui {
namespace {

constexpr qsizetype kKeptErrors = 4096;
constexpr int kInterrupted = 130;  // exit code after Ctrl-C
constexpr int kRefused = 2;        // exit code of bad input

bool holds_a_run(const QString& folder) {
  const QDir files(folder);
  return files.exists(QStringLiteral("metrics.jsonl")) || files.exists(QStringLiteral("plan.json"));
}

}  // namespace

QString free_run_folder(const QString& folder) {
  if (!holds_a_run(folder)) return folder;
  for (int number = 2;; ++number) {
    QString next = QStringLiteral("%1-%2").arg(QDir::cleanPath(folder)).arg(number);
    if (!QFileInfo::exists(next)) return next;
  }
}

QString find_command() {
  const QDir here(QCoreApplication::applicationDirPath());
  for (const QString& candidate :
       {QStringLiteral("shardwright"), QStringLiteral("../cli/shardwright"),
        QStringLiteral("../../cli/shardwright")}) {
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

void end_with_this_program(QProcess& process) {
  process.setChildProcessModifier([program = getpid()] {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != program) _exit(1);  // it has ended before it could be heard of
  });
}

RunProcess::RunProcess(QObject* parent) : QObject(parent) {
  end_with_this_program(process_);
  connect(&process_, &QProcess::started, this, &RunProcess::started);
  connect(&process_, &QProcess::finished, this, &RunProcess::report);
  connect(&process_, &QProcess::readyReadStandardError, this, &RunProcess::take_errors);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) Q_EMIT ended(false, process_.errorString());
  });
  patience_.setSingleShot(true);
  patience_.setInterval(kPatienceMs);
  connect(&patience_, &QTimer::timeout, this, [this] {
    killed_ = true;
    process_.kill();
  });
}

RunProcess::~RunProcess() {
  if (!is_running()) return;
  process_.disconnect(this);
  stop();
  if (!process_.waitForFinished(kPatienceMs)) {
    process_.kill();
    process_.waitForFinished(kPatienceMs);
  }
}

void RunProcess::start(const Scenario& scenario, const RunSettings& settings) {
  if (is_running()) throw RuntimeFailure("a run is still going");
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
  errors_.clear();
  stopping_ = killed_ = false;
  plan_ = QDir(settings.out).filePath(QStringLiteral("plan.json"));
  write_text_file(plan_, to_qstring(to_json(scenario).dump(2) + "\n"));
  QStringList recorded;
  for (const std::int64_t step : recorded_steps(settings.steps))
    recorded.append(QString::number(step));
  process_.start(command, {QStringLiteral("run"), plan_, QStringLiteral("--data"), settings.data,
                           QStringLiteral("--out"), settings.out, QStringLiteral("--steps"),
                           QString::number(settings.steps), QStringLiteral("--timeline-steps"),
                           recorded.join(QLatin1Char(',')), QStringLiteral("--no-progress")});
}

void RunProcess::stop() {
  if (!is_running()) return;
  stopping_ = true;
  ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
  patience_.start();
}

void RunProcess::take_errors() {
  errors_ = (errors_ + process_.readAllStandardError()).right(kKeptErrors);
}

// A run that ended before its first step, with or without an empty log, leaves its folder free for
// the next one.
void RunProcess::remove_plan_of_no_run() const {
  const QString metrics = QDir(settings_.out).filePath(QStringLiteral("metrics.jsonl"));
  if (QFileInfo(metrics).size() > 0) return;
  // A log in a folder that the command refused is that of another run, which has just begun.
  const bool is_refused = process_.exitCode() == kRefused && !stopping_;
  if (is_refused && QFileInfo::exists(metrics)) return;
  QFile::remove(metrics);
  QFile::remove(plan_);
}

void RunProcess::report(int code, QProcess::ExitStatus status) {
  patience_.stop();
  take_errors();
  remove_plan_of_no_run();
  const QString text = QString::fromUtf8(errors_).trimmed();
  const bool crashed = status == QProcess::CrashExit;
  // A run that is interrupted before it has come to itself ends by the signal.
  const bool interrupted = crashed ? code == SIGINT : code == 0 || code == kInterrupted;
  if (killed_) {
    Q_EMIT ended(false,
                 tr("The run did not stop within %1 s and was killed.").arg(kPatienceMs / 1000));
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

}  // namespace shardwright::gui
