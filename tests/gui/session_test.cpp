#include <QAction>
#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QDoubleSpinBox>
#include <QFile>
#include <QLineEdit>
#include <QSettings>
#include <QSpinBox>
#include <QTemporaryDir>
#include <nlohmann/json.hpp>
#include <optional>

#include "gui/models/written_file.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/sweep_view.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/opened_files.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class Session : public testing::Test {
 protected:
  const QTemporaryDir folder_;
  const QString file_ = folder_.filePath(u"session.ini"_s);
  QSettings settings_{file_, QSettings::IniFormat};
};

TEST_F(Session, ComesBack) {
  {
    MainWindow window(&settings_);
    window.document().reset(small_choice());
    window.show();
    window.findChild<QComboBox*>(u"scatter_x"_s)->setCurrentIndex(3);
    window.close();
  }
  MainWindow window(&settings_);
  EXPECT_EQ(window.document().choice(), small_choice());
  QTest::qWait(300);
  EXPECT_FALSE(window.is_busy());  // Files may be opened instead of its plans.
  EXPECT_EQ(window.findChild<QComboBox*>(u"scatter_x"_s)->currentIndex(), 3);
}

// The best plan is chosen in each set, whichever it is; another one is chosen again once it is
// found.
TEST_F(Session, TheChosenPlanAndTheFilterComeBack) {
  const Plan second = small_set()->plans[1].plan;
  {
    MainWindow window(&settings_);
    window.document().reset(small_choice());
    window.selection().show(small_set());
    window.selection().choose(second);
    window.show();
    QTest::keyClicks(window.findChild<QLineEdit*>(u"filter"_s), u"pp>=1"_s);
    window.close();
  }
  MainWindow window(&settings_);
  window.show();
  EXPECT_EQ(window.findChild<QLineEdit*>(u"filter"_s)->text(), u"pp>=1"_s);
  PlanSet first = *small_set();
  first.plans.resize(1);
  first.on_front.resize(1);
  window.selection().show(std::make_shared<const PlanSet>(first));
  EXPECT_EQ(window.selection().chosen(), std::optional<std::size_t>(0));
  window.selection().show(small_set());
  EXPECT_EQ(window.selection().scenario()->plan, second);
  window.selection().choose(0);
  window.selection().show(small_set());
  EXPECT_EQ(window.selection().chosen(), std::optional<std::size_t>(0));
}

TEST_F(Session, TheComparedPlanComesBackOnceItIsFound) {
  {
    MainWindow window(&settings_);
    window.document().reset(small_choice());
    window.selection().show(small_set());
    window.selection().compare_with(1);
    window.show();
    window.close();
  }
  {  // A session that ends before the plan is found keeps it.
    MainWindow window(&settings_);
    window.show();
    window.close();
  }
  MainWindow window(&settings_);
  window.show();
  EXPECT_EQ(window.selection().compared(), std::nullopt);
  window.selection().show(small_set());
  EXPECT_EQ(window.selection().compared(), std::optional<std::size_t>(1));
  window.selection().compare_with(std::nullopt);
  window.selection().show(small_set());
  EXPECT_EQ(window.selection().compared(), std::nullopt);
}

TEST_F(Session, AMaximisedViewComesBackAndGivesTheOthersTheirPlaces) {
  const auto shown = [](const MainWindow& window) {
    QStringList titles;
    for (const QDockWidget* dock : window.docks())
      if (!dock->isHidden()) titles.append(dock->windowTitle());
    return titles;
  };
  QStringList before;
  QRect place;
  {
    MainWindow window(&settings_);
    window.show();
    QCoreApplication::processEvents();
    before = shown(window);
    place = window.findChild<QDockWidget*>(u"plans"_s)->geometry();
    window.raise_view(u"timeline"_s);
    window.findChild<QAction*>(u"view.maximise"_s)->trigger();
    ASSERT_EQ(shown(window), QStringList{u"Timeline"_s});
    window.close();
  }
  MainWindow window(&settings_);
  window.show();
  QCoreApplication::processEvents();
  EXPECT_EQ(shown(window), QStringList{u"Timeline"_s});
  auto* maximise = window.findChild<QAction*>(u"view.maximise"_s);
  EXPECT_TRUE(maximise->isChecked());
  maximise->trigger();
  QCoreApplication::processEvents();
  EXPECT_EQ(shown(window), before);
  EXPECT_EQ(window.findChild<QDockWidget*>(u"plans"_s)->geometry(), place);
}

