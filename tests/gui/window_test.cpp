#include <gtest/gtest.h>

#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QRegularExpression>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>
#include <QTableWidget>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "gui/models/chosen_request.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/chart.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/plan_scatter.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/step_charts.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/pick_list.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

TEST_F(WindowTest, AScenarioBecomesPlansAndReasons) {
  window_.document().reset(small_choice());
  ASSERT_TRUE(wait_for([&] { return window_.selection().set() != nullptr; }));
  ASSERT_TRUE(is_idle());
  const PlanSetPointer set = window_.selection().set();
  EXPECT_EQ(set->plans.front().plan, small_set()->plans.front().plan);
  EXPECT_GT(find<QTableView>("plans_table").model()->rowCount(), 5);
  EXPECT_TRUE(find<QLabel>("why_limit").text().startsWith(u"The plan is compute-bound: GEMMs"_s));
  EXPECT_GT(find<SensitivityChart>("sensitivity").plottableCount(), 5);
}

TEST_F(WindowTest, PlansOfTheFormerScenarioAreMarked) {
  window_.document().reset(small_choice());
  ASSERT_TRUE(has_plans());
  auto& mark = find<QLabel>("outdated");
  EXPECT_FALSE(mark.isVisible());
  auto& constraints = find<QLineEdit>("constraints");
  type(constraints, u"no-such-field=1"_s, Qt::Key_Return);
  EXPECT_TRUE(mark.isVisible());
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(mark.isVisible());
  type(constraints, u"tp=1"_s, Qt::Key_Return);
  ASSERT_TRUE(wait_for([&] { return !mark.isVisible(); }));
  EXPECT_EQ(window_.selection().set()->plans.front().plan.tp, 1);
}

TEST_F(WindowTest, TableAndPlotShareTheSelection) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  const QModelIndex third = table.model()->index(2, table.columnAt(5));
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(third).center());
  EXPECT_EQ(window_.selection().chosen(), std::optional<std::size_t>(2));

  // A plan of the front lies apart from the crowd.
  auto& scatter = find<PlanScatter>("scatter");
  const int row = scatter.front().back();
  QTest::mouseClick(&scatter, Qt::LeftButton, {}, scatter.pixel_of(row).toPoint());
  ASSERT_TRUE(window_.selection().chosen());
  EXPECT_EQ(table.currentIndex().row(), static_cast<int>(*window_.selection().chosen()));
}

TEST_F(WindowTest, ALassoFiltersTheTable) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  auto& scatter = find<PlanScatter>("scatter");
  const int all = table.model()->rowCount();
  const QPoint at = scatter.pixel_of(scatter.front().front()).toPoint();
  QTest::mousePress(&scatter, Qt::LeftButton, Qt::ShiftModifier, at - QPoint(15, 15));
  QTest::mouseMove(&scatter, at);
  QTest::mouseMove(&scatter, at + QPoint(15, 15));
  QTest::mouseRelease(&scatter, Qt::LeftButton, Qt::ShiftModifier, at + QPoint(15, 15));
  EXPECT_LT(table.model()->rowCount(), all);
  EXPECT_GT(table.model()->rowCount(), 0);
  auto& chip = find<QToolButton>("lasso_chip");
  ASSERT_TRUE(chip.isVisible());
  // More plans of the same search come, and in another order.
  const int inside = table.model()->rowCount();
  PlanSet more = *window_.selection().set();
  std::reverse(more.plans.begin(), more.plans.end());
  mark_front(more);
  window_.selection().show(std::make_shared<const PlanSet>(std::move(more)));
  EXPECT_EQ(table.model()->rowCount(), inside);
  ASSERT_TRUE(chip.isVisible());
  QTest::mouseClick(&chip, Qt::LeftButton);
  EXPECT_EQ(table.model()->rowCount(), all);
}

