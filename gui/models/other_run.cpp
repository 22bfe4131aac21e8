#include "gui/models/other_run.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSocketNotifier>
#include <QStringList>
#include <map>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

QString process_file(pid_t process, const char* name) {
  return u"/proc/%1/%2"_s.arg(process).arg(to_qstring(name));
}

// Returns the value behind `option`, or after its equals sign; empty if it is not given.
QString option_value(const QStringList& arguments, const QString& option) {
  for (qsizetype i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option) return arguments.value(i + 1);
    if (arguments[i].startsWith(option + u'=')) return arguments[i].mid(option.size() + 1);
  }
  return {};
}

// Returns the arguments of the process if it is `shardwright run`, or a rank of it, with the
// results in `folder`; else none.
QStringList arguments_of_run(pid_t process, const QString& folder) {
  const QString program = QFileInfo(QFile::symLinkTarget(process_file(process, "exe"))).fileName();
  if (!program.startsWith(u"shardwright-executor"_s)) return {};
  QFile line(process_file(process, "cmdline"));
  if (!line.open(QIODevice::ReadOnly)) return {};
  const QStringList arguments = QString::fromUtf8(line.readAll()).split(QChar(u'\0'));
  const QString out = option_value(arguments, u"--out"_s);
  if (out.isEmpty()) return {};
  const QDir started_in(QFile::symLinkTarget(process_file(process, "cwd")));
  const QString results = QFileInfo(started_in.absoluteFilePath(out)).canonicalFilePath();
  return results == folder ? arguments : QStringList();
}

pid_t parent_of(pid_t process) {
  QFile status(process_file(process, "stat"));
  if (!status.open(QIODevice::ReadOnly)) return 0;
  // The name of the program, in parentheses, may hold spaces. The state follows it.
  const QByteArray text = status.readAll();
  return text.mid(text.lastIndexOf(')') + 2).split(' ').value(1).toInt();
}

}  // namespace

OtherRun::OtherRun(QObject* parent) : QObject(parent) {}

OtherRun::~OtherRun() {
  leave();
}

bool OtherRun::watch(const QString& folder) {
  leave();
  const QString path = QFileInfo(folder).canonicalFilePath();
  if (path.isEmpty()) return false;  // So is that of any other folder that is gone.
  std::map<pid_t, QStringList> found;
  for (const QString& name : QDir(u"/proc"_s).entryList(QDir::Dirs)) {
    const pid_t process = name.toInt();
    if (process <= 0) continue;
    QStringList arguments = arguments_of_run(process, path);
    if (!arguments.isEmpty()) found.emplace(process, std::move(arguments));
  }
  for (const auto& [process, arguments] : found) {
    if (found.contains(parent_of(process))) continue;  // The parent of the ranks stops all of them.
    const auto opened = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (opened < 0) continue;
    // The run may have ended meanwhile, and its number may be that of another process.
    if (arguments_of_run(process, path) != arguments) {
      ::close(opened);
      continue;
    }
    process_ = opened;
    id_ = process;
    steps_ = option_value(arguments, u"--steps"_s).toLongLong();
    end_ = std::make_unique<QSocketNotifier>(process_, QSocketNotifier::Read);
    connect(end_.get(), &QSocketNotifier::activated, this, [this] {
      leave();
      Q_EMIT ended();
    });
    return true;
  }
  return false;
}

void OtherRun::leave() {
  if (process_ < 0) return;
  // Its own signal may be what calls this.
  end_->setEnabled(false);
  end_.release()->deleteLater();
  ::close(process_);
  process_ = -1;
}

void OtherRun::send(int signal) {
  if (process_ >= 0) syscall(SYS_pidfd_send_signal, process_, signal, nullptr, 0);
}

}  // namespace shardwright::gui
