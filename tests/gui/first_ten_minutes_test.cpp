// The first ten minutes of somebody who has never seen the window, in its order and with real keys
// and clicks: plan, compare, what if, sweep, timeline, export, run, calibrate, import, close and
// reopen.
//
// Runs on any platform of Qt; CTest runs it under an X server with a window manager, too.
#include <gtest/gtest.h>

#include <QDir>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QToolButton>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
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
  // This machine was probed before, since a probe takes half a minute and needs it idle.
  void SetUp() override {
    const QDir home(folder_.path());
    ASSERT_TRUE(home.mkpath(u"cache/shardwright"_s));
    qputenv("XDG_CACHE_HOME", home.filePath(u"cache"_s).toUtf8());
    qputenv("XDG_DATA_HOME", home.filePath(u"data"_s).toUtf8());
    write_text_file(home.filePath(u"cache/shardwright/here.json"_s),
                    to_qstring(to_json(two_cpu_ranks()).dump()));
  }
  void TearDown() override {
    window_.reset();
    qunsetenv("XDG_CACHE_HOME");
    qunsetenv("XDG_DATA_HOME");
  }

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

  // The offscreen platform has no window manager that gives the window its focus back.
  void leave_dialog() {
    window_->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window_.get()));
    ASSERT_TRUE(is_idle());
  }

  // Runs a command by its name, as one who knows no menu does, and names `file` in its dialog.
  void run_command(const char* name, const QString& file) {
    press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    auto& line = find<QLineEdit>("command_palette_line");
    QTest::keyClicks(&line, to_qstring(name));
    answer_next_dialog(file);
    QTest::keyClick(&line, Qt::Key_Return);
    leave_dialog();
  }

  void type(QWidget& field, const QString& text, Qt::Key end) {
    QTest::mouseClick(&field, Qt::LeftButton);
    QTest::keyClick(&field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&field, text);
    QTest::keyClick(&field, end);
  }

  void click_row(int row, Qt::KeyboardModifiers modifiers = {}) {
    auto& table = find<QTableView>("plans_table");
    QTest::mouseClick(table.viewport(), Qt::LeftButton, modifiers,
                      table.visualRect(table.model()->index(row, 0)).center());
  }

  void open_file(const QString& path) {
    answer_next_dialog(path);
    press(Qt::Key_O, Qt::ControlModifier);
    leave_dialog();
  }

  // Moves the mouse over a text until it rests on a link, and clicks there.
  void click_link(QLabel& label) {
    QSignalSpy hovered(&label, &QLabel::linkHovered);
    for (int y = label.height() - 1; y >= 0; y -= 4) {
      for (int x = 0; x < label.width(); x += 8) {
        QTest::mouseMove(&label, {x, y});
        if (!hovered.isEmpty()) return QTest::mouseClick(&label, Qt::LeftButton, {}, {x, y});
      }
    }
    FAIL() << "no link in: " << qPrintable(label.text());
  }

  void plan_and_compare() {
    window_->begin({});
    const QString scenario = folder_.filePath(u"small.json"_s);
    write_text_file(scenario, to_qstring(scenario_file(small_choice()).dump()));
    ASSERT_NO_FATAL_FAILURE(open_file(scenario));
    EXPECT_EQ(window_->document().choice(), small_choice());
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
    auto& chart = find<PointChart>("sweep_chart");
    ASSERT_TRUE(wait_for([&] { return !window_->is_busy() && !chart.points().empty(); }));
    const std::size_t points = chart.points().size();
    EXPECT_GT(points, 2U);
    QCoreApplication::processEvents();
    const ScenarioChoice before = window_->document().choice();
    QTest::mouseClick(&chart, Qt::LeftButton, {}, chart.pixel_of(0).toPoint());
    EXPECT_NE(window_->document().choice(), before);
    ASSERT_TRUE(is_idle());
    EXPECT_EQ(chart.points().size(), points);
    press(Qt::Key_Z, Qt::ControlModifier);
    EXPECT_EQ(window_->document().choice(), before);
    ASSERT_TRUE(is_idle());
    press(Qt::Key_4, Qt::AltModifier);
    ASSERT_TRUE(is_idle());
    EXPECT_GT(window_->findChild<TimelineView*>()->canvas().tracks().shown_spans(), 100U);
  }

  void export_plan() {
    const QString plan = folder_.filePath(u"args.sh"_s);
    run_command("Export the plan for Megatron", plan);
    EXPECT_TRUE(QFile::exists(plan)) << qPrintable(find<MessageBar>("message_bar").text());
  }

  void run_and_calibrate() {
    press(Qt::Key_9, Qt::AltModifier);
    ASSERT_TRUE(is_idle());
    auto* run = window_->findChild<RunView*>();
    auto* hint = run->findChild<QLabel*>(u"hint"_s);
    ASSERT_NO_FATAL_FAILURE(click_link(*hint));
    ASSERT_TRUE(is_idle());
    EXPECT_EQ(window_->document().choice().model, "tiny-llama");
    type(find<QSpinBox>("run_steps"), u"14"_s, Qt::Key_Tab);
    QTest::mouseClick(&find<QPushButton>("run_start"), Qt::LeftButton);
    ASSERT_TRUE(run->is_running()) << qPrintable(find<QPushButton>("run_start").toolTip());
    ASSERT_TRUE(wait_for([&] { return !run->is_running() && is_idle(); }));
    EXPECT_EQ(run->follower().steps().size(), 14U);
    QTest::mouseClick(&find<QPushButton>("run_calibrate"), Qt::LeftButton);
    ASSERT_TRUE(is_idle());
    EXPECT_THAT(find<QLabel>("run_state").text(), Says("Calibrated"));
  }

  void import_trace_and_export_it() {
    ASSERT_NO_FATAL_FAILURE(
        open_file(QStringLiteral(SHARDWRIGHT_SOURCE_DIR "/tests/calibration/traces/files/") +
                  u"mi250-two-steps.json.gz"_s));
    EXPECT_THAT(find<QLabel>("timeline_source").text(), Says("mi250-two-steps"));
    const QString picture = folder_.filePath(u"timeline.png"_s);
    run_command("Export the view as PNG", picture);
    EXPECT_TRUE(QFile::exists(picture));
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
  ASSERT_NO_FATAL_FAILURE(export_plan());
  ASSERT_NO_FATAL_FAILURE(run_and_calibrate());
  ASSERT_NO_FATAL_FAILURE(import_trace_and_export_it());
  const ScenarioChoice left = window_->document().choice();
  press(Qt::Key_Q, Qt::ControlModifier);
  ASSERT_TRUE(wait_for([&] { return !window_->isVisible(); }));
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