TEST_F(Session, ADamagedChosenPlanIsReported) {
  settings_.setValue(u"plans/chosen"_s, uR"({"dp": -1})"_s);
  MainWindow window(&settings_);
  window.show();
  EXPECT_THAT(window.findChild<MessageBar*>(u"message_bar"_s)->text(),
              Says("The plan that was chosen in the last session cannot be used"));
}

// A run whose folder is still being read, or which goes on without the window, is the last one.
TEST_F(Session, AFolderThatIsNotYetReadTakesThePlaceOfTheRunsBefore) {
  const QTemporaryDir before, last, plans;
  OpenedFiles opened(nullptr);
  opened.set(OpenedKind::Runs, {before.path()});
  opened.set(OpenedKind::Plans, {plans.path()});
  opened.save(settings_, {});
  EXPECT_EQ(OpenedFiles::of_last_session(settings_), QStringList({plans.path(), before.path()}));
  opened.save(settings_, {last.path()});
  EXPECT_EQ(OpenedFiles::of_last_session(settings_), QStringList({last.path(), plans.path()}));
}

// The session may have been edited: a range that the fields cannot hold would sweep for hours.
TEST_F(Session, RangesOfSweepsThatTheFieldsCannotHoldAreLeftOut) {
  settings_.setValue(u"sweeps/axis"_s, u"seq-len"_s);
  settings_.setValue(u"sweeps/range seq-len"_s, QStringList{u"1"_s, u"1e300"_s, u"9"_s});
  MainWindow window(&settings_);
  window.selection().show(small_set());
  window.show();
  window.raise_view(u"sweeps"_s);
  ASSERT_TRUE(wait_for([&] { return window.findChild<SweepView*>()->is_busy(); }));
  EXPECT_FALSE(window.findChild<QToolButton*>(u"usual_range"_s)->isEnabled());
}

TEST_F(Session, RangesAndFiguresOfSweepsComeBack) {
  {
    MainWindow window(&settings_);
    window.selection().show(small_set());
    window.show();
    window.raise_view(u"sweeps"_s);
    ASSERT_TRUE(wait_for([&] { return window.findChild<SweepView*>()->is_busy(); }));
    window.findChild<QComboBox*>(u"sweep_axis"_s)
        ->setCurrentIndex(static_cast<int>(planner::SweepAxis::SeqLen));
    window.findChild<QComboBox*>(u"sweep_plan"_s)->setCurrentIndex(0);
    auto* from = window.findChild<QDoubleSpinBox*>(u"sweep_from"_s);
    from->selectAll();
    QTest::keyClicks(from, u"512"_s);
    QTest::keyClick(from, Qt::Key_Return);
    window.findChild<QComboBox*>(u"sweep_second"_s)->setCurrentText(u"Memory (GB)"_s);
    auto* figure = window.findChild<QComboBox*>(u"sweep_figure"_s);
    figure->setCurrentText(u"Tokens/s"_s);
    // The name of a figure on other accelerators is another one.
    PlanSet on_tpus = *small_set();
    on_tpus.request.cluster.accelerator.architecture = Architecture::Tpu;
    window.selection().show(std::make_shared<const PlanSet>(std::move(on_tpus)));
    figure->setCurrentText(u"Tokens/s per TPU"_s);
    window.close();
  }
  MainWindow window(&settings_);
  window.selection().show(small_set());
  window.show();
  window.raise_view(u"sweeps"_s);
  ASSERT_TRUE(wait_for([&] { return window.findChild<SweepView*>()->is_busy(); }));
  EXPECT_TRUE(window.findChild<QToolButton*>(u"usual_range"_s)->isEnabled());
  EXPECT_EQ(window.findChild<QDoubleSpinBox*>(u"sweep_from"_s)->value(), 512.0);
  EXPECT_EQ(window.findChild<QComboBox*>(u"sweep_second"_s)->currentText(), u"Memory (GB)"_s);
  EXPECT_EQ(window.findChild<QComboBox*>(u"sweep_figure"_s)->currentText(), u"Tokens/s per GPU"_s);
  EXPECT_EQ(window.findChild<QComboBox*>(u"sweep_plan"_s)->currentIndex(), 0);
  EXPECT_EQ(window.findChild<QComboBox*>(u"sweep_axis"_s)->currentIndex(),
            static_cast<int>(planner::SweepAxis::SeqLen));
}

