// The frame around the views: tool bar, titles, layouts, theme, files of scenarios, pages of Help.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QDialog>
#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QMouseEvent>
#include <QSettings>
#include <QSpinBox>
#include <QTabBar>
#include <QTextBrowser>
#include <QToolBar>
#include <QToolButton>
#include <QToolTip>
#include <nlohmann/json.hpp>

#include "core/base/enum_names.hpp"
#include "gui/style/icons.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/point_chart.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/step_charts.hpp"
#include "gui/window/cursor_rest.hpp"
#include "gui/window/theme.hpp"
#include "tests/gui/contrast.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/tiny_run.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::tool_tip_at;

class WindowFrameTest : public WindowTest {
 protected:
  void TearDown() override { apply_theme(Theme::System); }

  QAction& action(const char* id) { return *window_.actions().find(to_qstring(id)); }
  QDockWidget& dock(const char* id) { return find<QDockWidget>(id); }
  bool is_shown(const char* id) {
    const QWidget* seen = window_.childAt(dock(id).geometry().center());
    return dock(id).isVisible() && dock(id).isAncestorOf(seen);
  }
};

TEST_F(WindowFrameTest, TheTitleNamesTheScenario) {
  window_.document().reset(small_choice());
  EXPECT_THAT(window_.windowTitle(), Says(small_choice().model.c_str()));
  EXPECT_THAT(window_.windowTitle(), Says("8 GPUs of "));
}

TEST_F(WindowFrameTest, AViewIsMaximisedAndTheLayoutComesBack) {
  const QRect before = dock("plans").geometry();
  window_.raise_view(u"timeline"_s);
  QTest::keyClick(&window_, Qt::Key_F11);
  QCoreApplication::processEvents();
  EXPECT_TRUE(is_shown("timeline"));
  EXPECT_FALSE(is_shown("plans"));
  EXPECT_FALSE(is_shown("scenario"));
  EXPECT_TRUE(action("view.maximise").isChecked());
  // Another view takes its place.
  QTest::keyClick(&window_, Qt::Key_2, Qt::AltModifier);
  QCoreApplication::processEvents();
  EXPECT_TRUE(is_shown("plans"));
  EXPECT_FALSE(is_shown("timeline"));
  QTest::keyClick(&window_, Qt::Key_F11);
  QCoreApplication::processEvents();
  EXPECT_EQ(dock("plans").geometry(), before);
  EXPECT_TRUE(is_shown("scenario"));
  EXPECT_FALSE(action("view.maximise").isChecked());
}

// The window may get another size while one view has it. The width of Scenario that comes of this
// is none that the user chose.
TEST_F(WindowFrameTest, AResizeWhileMaximisedKeepsTheWidthOfScenario) {
  const int before = dock("scenario").width();
  window_.raise_view(u"timeline"_s);
  QTest::keyClick(&window_, Qt::Key_F11);
  for (const int width : {1000, 800}) {
    window_.resize(width, 900);
    QCoreApplication::processEvents();
  }
  QTest::keyClick(&window_, Qt::Key_F11);
  QCoreApplication::processEvents();
  window_.resize(1400, 900);
  QCoreApplication::processEvents();
  EXPECT_EQ(dock("scenario").width(), before);
}

// A title stands once: on its tab, or above its view.
TEST_F(WindowFrameTest, TitlesStandOnce) {
  QCoreApplication::processEvents();
  EXPECT_EQ(dock("plans").titleBarWidget(), nullptr);
  ASSERT_NE(dock("why").titleBarWidget(), nullptr);
  EXPECT_LE(dock("why").titleBarWidget()->height(), 1);
  dock("why").setFloating(true);
  QCoreApplication::processEvents();
  EXPECT_EQ(dock("why").titleBarWidget(), nullptr);
  trigger("view.one_at_a_time");
  QCoreApplication::processEvents();
  EXPECT_NE(dock("plans").titleBarWidget(), nullptr);
  EXPECT_TRUE(is_shown("plans"));
  EXPECT_FALSE(is_shown("why"));
  trigger("view.columns");
  QCoreApplication::processEvents();
  EXPECT_TRUE(is_shown("plans"));
  EXPECT_TRUE(is_shown("why"));
  EXPECT_LE(dock("plans").geometry().right(), dock("why").geometry().left());
  trigger("view.reset");
  QCoreApplication::processEvents();
  EXPECT_LE(dock("plans").geometry().bottom(), dock("why").geometry().top());
}

