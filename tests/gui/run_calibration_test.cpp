// A profile is refitted to a run that the window has started or opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFile>
#include <QToolButton>
#include <cmath>
#include <nlohmann/json.hpp>

#include "calibration/calibrate.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/message_bar.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/run_view_fixture.hpp"

namespace shardwright::gui {
namespace {

using RunCalibrationTest = RunViewTest;

TEST_F(RunCalibrationTest, ARefittedProfileIsSavedAndPlannedWith) {
  train(14);
  EXPECT_FALSE(find<QPushButton>("run_save_profile").isVisible());
  press("run_calibrate");
  ASSERT_TRUE(is_calibrated()) << qPrintable(said());

  // The profile is a new file in the run's folder; it overwrites no file that is there already.
  auto& file = find<QLineEdit>("run_profile");
  const QString profile = file.text();
  EXPECT_EQ(profile, run_.filePath(u"calibrated.json"_s));
  file.setText(corpus_);
  press("run_save_profile");
  EXPECT_TRUE(said().contains(u"exists"_s));
  file.setText(profile);
  press("run_save_profile");
  const ClusterSpec saved = load_cluster(profile.toStdString());
  ASSERT_TRUE(saved.stack);
  EXPECT_NE(saved.accelerator, cpu_cluster().accelerator);

  press("run_replan");
  EXPECT_EQ(window_.document().choice().cluster, profile.toStdString());
  EXPECT_EQ(window_.document().choice().model, "tiny-llama");
  EXPECT_EQ(window_.document().choice().gpus, 2);
  const PlanSetPointer before = window_.selection().set();
  ASSERT_TRUE(wait_for([&] { return window_.selection().set() != before && !window_.is_busy(); }))
      << qPrintable(said());
  EXPECT_EQ(window_.selection().set()->request.stack, *saved.stack);

  // The measured step lies below the new prediction of its plan, which need not be among the best.
  Scenario again = tiny_scenario(saved);
  again.stack = *saved.stack;
  choose(again);
  window_.raise_view(u"timeline"_s);
  ASSERT_TRUE(is_idle());
  const auto& tracks = window_.findChild<TimelineView*>()->canvas().tracks();
  ASSERT_EQ(tracks.timelines().size(), 2U);
  EXPECT_EQ(tracks.timelines()[1]->origin, TimelineOrigin::Measured);

  // The message that Undo returns to the former scenario stays until the scenario changes.
  EXPECT_THAT(said(), Says("Undo returns to the former scenario"));
  window_.actions().find(u"edit.undo"_s)->trigger();
  EXPECT_FALSE(said().contains(u"Undo returns"_s));
}

// The user opens the run of another program and names no file for its profile.
TEST_F(RunCalibrationTest, ARunThatIsOpenedIsCalibratedFromByTheMenu) {
  const auto calibrate = [&] { window_.actions().find(u"plan.calibrate"_s)->trigger(); };
  EXPECT_FALSE(window_.actions().find(u"plan.calibrate"_s)->isEnabled());
  EXPECT_THAT(window_.actions().find(u"plan.calibrate"_s)->toolTip(), Says("No run has measured"));

  train(14);
  const QString copy = folder_.filePath(u"copy"_s);
  ASSERT_TRUE(QDir().rename(run_.path(), copy));
  open(copy);
  window_.raise_view(u"plans"_s);
  calibrate();
  ASSERT_TRUE(is_calibrated()) << qPrintable(said());
  EXPECT_TRUE(find<QPushButton>("run_save_profile").isVisible());
  auto& file = find<QLineEdit>("run_profile");
  EXPECT_EQ(file.text(), QDir(copy).filePath(u"calibrated.json"_s));

  // Another file is named by the dialog, which gives it its suffix.
  answer_next_dialog(folder_.filePath(u"mine"_s));
  QTest::mouseClick(&find<QToolButton>("run_browse_profile"), Qt::LeftButton);
  EXPECT_EQ(file.text(), folder_.filePath(u"mine.json"_s));
  press("run_save_profile");
  EXPECT_TRUE(state().contains(u"Saved the refitted profile as "_s + file.text()));
  EXPECT_TRUE(load_cluster(file.text().toStdString()).stack);

  // The user leaves the name empty and opens another run, whose profile is not this run's profile.
  file.clear();
  press("run_replan");
  EXPECT_THAT(said(), Says("name a file"));
  open(copy);
  EXPECT_FALSE(find<QPushButton>("run_save_profile").isVisible());
}

TEST_F(RunCalibrationTest, ARefittedProfileBringsThePredictionCloser) {
  train(14);
  const RunCalibration calibration = calibrate_run(run_.path());
  EXPECT_GT(calibration.figures, 5U);
  EXPECT_LT(std::abs(calibration.step.error_after()), std::abs(calibration.step.error_before()));
  EXPECT_EQ(calibration.scenario.plan, tiny_scenario().plan);
}

// Such a run says nothing about the GPUs of its plan.
TEST_F(RunCalibrationTest, ARunOnCpusIsNotCalibratedAgainstGpus) {
  const Scenario planned = tiny_scenario(load_cluster("h100-pcie-server"));
  choose(planned);
  train(14);
  press("run_calibrate");
  ASSERT_TRUE(wait_for([&] { return find<MessageBar>("message_bar").isVisible(); }));

  // The message has the words of the command.
  const std::string run = run_.path().toStdString();
  ProblemList problems("calibration");
  calibration::check_device(calibration::load_run(run), planned.cluster, problems);
  ASSERT_EQ(problems.size(), 1U);
  QString words;
  try {
    problems.throw_if_any();
  } catch (const InputError& error) {
    words = error_text(error);
  }
  EXPECT_THAT(words, Says("a run on CPUs"));
  EXPECT_TRUE(said().contains(words)) << qPrintable(said());
  EXPECT_FALSE(find<QPushButton>("run_save_profile").isVisible());
  EXPECT_FALSE(state().contains(u"Calibrated"_s));
}

TEST_F(RunCalibrationTest, ARunIsStoppedCleanlyAndCanBeCalibratedFrom) {
  start(5000);
  auto& calibrate = find<QPushButton>("run_calibrate");
  ASSERT_TRUE(wait_for([&] { return view_->follower().steps().size() > 12; }));
  EXPECT_FALSE(calibrate.isEnabled());
  EXPECT_TRUE(calibrate.toolTip().contains(u"still in progress"_s));
  EXPECT_FALSE(find<QPushButton>("run_start").isEnabled());
  press("run_stop");
  ASSERT_TRUE(ends_well());
  EXPECT_FALSE(view_->is_running());
  EXPECT_TRUE(QFileInfo::exists(run_.filePath(u"plan.json"_s)));
  EXPECT_GT(QFileInfo(run_.filePath(u"metrics.jsonl"_s)).size(), 0);
  ASSERT_LT(view_->follower().steps().size(), 2500U);  // The run ended in its first half.
  ASSERT_TRUE(calibrate.isEnabled()) << qPrintable(calibrate.toolTip());
  QTest::mouseClick(&calibrate, Qt::LeftButton);
  EXPECT_TRUE(is_calibrated()) << qPrintable(said());
}

TEST_F(RunCalibrationTest, WithoutAStepOfAllRanksCalibrateSaysWhyItIsOff) {
  const auto& calibrate = find<QPushButton>("run_calibrate");
  const auto is_off_after = [&](const char* file, const QString& text, const char* why) {
    write_text_file(run_.filePath(to_qstring(file)), text);
    open(run_.path());
    EXPECT_FALSE(calibrate.isEnabled()) << file;
    EXPECT_THAT(calibrate.toolTip(), Says(why));
  };
  EXPECT_TRUE(calibrate.toolTip().contains(u"No run"_s));
  write_run("run", {});
  QString lines;
  for (int step = 0; step < 3; ++step)
    lines += u"{\"step\": %1, \"loss\": 5, \"step_s\": 0.1}\n"_s.arg(step);
  is_off_after("metrics.jsonl", lines, "no plan.json");
  is_off_after("plan.json", to_qstring(to_json(tiny_scenario()).dump()),
               "No step of the run was recorded by all of its ranks");
  Timeline rank;
  rank.origin = TimelineOrigin::Measured;
  rank.ranks = {{0, "stage 0"}};
  is_off_after("timeline-2-0.json", to_qstring(to_json(rank).dump()),
               "No step of the run was recorded by all of its ranks");
}

}  // namespace
}  // namespace shardwright::gui