TEST_F(Session, ThePinnedBaselineComesBack) {
  Seconds step;
  std::optional<Scenario> pinned;
  {
    MainWindow window(&settings_);
    window.document().reset(small_choice());
    window.selection().show(small_set());
    window.selection().choose(1);
    window.selection().pin(small_choice());
    pinned = window.selection().scenario();
    step = window.selection().set()->plans[1].result.step;
    window.close();
  }
  MainWindow window(&settings_);
  window.show();
  ASSERT_TRUE(wait_for([&] { return window.selection().baseline().has_value(); }));
  const Baseline baseline = *window.selection().baseline();
  EXPECT_EQ(baseline.set->scenario(baseline.plan), pinned);
  EXPECT_DOUBLE_EQ(baseline.set->plans[baseline.plan].result.step.value(), step.value());
  EXPECT_EQ(baseline.choice, small_choice());
  window.selection().unpin();
  window.close();
  EXPECT_FALSE(settings_.contains(u"baseline/plan"_s));
}

TEST_F(Session, ADamagedBaselineIsReported) {
  settings_.setValue(u"baseline/plan"_s, uR"({"schema": "shardwright/plan"})"_s);
  MainWindow window(&settings_);
  window.show();
  const auto* said = window.findChild<MessageBar*>(u"message_bar"_s);
  ASSERT_TRUE(wait_for([&] { return !said->text().isEmpty(); }));
  EXPECT_THAT(said->text(), Says("The baseline of the last session cannot be used"));
  EXPECT_FALSE(window.selection().baseline());
}

// A new process reads the session from its file, not from the memory of the former one.
TEST_F(Session, IsReadFromItsFileWithoutAWord) {
  for (int start = 0; start < 3; ++start) {
    QSettings settings(file_, QSettings::IniFormat);
    MainWindow window(&settings);
    window.document().reset(small_choice());
    window.show();
    EXPECT_EQ(window.findChild<MessageBar*>(u"message_bar"_s)->text(), QString());
    window.close();
  }
}

// Qt does not restore the geometry, and the window takes its first size.
TEST_F(Session, OfAScreenOfAnotherWidthIsReadWithoutAWord) {
  QByteArray geometry = QWidget().saveGeometry();
  constexpr qsizetype kWidthOfScreen = 46;
  ASSERT_GT(geometry.size(), kWidthOfScreen + 4);
  geometry.replace(kWidthOfScreen, 4, QByteArray("\0\0\x7f\0", 4));
  ASSERT_FALSE(QWidget().restoreGeometry(geometry));
  const auto said_with = [&](const QByteArray& kept) {
    settings_.setValue(u"window/geometry"_s, kept);
    MainWindow window(&settings_);
    window.show();
    return window.findChild<MessageBar*>(u"message_bar"_s)->text();
  };
  EXPECT_EQ(said_with(geometry), QString());
  EXPECT_THAT(said_with(geometry.first(kWidthOfScreen)), Says("window/geometry"));
  EXPECT_THAT(said_with("no geometry"), Says("window/geometry"));
}

TEST_F(Session, ValuesThatTheFieldsCannotShowAreReported) {
  settings_.setValue(
      u"scenario"_s,
      uR"({"model": "llama3.2-1b", "global_batch": 99999999999999, "seq_len": -5})"_s);
  MainWindow window(&settings_);
  window.show();
  EXPECT_EQ(window.document().choice().model, "llama3.2-1b");
  EXPECT_EQ(window.findChild<QSpinBox*>(u"global_batch"_s)->value(), 1024);
  EXPECT_EQ(window.findChild<QSpinBox*>(u"seq_len"_s)->value(), 8192);
  const QString message = window.findChild<MessageBar*>(u"message_bar"_s)->text();
  for (const char* text : {"Global batch", "99999999999999", "1000000000", "Sequence", "-5"})
    EXPECT_THAT(message, Says(text)) << text;
}

TEST_F(Session, LeavesItsMessagesBehind) {
  {
    MainWindow window(&settings_);
    window.show();
    window.open({folder_.filePath(u"no-such-file.json"_s)});
    ASSERT_TRUE(wait_for([&] { return !window.is_busy(); }));
    ASSERT_TRUE(window.findChild<MessageBar*>()->isVisible());
    window.close();
  }
  MainWindow window(&settings_);
  window.show();
  EXPECT_FALSE(window.findChild<MessageBar*>()->isVisible());
}