TEST_F(WindowFrameTest, CommandsThatCanDoNothingSayWhy) {
  const auto says = [&](const char* id, const char* why) {
    EXPECT_FALSE(action(id).isEnabled()) << id;
    EXPECT_THAT(action(id).toolTip(), Says(why));
  };
  says("plan.stop", "No search");
  says("plan.stop_run", "No run");
  says("plan.calibrate", "No run has measured");
  says("plan.stop_comparing", "No plans are compared");
  says("file.save_plan", "No plan is chosen");
  show_plans();
  EXPECT_TRUE(action("file.save_plan").isEnabled());
  EXPECT_THAT(action("file.save_plan").toolTip(), Says("Saves"));
  window_.selection().compare_with(1);
  EXPECT_TRUE(action("plan.stop_comparing").isEnabled());
  ASSERT_TRUE(is_idle());
  trigger("plan.stop_comparing");
  EXPECT_FALSE(window_.selection().compared());
}

TEST_F(WindowFrameTest, TheToolBarUndoesAndTakesNoHeight) {
  auto& bar = find<QToolBar>("tools");
  EXPECT_LE(bar.height(), window_.menuBar()->height());
  window_.document().reset(small_choice());
  ScenarioChoice other = small_choice();
  other.gpus = 4;
  window_.document().replace(u"a test"_s, other);
  auto* undo = qobject_cast<QToolButton*>(bar.widgetForAction(&action("edit.undo")));
  ASSERT_TRUE(undo->isVisible() && undo->isEnabled());
  QTest::mouseClick(undo, Qt::LeftButton);
  EXPECT_EQ(window_.document().choice().gpus, 8);
  for (QToolButton* button : bar.findChildren<QToolButton*>()) {
    if (!button->isVisible()) continue;
    EXPECT_FALSE(button->icon().isNull());
  }
}

TEST_F(WindowFrameTest, TheThemeIsChosenAndKept) {
  trigger("view.theme_dark");
  QCoreApplication::processEvents();
  EXPECT_TRUE(is_dark(window_.palette()));
  QSettings settings(folder_.filePath(u"session.ini"_s), QSettings::IniFormat);
  {
    MainWindow window(&settings);
    window.show();
    window.actions().find(u"view.theme_dark"_s)->trigger();
    window.close();
  }
  apply_theme(Theme::Light);
  MainWindow window(&settings);
  EXPECT_TRUE(is_dark(QApplication::palette()));
  EXPECT_TRUE(window.actions().find(u"view.theme_dark"_s)->isChecked());
}

TEST_F(WindowFrameTest, AScenarioIsSavedAndOpened) {
  ScenarioChoice choice = small_choice();
  choice.gpus = 4;
  choice.constraints = "tp=2";
  window_.document().reset(choice);
  const QString file = folder_.filePath(u"mine.json"_s);
  answer_next_dialog(file);
  trigger("file.save_scenario");
  ASSERT_TRUE(QFile::exists(file)) << qPrintable(said());
  window_.document().reset(small_choice());
  drop({file});
  EXPECT_EQ(window_.document().choice(), choice);
  trigger("edit.undo");
  EXPECT_EQ(window_.document().choice(), small_choice());
  drop({write("bad.json", R"({"schema": "shardwright/scenario", "version": 1, "gpus": "many"})")});
  EXPECT_THAT(said(), Says("many"));
  EXPECT_EQ(window_.document().choice(), small_choice());
}

TEST_F(WindowFrameTest, APlanIsExportedForOtherFrameworks) {
  show_plans();
  const QString file = folder_.filePath(u"args.sh"_s);
  answer_next_dialog(file);
  trigger("plan.export_megatron");
  ASSERT_TRUE(QFile::exists(file)) << qPrintable(said());
  EXPECT_THAT(said(), Says("Start it with"));
}

