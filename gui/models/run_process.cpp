#include "gui/models/run_process.hpp"

#include <signal.h>

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr qsizetype kKeptErrors = 4096;

void write_plan(const Scenario& scenario, const QString& path) {
  QFile file(path);
  const std::string text = to_json(scenario).dump(2) + "\n";
  const bool well = file.open(QIODevice::WriteOnly | QIODevice::Truncate) &&
                    file.write(text.data(), static_cast<qint64>(text.size())) >= 0;
  if (!well) throw RuntimeFailure((path + QStringLiteral(": ") + file.errorString()).toStdString());
}

}  // namespace

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

RunProcess::RunProcess(QObject* parent) : QObject(parent) {
  connect(&process_, &QProcess::started, this, &RunProcess::started);
  connect(&process_, &QProcess::finished, this, &RunProcess::report);
  connect(&process_, &QProcess::readyReadStandardError, this, &RunProcess::take_errors);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) Q_EMIT ended(false, process_.errorString());
  });
  patience_.setSingleShot(true);
  patience_.setInterval(kPatienceMs);
  connect(&patience_, &QTimer::timeout, &process_, &QProcess::kill);
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
  if (!QDir().mkpath(settings.out))
    throw RuntimeFailure("the folder " + settings.out.toStdString() + " cannot be made");
  settings_ = settings;
  errors_.clear();
  stopping_ = false;
  const QString plan = QDir(settings.out).filePath(QStringLiteral("plan.json"));
  write_plan(scenario, plan);
  QStringList arguments = {QStringLiteral("run"),          plan,
                           QStringLiteral("--data"),       settings.data,
                           QStringLiteral("--out"),        settings.out,
                           QStringLiteral("--steps"),      QString::number(settings.steps),
                           QStringLiteral("--no-progress")};
  if (settings.force) arguments.append(QStringLiteral("--force"));
  process_.start(command, arguments);
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

void RunProcess::report(int code, QProcess::ExitStatus status) {
  patience_.stop();
  take_errors();
  const QString text = QString::fromUtf8(errors_).trimmed();
  if (stopping_) {
    Q_EMIT ended(true, tr("Stopped."));
  } else if (code == 0 && status == QProcess::NormalExit) {
    Q_EMIT ended(true, tr("The run has ended."));
  } else {
    Q_EMIT ended(false, text.isEmpty() ? tr("The run failed with code %1.").arg(code) : text);
  }
}

}  // namespace shardwright::gui
