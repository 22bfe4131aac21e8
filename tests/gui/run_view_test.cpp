// Runs that the window starts on the CPU, follows to their end, stops, and learns from.
#include "gui/views/run_view.hpp"

#include <gtest/gtest.h>

#include <QAction>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QToolButton>
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "calibration/calibrate.hpp"
#include "core/spec/scenario.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/chart.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/run_charts.hpp"
#include "gui/window/main_window.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/small_scenario.hpp"
#include "tests/gui/tiny_run.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class RunViewTest : public testing::Test {
 protected:
  void SetUp() override {
    window_.show();
    window_.selection().show(
        std::make_shared<const PlanSet>(plan_set_of(tiny_scenario(), id("a test"))));
    view_ = window_.findChild<RunView*>();
    ASSERT_NE(view_, nullptr);
    corpus_ = folder_.filePath(id("corpus.txt"));
    write_text_file(corpus_, id("to be or not to be, that is the question. ").repeated(100));
  }

  template <class Widget>
  Widget& find(const char* name) {
    return *window_.findChild<Widget*>(id(name));
  }

  void start(int steps) {
    window_.raise_view(id("run"));
    find<QLineEdit>("run_data").setText(corpus_);
    find<QLineEdit>("run_out").setText(folder_.filePath(id("run")));
    find<QSpinBox>("run_steps").setValue(steps);
    QTest::mouseClick(&find<QPushButton>("run_start"), Qt::LeftButton);
  }

  QTemporaryDir folder_;
  QString corpus_;
  MainWindow window_;
  RunView* view_ = nullptr;
};

TEST_F(RunViewTest, ARunIsFollowedToItsEndAndCalibratedFrom) {
  QSignalSpy ended(view_, &RunView::ended);
  start(14);
  EXPECT_EQ(find<QLabel>("run_state").toolTip(), QString());  // it speaks of no tensors yet
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1; }));
  EXPECT_EQ(find<QLabel>("run_state").toolTip(), tip_of_tensors());
  ASSERT_TRUE(ended.front().front().toBool()) << qPrintable(find<MessageBar>("message_bar").text());
  EXPECT_EQ(view_->follower().steps().size(), 14U);
  EXPECT_EQ(view_->table().rows.size(), 14U);
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));

  EXPECT_TRUE(find<QLabel>("run_state").text().startsWith(id("The run has ended.")));
  EXPECT_FALSE(find<MessageBar>("message_bar").isVisible());

  // Both ranks of the recorded step lie below the prediction.
  window_.raise_view(id("timeline"));
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  std::vector<TimelineOrigin> origins;
  for (const auto& timeline : window_.findChild<TimelineView*>()->canvas().tracks().timelines())
    origins.push_back(timeline->origin);
  EXPECT_EQ(origins, (std::vector{TimelineOrigin::Predicted, TimelineOrigin::Measured}));
  const auto run = find_run(folder_.filePath(id("run")));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->timelines.size(), 2U);
  const auto measured = read_measured_step(*run);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->ranks.size(), 2U);

  // The rate of the model's FLOPs lies beside its prediction.
  const auto& mfu = find<Chart>("run_mfu");
  ASSERT_EQ(mfu.graphCount(), 2);
  EXPECT_EQ(mfu.graph(0)->dataCount(), 14);
  EXPECT_GT(mfu.graph(1)->data()->at(0)->value, 0.0);

  QTest::mouseClick(&find<QPushButton>("run_calibrate"), Qt::LeftButton);
  ASSERT_TRUE(
      wait_for([&] { return find<QLabel>("run_state").text().contains(id("Calibrated")); }));
  EXPECT_EQ(mfu.graphCount(), 3);
}