TEST_F(WindowFrameTest, TheGlossaryFindsAWord) {
  QTest::keyClick(&window_, Qt::Key_F1);
  auto* line = window_.findChild<QLineEdit*>(u"glossary_find"_s);
  ASSERT_NE(line, nullptr);
  QTest::keyClicks(line, u"bubble"_s);
  EXPECT_EQ(find<QTextBrowser>("glossary_page").textCursor().selectedText().toLower(), u"bubble"_s);
  EXPECT_FALSE(find<QTextBrowser>("glossary_page").toHtml().contains(u"href"_s));
  EXPECT_THAT(find<QTextBrowser>("glossary_page").toPlainText(), Says("mixed clusters"));
  // F1 in the window comes back to it.
  window_.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
  QTest::keyClick(&window_, Qt::Key_F1);
  EXPECT_TRUE(wait_for([&] { return line->hasFocus(); }));
  QTest::keyClick(line, Qt::Key_Escape);
  trigger("help.about");
  EXPECT_THAT(find<QMessageBox>("about").text(), Says("Apache"));
  find<QMessageBox>("about").close();
}

TEST_F(WindowFrameTest, SavingAScenarioSaysThatItsAdaptersAreLeftOut) {
  ScenarioChoice choice = small_choice();
  choice.lora = Lora();
  window_.document().reset(choice);
  answer_next_dialog(folder_.filePath(u"adapted.json"_s));
  trigger("file.save_scenario");
  EXPECT_THAT(said(), Says("without the adapters"));
}

// A reported success goes by itself; a problem stays, and so does a success that the mouse rests on
// or that is said again in time.
TEST_F(WindowFrameTest, ASuccessGoesByItself) {
  auto& bar = find<MessageBar>("message_bar");
  bar.let_successes_stay(std::chrono::milliseconds(50));
  bar.say(u"a"_s, Tone::Success, u"Saved it."_s);
  bar.say(u"b"_s, Tone::Problem, u"Broken."_s);
  EXPECT_THAT(said(), Says("Saved it."));
  QTest::mouseMove(window_.windowHandle(), bar.rows().front()->mapTo(&window_, QPoint(20, 10)));
  ASSERT_TRUE(bar.rows().front()->underMouse());
  QTest::qWait(200);
  EXPECT_THAT(said(), Says("Saved it."));
  QTest::mouseMove(window_.windowHandle(), QPoint(20, window_.height() - 20));
  EXPECT_TRUE(wait_for([&] { return said() == u"Broken."_s; }));
  bar.say(u"a"_s, Tone::Success, u"Saved it."_s);
  bar.let_successes_stay(std::chrono::hours(1));
  QTest::qWait(150);
  bar.say(u"a"_s, Tone::Success, u"Saved it."_s);
  QTest::qWait(800);
  EXPECT_THAT(said(), Says("Saved it."));
}

// Each command has one, no two pictures are equal, and they take the colours of the theme.
TEST_F(WindowFrameTest, CommandsHaveIcons) {
  const auto picture = [](const QIcon& icon) { return icon.pixmap(32).toImage(); };
  for (const QAction* each : window_.actions().actions()) {
    EXPECT_FALSE(each->icon().isNull()) << qPrintable(each->objectName());
  }
  std::vector<QImage> pictures;
  for (const Icon icon : enumerators<Icon>()) {
    const QImage shown = picture(icon_of(icon));
    EXPECT_EQ(std::count(pictures.begin(), pictures.end(), shown), 0) << index_of(icon);
    pictures.push_back(shown);
  }
  const QIcon icon = action("view.topology").icon();
  apply_theme(Theme::Light);
  const QImage light = picture(icon);
  apply_theme(Theme::Dark);
  EXPECT_NE(picture(icon), light);
}