TEST_F(WindowTest, TheWheelZoomsThePlotAndADoubleClickShowsAll) {
  show_plans();
  auto& scatter = find<PlanScatter>("scatter");
  const double before = scatter.xAxis->range().size();
  const QPointF at = scatter.axisRect()->center();
  fixtures::turn_wheel(scatter, at, 1);
  EXPECT_LT(scatter.xAxis->range().size(), before);
  QTest::mouseDClick(&scatter, Qt::LeftButton, {}, at.toPoint());
  EXPECT_DOUBLE_EQ(scatter.xAxis->range().size(), before);
}

TEST_F(WindowTest, TheFilterLineNarrowsTableAndPlot) {
  show_plans();
  trigger("edit.filter");
  auto& filter = find<QLineEdit>("filter");
  QTest::keyClicks(&filter, u"zero=3"_s);
  auto& table = find<QTableView>("plans_table");
  const int column = figure_index(u"zero"_s);
  ASSERT_GT(table.model()->rowCount(), 0);
  for (int row = 0; row < table.model()->rowCount(); ++row)
    EXPECT_EQ(table.model()->index(row, column).data().toString(), u"3"_s);
  QTest::keyClicks(&filter, u", mfu>x"_s);
  EXPECT_TRUE(find<QLabel>("filter_problem").isVisible());
}

TEST_F(WindowTest, AChipTakesItsTermOutOfTheFilter) {
  show_plans();
  const int all = find<QTableView>("plans_table").model()->rowCount();
  auto& filter = find<QLineEdit>("filter");
  filter.setText(u"tp=1, zero=3"_s);
  const int both = find<QTableView>("plans_table").model()->rowCount();
  QTest::mouseClick(&find<QToolButton>("chip_1"), Qt::LeftButton);
  EXPECT_EQ(filter.text(), u"tp=1"_s);
  EXPECT_GE(find<QTableView>("plans_table").model()->rowCount(), both);
  QTest::mouseClick(&find<QToolButton>("chip_0"), Qt::LeftButton);
  EXPECT_EQ(find<QTableView>("plans_table").model()->rowCount(), all);
  EXPECT_EQ(window_.view(u"plans"_s)->findChild<QToolButton*>(u"chip_0"_s), nullptr);
}

TEST_F(WindowTest, ACellsMenuFilters) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  const QModelIndex cell = table.model()->index(0, figure_index(u"tp"_s));
  const QString value = cell.data().toString();
  Q_EMIT table.customContextMenuRequested(table.visualRect(cell).center());
  QMenu* menu =
      window_.view(u"plans"_s)->findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly).back();
  ASSERT_EQ(menu->actions().front()->text(), u"Only tp="_s + value);
  menu->actions().front()->trigger();
  menu->close();
  EXPECT_EQ(find<QLineEdit>("filter").text(), u"tp="_s + value);
  for (int row = 0; row < table.model()->rowCount(); ++row)
    EXPECT_EQ(table.model()->index(row, cell.column()).data().toString(), value);
}

TEST_F(WindowTest, CtrlClickComparesTwoPlans) {
  show_plans();
  auto& scatter = find<PlanScatter>("scatter");
  const int other = scatter.front().back();
  ASSERT_NE(other, 0);  // Plan 0 is the chosen one.
  QTest::mouseClick(&scatter, Qt::LeftButton, Qt::ControlModifier,
                    scatter.pixel_of(other).toPoint());
  ASSERT_TRUE(window_.selection().compared());
  EXPECT_EQ(window_.selection().chosen(), std::optional<std::size_t>(0));
  ASSERT_TRUE(is_idle());
  const QString verdict = find<QLabel>("verdict").text();
  EXPECT_TRUE(verdict.contains(u"plan"_s, Qt::CaseInsensitive)) << qPrintable(verdict);
  EXPECT_FALSE(verdict.contains(u"the first is"_s, Qt::CaseInsensitive)) << qPrintable(verdict);
  // The table shows words, not places in documents.
  const auto& differences = find<QTableWidget>("differences");
  ASSERT_GT(differences.rowCount(), 5);
  for (int row = 0; row < differences.rowCount(); ++row) {
    EXPECT_FALSE(differences.item(row, 0)->text().contains(QRegularExpression(u"^/|_"_s)));
    EXPECT_FALSE(differences.item(row, 1)->text().contains(u'"'));
  }
}