TEST_F(RunViewTest, AnEarlierRunStaysAsItIs) {
  const QString earlier = folder_.filePath(id("run"));
  ASSERT_TRUE(QDir().mkpath(earlier));
  const QString metrics = QDir(earlier).filePath(id("metrics.jsonl"));
  const QString plan = QDir(earlier).filePath(id("plan.json"));
  write_text_file(metrics, id("{\"step\": 0}\n"));
  write_text_file(plan, id("the plan of the earlier run"));
  start(3);
  EXPECT_FALSE(view_->is_running());
  const QString message = find<MessageBar>("message_bar").text();
  EXPECT_TRUE(message.contains(id("earlier run"))) << qPrintable(message);
  EXPECT_EQ(find<QLineEdit>("run_out").text(), earlier + id("-2"));
  QFile file(plan);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  EXPECT_EQ(file.readAll(), QByteArray("the plan of the earlier run"));
  EXPECT_EQ(QFileInfo(metrics).size(), 12);
}

TEST_F(RunViewTest, NothingOfARunThatGoesCanBeChosenAnew) {
  const auto enabled = [&] {
    return std::vector{
        find<QLineEdit>("run_data").isEnabled(), find<QToolButton>("run_browse_data").isEnabled(),
        find<QLineEdit>("run_out").isEnabled(), find<QToolButton>("run_browse_out").isEnabled(),
        find<QSpinBox>("run_steps").isEnabled()};
  };
  QSignalSpy ended(view_, &RunView::ended);
  EXPECT_EQ(enabled(), std::vector<bool>(5, true));
  start(1'000'000);
  ASSERT_TRUE(view_->is_running());
  EXPECT_EQ(enabled(), std::vector<bool>(5, false));
  view_->stop();
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
  EXPECT_EQ(enabled(), std::vector<bool>(5, true));
}

class ClosedDuringARun : public RunViewTest {
 protected:
  void SetUp() override {
    RunViewTest::SetUp();
    start(1'000'000);
    ASSERT_TRUE(view_->is_running());
    EXPECT_FALSE(window_.close());
  }

  void answer(const char* button) {
    auto* question = window_.findChild<QMessageBox*>(id("run_question"));
    ASSERT_NE(question, nullptr);
    ASSERT_TRUE(question->isVisible());
    QAbstractButton* found = question->findChild<QAbstractButton*>(id(button));
    if (found == nullptr) found = question->button(QMessageBox::Cancel);
    QTest::mouseClick(found, Qt::LeftButton);
  }
};

TEST_F(ClosedDuringARun, AWindowStaysWhenItsUserCancels) {
  answer("cancel");
  QTest::qWait(100);
  EXPECT_TRUE(window_.isVisible());
  EXPECT_TRUE(view_->is_running());
}

TEST_F(ClosedDuringARun, AWindowStopsItsRunFirst) {
  answer("stop_and_close");
  EXPECT_TRUE(wait_for([&] { return !window_.isVisible(); }));
  EXPECT_FALSE(view_->is_running());
}

TEST_F(ClosedDuringARun, AWindowClosesAndItsRunGoesOn) {
  answer("keep_running");
  EXPECT_TRUE(wait_for([&] { return !window_.isVisible(); }));
  EXPECT_FALSE(view_->is_running());  // It is no longer the window's own.
  const QString run = folder_.filePath(id("run"));
  EXPECT_TRUE(wait_for([&] { return QFileInfo(run + id("/metrics.jsonl")).size() > 0; }));
  EXPECT_GE(processes_of(run).size(), 3);  // the launcher and two ranks
  interrupt_processes_of(run);
  EXPECT_TRUE(wait_for([&] { return processes_of(run).isEmpty(); }));
}

TEST_F(ClosedDuringARun, AWindowWhoseRunEndsAsksNoMore) {
  view_->stop();
  EXPECT_TRUE(wait_for([&] { return window_.findChild<QMessageBox*>() == nullptr; }));
  EXPECT_TRUE(window_.isVisible());
}

