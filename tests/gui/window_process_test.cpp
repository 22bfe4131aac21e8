// Whatever ends the process of the window ends its run as well, unless the user keeps the run.
#include <gtest/gtest.h>
#include <signal.h>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QLabel>
#include <QProcess>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <optional>

#include "gui/models/run_process.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/run_view.hpp"
#include "gui/window/main_window.hpp"
#include "tests/gui/small_scenario.hpp"
#include "tests/gui/tiny_run.hpp"

namespace shardwright::gui {
namespace {

using testing::Not;

class WindowWithARun : public testing::Test {
 protected:
  void SetUp() override {
    write_text_file(corpus_, u"to be or not to be, that is the question. "_s.repeated(100));
    const QDir here(QCoreApplication::applicationDirPath());
    window_.setProcessChannelMode(QProcess::ForwardedChannels);
    window_.start(here.filePath(u"window_with_a_run"_s), arguments());
    ASSERT_TRUE(wait_for([&] { return QFileInfo(run_ + u"/metrics.jsonl"_s).size() > 0; }));
    ASSERT_GE(processes_of(run_).size(), 3);  // They are the launcher and two ranks.
  }

  void TearDown() override {
    window_.kill();
    window_.waitForFinished();
  }

  virtual QStringList arguments() const { return {corpus_, run_}; }
  void send(int signal) { ::kill(static_cast<pid_t>(window_.processId()), signal); }
  bool has_ended() {
    return wait_for([&] { return window_.state() == QProcess::NotRunning; });
  }

  QTemporaryDir folder_;
  QString corpus_ = folder_.filePath(u"corpus.txt"_s);
  QString run_ = folder_.filePath(u"run"_s);
  QProcess window_;
};

class WindowThatAsks : public WindowWithARun {
 protected:
  QStringList arguments() const override { return {corpus_, run_, u"close"_s}; }
};

class WindowThatKeepsItsRun : public WindowWithARun {
 protected:
  QStringList arguments() const override { return {corpus_, run_, u"keep"_s}; }
};

TEST_F(WindowThatKeepsItsRun, EndsAndItsRunGoesOn) {
  ASSERT_TRUE(has_ended());
  EXPECT_EQ(window_.exitCode(), 0);
  const QString metrics = run_ + u"/metrics.jsonl"_s;
  const qint64 size = QFileInfo(metrics).size();
  EXPECT_TRUE(wait_for([&] { return QFileInfo(metrics).size() > size; }));
  interrupt_processes_of(run_);
  EXPECT_TRUE(wait_for([&] { return processes_of(run_).isEmpty(); }));
}

// The next window of the session, in this process, follows the run that the first one has kept.
class WindowOpenedAgain : public WindowThatKeepsItsRun {
 protected:
  void SetUp() override {
    WindowThatKeepsItsRun::SetUp();
    ASSERT_TRUE(has_ended());
    open_again();
  }

  void TearDown() override {
    interrupt_processes_of(run_);
    again_.reset();
    WindowThatKeepsItsRun::TearDown();
  }

  void open_again() {
    again_.reset();
    session_.emplace(run_ + u".session"_s, QSettings::IniFormat);
    again_.emplace(&*session_);
    again_->show();
    again_->begin({});
    ASSERT_TRUE(wait_for([&] { return view().is_running(); }));
  }

  RunView& view() { return *again_->findChild<RunView*>(); }
  QPushButton& button(const QString& name) { return *again_->findChild<QPushButton*>(name); }
  QString state() { return again_->findChild<QLabel*>(u"run_state"_s)->text(); }

  std::optional<QSettings> session_;
  std::optional<MainWindow> again_;
};

TEST_F(WindowOpenedAgain, SaysThatItsRunTrainsAndStopsIt) {
  EXPECT_THAT(again_->findChild<QLabel*>(u"scenario_origin"_s)->text(), Says("2 CPU ranks."));
  EXPECT_FALSE(button(u"run_start"_s).isEnabled());
  EXPECT_THAT(button(u"run_start"_s).toolTip(), Says("A run is in progress"));
  EXPECT_FALSE(button(u"run_calibrate"_s).isEnabled());
  EXPECT_THAT(state(), Says("trains"));
  EXPECT_TRUE(wait_for([&] { return state().contains(u"is done"_s); })) << qPrintable(state());
  const std::size_t steps = view().follower().steps().size();
  EXPECT_TRUE(wait_for([&] { return view().follower().steps().size() > steps; }));
  ASSERT_TRUE(button(u"run_stop"_s).isEnabled());
  QTest::mouseClick(&button(u"run_stop"_s), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return !view().is_running(); }));
  EXPECT_THAT(state(), Says("Stopped."));
  EXPECT_FALSE(button(u"run_stop"_s).isEnabled());
  EXPECT_TRUE(button(u"run_start"_s).isEnabled()) << qPrintable(view().starting_is_off());
  EXPECT_TRUE(wait_for([&] { return processes_of(run_).isEmpty(); }));
  // How it ended is still known when its files are read again.
  for (int time = 0; time < 2; ++time) {
    QTest::keyClick(&*again_, Qt::Key_F5);
    ASSERT_TRUE(again_->is_busy());
    ASSERT_TRUE(wait_for([&] { return !again_->is_busy(); }));
    EXPECT_THAT(state(), Says("Stopped."));
  }
}

