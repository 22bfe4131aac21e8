#include "gui/views/run_view.hpp"

#include <gtest/gtest.h>

#include <QDir>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QRegularExpression>
#include <QSpinBox>
#include <QTableWidget>
#include <QToolButton>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "calibration/calibrate.hpp"
#include "core/spec/scenario.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/chart.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/point_chart.hpp"
#include "gui/views/run_charts.hpp"
#include "gui/window/main_window.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/run_view_fixture.hpp"

namespace shardwright::gui {
namespace {

using fixtures::tool_tip_at;
using testing::Not;

TEST_F(RunViewTest, ARunIsFollowedToItsEndAndCalibratedFrom) {
  start(14);
  EXPECT_EQ(find<QLabel>("run_state").toolTip(), QString());  // The label names no tensors yet.
  ASSERT_TRUE(ends_well()) << qPrintable(said());
  EXPECT_EQ(find<QLabel>("run_state").toolTip(), tip_of_tensors());
  EXPECT_EQ(view_->follower().steps().size(), 14U);
  EXPECT_EQ(view_->table().rows.size(), 14U);
  ASSERT_TRUE(is_idle());

  EXPECT_TRUE(state().startsWith(u"The run has ended."_s));
  EXPECT_FALSE(find<MessageBar>("message_bar").isVisible());

  // Both ranks of the recorded step lie below the prediction.
  window_.raise_view(u"timeline"_s);
  ASSERT_TRUE(is_idle());
  std::vector<TimelineOrigin> origins;
  for (const auto& timeline : window_.findChild<TimelineView*>()->canvas().tracks().timelines())
    origins.push_back(timeline->origin);
  EXPECT_EQ(origins, (std::vector{TimelineOrigin::Predicted, TimelineOrigin::Measured}));
  const auto run = find_run(run_.path());
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

  press("run_calibrate");
  ASSERT_TRUE(is_calibrated());
  EXPECT_EQ(mfu.graphCount(), 3);
}

TEST_F(RunViewTest, AnEarlierRunStaysAsItIs) {
  const QString earlier = write_run("run", u"{\"step\": 0}\n"_s);
  const QString plan = run_.filePath(u"plan.json"_s);
  write_text_file(plan, u"the plan of the earlier run"_s);
  start(3);
  EXPECT_FALSE(view_->is_running());
  EXPECT_THAT(said(), Says("earlier run"));
  EXPECT_EQ(find<QLineEdit>("run_out").text(), earlier + u"-2"_s);
  QFile file(plan);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  EXPECT_EQ(file.readAll(), QByteArray("the plan of the earlier run"));
  EXPECT_EQ(QFileInfo(run_.filePath(u"metrics.jsonl"_s)).size(), 12);
}

TEST_F(RunViewTest, NothingOfARunThatGoesCanBeChosenAnew) {
  const auto enabled = [&] {
    return std::vector{
        find<QLineEdit>("run_data").isEnabled(), find<QToolButton>("run_browse_data").isEnabled(),
        find<QLineEdit>("run_out").isEnabled(), find<QToolButton>("run_browse_out").isEnabled(),
        find<QSpinBox>("run_steps").isEnabled()};
  };
  EXPECT_EQ(enabled(), std::vector<bool>(5, true));
  start_long_run();
  EXPECT_EQ(enabled(), std::vector<bool>(5, false));
  // No line breaks between a number and its unit.
  static const QRegularExpression kMedian(u"median of [\\d.]+\u00a0m?s a step"_s);
  EXPECT_TRUE(wait_for([&] { return state().contains(kMedian); })) << qPrintable(state());
  view_->stop();
  ASSERT_TRUE(ends_well());
  EXPECT_EQ(enabled(), std::vector<bool>(5, true));
}

class ClosedDuringARun : public RunViewTest {
 protected:
  void SetUp() override {
    RunViewTest::SetUp();
    start_long_run();
    EXPECT_FALSE(window_.close());
  }