TEST_F(RunViewTest, StoppedBeforeItsFirstStepARunLeavesNoErrorAndNoPlan) {
  QSignalSpy ended(view_, &RunView::ended);
  start(1'000'000);
  ASSERT_TRUE(view_->is_running());
  view_->stop();
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
  EXPECT_TRUE(ended.front().front().toBool()) << qPrintable(find<MessageBar>("message_bar").text());
  EXPECT_FALSE(find<MessageBar>("message_bar").isVisible());
  EXPECT_TRUE(find<QLabel>("run_state").text().startsWith(id("Stopped.")));
  EXPECT_FALSE(QFileInfo::exists(folder_.filePath(id("run/plan.json"))));
}

// Its log was opened, and no step was written into it.
TEST_F(RunViewTest, AnEmptyLogOfNoStepLeavesTheFolderFree) {
  const QDir run(folder_.filePath(id("run")));
  for (int i = 0; i < 2; ++i) {
    QSignalSpy ended(view_, &RunView::ended);
    start(1'000'000);
    ASSERT_TRUE(view_->is_running()) << qPrintable(find<MessageBar>("message_bar").text());
    write_text_file(run.filePath(id("metrics.jsonl")), {});
    view_->stop();
    ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
    EXPECT_FALSE(run.exists(id("plan.json")));
    EXPECT_FALSE(run.exists(id("metrics.jsonl")));
  }
}

// One that somebody else began there in the same moment.
TEST_F(RunViewTest, AnEmptyLogOfAnotherRunStays) {
  const QString metrics = folder_.filePath(id("run/metrics.jsonl"));
  bool finished = true;
  // A run that has opened its log before the other one does finishes: it is tried again.
  for (int i = 0; finished && i < 20; ++i) {
    QDir(folder_.filePath(id("run"))).removeRecursively();
    QSignalSpy ended(view_, &RunView::ended);
    start(3);
    ASSERT_TRUE(view_->is_running());
    write_text_file(metrics, {});
    ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
    finished = ended.front().front().toBool();
  }
  EXPECT_FALSE(finished);
  EXPECT_TRUE(find<MessageBar>("message_bar").text().contains(id("without an earlier run")))
      << qPrintable(find<MessageBar>("message_bar").text());
  EXPECT_TRUE(QFileInfo::exists(metrics));
}

TEST_F(RunViewTest, TheLastStepIsToldByItsOwnFigures) {
  const QDir run(folder_.filePath(id("old")));
  ASSERT_TRUE(QDir().mkpath(run.path()));
  QString lines;
  for (int step = 0; step < 4; ++step)
    lines += id("{\"step\": %1, \"loss\": 5, \"step_s\": 0.1, \"tokens_per_s\": %2}\n")
                 .arg(step)
                 .arg(step == 3 ? 1488.9 : 4000.0);
  write_text_file(run.filePath(id("metrics.jsonl")), lines);
  window_.open({run.path()});
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  const QString text = find<QLabel>("run_state").text();
  EXPECT_TRUE(text.contains(id("Step 3: loss 5.0000, 1,489 tokens/s"))) << qPrintable(text);
}

TEST_F(RunViewTest, TwoRunsLieBesideEachOther) {
  const auto write_run = [&](const char* name, int steps) {
    QString run = folder_.filePath(id(name));
    QDir().mkpath(run);
    QString text;
    for (int step = 0; step < steps; ++step)
      text +=
          QStringLiteral("{\"step\": %1, \"loss\": %2, \"step_s\": 0.1}\n").arg(step).arg(9 - step);
    write_text_file(QDir(run).filePath(id("metrics.jsonl")), text);
    write_text_file(QDir(run).filePath(id("plan.json")),
                    QString::fromStdString(to_json(tiny_scenario()).dump()));
    return run;
  };
  window_.open({write_run("one", 3), write_run("two", 5), write_run("three", 4)});
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  const auto& loss = find<Chart>("run_loss");
  ASSERT_EQ(loss.graphCount(), 2);
  EXPECT_EQ(loss.graph(0)->dataCount(), 3);
  EXPECT_EQ(loss.graph(1)->dataCount(), 5);
  EXPECT_EQ(loss.graph(1)->name(), id("two"));
  const QString message = find<MessageBar>("message_bar").text();
  EXPECT_TRUE(message.contains(id("Comparing the runs one and two"))) << qPrintable(message);
  EXPECT_TRUE(message.contains(id("Not shown: three (run folder)"))) << qPrintable(message);
  // The chosen plan's prediction is of the first alone.
  const TextTable table = view_->table();
  ASSERT_EQ(table.rows.size(), 8U);
  for (const QStringList& row : table.rows) EXPECT_EQ(row.size(), table.header.size());
  EXPECT_NE(table.rows[0][8], QString());
  EXPECT_EQ(table.rows[3][8], QString());
}

