// The window as a process: what ends it ends its run as well.
#include <gtest/gtest.h>
#include <signal.h>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QProcess>
#include <QSettings>
#include <QTemporaryDir>

#include "gui/models/run_process.hpp"
#include "gui/models/written_file.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

QString id(const char* text) {
  return QString::fromUtf8(text);
}

// Processes whose command line names `text`. One that has ended and was not waited for has none.
QList<qint64> processes_of(const QString& text) {
  QList<qint64> found;
  for (const QString& name : QDir(id("/proc")).entryList(QDir::Dirs)) {
    bool is_process = false;
    const qint64 process = name.toLongLong(&is_process);
    QFile line(id("/proc/%1/cmdline").arg(name));
    if (is_process && line.open(QIODevice::ReadOnly) && line.readAll().contains(text.toUtf8()))
      found.append(process);
  }
  return found;
}

class WindowWithARun : public testing::Test {
 protected:
  void SetUp() override {
    write_text_file(corpus_, id("to be or not to be, that is the question. ").repeated(100));
    const QDir here(QCoreApplication::applicationDirPath());
    window_.setProcessChannelMode(QProcess::ForwardedChannels);
    window_.start(here.filePath(id("window_with_a_run")), {corpus_, run_});
    ASSERT_TRUE(wait_for([&] { return QFileInfo(run_ + id("/metrics.jsonl")).size() > 0; }));
    ASSERT_GE(processes_of(run_).size(), 4);  // the window, the launcher and two ranks
  }

  void TearDown() override {
    window_.kill();
    window_.waitForFinished();
  }

  void send(int signal) { ::kill(static_cast<pid_t>(window_.processId()), signal); }
  bool has_ended() {
    return wait_for([&] { return window_.state() == QProcess::NotRunning; });
  }

  QTemporaryDir folder_;
  QString corpus_ = folder_.filePath(id("corpus.txt"));
  QString run_ = folder_.filePath(id("run"));
  QProcess window_;
};

class StoppedWindow : public WindowWithARun, public testing::WithParamInterface<int> {};

TEST_P(StoppedWindow, StopsItsRunAndSavesItsSession) {
  send(GetParam());
  ASSERT_TRUE(has_ended());
  EXPECT_EQ(window_.exitStatus(), QProcess::NormalExit);
  EXPECT_EQ(window_.exitCode(), 128 + GetParam());
  EXPECT_EQ(processes_of(run_), QList<qint64>());
  const QSettings session(run_ + id(".session"), QSettings::IniFormat);
  EXPECT_EQ(session.value(id("run/out")).toString(), run_);
}

INSTANTIATE_TEST_SUITE_P(Signals, StoppedWindow, testing::Values(SIGTERM, SIGINT, SIGHUP));

TEST_F(WindowWithARun, TakesItsRunWithItWhenItIsKilled) {
  send(SIGKILL);
  ASSERT_TRUE(has_ended());
  EXPECT_TRUE(wait_for([&] { return processes_of(run_).isEmpty(); }));
}

// The program itself.
class Program : public testing::Test {
 protected:
  void SetUp() override {
    environment_.insert(id("XDG_CONFIG_HOME"), folder_.path());
    for (const char* variable : {"DISPLAY", "WAYLAND_DISPLAY"}) environment_.remove(id(variable));
  }
  void TearDown() override {
    process_.kill();
    process_.waitForFinished();
  }

