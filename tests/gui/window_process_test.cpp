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

}  // namespace
}  // namespace shardwright::gui