// The letters of the two plans are those of the table's rows; what is equal is not listed.
TEST_F(WindowTest, AComparisonNamesItsPlansAndCanBeStopped) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  const auto click = [&](int row, Qt::MouseButton button, Qt::KeyboardModifiers keys) {
    QTest::mouseClick(table.viewport(), button, keys,
                      table.visualRect(table.model()->index(row, 0)).center());
  };
  const auto heading = [&](int row) {
    return table.model()->headerData(row, Qt::Vertical).toString();
  };
  click(2, Qt::RightButton, {});
  EXPECT_EQ(window_.selection().chosen(), std::optional<std::size_t>(0));
  click(1, Qt::LeftButton, Qt::ControlModifier);
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(window_.selection().compared(), std::optional<std::size_t>(1));
  EXPECT_EQ(heading(0), u"A · 1"_s);
  EXPECT_EQ(heading(1), u"B · 2"_s);
  EXPECT_EQ(heading(2), u"3"_s);
  EXPECT_THAT(find<QLabel>("verdict").text(), Says("plan 2 (B)"));
  EXPECT_THAT(find<QLabel>("compared_plans").text(), Says("plan 1 (A)"));
  const auto& differences = find<QTableWidget>("differences");
  EXPECT_EQ(differences.item(0, 3)->text(), u"–"_s);  // A field of the plan.
  for (int row = 0; row < differences.rowCount(); ++row)
    EXPECT_NE(differences.item(row, 1)->text(), differences.item(row, 2)->text());
  QTest::mouseClick(&find<QToolButton>("stop_comparing"), Qt::LeftButton);
  EXPECT_FALSE(window_.selection().compared());
  EXPECT_EQ(heading(0), u"1"_s);
  EXPECT_EQ(table.selectionModel()->selectedRows().size(), 1);
  EXPECT_EQ(find<QTabWidget>("why_pages").currentIndex(), 0);
}

// The verdict writes a factor too.
TEST_F(WindowTest, ADifferenceOfMoreThanTheWholeIsShownAsAFactor) {
  Scenario faster = small_set()->scenario(0);
  faster.cluster.accelerator.matrix.bf16 *= 100.0;
  faster.cluster.accelerator.memory_bandwidth *= 100.0;
  show_plans();
  window_.findChild<WhyView*>()->compare_with(faster, u"a faster machine"_s);
  ASSERT_TRUE(is_idle());
  const auto& differences = find<QTableWidget>("differences");
  EXPECT_FALSE(differences.horizontalHeaderItem(3)->text().contains(u"−"_s));
  static const QRegularExpression kPercent(u"^\\+([\\d,.]+) %$"_s);
  int factors = 0;
  for (int row = 0; row < differences.rowCount(); ++row) {
    const QString change = differences.item(row, 3)->text();
    factors += change.endsWith(u" times"_s) ? 1 : 0;
    EXPECT_LT(kPercent.match(change).captured(1).remove(u',').toDouble(), 100.0)
        << qPrintable(change);
  }
  EXPECT_GT(factors, 0);
}

// A search that goes on may find plans that come before those that are compared.
TEST_F(WindowTest, AComparisonFollowsTheNumbersOfItsPlans) {
  PlanSet few = *small_set();
  few.plans.erase(few.plans.begin());
  window_.selection().show(std::make_shared<const PlanSet>(few));
  window_.selection().choose(1);
  window_.selection().compare_with(2);
  ASSERT_TRUE(is_idle());
  ASSERT_TRUE(find<QLabel>("verdict").text().contains(u"plan 3 (B)"_s));
  window_.selection().show(small_set());
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(find<QLabel>("verdict").text().contains(u"plan 4 (B)"_s));
  EXPECT_FALSE(find<QLabel>("verdict").text().contains(u"plan 2 (A)"_s));
}