  void start(const QStringList& arguments) {
    process_.setProcessEnvironment(environment_);
    process_.start(QFileInfo(find_command()).dir().filePath(id("shardwright-gui")), arguments);
    ASSERT_TRUE(process_.waitForStarted());
  }
  // The exit code; -1 if a signal ended it.
  int end() {
    EXPECT_TRUE(wait_for([&] { return process_.state() == QProcess::NotRunning; }));
    return process_.exitStatus() == QProcess::NormalExit ? process_.exitCode() : -1;
  }
  int run(const QStringList& arguments) {
    start(arguments);
    return end();
  }
  // Starts the window and ends it by a signal once that it listens.
  int run_until_terminated() {
    start({});
    EXPECT_TRUE(wait_for([&] { return handles_termination(); }));
    ::kill(static_cast<pid_t>(process_.processId()), SIGTERM);
    return end();
  }
  bool handles_termination() const {
    QFile status(id("/proc/%1/status").arg(process_.processId()));
    if (!status.open(QIODevice::ReadOnly)) return false;
    const QByteArray text = status.readAll();
    const qsizetype at = text.indexOf("SigCgt:") + 7;
    const auto caught =
        text.mid(at, text.indexOf('\n', at) - at).trimmed().toULongLong(nullptr, 16);
    return (caught >> (SIGTERM - 1) & 1U) != 0;
  }
  QString errors() { return QString::fromUtf8(process_.readAllStandardError()); }

  QTemporaryDir folder_;
  QProcessEnvironment environment_ = QProcessEnvironment::systemEnvironment();
  QProcess process_;
};

TEST_F(Program, SavesItsSessionWhenItIsTerminated) {
  EXPECT_EQ(run_until_terminated(), 128 + SIGTERM) << qPrintable(errors());
  const QSettings session(folder_.filePath(id("shardwright/shardwright-gui.conf")),
                          QSettings::IniFormat);
  EXPECT_TRUE(session.contains(id("scenario")));
}

TEST_F(Program, ReplacesADamagedSessionInSilence) {
  const QString session = folder_.filePath(id("shardwright/shardwright-gui.conf"));
  ASSERT_TRUE(QDir(folder_.path()).mkpath(id("shardwright")));
  write_text_file(session, id("rubbish\n[General]\nscenario=@Variant(\\0\\0\\x7f\\xff\\x1)\n"));
  environment_.insert(id("QT_QPA_PLATFORM"), id("offscreen"));
  EXPECT_EQ(run_until_terminated(), 128 + SIGTERM);
  EXPECT_EQ(errors(), QString());
  const QSettings written(session, QSettings::IniFormat);
  EXPECT_TRUE(written.value(id("scenario")).toString().contains(id("llama3-70b")));
  EXPECT_EQ(written.status(), QSettings::NoError);
}

TEST_F(Program, SaysThatItsSessionCannotBeSaved) {
  environment_.insert(id("XDG_CONFIG_HOME"), id("/dev/null"));
  EXPECT_EQ(run_until_terminated(), 1);
  EXPECT_TRUE(errors().contains(id("the session cannot be saved in /dev/null/")));
}

TEST_F(Program, HelpNamesOnlyWhatThereIs) {
  EXPECT_EQ(run({id("--help")}), 0);
  const QString help = QString::fromUtf8(process_.readAllStandardOutput());
  EXPECT_TRUE(help.contains(id("--screenshots"))) << qPrintable(help);
  EXPECT_FALSE(help.contains(id("help-all")) || help.contains(id("Qt"))) << qPrintable(help);
  for (const char* option : {"--help-all", "--platform", "--style"}) {
    EXPECT_EQ(run({id(option)}), 2) << option;
    EXPECT_TRUE(errors().contains(id("Unknown option")));
  }
}

TEST_F(Program, PicturesNeedAFolder) {
  EXPECT_EQ(run({id("--screenshots"), QString()}), 2);
  EXPECT_TRUE(errors().contains(id("expected a folder")));
}

TEST_F(Program, APlatformThatIsNoneIsNamed) {
  environment_.insert(id("QT_QPA_PLATFORM"), id("nosuch"));
  EXPECT_EQ(run({}), 1);
  const QString said = errors();
  EXPECT_TRUE(said.contains(id("the platform “nosuch” of QT_QPA_PLATFORM"))) << qPrintable(said);
  EXPECT_FALSE(said.contains(id("display"))) << qPrintable(said);
}

}  // namespace
}  // namespace shardwright::gui