TEST_F(WindowFrameTest, ToolTipsHaveTheColoursOfTheWindow) {
  for (const Theme theme : {Theme::Dark, Theme::Light, Theme::System}) {
    apply_theme(theme);
    EXPECT_EQ(QToolTip::palette().color(QPalette::ToolTipBase),
              QApplication::palette().color(QPalette::Button));
    EXPECT_EQ(QToolTip::palette().color(QPalette::ToolTipText),
              QApplication::palette().color(QPalette::ButtonText));
  }
}

TEST_F(WindowFrameTest, FieldsHaveFramesThatCanBeSeen) {
  for (const Theme theme : {Theme::Dark, Theme::Light}) {
    apply_theme(theme);
    QLineEdit line;
    QSpinBox box;
    for (QWidget* field : {static_cast<QWidget*>(&line), static_cast<QWidget*>(&box)}) {
      field->resize(120, 30);
      const QImage shown = field->grab().toImage();
      double most = 0.0;
      for (int x = 0; x < 4; ++x) {
        const QColor pixel = shown.pixelColor(x, shown.height() / 2);
        most = std::max(most, contrast(pixel, QApplication::palette().color(QPalette::Window)));
      }
      EXPECT_GE(most, 1.5) << index_of(theme) << " " << field->metaObject()->className();
    }
  }
}

TEST_F(WindowFrameTest, TheTextCursorRestsUntilTheNextKey) {
  const int flash_time = QApplication::cursorFlashTime();
  ASSERT_GT(flash_time, 0);
  {
    const CursorRest rest(std::chrono::milliseconds(50));
    ASSERT_TRUE(wait_for([] { return QApplication::cursorFlashTime() == 0; }));
    QTest::keyClick(&window_, Qt::Key_Shift);
    EXPECT_EQ(QApplication::cursorFlashTime(), flash_time);
    ASSERT_TRUE(wait_for([] { return QApplication::cursorFlashTime() == 0; }));
  }
  EXPECT_EQ(QApplication::cursorFlashTime(), flash_time);
}

// However many and long the messages are, the views stay where they are, and so does the row in
// which messages stand.
TEST_F(WindowFrameTest, MessagesHaveAStripOfFixedHeight) {
  auto& bar = find<MessageBar>("message_bar");
  QCoreApplication::processEvents();
  const QRect plans = dock("plans").geometry();
  bar.say(u"0"_s, Tone::Notice, u"Short."_s);
  QCoreApplication::processEvents();
  EXPECT_EQ(dock("plans").geometry(), plans);
  EXPECT_FALSE(bar.geometry().intersects(dock("why").geometry()));
  const int height = bar.height();
  for (int i = 0; i < 5; ++i) {
    bar.say(QString::number(i), Tone::Problem,
            u"A long text, which goes on and on. "_s.repeated(9));
    QCoreApplication::processEvents();
    EXPECT_EQ(bar.height(), height);
    EXPECT_EQ(dock("plans").geometry(), plans);
  }
  auto& unfold = find<QToolButton>("unfold_messages");
  ASSERT_TRUE(wait_for([&] { return unfold.isVisible(); }));
  QTest::mouseClick(&unfold, Qt::LeftButton);
  EXPECT_GT(bar.height(), 2 * height);
  EXPECT_TRUE(window_.rect().contains(bar.geometry()));
  EXPECT_EQ(dock("plans").geometry(), plans);
  trigger("view.close_messages");
  EXPECT_FALSE(bar.isVisible());
  EXPECT_EQ(dock("plans").geometry(), plans);
  bar.say(u"0"_s, Tone::Notice, u"Short."_s);
  EXPECT_EQ(bar.height(), height);
}

TEST_F(WindowFrameTest, ACommandThatCanDoNothingSaysWhy) {
  const auto reason = [this](const char* id) {
    const QAction* action = window_.actions().find(to_qstring(id));
    return action->isEnabled() ? QString() : action->toolTip();
  };
  EXPECT_THAT(reason("file.stop_reading"), Says("No file is being read"));
  EXPECT_THAT(reason("edit.copy_tsv"), Says("no plan that could be copied"));
  show_plans();
  EXPECT_EQ(reason("edit.copy_tsv"), QString());
}