TEST_F(WindowOpenedAgain, LeavesItsRunWhenItClosesAndNoticesItsEnd) {
  EXPECT_TRUE(again_->close());
  open_again();
  ASSERT_GE(processes_of(run_).size(), 3);
  interrupt_processes_of(run_);
  ASSERT_TRUE(wait_for([&] { return !view().is_running(); }));
  EXPECT_THAT(state(), Says("The run ended after "));
  EXPECT_TRUE(button(u"run_start"_s).isEnabled()) << qPrintable(view().starting_is_off());
}

TEST_F(WindowThatAsks, EndsByASignalWithoutAnAnswer) {
  EXPECT_EQ(window_.state(), QProcess::Running);
  send(SIGTERM);
  ASSERT_TRUE(has_ended());
  EXPECT_EQ(window_.exitCode(), 128 + SIGTERM);
  EXPECT_EQ(processes_of(run_), QList<qint64>());
  const QSettings session(run_ + u".session"_s, QSettings::IniFormat);
  EXPECT_EQ(session.value(u"run/out"_s).toString(), run_);
}

class StoppedWindow : public WindowWithARun, public testing::WithParamInterface<int> {};

TEST_P(StoppedWindow, StopsItsRunAndSavesItsSession) {
  send(GetParam());
  ASSERT_TRUE(has_ended());
  EXPECT_EQ(window_.exitStatus(), QProcess::NormalExit);
  EXPECT_EQ(window_.exitCode(), 128 + GetParam());
  EXPECT_EQ(processes_of(run_), QList<qint64>());
  const QSettings session(run_ + u".session"_s, QSettings::IniFormat);
  EXPECT_EQ(session.value(u"run/out"_s).toString(), run_);
}

INSTANTIATE_TEST_SUITE_P(Signals, StoppedWindow, testing::Values(SIGTERM, SIGINT, SIGHUP));

TEST_F(WindowWithARun, TakesItsRunWithItWhenItIsKilled) {
  send(SIGKILL);
  ASSERT_TRUE(has_ended());
  EXPECT_TRUE(wait_for([&] { return processes_of(run_).isEmpty(); }));
}

// The fixture starts the program itself.
class Program : public testing::Test {
 protected:
  void SetUp() override {
    environment_.insert(u"XDG_CONFIG_HOME"_s, folder_.path());
    for (const char* variable : {"DISPLAY", "WAYLAND_DISPLAY"})
      environment_.remove(to_qstring(variable));
  }
  void TearDown() override {
    process_.kill();
    process_.waitForFinished();
  }

  void start(const QStringList& arguments) {
    process_.setProcessEnvironment(environment_);
    process_.start(QFileInfo(find_command()).dir().filePath(u"shardwright-gui"_s), arguments);
    ASSERT_TRUE(process_.waitForStarted());
  }
  // Returns the exit code, or -1 if a signal ended the process.
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
    QFile status(u"/proc/%1/status"_s.arg(process_.processId()));
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
  const QSettings session(folder_.filePath(u"shardwright/shardwright-gui.conf"_s),
                          QSettings::IniFormat);
  EXPECT_TRUE(session.contains(u"scenario"_s));
}

TEST_F(Program, ReplacesADamagedSessionInSilence) {
  const QString session = folder_.filePath(u"shardwright/shardwright-gui.conf"_s);
  ASSERT_TRUE(QDir(folder_.path()).mkpath(u"shardwright"_s));
  write_text_file(session, u"rubbish\n[General]\nscenario=@Variant(\\0\\0\\x7f\\xff\\x1)\n"_s);
  environment_.insert(u"QT_QPA_PLATFORM"_s, u"offscreen"_s);
  EXPECT_EQ(run_until_terminated(), 128 + SIGTERM);
  EXPECT_EQ(errors(), QString());
  const QSettings written(session, QSettings::IniFormat);
  EXPECT_TRUE(written.value(u"scenario"_s).toString().contains(u"llama3-70b"_s));
  EXPECT_EQ(written.status(), QSettings::NoError);
}

TEST_F(Program, SaysThatItsSessionCannotBeSaved) {
  environment_.insert(u"XDG_CONFIG_HOME"_s, u"/dev/null"_s);
  EXPECT_EQ(run_until_terminated(), 1);
  EXPECT_TRUE(errors().contains(u"the session cannot be saved in /dev/null/"_s));
}

TEST_F(Program, HelpNamesOnlyWhatThereIs) {
  EXPECT_EQ(run({u"--help"_s}), 0);
  const QString help = QString::fromUtf8(process_.readAllStandardOutput());
  EXPECT_THAT(help, Says("--screenshots"));
  EXPECT_FALSE(help.contains(u"help-all"_s) || help.contains(u"Qt"_s)) << qPrintable(help);
  for (const char* option : {"--help-all", "--platform", "--style"}) {
    EXPECT_EQ(run({to_qstring(option)}), 2) << option;
    EXPECT_TRUE(errors().contains(u"Unknown option"_s));
  }
}

TEST_F(Program, PicturesNeedAFolder) {
  EXPECT_EQ(run({u"--screenshots"_s, QString()}), 2);
  EXPECT_TRUE(errors().contains(u"expected a folder"_s));
}

TEST_F(Program, APlatformThatIsNoneIsNamed) {
  environment_.insert(u"QT_QPA_PLATFORM"_s, u"nosuch"_s);
  EXPECT_EQ(run({}), 1);
  const QString said = errors();
  EXPECT_THAT(said, Says("the platform “nosuch” of QT_QPA_PLATFORM"));
  EXPECT_THAT(said, Not(Says("display")));
}

}  // namespace
}  // namespace shardwright::gui