TEST_F(WindowTest, AComparisonGoesWithItsPlans) {
  show_plans();
  window_.selection().compare_with(2);
  ASSERT_TRUE(is_idle());
  ASSERT_GT(find<QTableWidget>("differences").rowCount(), 0);
  window_.selection().show(
      std::make_shared<const PlanSet>(plan_set_of(small_set()->scenario(0), u"a file"_s)));
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(find<QTableWidget>("differences").rowCount(), 0);
  EXPECT_TRUE(find<QLabel>("verdict").text().isEmpty());
}

TEST_F(WindowTest, CopiesPlansAsTextWithUnits) {
  show_plans();
  trigger("edit.copy_tsv");
  const QString tsv = QGuiApplication::clipboard()->text();
  EXPECT_TRUE(tsv.startsWith(u"Step (s)\tTokens/s (per GPU)"_s));
  EXPECT_EQ(tsv.count(u'\n'), static_cast<int>(small_set()->plans.size()) + 1);
  // Spreadsheets of any language read the numbers: no marks between thousands.
  const QStringList first = tsv.section(u'\n', 1, 1).split(u'\t');
  const double rate = small_set()->plans.front().result.throughput.tokens_per_s_per_gpu;
  ASSERT_GT(rate, 1000.0);
  EXPECT_NEAR(first[1].toDouble(), rate, 1e-6 * rate) << qPrintable(first[1]);
  trigger("edit.copy_markdown");
  EXPECT_TRUE(QGuiApplication::clipboard()->text().startsWith(u"| Step (s) |"_s));
}

TEST_F(WindowTest, NothingFitsIsExplained) {
  ScenarioChoice choice = small_choice();
  choice.model = "llama3-70b";
  choice.gpus = 1;
  choice.constraints.clear();
  window_.document().reset(choice);
  ASSERT_TRUE(shows([&](const PlanSet& set) { return set.infeasible && set.complete; }));
  auto* plans = qobject_cast<QWidget*>(window_.view(u"plans"_s));
  auto* hint = plans->findChild<QLabel*>(u"hint"_s);
  ASSERT_TRUE(hint->isVisible());
  EXPECT_TRUE(hint->text().contains(u"No plan fits"_s));
  EXPECT_TRUE(hint->text().contains(u"What would help"_s));
  const auto* why = window_.view(u"why"_s)->findChild<EmptyState*>()->findChild<QLabel*>(u"hint"_s);
  EXPECT_THAT(why->text(), Says("No plan fits"));
  for (const char* id : {"timeline", "topology", "schedule"}) {
    window_.raise_view(to_qstring(id));
    ASSERT_TRUE(is_idle());
    EXPECT_THAT(window_.view(to_qstring(id))->findChild<EmptyState*>()->hint(),
                Says("No plan fits"))
        << id;
  }
  choice.model = "nosuchmodel";
  window_.document().reset(choice);
  EXPECT_TRUE(wait_for([&] { return why->text().contains(u"scenario has a problem"_s); }));
}

TEST_F(WindowTest, WhereNothingWouldHelpThatIsSaid) {
  ScenarioChoice choice = small_choice();
  choice.global_batch = 999'999'999;
  choice.seq_len = 1'000'000'000;
  choice.constraints.clear();
  window_.document().reset(choice);
  ASSERT_TRUE(shows([&](const PlanSet& set) { return set.infeasible && set.complete; }));
  const QString text = window_.view(u"plans"_s)->findChild<QLabel*>(u"hint"_s)->text();
  EXPECT_THAT(text, Says(window_.selection().set()->infeasible->closes_it.empty()
                             ? u"No single change was found that makes a plan fit"_s
                             : u"What would help"_s));
}