TEST_F(WindowFrameTest, StartSaysWhatIsMissing) {
  auto& start = find<QPushButton>("run_start");
  const auto hint = [&] {
    return window_.findChild<RunView*>()->findChild<QLabel*>(u"hint"_s)->text();
  };
  EXPECT_FALSE(start.isEnabled());
  EXPECT_THAT(start.toolTip(), Says("Choose a plan"));
  window_.selection().show(
      std::make_shared<const PlanSet>(plan_set_of(tiny_scenario(), u"a test"_s)));
  EXPECT_THAT(start.toolTip(), Says("Name a corpus"));
  EXPECT_THAT(hint(), Says("Name a corpus and a folder"));
  find<QLineEdit>("run_data").setText(u"corpus.txt"_s);
  EXPECT_THAT(start.toolTip(), Says("Name a folder"));
  find<QLineEdit>("run_out").setText(folder_.filePath(u"run"_s));
  EXPECT_TRUE(start.isEnabled());
  EXPECT_THAT(hint(), Says("Press <b>Start</b>"));
  PlanSet large = *small_set();
  large.plans.resize(1);
  large.plans[0].plan.global_batch *= 512;
  large.plans[0].plan.dp *= 512;
  window_.selection().show(std::make_shared<const PlanSet>(large));
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(start.isEnabled());
  EXPECT_THAT(start.toolTip(), Says("a run here has at most"));
  EXPECT_THAT(hint(), Says("a run here has at most"));
  // The command of the menu and its keys obey the same reason.
  EXPECT_FALSE(window_.actions().find(u"plan.run"_s)->isEnabled());
  trigger("plan.run");
  EXPECT_FALSE(QFileInfo::exists(folder_.filePath(u"run"_s)));
}

// A click on the gain of a resource plans with it; what differs is marked, and one button takes it
// back.
TEST_F(WindowFrameTest, AGainIsTakenByAClickAndTakenBack) {
  window_.document().reset(small_choice());
  show_plans();
  auto& gains = find<SensitivityChart>("sensitivity");
  ASSERT_TRUE(wait_for([&] { return !gains.sensitivities().empty(); }));
  QCoreApplication::processEvents();
  const int y = static_cast<int>(gains.yAxis->coordToPixel(0.0));
  EXPECT_THAT(tool_tip_at(gains, {gains.width() / 2, y}), Says("A click plans with it"));
  QTest::mouseClick(&gains, Qt::LeftButton, {}, {gains.width() / 2, y});
  const planner::Resource resource = gains.sensitivities().front().resource;
  // The second press of a double click comes as an event of its own, and its release is no click.
  QMouseEvent second(QEvent::MouseButtonDblClick, QPointF(gains.width() / 2, y),
                     gains.mapToGlobal(QPointF(gains.width() / 2, y)), Qt::LeftButton,
                     Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&gains, &second);
  QTest::mouseRelease(&gains, Qt::LeftButton, {}, {gains.width() / 2, y});
  EXPECT_EQ(window_.document().choice().what_if[resource], 110);
  auto& reset = find<QToolButton>("reset_what_ifs");
  ASSERT_TRUE(reset.isEnabled());
  reset.click();
  EXPECT_EQ(window_.document().choice(), small_choice());
  EXPECT_FALSE(reset.isEnabled());
}

TEST_F(WindowFrameTest, BarsAndStacksAnswer) {
  show_plans();
  QCoreApplication::processEvents();
  auto& time = find<WaterfallChart>("waterfall");
  EXPECT_THAT(
      tool_tip_at(time, {time.width() / 2, static_cast<int>(time.yAxis->coordToPixel(0.0))}),
      Says("of the step"));
  auto& memory = find<MemoryChart>("memory");
  const auto tip_at = [&](double share) {
    return tool_tip_at(
        memory,
        {static_cast<int>(memory.xAxis->coordToPixel(0.0)),
         static_cast<int>(memory.yAxis->coordToPixel(share * memory.yAxis->range().upper))});
  };
  EXPECT_THAT(tip_at(0.01), Says("weights"));
  EXPECT_THAT(tip_at(0.95), Says("free"));
}

