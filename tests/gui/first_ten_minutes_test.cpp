// The first ten minutes of somebody who has never seen the window, in its order and with real keys
// and clicks: plan, compare, what if, sweep, timeline, run, calibrate, import, export, close,
// reopen.
//
// Runs on any platform of Qt: with QT_QPA_PLATFORM=xcb it is seen.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QToolButton>

#include "gui/models/written_file.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/point_chart.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/step_charts.hpp"
#include "gui/window/main_window.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/small_scenario.hpp"
#include "tests/gui/tiny_run.hpp"

namespace shardwright::gui {
namespace {

class FirstTenMinutes : public testing::Test {
 protected:
  template <class Widget>
  Widget& find(const char* name) {
    auto* found = window_->findChild<Widget*>(to_qstring(name));
    EXPECT_NE(found, nullptr) << name;
    return *found;
  }

  void open_window() {
    window_ = std::make_unique<MainWindow>(&settings_);
    window_->resize(1280, 720);
    window_->show();
    window_->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window_.get()));
  }

  bool is_idle() {
    return wait_for([&] { return !window_->is_busy(); });
  }

  void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
    QTest::keyClick(window_.get(), key, modifiers);
    QCoreApplication::processEvents();
  }

  // Runs a command by its name, as one who knows no menu does, and names `file` in its dialog.
  void run_command(const char* name, const QString& file) {
    window_->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window_.get()));
    press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    auto& line = find<QLineEdit>("command_palette_line");
    QTest::keyClicks(&line, to_qstring(name));
    answer_next_dialog(file);
    QTest::keyClick(&line, Qt::Key_Return);
    QCoreApplication::processEvents();
  }

  void type(QWidget& field, const QString& text, Qt::Key end) {
    field.setFocus();
    QTest::keyClick(&field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&field, text);
    QTest::keyClick(&field, end);
  }

  void click_row(int row, Qt::KeyboardModifiers modifiers = {}) {
    auto& table = find<QTableView>("plans_table");
    QTest::mouseClick(table.viewport(), Qt::LeftButton, modifiers,
                      table.visualRect(table.model()->index(row, 0)).center());
  }

  void plan_and_compare() {
    window_->document().reset(small_choice());
    window_->begin({});
    ASSERT_TRUE(wait_for([&] { return window_->selection().set() && !window_->is_busy(); }));
    type(find<QSpinBox>("seq_len"), u"1024"_s, Qt::Key_Return);
    ASSERT_TRUE(wait_for([&] {
      return !window_->is_busy() && window_->selection().set()->request.seq_len == 1024;
    }));
    click_row(1);
    EXPECT_EQ(window_->selection().chosen(), std::optional<std::size_t>(1));
    click_row(0, Qt::ControlModifier);
    ASSERT_TRUE(is_idle());
    EXPECT_THAT(find<QLabel>("verdict").text(), Says("plan 1 (B)"));
    QTest::mouseClick(&find<QToolButton>("stop_comparing"), Qt::LeftButton);
    EXPECT_FALSE(window_->selection().compared());
  }

  void ask_what_if() {
    press(Qt::Key_3, Qt::AltModifier);
    auto& gains = find<SensitivityChart>("sensitivity");
    ASSERT_TRUE(wait_for([&] { return !gains.sensitivities().empty(); }));
    QCoreApplication::processEvents();
    const double before = step_of_best();
    QTest::mouseClick(&gains, Qt::LeftButton, {},
                      {gains.width() / 2, static_cast<int>(gains.yAxis->coordToPixel(0.0))});
    ASSERT_TRUE(is_idle());
    EXPECT_LT(step_of_best(), before);
    press(Qt::Key_Z, Qt::ControlModifier);
    ASSERT_TRUE(is_idle());
    EXPECT_EQ(step_of_best(), before);
  }

  double step_of_best() { return window_->selection().set()->plans.front().result.step.value(); }

  void sweep_and_look_at_the_step() {
    press(Qt::Key_7, Qt::AltModifier);
    const auto& chart = find<PointChart>("sweep_chart");
    ASSERT_TRUE(wait_for([&] { return !window_->is_busy() && !chart.points().empty(); }));
    EXPECT_GT(chart.points().size(), 2U);
    press(Qt::Key_4, Qt::AltModifier);
    ASSERT_TRUE(is_idle());
    EXPECT_GT(window_->findChild<TimelineView*>()->canvas().tracks().shown_spans(), 100U);
  }

  void run_and_calibrate() {
    window_->selection().show(
        std::make_shared<const PlanSet>(plan_set_of(tiny_scenario(), u"a plan"_s)));
    press(Qt::Key_9, Qt::AltModifier);
    const QString corpus = folder_.filePath(u"corpus.txt"_s);
    write_text_file(corpus, u"to be or not to be, that is the question. "_s.repeated(100));
    type(find<QLineEdit>("run_data"), corpus, Qt::Key_Tab);
    type(find<QLineEdit>("run_out"), folder_.filePath(u"run"_s), Qt::Key_Tab);
    type(find<QSpinBox>("run_steps"), u"14"_s, Qt::Key_Tab);
    QTest::mouseClick(&find<QPushButton>("run_start"), Qt::LeftButton);
    auto* run = window_->findChild<RunView*>();
    ASSERT_TRUE(wait_for([&] { return !run->is_running() && is_idle(); }));
    EXPECT_EQ(run->follower().steps().size(), 14U);
    QTest::mouseClick(&find<QPushButton>("run_calibrate"), Qt::LeftButton);
    ASSERT_TRUE(is_idle());
    EXPECT_THAT(find<QLabel>("run_state").text(), Says("Calibrated"));
  }

  void import_and_export() {
    window_->open({QStringLiteral(SHARDWRIGHT_SOURCE_DIR "/tests/calibration/traces/files/") +
                   u"mi250-two-steps.json.gz"_s});
    ASSERT_TRUE(is_idle());
    EXPECT_THAT(find<QLabel>("timeline_source").text(), Says("mi250-two-steps"));
    const QString picture = folder_.filePath(u"timeline.png"_s);
    run_command("Export the view as PNG", picture);
    EXPECT_TRUE(QFile::exists(picture));
    const QString plan = folder_.filePath(u"args.sh"_s);
    run_command("Export the plan for Megatron", plan);
    EXPECT_TRUE(QFile::exists(plan)) << qPrintable(find<MessageBar>("message_bar").text());
  }

  const QTemporaryDir folder_;
  QSettings settings_{folder_.filePath(u"session.ini"_s), QSettings::IniFormat};
  std::unique_ptr<MainWindow> window_;
};

TEST_F(FirstTenMinutes, LeadFromAPlanToARunAndBack) {
  ASSERT_NO_FATAL_FAILURE(open_window());
  ASSERT_NO_FATAL_FAILURE(plan_and_compare());
  ASSERT_NO_FATAL_FAILURE(ask_what_if());
  ASSERT_NO_FATAL_FAILURE(sweep_and_look_at_the_step());
  ASSERT_NO_FATAL_FAILURE(run_and_calibrate());
  ASSERT_NO_FATAL_FAILURE(import_and_export());
  const ScenarioChoice left = window_->document().choice();
  window_->close();
  window_.reset();
  ASSERT_NO_FATAL_FAILURE(open_window());
  window_->begin({});
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(window_->document().choice(), left);
  EXPECT_EQ(window_->findChild<RunView*>()->follower().steps().size(), 14U);
  EXPECT_THAT(find<QLabel>("timeline_source").text(), Says("mi250-two-steps"));
}

}  // namespace
}  // namespace shardwright::gui