TEST_F(Session, OpensItsFilesAgain) {
  const QString plan = folder_.filePath(u"plan.json"_s);
  const QString gone = folder_.filePath(u"gone.json"_s);
  for (const QString& path : {plan, gone})
    write_text_file(path, to_qstring(to_json(small_set()->scenario(0)).dump()));
  {
    MainWindow window(&settings_);
    window.show();
    window.open({plan, gone});
    ASSERT_TRUE(wait_for([&] { return !window.is_busy() && window.selection().set(); }));
    ASSERT_EQ(window.selection().set()->plans.size(), 2U);
    window.raise_view(u"sweeps"_s);
    window.close();
  }
  QFile::remove(gone);
  MainWindow window(&settings_);
  window.show();
  window.begin({});
  ASSERT_TRUE(wait_for([&] {
    const PlanSetPointer set = window.selection().set();
    return !window.is_busy() && set && set->origin.contains(u"plan.json"_s);
  }));
  EXPECT_EQ(window.selection().set()->plans.size(), 1U);
  EXPECT_FALSE(window.findChild<MessageBar*>(u"message_bar"_s)->text().contains(u"gone.json"_s));
}

// The plans that a run's plan was chosen from are searched for again.
TEST_F(Session, ARunBringsBackThePlansThatItsPlanWasAmong) {
  const QString run = folder_.filePath(u"run"_s);
  ASSERT_TRUE(QDir().mkpath(run));
  write_text_file(run + u"/metrics.jsonl"_s, {});
  write_text_file(run + u"/plan.json"_s, to_qstring(to_json(small_set()->scenario(3)).dump()));
  settings_.setValue(u"opened_files"_s, QStringList{run});
  ScenarioChoice choice = small_choice();
  for (const std::int64_t gpus : {choice.gpus, 2 * choice.gpus}) {
    choice.gpus = gpus;
    settings_.setValue(u"scenario"_s, to_qstring(to_json(choice).dump()));
    MainWindow window(&settings_);
    window.show();
    window.begin({});
    const bool is_of_fields = gpus == small_choice().gpus;
    ASSERT_TRUE(wait_for([&] {
      const PlanSetPointer set = window.selection().set();
      return !window.is_busy() && set && (set->plans.size() > 1) == is_of_fields;
    })) << gpus;
    EXPECT_EQ(window.document().choice().gpus, small_choice().gpus);
  }
}

class DamagedSession : public testing::Test {
 protected:
  void session(const QByteArray& lines) {
    const QString path = folder_.filePath(u"session.ini"_s);
    settings_.reset();
    write_text_file(path, QString::fromUtf8(lines));
    settings_.emplace(path, QSettings::IniFormat);
  }

  // Opens a window on the session, closes it and returns what it said.
  QString message() {
    MainWindow window(&*settings_);
    window.show();
    choice_ = window.document().choice();
    const QString text = window.findChild<MessageBar*>(u"message_bar"_s)->text();
    window.close();
    return text;
  }

  QTemporaryDir folder_;
  std::optional<QSettings> settings_;
  ScenarioChoice choice_;
};

// A warning of Qt on standard error would fail the test.
TEST_F(DamagedSession, ValuesThatQtCannotReadAreReportedOnce) {
  session(R"([General]
scenario="{\"model\": \"llama3-8b\"}"
recent_files=@Variant(\0\0\x7f\xff\x1)
[plans]
scatter_x=@Variant(\0\0\x4\0\0\0\0\0\x5name\0)
[run]
steps=@Invalid()
[window]
geometry=@ByteArray(\x1\xd9\xd0\xcb\0\x3)
layout=@ByteArray(zzz)
)");
  const QString text = message();
  for (const char* key : {"recent_files", "plans/scatter_x", "run/steps", "window/layout"})
    EXPECT_THAT(text, Says(key)) << key;
  EXPECT_EQ(choice_.model, "llama3-8b");
  EXPECT_EQ(message(), QString());
  EXPECT_EQ(choice_.model, "llama3-8b");
}

TEST_F(DamagedSession, AScenarioThatIsNoTextIsReported) {
  for (const char* value : {"@Variant(\\0\\0\\x7f\\xff\\x1)", "a, b", "{", "@Size(3 4)"}) {
    session(QByteArray("[General]\nscenario=") + value + "\n");
    EXPECT_TRUE(message().contains(u"cenario"_s)) << value;
    EXPECT_EQ(choice_, ScenarioChoice()) << value;
  }
}

TEST_F(DamagedSession, LinesThatHoldNoValueAreReported) {
  session(
      "\x7f"
      "ELF\x02\n[General\nrubbish\n[run]\nsteps=7\n");
  const QString text = message();
  EXPECT_EQ(text.section(u'\n', 1), u"session.ini: cannot be read"_s) << qPrintable(text);
  EXPECT_EQ(settings_->value(u"run/steps"_s).toInt(), 7);
}

}  // namespace
}  // namespace shardwright::gui