// What would make a plan fit is a click away.
TEST_F(WindowFrameTest, ARemedyIsAppliedByItsLink) {
  ScenarioChoice choice = small_choice();
  choice.max_memory_gb = 1.0;
  window_.document().reset(choice);
  ASSERT_TRUE(shows([this](const PlanSet& set) { return set.infeasible && !window_.is_busy(); }));
  auto* hint = window_.view(u"plans"_s)->findChild<EmptyState*>();
  EXPECT_THAT(hint->hint(), Says("<a href"));
  Q_EMIT hint->findChild<QLabel*>(u"hint"_s)->linkActivated(u"0"_s);
  EXPECT_NE(window_.document().choice(), choice);
  EXPECT_TRUE(shows([](const PlanSet& set) { return !set.plans.empty(); }));
}

TEST_F(WindowFrameTest, APointOfASweepOpensItsPlans) {
  window_.document().reset(small_choice());
  ASSERT_TRUE(has_plans());
  window_.raise_view(u"sweeps"_s);
  find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(planner::SweepAxis::GlobalBatch));
  auto& chart = find<PointChart>("sweep_chart");
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy() && !chart.points().empty(); }));
  QCoreApplication::processEvents();
  const QPoint last = chart.pixel_of(chart.points().size() - 1).toPoint();
  EXPECT_THAT(tool_tip_at(chart, last), Says("dp "));
  const auto batch = static_cast<std::int64_t>(chart.points().back().x);
  ASSERT_NE(batch, small_choice().global_batch);
  const std::size_t points = chart.points().size();
  QTest::mouseClick(&chart, Qt::LeftButton, {}, last);
  EXPECT_EQ(window_.document().choice().global_batch, batch);
  ASSERT_TRUE(shows([&](const PlanSet& set) {
    EXPECT_EQ(chart.points().size(), points);
    return set.request.global_batch == batch && set.complete && !window_.is_busy();
  }));
  EXPECT_EQ(chart.points().size(), points);
  EXPECT_EQ(static_cast<std::int64_t>(chart.points().back().x), batch);
  trigger("edit.undo");
  EXPECT_EQ(window_.document().choice(), small_choice());
}

// No plan with two pipeline stages runs on one GPU.
TEST_F(WindowFrameTest, APointOfASweepWithoutAPlanSaysWhyAndKeepsTheSweep) {
  ScenarioChoice choice = small_choice();
  choice.constraints = "pp=2; schedule=1f1b; zero=1";
  window_.document().reset(choice);
  ASSERT_TRUE(has_plans());
  window_.raise_view(u"sweeps"_s);
  auto& chart = find<PointChart>("sweep_chart");
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy() && !chart.points().empty(); }));
  QCoreApplication::processEvents();
  const std::size_t points = chart.points().size();
  ASSERT_EQ(chart.points().front().x, 1.0);
  QTest::mouseClick(&chart, Qt::LeftButton, {}, chart.pixel_of(0).toPoint());
  ASSERT_TRUE(shows([&](const PlanSet& set) {
    return set.request.gpus == 1 && set.complete && !window_.is_busy();
  }));
  EXPECT_TRUE(window_.selection().set()->plans.empty());
  EXPECT_EQ(chart.points().size(), points);
  EXPECT_THAT(said(), Says("no plan that runs at this point (GPUs: 1): no plan fits"));
  // Another point opens its plan.
  QTest::mouseClick(&chart, Qt::LeftButton, {}, chart.pixel_of(points - 1).toPoint());
  ASSERT_TRUE(shows([&](const PlanSet& set) {
    return set.request.gpus != 1 && set.complete && !window_.is_busy();
  }));
  EXPECT_FALSE(window_.selection().set()->plans.empty());
  EXPECT_EQ(chart.points().size(), points);
  EXPECT_EQ(said(), QString());
}

}  // namespace
}  // namespace shardwright::gui