TEST_F(WindowTest, ThePaletteRunsCommandsByName) {
  show_plans();
  QTest::keyClick(&window_, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  auto& palette = find<PickList>("command_palette");
  ASSERT_TRUE(palette.isVisible());
  auto& line = find<QLineEdit>("command_palette_line");
  auto& entries = find<QListWidget>("command_palette_entries");
  QTest::keyClicks(&line, u"no such command"_s);
  ASSERT_EQ(entries.count(), 1);
  EXPECT_THAT(entries.item(0)->text(), Says("Nothing here has"));
  QTest::keyClick(&line, Qt::Key_Down);
  QTest::keyClick(&line, Qt::Key_Return);
  EXPECT_TRUE(palette.isVisible());
  line.clear();
  QTest::keyClicks(&line, u"copy mark"_s);
  EXPECT_EQ(entries.count(), 1);
  QTest::keyClick(&line, Qt::Key_Return);
  EXPECT_FALSE(palette.isVisible());
  EXPECT_TRUE(QGuiApplication::clipboard()->text().startsWith(u"| Step"_s));
}

// The command acts on the view that had the focus, and what is typed next goes there.
TEST_F(WindowTest, ThePaletteReturnsTheFocus) {
  show_plans();
  for (const Qt::Key end : {Qt::Key_Escape, Qt::Key_Return}) {
    window_.raise_view(u"why"_s);
    const QWidget* before = window_.focusWidget();
    QTest::keyClick(&window_, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    auto& line = find<QLineEdit>("command_palette_line");
    ASSERT_EQ(window_.focusWidget(), &line);
    QTest::keyClicks(&line, u"copy mark"_s);
    QTest::keyClick(&line, end);
    EXPECT_EQ(window_.focusWidget(), before);
  }
}

// A command that contains the typed word comes before commands that contain only its letters.
TEST_F(WindowTest, ThePaletteOffersTheLikeliestFirst) {
  show_plans();
  window_.selection().compare_with(1);
  QTest::keyClick(&window_, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  QTest::keyClicks(&find<QLineEdit>("command_palette_line"), u"top"_s);
  const auto& entries = find<QListWidget>("command_palette_entries");
  ASSERT_GT(entries.count(), 2);
  EXPECT_TRUE(entries.item(0)->text().startsWith(u"View: Topology"_s));
  EXPECT_EQ(entries.currentRow(), 0);
  EXPECT_TRUE(entries.item(1)->text().contains(u"Stop"_s));
}

// The list brings the view to the front, which only then predicts its step.
TEST_F(WindowTest, CtrlPGoesToAnOpOfTheTimeline) {
  show_plans();
  window_.raise_view(u"why"_s);
  auto& timeline = find<TimelineView>("");
  QTest::keyClick(&window_, Qt::Key_P, Qt::ControlModifier);
  auto& line = find<QLineEdit>("go_to_line");
  ASSERT_TRUE(line.isVisible());
  ASSERT_TRUE(wait_for([&] { return !timeline.ops().isEmpty(); }));
  EXPECT_EQ(find<QListWidget>("go_to_entries").count(),
            timeline.ranks().size() + timeline.ops().size());
  const QString op = timeline.ops().back();
  QTest::keyClicks(&line, op);
  QTest::keyClick(&line, Qt::Key_Return);
  EXPECT_FALSE(line.isVisible());
  ASSERT_TRUE(timeline.canvas().scene().selected.has_value());
}

TEST_F(WindowTest, TheQuestionMarkShowsTheShortcuts) {
  window_.resize(1280, 690);
  QTest::keyClick(&window_, Qt::Key_Question);
  auto& overlay = find<QFrame>("shortcuts");
  ASSERT_TRUE(overlay.isVisible());
  // The list has the keys of the painted views too and fits into the window.
  for (const char* text : {"Backspace", "T C E P D", "Space", "W S", "Ctrl+Shift+P"})
    EXPECT_TRUE(overlay.findChild<QLabel*>()->text().contains(to_qstring(text))) << text;
  EXPECT_TRUE(window_.rect().contains(overlay.geometry()));
  EXPECT_EQ(overlay.findChild<QScrollArea*>()->horizontalScrollBar()->maximum(), 0);
  QTest::keyClick(&overlay, Qt::Key_Escape);
  window_.resize(700, 500);
  QTest::keyClick(&window_, Qt::Key_Question);
  EXPECT_TRUE(window_.rect().contains(overlay.geometry()));
  const QScrollBar* bar = overlay.findChild<QScrollArea*>()->verticalScrollBar();
  ASSERT_GT(bar->maximum(), 0);
  QTest::keyClick(&overlay, Qt::Key_Down);
  EXPECT_GT(bar->value(), 0);
  QTest::keyClick(&overlay, Qt::Key_End);
  EXPECT_EQ(bar->value(), bar->maximum());
  // A key that scrolls nothing does nothing.
  for (const Qt::Key key : {Qt::Key_W, Qt::Key_Return, Qt::Key_F7}) {
    QTest::keyClick(&overlay, key);
    EXPECT_EQ(bar->value(), bar->maximum());
  }
  QTest::keyClick(&overlay, Qt::Key_Escape);
  EXPECT_FALSE(overlay.isVisible());
}

TEST_F(WindowTest, EveryCommandHasANameAndItsOwnShortcut) {
  std::set<QString> ids, shortcuts;
  for (const QAction* action : window_.actions().actions()) {
    EXPECT_FALSE(action->text().isEmpty());
    EXPECT_TRUE(ids.insert(action->objectName()).second) << qPrintable(action->objectName());
    const QString keys = action->shortcut().toString();
    if (!keys.isEmpty()) {
      EXPECT_TRUE(shortcuts.insert(keys).second) << qPrintable(keys);
    }
  }
}

TEST_F(WindowTest, EveryViewHasItsData) {
  window_.document().reset(small_choice());
  show_plans();
  for (const QDockWidget* dock : window_.docks()) {
    window_.raise_view(dock->objectName());
    ASSERT_TRUE(is_idle());
    const TextTable table = qobject_cast<View*>(dock->widget())->table();
    // The schedule has one stage here, and nothing was run: they say so instead.
    const bool is_empty = table.rows.empty();
    EXPECT_EQ(is_empty, dock->objectName() == u"run"_s || dock->objectName() == u"schedule"_s)
        << qPrintable(dock->objectName());
    for (const QStringList& row : table.rows)
      ASSERT_EQ(row.size(), table.header.size()) << qPrintable(dock->objectName());
  }
}

// The message is no longer true once the user has copied something.
TEST_F(WindowTest, ThatThereWasNothingToCopyIsTakenBack) {
  show_plans();
  window_.raise_view(u"run"_s);
  trigger("edit.copy_data");
  EXPECT_TRUE(said().contains(u"Run has no data to copy"_s));
  window_.raise_view(u"plans"_s);
  trigger("edit.copy_data");
  EXPECT_FALSE(said().contains(u"no data to copy"_s));
}

TEST_F(WindowTest, LightAndDarkFollowThePalette) {
  show_plans();
  auto& waterfall = find<WaterfallChart>("waterfall");
  const QPalette before = QApplication::palette();
  QApplication::setPalette(dark_palette());
  QCoreApplication::processEvents();
  EXPECT_TRUE(waterfall.colours().dark);
  QApplication::setPalette(light_palette());
  QCoreApplication::processEvents();
  EXPECT_FALSE(waterfall.colours().dark);
  QApplication::setPalette(before);
}

TEST(PickListMatch, LettersOfEachWordInOrder) {
  EXPECT_EQ(match_typed(u"Edit: Copy plans as Markdown"_s, u"cp mkd"_s), TypedMatch::Letters);
  EXPECT_EQ(match_typed(u"Edit: Undo"_s, QString()), TypedMatch::WordStart);
  EXPECT_EQ(match_typed(u"Edit: Undo"_s, u"odnu"_s), TypedMatch::None);
}

TEST(PickListMatch, WordsComeBeforeTheirLetters) {
  EXPECT_EQ(match_typed(u"View: Topology"_s, u"TOP"_s), TypedMatch::WordStart);
  EXPECT_EQ(match_typed(u"Plan: Stop the top"_s, u"top"_s), TypedMatch::WordStart);
  EXPECT_EQ(match_typed(u"Plan: Stop the search"_s, u"top"_s), TypedMatch::Whole);
  EXPECT_EQ(match_typed(u"File: Save the chosen plan"_s, u"top"_s), TypedMatch::Letters);
  EXPECT_EQ(match_typed(u"Plan: Stop the search"_s, u"search top"_s), TypedMatch::Whole);
}

}  // namespace
}  // namespace shardwright::gui
