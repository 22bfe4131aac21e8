#include "gui/views/forecast_view.hpp"

#include <QAbstractItemView>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QSettings>

#include "core/spec/batch_json.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/run_json.hpp"
#include "gui/views/bar_chart.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/forecast_charts.hpp"
#include "planner/run_search.hpp"
#include "planner/run_wording.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/window_fixture.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::gui {
namespace {

using fixtures::tool_tip_at;

class ForecastViewTest : public WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    window_.raise_view(u"forecast"_s);
    window_.selection().show(small_set());
    ASSERT_TRUE(is_idle());
  }

  ForecastView& view() { return *window_.findChild<ForecastView*>(); }
  TrajectoryChart& trajectory() { return find<TrajectoryChart>("trajectory"); }
  QString hint() {
    const auto* empty = view().findChild<EmptyState*>();
    return empty->is_empty() ? empty->hint() : QString();
  }
  double figure(const QString& part) {
    for (const QStringList& row : view().table().rows)
      if (row[1] == part) return row[2].toDouble();
    ADD_FAILURE() << qPrintable(part);
    return 0.0;
  }
  void train_on(const QString& tokens) {
    type(find<QLineEdit>("forecast_tokens"), tokens, Qt::Key_Return);
    ASSERT_TRUE(is_idle());
  }
  // Opens the list of a box and clicks an entry, which asks for a file if there is an `answer`.
  void choose_by_mouse(QComboBox& box, int index, const QString& answer = {}) {
    QTest::mouseClick(&box, Qt::LeftButton);
    QAbstractItemView& list = *box.view();
    ASSERT_TRUE(wait_for([&] { return list.isVisible(); }));
    const QRect entry = list.visualRect(box.model()->index(index, 0));
    // For a while the list takes a release as the end of the click that has opened it. On a busy
    // machine the wait may end before the timer of the list was served.
    QTest::qWait(QApplication::doubleClickInterval() + 50);
    QCoreApplication::processEvents();
    if (!answer.isEmpty()) answer_next_dialog(answer);
    QTest::mouseClick(list.viewport(), Qt::LeftButton, {}, entry.center());
    ASSERT_FALSE(list.isVisible()) << "the list has not taken the click";
  }
  QPoint place(double day, double share) {
    const QCPAxisRect& rect = *trajectory().axisRect();
    return {static_cast<int>(trajectory().xAxis->coordToPixel(day)),
            rect.bottom() - static_cast<int>(share * rect.height())};
  }
};

TEST_F(ForecastViewTest, ItsFiguresAreThoseOfTheForecast) {
  planner::ForecastRequest request;
  request.scenario = *window_.selection().scenario();
  request.run = load_run("settled-fleet");
  request.tokens = 2e12;
  const auto interval =
      validation::step_interval(Seconds(1.0), validation::class_of(request.scenario));
  const planner::Forecast expected = planner::forecast(
      request, planner::run_stages(request), {interval->low.value(), interval->high.value()});
  EXPECT_DOUBLE_EQ(figure(u"time"_s), expected.statistics.wall.p50);
  EXPECT_DOUBLE_EQ(figure(u"cost"_s), expected.costs[Contract::OnDemand].value());
  QStringList shown;
  for (const QLabel* label : find<QWidget>("forecast_figures").findChildren<QLabel*>())
    shown.append(label->text());
  EXPECT_TRUE(shown.contains(percent_text(expected.goodput)));
  EXPECT_EQ(find<BarChart>("forecast_gains").bars().front().value,
            100.0 * expected.gains.front().share);
}

TEST_F(ForecastViewTest, TypedTokensAreForecastAndOtherTextsAreExplained) {
  const double before = figure(u"time"_s);
  train_on(u"8T"_s);
  EXPECT_NEAR(figure(u"time"_s) / before, 4.0, 0.05);
  train_on(u"many"_s);
  EXPECT_THAT(hint(), Says("“many” is no number of tokens"));
  EXPECT_TRUE(view().table().rows.empty());
}

// The number of tokens and the laws are those of `shardwright forecast --target-loss`.
TEST_F(ForecastViewTest, ALossTakesTheTokensOfItsLaw) {
  const Scenario scenario = *window_.selection().scenario();
  const BatchSpec batch = load_batch("hoffmann-2022");
  const planner::TokenNeed need = planner::need_of_loss(batch, scenario.model, 2.5);
  choose_by_mouse(find<QComboBox>("forecast_goal"), 1);
  EXPECT_FALSE(find<QLineEdit>("forecast_tokens").isVisible());
  choose_by_mouse(find<QComboBox>("forecast_laws"), 0);
  type(find<QLineEdit>("forecast_loss"), u"2.5"_s, Qt::Key_Return);
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(hint(), QString());
  EXPECT_DOUBLE_EQ(figure(u"tokens"_s), need.at_batch(32.0 * 2048.0));
  const QString shown = find<QLabel>("forecast_laws_text").text();
  for (const std::string& law : planner::laws_behind_tokens(batch, scenario.model, need, true))
    EXPECT_THAT(shown, Says(law.c_str()));
  EXPECT_THAT(find<QLabel>("forecast_tokens_text").text(),
              Says(tokens_text(need.at_batch(32.0 * 2048.0))));
  choose_by_mouse(find<QComboBox>("forecast_goal"), 0);
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(figure(u"tokens"_s), 2e12);
  EXPECT_FALSE(find<QLabel>("forecast_laws_text").isVisible());
}