TEST_F(RunViewTest, ARefittedProfileIsSavedAndPlannedWith) {
  QSignalSpy ended(view_, &RunView::ended);
  start(14);
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
  EXPECT_FALSE(find<QPushButton>("run_save_profile").isVisible());
  QTest::mouseClick(&find<QPushButton>("run_calibrate"), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return find<QLabel>("run_state").text().contains(id("Calibrated")); }))
      << qPrintable(find<MessageBar>("message_bar").text());

  // Its own file by default, in the run's folder; a file that is there already is not written over.
  auto& file = find<QLineEdit>("run_profile");
  const QString profile = file.text();
  EXPECT_EQ(profile, folder_.filePath(id("run/calibrated.json")));
  file.setText(corpus_);
  QTest::mouseClick(&find<QPushButton>("run_save_profile"), Qt::LeftButton);
  EXPECT_TRUE(find<MessageBar>("message_bar").text().contains(id("exists")));
  file.setText(profile);
  QTest::mouseClick(&find<QPushButton>("run_save_profile"), Qt::LeftButton);
  const ClusterSpec saved = load_cluster(profile.toStdString());
  ASSERT_TRUE(saved.stack);
  EXPECT_NE(saved.accelerator, cpu_cluster().accelerator);

  QTest::mouseClick(&find<QPushButton>("run_replan"), Qt::LeftButton);
  EXPECT_EQ(window_.document().choice().cluster, profile.toStdString());
  EXPECT_EQ(window_.document().choice().model, "tiny-llama");
  EXPECT_EQ(window_.document().choice().gpus, 2);
  const PlanSetPointer before = window_.selection().set();
  ASSERT_TRUE(wait_for([&] { return window_.selection().set() != before && !window_.is_busy(); }))
      << qPrintable(find<MessageBar>("message_bar").text());
  EXPECT_EQ(window_.selection().set()->request.stack, *saved.stack);

  // What was measured lies below the new prediction of the same plan, which need not be among the
  // best.
  Scenario again = tiny_scenario(saved);
  again.stack = *saved.stack;
  window_.selection().show(std::make_shared<const PlanSet>(plan_set_of(again, id("calibrated"))));
  window_.raise_view(id("timeline"));
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  const auto& tracks = window_.findChild<TimelineView*>()->canvas().tracks();
  ASSERT_EQ(tracks.timelines().size(), 2U);
  EXPECT_EQ(tracks.timelines()[1]->origin, TimelineOrigin::Measured);

  // The message that Undo returns to the former scenario stays until the scenario changes.
  const auto& messages = find<MessageBar>("message_bar");
  EXPECT_TRUE(messages.text().contains(id("Undo returns to the former scenario")))
      << qPrintable(messages.text());
  window_.actions().find(id("edit.undo"))->trigger();
  EXPECT_FALSE(messages.text().contains(id("Undo returns")));
}