  void answer(const char* button) {
    auto* question = window_.findChild<QMessageBox*>(u"run_question"_s);
    ASSERT_NE(question, nullptr);
    ASSERT_TRUE(question->isVisible());
    QTest::mouseClick(question->findChild<QPushButton*>(to_qstring(button)), Qt::LeftButton);
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
  EXPECT_EQ(view_->released_run(), QFileInfo(run_.path()).absoluteFilePath());
  const QString run = run_.path();
  EXPECT_TRUE(wait_for([&] { return QFileInfo(run + u"/metrics.jsonl"_s).size() > 0; }));
  EXPECT_GE(processes_of(run).size(), 3);  // These are the launcher and two ranks.
  interrupt_processes_of(run);
  EXPECT_TRUE(wait_for([&] { return processes_of(run).isEmpty(); }));
}

TEST_F(ClosedDuringARun, AWindowWhoseRunEndsAsksNoMore) {
  view_->stop();
  EXPECT_TRUE(wait_for([&] { return window_.findChild<QMessageBox*>() == nullptr; }));
  EXPECT_TRUE(window_.isVisible());
}

// Also in a window that a shell started in the background, where SIGINT is ignored.
TEST_F(RunViewTest, StoppedBeforeItsFirstStepARunLeavesNoErrorAndNoPlan) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  const QString metrics = run_.filePath(u"metrics.jsonl"_s);
  // A run that was faster than its stop is tried again.
  for (int i = 0; i == 0 || (QFileInfo(metrics).size() > 0 && i < 20); ++i) {
    QDir(run_.path()).removeRecursively();
    start_long_run();
    view_->stop();
    EXPECT_TRUE(ends_well()) << qPrintable(said());
  }
  EXPECT_FALSE(find<MessageBar>("message_bar").isVisible());
  EXPECT_TRUE(state().startsWith(u"Stopped."_s));
  EXPECT_FALSE(QFileInfo::exists(run_.filePath(u"plan.json"_s)));
  std::signal(SIGINT, before);
}

// The run opened its log and wrote no step into it.
TEST_F(RunViewTest, AnEmptyLogOfNoStepLeavesTheFolderFree) {
  for (int i = 0; i < 2; ++i) {
    bool stopped = false;
    // A run that found the log before its stop was refused: it is tried again in an empty folder.
    for (int tries = 0; !stopped && tries < 20; ++tries) {
      start_long_run();
      write_text_file(run_.filePath(u"metrics.jsonl"_s), {});
      view_->stop();
      stopped = ends_well();
      if (!stopped) QDir(run_.path()).removeRecursively();
    }
    ASSERT_TRUE(stopped);
    EXPECT_FALSE(run_.exists(u"plan.json"_s));
    EXPECT_FALSE(run_.exists(u"metrics.jsonl"_s));
  }
}

// Another process began its run there in the same moment.
TEST_F(RunViewTest, AnEmptyLogOfAnotherRunStays) {
  const QString metrics = run_.filePath(u"metrics.jsonl"_s);
  bool finished = true;
  // A run that has opened its log before the other one does finishes: it is tried again.
  for (int i = 0; finished && i < 20; ++i) {
    QDir(run_.path()).removeRecursively();
    start(3);
    ASSERT_TRUE(view_->is_running());
    write_text_file(metrics, {});
    finished = ends_well();
  }
  EXPECT_FALSE(finished);
  EXPECT_THAT(said(), Says("without an earlier run"));
  EXPECT_TRUE(QFileInfo::exists(metrics));
}

TEST_F(RunViewTest, TheLastStepIsDescribedByItsOwnFigures) {
  const QString line = u"{\"step\": %1, \"loss\": 5, \"step_s\": 0.1, \"tokens_per_s\": %2}\n"_s;
  QString lines;
  for (int step = 0; step < 4; ++step) lines += line.arg(step).arg(step == 3 ? 1488.9 : 4000.0);
  open(write_run("old", lines));
  EXPECT_THAT(state(), Says("Step 3: loss 5.0000, 1,489 tokens/s"));
}

TEST_F(RunViewTest, TwoRunsLieBesideEachOther) {
  const auto run_of = [&](const char* name, int steps) {
    QString text;
    for (int step = 0; step < steps; ++step)
      text += u"{\"step\": %1, \"loss\": %2, \"step_s\": 0.1}\n"_s.arg(step).arg(9 - step);
    QString run = write_run(name, text);
    write_text_file(QDir(run).filePath(u"plan.json"_s),
                    to_qstring(to_json(tiny_scenario()).dump()));
    return run;
  };
  window_.open({run_of("one", 3), run_of("two", 5), run_of("three", 4)});
  ASSERT_TRUE(is_idle());
  const auto& loss = find<Chart>("run_loss");
  ASSERT_EQ(loss.graphCount(), 2);
  EXPECT_EQ(loss.graph(0)->dataCount(), 3);
  EXPECT_EQ(loss.graph(1)->dataCount(), 5);
  EXPECT_EQ(loss.graph(1)->name(), u"two"_s);
  EXPECT_THAT(said(), Says("Comparing the runs one and two"));
  EXPECT_THAT(said(), Says("leaves out: three (run folder)"));
  // The chosen plan's prediction is of the first alone.
  const TextTable table = view_->table();
  ASSERT_EQ(table.rows.size(), 8U);
  for (const QStringList& row : table.rows) EXPECT_EQ(row.size(), table.header.size());
  const qsizetype predicted = table.header.indexOf(u"Predicted step (s)"_s);
  EXPECT_NE(table.rows[0][predicted], QString());
  EXPECT_EQ(table.rows[3][predicted], QString());
}

TEST_F(RunViewTest, AValidationIsNamedDrawnAndListedWhereThereWasOne) {
  window_.open({write_run("run",
                          u"{\"step\": 0, \"loss\": 5, \"step_s\": 0.1}\n"
                          "{\"step\": 1, \"loss\": 4, \"validation_loss\": 4.5, \"step_s\": 0.1}\n"
                          "{\"step\": 2, \"loss\": 3, \"step_s\": 0.1}\n"_s)});
  ASSERT_TRUE(is_idle());
  const auto& loss = find<Chart>("run_loss");
  ASSERT_EQ(loss.graphCount(), 2);
  ASSERT_EQ(loss.graph(1)->dataCount(), 1);
  EXPECT_EQ(loss.graph(1)->data()->begin()->value, 4.5);
  EXPECT_FALSE(loss.graph(1)->scatterStyle().isNone()) << "a line has no single point";
  const TextTable table = view_->table();
  EXPECT_EQ(table.rows[0][3], QString());
  EXPECT_EQ(table.rows[1][3], u"4.5"_s);
  EXPECT_THAT(find<QLabel>("run_state").text(), Says("Validation loss after step 1: 4.5000"));
}

TEST_F(RunViewTest, DamagedMetricsAreNamedAndNotShown) {
  window_.raise_view(u"run"_s);
  const int width = view_->width();
  const auto state_of = [&](const char* lines) {
    open(write_run("old", to_qstring(lines)));
    return state();
  };
  const QString none = state_of("{\"step\": 0}\n");
  EXPECT_TRUE(none.endsWith(u"1 line of the metrics cannot be read: line 1."_s))
      << qPrintable(none);
  EXPECT_THAT(none, Not(Says("loss")));
  EXPECT_TRUE(view_->table().rows.empty());
  const QString text = state_of(
      "{\"step\": 0, \"step_s\": 0.1, \"loss\": 3e38, \"tensor_peak_bytes\": 2e9}\nno line\n"
      "{\"step\": -1e300, \"step_s\": 0.1, \"tensor_peak_bytes\": 1e308}\n");
  EXPECT_THAT(text, Says("Step 0: loss 3e+38, – tokens/s, 2 GB for the step's tensors."));
  EXPECT_THAT(text, Says("2 lines of the metrics cannot be read, first line 2."));
  EXPECT_EQ(view_->table().rows.size(), 1U);
  EXPECT_EQ(view_->width(), width);
}

// An empty legend took the width of the axes before.
TEST(RunCharts, TheAxesOfAFigureWithoutAnyStepAreAsWideAsOthers) {
  RunCharts charts;
  charts.resize(1000, 240);
  const std::vector<RunStep> none;
  charts.show({{none, u"measured"_s}}, {nullptr, std::nullopt});
  charts.grab();
  for (auto* chart : charts.findChildren<PointChart*>())
    EXPECT_GT(chart->axisRect()->width(), chart->width() / 2) << qPrintable(chart->objectName());
}

// A line of one point draws nothing.
TEST(RunCharts, AFirstStepIsDrawn) {
  RunCharts charts;
  const std::vector<RunStep> first(1);
  charts.show({{first, u"measured"_s}}, {nullptr, std::nullopt});
  const auto& loss = *charts.findChild<PointChart*>(u"run_loss"_s);
  ASSERT_EQ(loss.graph(0)->dataCount(), 1);
  EXPECT_FALSE(loss.graph(0)->scatterStyle().isNone());
}

// The command palette offers both at any time.
TEST_F(RunViewTest, StoppingNothingAndStartingTwiceChangeNothing) {
  view_->stop();
  EXPECT_FALSE(state().contains(u"Stopping"_s));
  start(100'000);
  ASSERT_TRUE(wait_for([&] { return !view_->follower().steps().empty(); }));
  const QString folder = find<QLineEdit>("run_out").text();
  view_->start();
  EXPECT_EQ(find<QLineEdit>("run_out").text(), folder);
  EXPECT_TRUE(said().contains(u"stop it first"_s));
  view_->stop();
  ASSERT_TRUE(ends_well());
}

TEST_F(RunViewTest, ARunThatGoesOnLeavesAnotherOneThatIsShownAlone) {
  start_long_run();
  ASSERT_TRUE(wait_for([&] { return state().contains(u"is done"_s); })) << qPrintable(state());
  open(write_run("other", u"{\"step\": 0, \"loss\": 2.0, \"step_s\": 0.1}\n"_s));
  EXPECT_TRUE(state().startsWith(u"Run of "_s)) << qPrintable(state());
  EXPECT_FALSE(state().contains(u"is done"_s)) << qPrintable(state());
  open(run_.path());
  EXPECT_TRUE(state().contains(u"trains."_s)) << qPrintable(state());
  open(folder_.filePath(u"other"_s));
  press("run_stop");
  ASSERT_TRUE(ends_well()) << qPrintable(said());
  EXPECT_TRUE(state().startsWith(u"Run of "_s)) << qPrintable(state());
  EXPECT_EQ(view_->follower().steps().size(), 1U);
}

TEST_F(RunViewTest, AFailingRunSaysWhy) {
  write_text_file(corpus_, u"to be"_s);
  start(3);
  EXPECT_FALSE(ends_well());
  EXPECT_THAT(said(), Says("corpus.txt: found 5 tokens; expected at least 33"));
  EXPECT_FALSE(said().contains(run_.path()));
}

TEST_F(RunViewTest, APlanThatTheExecutorCannotRunSwitchesStartOff) {
  const auto& start_button = find<QPushButton>("run_start");
  window_.raise_view(u"run"_s);
  find<QLineEdit>("run_data").setText(corpus_);
  find<QLineEdit>("run_out").setText(run_.path());
  EXPECT_TRUE(start_button.isEnabled());
  Scenario wrong = tiny_scenario();
  wrong.plan.recompute = RecomputePolicy::PerOp;
  choose(wrong);
  EXPECT_FALSE(start_button.isEnabled());
  EXPECT_THAT(start_button.toolTip(), Says("recompute: per-op; expected none, selective or full"));
  EXPECT_THAT(view_->findChild<QLabel*>(u"hint"_s)->text(), Says("This machine cannot train"));
  press("run_start");
  EXPECT_FALSE(view_->is_running());
  view_->start();  // The command palette offers it at any time.
  EXPECT_FALSE(view_->is_running());
  EXPECT_THAT(said(), Says("recompute: per-op"));

  // Of many reasons three are named.
  wrong.stack = load_stack("generic-pytorch");
  wrong.model.dropout = 0.1;
  wrong.model.head_bias = true;
  choose(wrong);
  EXPECT_THAT(start_button.toolTip(), Says("model dropout: 0.1"));
  EXPECT_THAT(start_button.toolTip(), Says("further reasons"));

  choose(tiny_scenario());
  EXPECT_TRUE(start_button.isEnabled());
}

TEST_F(RunViewTest, AMissingCorpusIsReported) {
  corpus_ = folder_.filePath(u"no-such-file"_s);
  start(3);
  EXPECT_FALSE(view_->is_running());
  EXPECT_TRUE(said().contains(u"no-such-file"_s));
}

// Trial 1 is the best of those that reached the end, trial 2 has diverged, trial 0 was stopped
// early.
constexpr const char* kTuning = R"({"schema": "shardwright/tuning", "version": 1,
 "study": {"vary": ["lr=1e-4..1e-1", "global-batch=4,8"], "search": "random", "rungs": [0.25, 1]},
 "results": [
  {"trial": 0, "rung": 0, "values": [0.0001, 4], "steps": 4, "loss": 5.5},
  {"trial": 1, "rung": 0, "values": [0.01, 8], "steps": 2, "loss": 4.5},
  {"trial": 2, "rung": 0, "values": [0.1, 4], "steps": 4, "loss": null},
  {"trial": 1, "rung": 1, "values": [0.01, 8], "steps": 8, "loss": 3.25})";

TEST_F(RunViewTest, ATuningIsShownByTrialsAndFollowedAsItGrows) {
  const auto write_metrics = [&](const char* trial, int steps) {
    QString lines;
    for (int step = 0; step < steps; ++step)
      lines += u"{\"step\": %1, \"loss\": 5, \"step_s\": 0.1}\n"_s.arg(step);
    write_run(trial, lines);
  };
  write_metrics("tune/trial-0000", 4);
  write_metrics("tune/trial-0001", 8);
  write_metrics("tune/trial-0003", 5);
  const QString file = folder_.filePath(u"tune/tuning.json"_s);
  write_text_file(file, to_qstring(kTuning) + u"]}"_s);
  open(folder_.filePath(u"tune"_s));
  const auto& table = find<QTableWidget>("trials_table");
  const auto cells = [&](int row) {
    QStringList texts;
    for (int column = 0; column < table.columnCount(); ++column)
      texts.append(table.item(row, column)->text());
    return texts.join(u" "_s);
  };
  ASSERT_EQ(table.rowCount(), 3);
  EXPECT_EQ(cells(0), u"1 0.01 8 8 3.2500 100.0 %"_s);
  EXPECT_EQ(cells(1), u"0 0.0001 4 4 5.5000 25.0 %"_s);
  EXPECT_EQ(cells(2), u"2 0.1 4 4 – diverged"_s);
  EXPECT_EQ(view_->follower().steps().size(), 8U);
  EXPECT_TRUE(state().contains(u"trial 1: lr 0.01, global-batch 8"_s)) << qPrintable(state());

  QTest::mouseClick(table.viewport(), Qt::LeftButton, {},
                    table.visualItemRect(table.item(1, 0)).center());
  EXPECT_EQ(view_->follower().steps().size(), 4U);

  // A loss says whose it is, and a click on it chooses its trial.
  auto& losses = find<PointChart>("trials_loss");
  losses.replot();
  std::size_t best = 0;
  while (losses.points()[best].y != 3.25) ++best;
  const QPoint place = losses.pixel_of(best).toPoint();
  EXPECT_THAT(tool_tip_at(losses, place), Says("trial 1: lr 0.01, global-batch 8"));
  QTest::mouseClick(&losses, Qt::LeftButton, {}, place);
  EXPECT_EQ(view_->follower().steps().size(), 8U);
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {},
                    table.visualItemRect(table.item(1, 0)).center());

  // A better trial comes first; the chosen one stays chosen.
  write_text_file(file, to_qstring(kTuning) +
                            u",{\"trial\": 3, \"rung\": 0, \"values\": [0.02, 8], \"steps\": 2, "
                            "\"loss\": 4}]}"_s);
  EXPECT_TRUE(wait_for([&] { return table.rowCount() == 4; }));
  EXPECT_EQ(cells(1), u"3 0.02 8 2 4.0000 25.0 %"_s);
  EXPECT_EQ(table.currentRow(), 2);
  EXPECT_EQ(view_->follower().steps().size(), 4U);

  // Any other run takes the place of the tuning.
  open(write_run("alone", u"{\"step\": 0, \"step_s\": 0.1}\n"_s));
  EXPECT_FALSE(table.isVisible());
}

TEST_F(RunViewTest, ADamagedTuningNamesWhatIsWrong) {
  const QString file = folder_.filePath(u"tuning.json"_s);
  write_text_file(file,
                  u"{\"schema\": \"shardwright/tuning\", \"study\": {\"vary\": [\"lr=x\"], "
                  "\"search\": \"grid\", \"rungs\": []}, \"results\": [{\"trial\": 0, "
                  "\"rung\": 1, \"values\": [1, 2], \"steps\": 0}]}"_s);
  open(file);
  for (const char* part :
       {"\"x\" of lr", "study › search", "study › rungs", "results › entry 1 › steps", "values"})
    EXPECT_TRUE(said().contains(to_qstring(part))) << part << qPrintable(said());
}

}  // namespace
}  // namespace shardwright::gui