TEST_F(ForecastViewTest, LossesThatAreNoneOrOutOfReachAreExplained) {
  choose_by_mouse(find<QComboBox>("forecast_goal"), 1);
  type(find<QLineEdit>("forecast_loss"), u"1.5"_s, Qt::Key_Return);
  ASSERT_TRUE(is_idle());
  EXPECT_THAT(hint(), Says("which llama3.2-1b reaches after 1,000 T tokens"));
  type(find<QLineEdit>("forecast_loss"), u"low"_s, Qt::Key_Return);
  EXPECT_THAT(hint(), Says("“low” is no loss"));
  EXPECT_THAT(hint(), Says(planner::kExpectedLoss));
}

TEST_F(ForecastViewTest, OtherFileReadsAProfileFromAFile) {
  RunSpec mine = load_run("settled-fleet");
  mine.price.dollars_per_gpu_hour = 100.0;
  mine.recovery.from_replicas = true;
  const QString path = write("mine.json", to_json(mine).dump());
  auto& box = find<QComboBox>("forecast_profile");
  const double before = figure(u"cost"_s);
  choose_by_mouse(box, box.count() - 1, path);
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(box.currentText(), u"mine.json"_s);
  EXPECT_GT(figure(u"cost"_s), 5.0 * before);
  EXPECT_THAT(find<QLabel>("forecast_warning").text(),
              Says("recovery.from_replicas has no effect"));
}

TEST_F(ForecastViewTest, KeysAndTheWheelAskForNoFile) {
  auto& box = find<QComboBox>("forecast_profile");
  box.setFocus();
  for (int i = 0; i < 6; ++i) QTest::keyClick(&box, Qt::Key_Down);
  EXPECT_EQ(box.currentIndex(), box.count() - 2);
  fixtures::turn_wheel(box, box.rect().center(), -1);
  EXPECT_EQ(box.currentIndex(), box.count() - 2);
  ASSERT_TRUE(is_idle());
}

TEST_F(ForecastViewTest, DroppedProfilesAreTakenAndReadAgain) {
  window_.raise_view(u"plans"_s);
  RunSpec mine = load_run("settled-fleet");
  const QString run = write("run.json", to_json(mine).dump());
  const QString batch = write("batch.json", to_json(load_batch("kaplan-2020")).dump());
  drop({run, batch});
  EXPECT_FALSE(find<QComboBox>("forecast_profile").visibleRegion().isEmpty());
  EXPECT_EQ(find<QComboBox>("forecast_profile").currentText(), u"run.json"_s);
  EXPECT_EQ(find<QComboBox>("forecast_laws").currentText(), u"batch.json"_s);
  EXPECT_TRUE(find<QLineEdit>("forecast_loss").isVisible());
  type(find<QLineEdit>("forecast_loss"), u"3"_s, Qt::Key_Return);
  ASSERT_TRUE(is_idle());
  const double before = figure(u"starting up"_s);
  mine.startup = 10.0 * mine.startup;
  write("run.json", to_json(mine).dump());
  trigger("file.reload");
  ASSERT_TRUE(is_idle());
  EXPECT_GT(figure(u"starting up"_s), 3.0 * before);
}

TEST_F(ForecastViewTest, ADamagedProfileIsReportedWithAllItsProblems) {
  const double before = figure(u"time"_s);
  nlohmann::ordered_json document = to_json(load_run("settled-fleet"));
  document["recovery"]["restart_s"] = -1;
  document["recovery"]["spare"] = 2;
  drop({write("bad.json", document.dump())});
  EXPECT_THAT(said(), Says("bad.json"));
  EXPECT_THAT(said(), Says("restart_s"));
  EXPECT_THAT(said(), Says("spare_replicas"));
  EXPECT_EQ(find<QComboBox>("forecast_profile").currentText(), u"settled fleet"_s);
  EXPECT_EQ(figure(u"time"_s), before);
}

TEST_F(ForecastViewTest, AProblemOfStagesNamesTheFileOfTheProfile) {
  nlohmann::ordered_json document = to_json(load_run("settled-fleet"));
  document["stages"] = nlohmann::json::parse(R"([{"name": "all", "tokens": 3e12}])");
  drop({write("long.json", document.dump())});
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(said().toStdString(), "");
  EXPECT_EQ(find<QComboBox>("forecast_profile").currentText(), u"long.json"_s);
  EXPECT_THAT(hint(), Says("long.json"));
  EXPECT_THAT(hint(), Says("tokens in all stages"));
}