// As a run that somebody else has trained: by the menu, without a word of its profile's file.
TEST_F(RunViewTest, ARunThatIsOpenedIsCalibratedFromByTheMenu) {
  const auto calibrate = [&] { window_.actions().find(id("plan.calibrate"))->trigger(); };
  auto& messages = find<MessageBar>("message_bar");
  calibrate();
  EXPECT_TRUE(messages.text().contains(id("No run has measured"))) << qPrintable(messages.text());

  QSignalSpy ended(view_, &RunView::ended);
  start(14);
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
  const QString copy = folder_.filePath(id("copy"));
  ASSERT_TRUE(QDir().rename(folder_.filePath(id("run")), copy));
  window_.open({copy});
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  window_.raise_view(id("plans"));
  calibrate();
  auto& state = find<QLabel>("run_state");
  ASSERT_TRUE(wait_for([&] { return state.text().contains(id("Calibrated")); }))
      << qPrintable(messages.text());
  EXPECT_FALSE(messages.text().contains(id("No run has measured")));
  EXPECT_TRUE(find<QPushButton>("run_save_profile").isVisible());
  auto& file = find<QLineEdit>("run_profile");
  EXPECT_EQ(file.text(), QDir(copy).filePath(id("calibrated.json")));

  // Another file is named by the dialog, which gives it its suffix.
  answer_next_dialog(folder_.filePath(id("mine")));
  QTest::mouseClick(&find<QToolButton>("run_browse_profile"), Qt::LeftButton);
  EXPECT_EQ(file.text(), folder_.filePath(id("mine.json")));
  QTest::mouseClick(&find<QPushButton>("run_save_profile"), Qt::LeftButton);
  EXPECT_TRUE(state.text().contains(id("Saved the refitted profile as ") + file.text()));
  EXPECT_TRUE(load_cluster(file.text().toStdString()).stack);

  // No name at all, and then another run: its profile is none of this one's.
  file.clear();
  QTest::mouseClick(&find<QPushButton>("run_replan"), Qt::LeftButton);
  EXPECT_TRUE(messages.text().contains(id("name a file"))) << qPrintable(messages.text());
  window_.open({copy});
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  EXPECT_FALSE(find<QPushButton>("run_save_profile").isVisible());
}

TEST_F(RunViewTest, ARefittedProfileBringsThePredictionCloser) {
  QSignalSpy ended(view_, &RunView::ended);
  start(14);
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1; }));
  const RunCalibration calibration = calibrate_run(folder_.filePath(id("run")));
  EXPECT_GT(calibration.figures, 5U);
  EXPECT_LT(std::abs(calibration.step.error_after()), std::abs(calibration.step.error_before()));
  EXPECT_EQ(calibration.scenario.plan, tiny_scenario().plan);
}

// It says nothing of the GPUs that it was planned for, whoever asks.
TEST_F(RunViewTest, ARunOnCpusIsNotCalibratedAgainstGpus) {
  const Scenario planned = tiny_scenario(load_cluster("h100-pcie-server"));
  window_.selection().show(std::make_shared<const PlanSet>(plan_set_of(planned, id("a test"))));
  QSignalSpy ended(view_, &RunView::ended);
  start(14);
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
  QTest::mouseClick(&find<QPushButton>("run_calibrate"), Qt::LeftButton);
  auto& messages = find<MessageBar>("message_bar");
  ASSERT_TRUE(wait_for([&] { return messages.isVisible(); }));

  // In the words of the command.
  const std::string run = folder_.filePath(id("run")).toStdString();
  ProblemList problems("calibration");
  calibration::check_device(calibration::load_run(run), planned.cluster, problems);
  ASSERT_EQ(problems.size(), 1U);
  QString words;
  try {
    problems.throw_if_any();
  } catch (const InputError& error) {
    words = error_text(error);
  }
  EXPECT_TRUE(words.contains(id("a run on CPUs"))) << qPrintable(words);
  EXPECT_TRUE(messages.text().contains(words)) << qPrintable(messages.text());
  EXPECT_FALSE(find<QPushButton>("run_save_profile").isVisible());
  EXPECT_FALSE(find<QLabel>("run_state").text().contains(id("Calibrated")));
}

