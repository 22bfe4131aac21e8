#include "gui/views/forecast_view.hpp"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSettings>

#include "core/spec/profile_library.hpp"
#include "gui/views/bar_chart.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/forecast_charts.hpp"
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

}  // namespace
}  // namespace shardwright::gui