TEST_F(ForecastViewTest, EachMarkAnswers) {
  train_on(u"100T"_s);
  const double end = trajectory().xAxis->range().upper;
  EXPECT_THAT(tool_tip_at(trajectory(), place(0.5 * end, 0.95)), Says("80 % of them"));
  const QRect losses = trajectory().losses().rect();
  EXPECT_THAT(tool_tip_at(trajectory(), {losses.center().x(), losses.center().y()}),
              Says("steps that were kept"));
  const QCPGraph* marks = nullptr;
  for (int i = 0; i < trajectory().graphCount(); ++i)
    if (trajectory().graph(i)->name() == u"interruption"_s) marks = trajectory().graph(i);
  ASSERT_NE(marks, nullptr);
  const QCPGraphData& first = *marks->data()->begin();
  const QPoint mark(static_cast<int>(trajectory().xAxis->coordToPixel(first.key)),
                    static_cast<int>(trajectory().yAxis->coordToPixel(first.value)));
  EXPECT_THAT(tool_tip_at(trajectory(), mark), Says("Interruption by"));
  for (const char* name : {"forecast_lost", "forecast_gains"}) {
    auto& bars = find<BarChart>(name);
    const QPoint bar(bars.axisRect()->left() + 3, static_cast<int>(bars.yAxis->coordToPixel(0.0)));
    EXPECT_EQ(tool_tip_at(bars, bar), bars.bars().front().tip);
    EXPECT_TRUE(bars.bars().front().tip.contains(u'%'));
  }
}

TEST_F(ForecastViewTest, ZoomedInItMarksCheckpoints) {
  EXPECT_EQ(trajectory().marked_checkpoints(), 0);
  const QCPRange all = trajectory().xAxis->range();
  for (int i = 0; i < 40 && trajectory().marked_checkpoints() == 0; ++i)
    fixtures::turn_wheel(trajectory(), trajectory().axisRect()->center(), 1);
  EXPECT_GT(trajectory().marked_checkpoints(), 3);
  EXPECT_LT(trajectory().xAxis->range().size(), all.size());
  QTest::mouseDClick(&trajectory(), Qt::LeftButton, {}, trajectory().axisRect()->center());
  EXPECT_EQ(trajectory().xAxis->range(), all);
}

TEST_F(ForecastViewTest, StopEndsTheSimulation) {
  find<QComboBox>("forecast_profile").setCurrentIndex(0);
  ASSERT_TRUE(view().is_busy());
  QTest::mouseClick(&find<QToolButton>("stop_forecast"), Qt::LeftButton);
  EXPECT_FALSE(view().is_busy());
  EXPECT_THAT(hint(), Says("Stopped"));
  window_.selection().choose(1);
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(hint(), QString());
}

TEST(ForecastSession, TokensAndProfileComeBack) {
  const QTemporaryDir folder;
  QSettings settings(folder.filePath(u"session.ini"_s), QSettings::IniFormat);
  {
    MainWindow window(&settings);
    window.findChild<QLineEdit*>(u"forecast_tokens"_s)->setText(u"300B"_s);
    window.findChild<QComboBox*>(u"forecast_profile"_s)->setCurrentIndex(0);
    window.save_session();
  }
  const MainWindow window(&settings);
  EXPECT_EQ(window.findChild<QLineEdit*>(u"forecast_tokens"_s)->text(), u"300B"_s);
  EXPECT_EQ(window.findChild<QComboBox*>(u"forecast_profile"_s)->currentIndex(), 0);
}

TEST(ForecastSession, LossAndFilesComeBackAndMissingFilesAreNamed) {
  const QTemporaryDir folder;
  QSettings settings(folder.filePath(u"session.ini"_s), QSettings::IniFormat);
  const QString run = folder.filePath(u"run.json"_s), batch = folder.filePath(u"batch.json"_s);
  write_text_file(run, to_qstring(to_json(load_run("spot-fleet")).dump()));
  write_text_file(batch, to_qstring(to_json(load_batch("kaplan-2020")).dump()));
  {
    MainWindow window(&settings);
    window.open({run, batch});
    ASSERT_TRUE(wait_for([&] { return !window.is_busy(); }));
    window.findChild<QLineEdit*>(u"forecast_loss"_s)->setText(u"2.25"_s);
    window.save_session();
  }
  {
    MainWindow window(&settings);
    EXPECT_EQ(window.findChild<QComboBox*>(u"forecast_goal"_s)->currentIndex(), 1);
    EXPECT_EQ(window.findChild<QLineEdit*>(u"forecast_loss"_s)->text(), u"2.25"_s);
    EXPECT_EQ(window.findChild<QComboBox*>(u"forecast_profile"_s)->currentText(), u"run.json"_s);
    EXPECT_EQ(window.findChild<QComboBox*>(u"forecast_laws"_s)->currentText(), u"batch.json"_s);
    window.save_session();
  }
  ASSERT_TRUE(QFile::remove(run));
  const MainWindow window(&settings);
  EXPECT_EQ(window.findChild<QComboBox*>(u"forecast_profile"_s)->currentText(), u"settled fleet"_s);
  EXPECT_EQ(window.findChild<QComboBox*>(u"forecast_laws"_s)->currentText(), u"batch.json"_s);
  EXPECT_THAT(window.findChild<MessageBar*>()->text(), Says("run.json"));
}

}  // namespace
}  // namespace shardwright::gui