TEST_F(RunViewTest, ARunIsStoppedCleanly) {
  QSignalSpy ended(view_, &RunView::ended);
  start(1'000'000);
  ASSERT_TRUE(wait_for([&] { return view_->follower().steps().size() > 3; }));
  EXPECT_FALSE(find<QPushButton>("run_start").isEnabled());
  QTest::mouseClick(&find<QPushButton>("run_stop"), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1; }));
  EXPECT_TRUE(ended.front().front().toBool());
  EXPECT_FALSE(view_->is_running());
  EXPECT_TRUE(QFileInfo::exists(folder_.filePath(id("run/plan.json"))));
  EXPECT_GT(QFileInfo(folder_.filePath(id("run/metrics.jsonl"))).size(), 0);
}

TEST(RecordedSteps, AreFewEarlyAndLateOnes) {
  EXPECT_EQ(recorded_steps(1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(recorded_steps(14), (std::vector<std::int64_t>{2, 5, 7, 8, 9, 11, 12}));
  for (std::int64_t steps = 1; steps < 3'000'000'000; steps += 1 + steps / 3) {
    const std::vector<std::int64_t> recorded = recorded_steps(steps);
    ASSERT_EQ(std::adjacent_find(recorded.begin(), recorded.end(), std::greater_equal<>()),
              recorded.end());
    EXPECT_GE(recorded.front(), 0);
    EXPECT_LT(recorded.back(), steps);
    EXPECT_LE(recorded.size(), 40U);
    // Stopped anywhere after its third step, a run has one; nor is the last one long ago.
    for (std::size_t i = 0; i + 1 < recorded.size(); ++i)
      EXPECT_LE(recorded[i + 1], std::max<std::int64_t>(5, 3 * recorded[i])) << steps;
    if (steps > 5) {
      EXPECT_EQ(recorded.front(), 2) << steps;
    }
  }
}

TEST_F(RunViewTest, ARunThatIsStoppedCanBeCalibratedFrom) {
  QSignalSpy ended(view_, &RunView::ended);
  start(5000);
  auto& calibrate = find<QPushButton>("run_calibrate");
  ASSERT_TRUE(wait_for([&] { return view_->follower().steps().size() > 12; }));
  EXPECT_FALSE(calibrate.isEnabled());
  EXPECT_TRUE(calibrate.toolTip().contains(id("still in progress")));
  view_->stop();
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1 && !window_.is_busy(); }));
  ASSERT_LT(view_->follower().steps().size(), 2500U);  // the second half was not begun
  ASSERT_TRUE(calibrate.isEnabled()) << qPrintable(calibrate.toolTip());
  QTest::mouseClick(&calibrate, Qt::LeftButton);
  EXPECT_TRUE(wait_for([&] { return find<QLabel>("run_state").text().contains(id("Calibrated")); }))
      << qPrintable(find<MessageBar>("message_bar").text());
}

TEST_F(RunViewTest, WithoutAStepOfAllRanksCalibrateSaysWhyItIsOff) {
  const QDir run(folder_.filePath(id("run")));
  ASSERT_TRUE(QDir().mkpath(run.path()));
  const auto& calibrate = find<QPushButton>("run_calibrate");
  const auto is_off_after = [&](const char* file, const QString& text, const char* why) {
    write_text_file(run.filePath(id(file)), text);
    window_.open({run.path()});
    EXPECT_TRUE(wait_for([&] { return !window_.is_busy(); }));
    EXPECT_FALSE(calibrate.isEnabled()) << file;
    EXPECT_TRUE(calibrate.toolTip().contains(id(why))) << qPrintable(calibrate.toolTip());
  };
  EXPECT_TRUE(calibrate.toolTip().contains(id("No run")));
  QString lines;
  for (int step = 0; step < 3; ++step)
    lines += id("{\"step\": %1, \"loss\": 5, \"step_s\": 0.1}\n").arg(step);
  is_off_after("metrics.jsonl", lines, "no plan.json");
  is_off_after("plan.json", QString::fromStdString(to_json(tiny_scenario()).dump()),
               "No step of the run was recorded by all of its ranks");
  // One of its two ranks.
  Timeline rank;
  rank.origin = TimelineOrigin::Measured;
  rank.ranks = {{0, "stage 0"}};
  is_off_after("timeline-2-0.json", QString::fromStdString(to_json(rank).dump()),
               "No step of the run was recorded by all of its ranks");
}

TEST_F(RunViewTest, DamagedMetricsAreNamedAndNotShown) {
  const QDir run(folder_.filePath(id("old")));
  ASSERT_TRUE(QDir().mkpath(run.path()));
  window_.raise_view(id("run"));
  const int width = view_->width();
  const auto state_of = [&](const char* lines) {
    write_text_file(run.filePath(id("metrics.jsonl")), id(lines));
    window_.open({run.path()});
    EXPECT_TRUE(wait_for([&] { return !window_.is_busy(); }));
    return find<QLabel>("run_state").text();
  };
  const QString none = state_of("{\"step\": 0}\n");
  EXPECT_TRUE(none.endsWith(id("1 line of the metrics cannot be read: line 1.")))
      << qPrintable(none);
  EXPECT_FALSE(none.contains(id("loss"))) << qPrintable(none);
  EXPECT_TRUE(view_->table().rows.empty());
  const QString text = state_of(
      "{\"step\": 0, \"step_s\": 0.1, \"loss\": 3e38, \"tensor_peak_bytes\": 2e9}\nno line\n"
      "{\"step\": -1e300, \"step_s\": 0.1, \"tensor_peak_bytes\": 1e308}\n");
  EXPECT_TRUE(text.contains(id("Step 0: loss 3e+38, – tokens/s, 2 GB for the step's tensors.")))
      << qPrintable(text);
  EXPECT_TRUE(text.contains(id("2 lines of the metrics cannot be read, first line 2.")))
      << qPrintable(text);
  EXPECT_EQ(view_->table().rows.size(), 1U);
  EXPECT_EQ(view_->width(), width);
}

// The palette offers both at any time.
TEST_F(RunViewTest, StoppingNothingAndStartingTwiceChangeNothing) {
  view_->stop();
  EXPECT_FALSE(find<QLabel>("run_state").text().contains(id("Stopping")));
  QSignalSpy ended(view_, &RunView::ended);
  start(100'000);
  ASSERT_TRUE(wait_for([&] { return !view_->follower().steps().empty(); }));
  const QString folder = find<QLineEdit>("run_out").text();
  view_->start();
  EXPECT_EQ(find<QLineEdit>("run_out").text(), folder);
  EXPECT_TRUE(find<MessageBar>("message_bar").text().contains(id("stop it first")));
  view_->stop();
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1; }));
}

TEST_F(RunViewTest, AFailingRunSaysWhy) {
  QSignalSpy ended(view_, &RunView::ended);
  Scenario wrong = tiny_scenario();
  wrong.plan.precision = Precision::Bf16;
  window_.selection().show(std::make_shared<const PlanSet>(plan_set_of(wrong, id("a test"))));
  start(3);
  ASSERT_TRUE(wait_for([&] { return ended.count() == 1; }));
  EXPECT_FALSE(ended.front().front().toBool());
  EXPECT_TRUE(find<MessageBar>("message_bar").text().contains(id("/plan/precision")));
}

TEST_F(RunViewTest, AMissingCorpusIsTold) {
  corpus_ = folder_.filePath(id("no-such-file"));
  start(3);
  EXPECT_FALSE(view_->is_running());
  EXPECT_TRUE(find<MessageBar>("message_bar").text().contains(id("no-such-file")));
}

}  // namespace
}  // namespace shardwright::gui
