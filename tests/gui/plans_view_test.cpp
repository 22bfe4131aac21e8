#include "gui/views/plans_view.hpp"

#include <QAction>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QSettings>
#include <QStyleOptionHeader>
#include <QTableView>
#include <algorithm>
#include <functional>
#include <set>

#include "gui/models/chosen_request.hpp"
#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/plan_scatter.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class PlansViewTest : public WindowTest {
 protected:
  bool is_shown(const char* figure) {
    return !find<QTableView>("plans_table").isColumnHidden(figure_index(to_qstring(figure)));
  }
  bool is_batch_shown() { return is_shown("batch"); }
  // Returns a plan's cells in the shown columns that say what it is, not how fast.
  QStringList shown_words(int row) {
    auto& table = find<QTableView>("plans_table");
    QStringList words;
    for (int column = 0; column < table.model()->columnCount(); ++column) {
      const FigureKind kind = plan_figure(column).kind;
      if (kind != FigureKind::Measure && !table.isColumnHidden(column))
        words.append(table.model()->index(row, column).data().toString());
    }
    return words;
  }
  // Returns the view of a later session, which knows what this one has saved.
  PlansView& next_session() {
    window_.findChild<PlansView*>()->save(settings_);
    next_.restore(settings_);
    return next_;
  }
  void show(PlanSet set) {
    window_.selection().show(std::make_shared<const PlanSet>(std::move(set)));
  }
  void plan(const ScenarioChoice& choice) {
    window_.document().reset(choice);
    window_.start();
    ASSERT_TRUE(has_plans());
  }

  QSettings settings_{folder_.filePath(u"session.ini"_s), QSettings::IniFormat};
  Selection next_selection_;
  PlansView next_{&next_selection_};
};

// Columns, axes, tips and the table of a report name what the plans train on.
TEST_F(PlansViewTest, FiguresNameTheAcceleratorsOfTheCluster) {
  PlanSet set = *small_set();
  set.request.cluster.accelerator.architecture = Architecture::Cpu;
  show(set);
  const int rate = figure_index(u"rate"_s);
  QAbstractItemModel& model = *find<QTableView>("plans_table").model();
  EXPECT_EQ(model.headerData(rate, Qt::Horizontal).toString(), u"Tokens/s\nper CPU rank"_s);
  EXPECT_EQ(model.headerData(rate, Qt::Horizontal, Qt::ToolTipRole).toString(),
            u"Tokens per second and CPU rank"_s);
  EXPECT_EQ(find<QAction>("column_gpus").text(), u"CPU ranks"_s);
  auto& axis = find<QComboBox>("scatter_x");
  axis.setCurrentText(u"Tokens/s (per CPU rank)"_s);
  EXPECT_EQ(axis.currentData(), u"rate"_s);
  EXPECT_EQ(find<PlanScatter>("scatter").xAxis->label(), u"Tokens/s (per CPU rank)"_s);
  EXPECT_TRUE(window_.findChild<PlansView*>()->report().back().table.header.contains(
      u"Tokens/s (per CPU rank)"_s));
  show(*small_set());
  EXPECT_EQ(model.headerData(rate, Qt::Horizontal).toString(), u"Tokens/s\nper GPU"_s);
  EXPECT_EQ(axis.currentText(), u"Tokens/s (per GPU)"_s);
}

TEST_F(PlansViewTest, WhyNoPlanFitsNamesTheAcceleratorsOfTheCluster) {
  PlanSet set = *small_set();
  set.plans.clear();
  set.on_front.clear();
  set.request.cluster.accelerator.architecture = Architecture::Tpu;
  planner::NoFeasiblePlan none;
  none.obstacle.kind = planner::ObstacleKind::Memory;
  none.closes_it = {{{planner::RemedyField::Gpus, std::int64_t{512}}}};
  set.infeasible = none;
  show(set);
  const QString text = window_.findChild<PlansView*>()->findChild<QLabel*>(u"hint"_s)->text();
  EXPECT_THAT(text, Says("TPUs: the smallest one needs"));
  EXPECT_THAT(text, Says("of memory per TPU,"));
  EXPECT_THAT(text, Says("512 TPUs</a>"));
}

TEST_F(PlansViewTest, ABatchThatTheSearchChoseIsShown) {
  ScenarioChoice choice = small_choice();
  choice.gpus = 2;
  choice.global_batch = 0;
  plan(choice);
  const std::int64_t batch = window_.selection().set()->plans.front().plan.global_batch;
  const QString summary = find<QLabel>("summary").text();
  EXPECT_THAT(summary, Says(u"Batch: %1 sequences (chosen: the throughput knee)"_s.arg(batch)));
  EXPECT_TRUE(is_batch_shown());
}

// The user's choice of columns holds for the batches that the user names.
TEST_F(PlansViewTest, TheColumnOfTheBatchComesAndGoesWithAnOpenBatch) {
  show_plans();
  EXPECT_FALSE(is_batch_shown());
  EXPECT_FALSE(find<QLabel>("summary").text().contains(u"Batch:"_s));
  PlanSet open = *small_set();
  open.request.global_batch = 0;
  show(open);
  EXPECT_TRUE(is_batch_shown());
  auto& column = find<QAction>("column_batch");
  EXPECT_TRUE(column.isChecked());
  column.setChecked(false);  // The user hides it while more plans come.
  show(open);
  EXPECT_FALSE(is_batch_shown());
  show(*small_set());
  EXPECT_FALSE(is_batch_shown());
  column.setChecked(true);
  show(open);
  show(*small_set());
  EXPECT_TRUE(is_batch_shown());
}

// What an earlier search rejected says nothing of the plans of a file.
TEST_F(PlansViewTest, TheSummarySaysWhatItsOwnSearchRejected) {
  plan(small_choice());
  EXPECT_THAT(find<QLabel>("summary").toolTip(), Says("Rejected by"));
  show(plan_set_of(window_.selection().scenario().value(), u"a file"_s));
  EXPECT_EQ(find<QLabel>("summary").toolTip(), QString());
}

// The small set has one schedule, and several stages of ZeRO.
TEST_F(PlansViewTest, TheFirstColumnsTellPlansApart) {
  show_plans();
  EXPECT_TRUE(is_shown("zero"));
  EXPECT_TRUE(is_shown("tp"));
  EXPECT_FALSE(is_shown("expert_tp"));
  PlanSet same = *small_set();
  for (planner::PlanCandidate& each : same.plans) each.plan.zero_stage = 1;
  show(same);
  EXPECT_FALSE(is_shown("zero"));
  same.plans.resize(1);
  show(same);  // A single plan has no others to differ from.
  EXPECT_TRUE(is_shown("zero"));
}

TEST_F(PlansViewTest, TheMenuOfTheHeaderSortsHidesAndResets) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  QHeaderView* header = table.horizontalHeader();
  const int mfu = figure_index(u"mfu"_s), memory = figure_index(u"memory"_s);
  const auto choose = [&](int column, const QString& text) {
    const QPoint at(header->sectionViewportPosition(column) + 5, 5);
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, header->viewport()->mapToGlobal(at));
    QCoreApplication::sendEvent(header->viewport(), &event);
    auto* menu = table.findChild<QMenu*>(u"header_menu"_s);
    ASSERT_NE(menu, nullptr);
    for (QAction* action : menu->actions())
      if (action->text() == text)
        QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(action).center());
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  };
  const auto memory_at = [&](int row) {
    return table.model()->index(row, memory).data().toString().toDouble();
  };
  choose(memory, u"Sort: smallest first"_s);
  EXPECT_LE(memory_at(0), memory_at(table.model()->rowCount() - 1));
  choose(memory, u"Sort: largest first"_s);
  EXPECT_GT(memory_at(0), memory_at(table.model()->rowCount() - 1));
  choose(mfu, u"Hide “MFU”"_s);
  EXPECT_FALSE(is_shown("mfu"));
  header->moveSection(header->visualIndex(memory), 0);
  for (QAction* action : find<QToolButton>("columns").menu()->actions())
    if (action->text() == u"Reset the columns"_s) action->trigger();
  EXPECT_TRUE(is_shown("mfu"));
  EXPECT_EQ(header->visualIndex(memory), memory);
  EXPECT_EQ(table.model()->headerData(0, Qt::Vertical).toInt(), 1);
}

TEST_F(PlansViewTest, ASessionKeepsTheColumnsThatTheUserChose) {
  PlanSet open = *small_set();
  open.request.global_batch = 0;
  show(open);
  ASSERT_TRUE(is_batch_shown());
  const auto& table = *next_session().findChild<QTableView*>(u"plans_table"_s);
  EXPECT_TRUE(table.isColumnHidden(figure_index(u"batch"_s)));
  EXPECT_FALSE(table.isColumnHidden(figure_index(u"step"_s)));
  EXPECT_TRUE(is_batch_shown());
}

// The plan differs from another one in a single respect, which this column shows.
struct OtherPlan {
  const char* figure;
  std::function<void(Plan&)> change;
};

std::vector<OtherPlan> other_plans() {
  return {{"cp_by", [](Plan& p) { p.context_parallel = ContextParallelKind::Ulysses; }},
          {"ep", [](Plan& p) { p.ep = 2; }},
          {"expert_tp", [](Plan& p) { p.expert_tp = 2; }},
          {"shard_group", [](Plan& p) { p.shard_group = 2; }},
          {"layers", [](Plan& p) { p.embedding_counts_as_layer = p.head_counts_as_layer = true; }},
          {"layers",
           [](Plan& p) {
             p.stage_layers = {9, 7};
           }},
          {"states", [](Plan& p) { p.optimizer_states = OptimizerStates::EightBit; }},
          {"offload", [](Plan& p) { p.offload_optimizer = OptimizerOffload::Host; }},
          {"offload", [](Plan& p) { p.offload_activations = true; }},
          {"ranks", [](Plan& p) { std::swap(p.rank_order[3], p.rank_order[4]); }}};
}

// Returns the best plan of two stages that many times; the drawn step has two stages as well.
PlanSet of_two_stages(std::size_t plans) {
  ScenarioChoice choice = small_choice();
  choice.constraints = "schedule=1f1b; pp=2";
  const planner::PlanRequest request = load_request(choice);
  PlanSet set = plan_set_of(request, planner::search(request));
  set.plans.assign(plans, planner::PlanCandidate(set.plans.at(0)));
  set.on_front.assign(plans, false);
  return set;
}

// Returns two plans that differ in no other respect.
PlanSet pair_of(const OtherPlan& other) {
  PlanSet set = of_two_stages(2);
  Plan& plan = set.plans[0].plan;
  plan.cp = other.figure == std::string("cp_by") ? 2 : 1;
  set.plans[1].plan = plan;
  other.change(set.plans[1].plan);
  return set;
}

TEST_F(PlansViewTest, WhateverDistinguishesPlansHasItsColumn) {
  for (const OtherPlan& other : other_plans()) {
    show_plans();
    EXPECT_FALSE(is_shown(other.figure)) << other.figure;
    show(pair_of(other));
    EXPECT_TRUE(is_shown(other.figure)) << other.figure;
    EXPECT_NE(shown_words(0), shown_words(1)) << other.figure;
    EXPECT_NE(plan_text(window_.selection().set()->plans[0].plan),
              plan_text(window_.selection().set()->plans[1].plan))
        << other.figure;
  }
}

// Why shows this tip at the words of the plan.
TEST(PlanTip, ExplainsWhateverDistinguishesPlans) {
  for (const OtherPlan& other : other_plans()) {
    const PlanSet set = pair_of(other);
    EXPECT_NE(plan_tip(set, 0), plan_tip(set, 1)) << other.figure;
  }
  EXPECT_TRUE(plan_tip(*small_set(), 0).contains(u">Tensor-parallel ranks"_s));
}

TEST_F(PlansViewTest, NoTwoPlansOfASparseModelLookUnchanged) {
  ScenarioChoice choice = small_choice();
  choice.model = "mixtral-8x7b";
  choice.gpus = 16;
  choice.constraints = "";
  plan(choice);
  const int plans = find<QTableView>("plans_table").model()->rowCount();
  ASSERT_GT(plans, 50);
  EXPECT_TRUE(is_shown("ep"));
  std::set<QStringList> seen;
  for (int row = 0; row < plans; ++row)
    EXPECT_TRUE(seen.insert(shown_words(row)).second) << qPrintable(shown_words(row).join(u" "_s));
}

TEST_F(PlansViewTest, TheUsersChoiceOfColumnsStandsWhateverThePlansAre) {
  const OtherPlan sharded = other_plans()[3];
  auto& column = find<QAction>("column_shard_group");
  show(pair_of(sharded));
  ASSERT_TRUE(column.isChecked());
  column.setChecked(false);
  show(pair_of(sharded));
  EXPECT_FALSE(is_shown("shard_group"));
  column.setChecked(true);
  show_plans();
  EXPECT_TRUE(is_shown("shard_group"));
}

TEST_F(PlansViewTest, ColumnsGetAsWideAsTheirTextsUnlessTheUserSizedThem) {
  auto& table = find<QTableView>("plans_table");
  const auto width = [&](const char* figure) {
    return table.columnWidth(figure_index(to_qstring(figure)));
  };
  const auto fits = [&](const char* figure, const char* text) {
    return width(figure) >= table.fontMetrics().horizontalAdvance(to_qstring(text)) + 10;
  };
  show_plans();
  for (const char* column : {"column_schedule", "column_recompute"}) {
    find<QAction>(column).setChecked(false);
    find<QAction>(column).setChecked(true);
  }
  ASSERT_FALSE(fits("schedule", "interleaved"));
  table.setColumnWidth(figure_index(u"recompute"_s), 30);
  PlanSet later = of_two_stages(4);
  for (planner::PlanCandidate& candidate : later.plans)
    candidate.plan.recompute = RecomputePolicy::Selective;
  later.plans.back().plan.schedule = ScheduleKind::Interleaved;
  show(later);
  EXPECT_TRUE(fits("schedule", "interleaved"));
  EXPECT_EQ(width("recompute"), 30);
  const int wide = width("schedule");
  show_plans();
  EXPECT_EQ(width("schedule"), wide);

  const PlansView& next = next_session();
  next_selection_.show(std::make_shared<const PlanSet>(later));
  EXPECT_EQ(
      next.findChild<QTableView*>(u"plans_table"_s)->columnWidth(figure_index(u"recompute"_s)), 30);
}

TEST_F(PlansViewTest, AColumnThatIsSwitchedOnIsAsWideAsItsTexts) {
  auto& table = find<QTableView>("plans_table");
  auto& column = find<QAction>("column_offload");
  show_plans();
  column.setChecked(true);
  column.setChecked(false);
  PlanSet set = *small_set();
  set.plans.back().plan.offload_optimizer = OptimizerOffload::Host;
  set.plans.back().plan.offload_activations = true;
  show(set);
  ASSERT_FALSE(is_shown("offload"));
  column.setChecked(true);
  EXPECT_GE(table.columnWidth(figure_index(u"offload"_s)),
            table.fontMetrics().horizontalAdvance(u"optimizer to host + activations"_s) + 10);
}

TEST_F(PlansViewTest, ANumberFarBelowHasItsRoom) {
  PlanSet set = *small_set();
  set.plans.resize(800, set.plans.front());
  set.on_front.assign(800, false);
  set.plans[60].result.step = Seconds(1'234'567.0);
  set.plans[700].result.throughput.tokens_per_s_per_gpu = 123'456'789.0;
  show(set);
  auto& table = find<QTableView>("plans_table");
  for (const auto& [figure, text] : {std::pair{"step", "1,234,567.000"}, {"rate", "123,456,789"}})
    EXPECT_GE(table.columnWidth(figure_index(to_qstring(figure))),
              table.fontMetrics().horizontalAdvance(to_qstring(text)) + 10)
        << figure;
}

// Such a version counts its columns differently.
TEST_F(PlansViewTest, ASessionOfAVersionWithOtherFiguresKeepsWhatTheUserChose) {
  show_plans();
  find<QAction>("column_batch").setChecked(true);
  find<QAction>("column_cost").setChecked(false);
  find<QTableView>("plans_table").setColumnWidth(figure_index(u"recompute"_s), 33);
  window_.findChild<PlansView*>()->save(settings_);
  settings_.setValue(u"plans/columns_of"_s, u"step rate luck"_s);
  next_.restore(settings_);
  next_selection_.show(small_set());
  const auto& table = *next_.findChild<QTableView*>(u"plans_table"_s);
  EXPECT_FALSE(table.isColumnHidden(figure_index(u"batch"_s)));
  EXPECT_TRUE(table.isColumnHidden(figure_index(u"cost"_s)));
  EXPECT_EQ(table.columnWidth(figure_index(u"recompute"_s)), 33);
}

// The rows of a table that is filtered and sorted are not those of the set.
class ComparedRow : public PlansViewTest {
 protected:
  void SetUp() override {
    PlansViewTest::SetUp();
    show_plans();
    table().sortByColumn(figure_index(u"memory"_s), Qt::AscendingOrder);
    find<QLineEdit>("filter").setText(u"-full"_s);
    const auto is_other = [&](int row) {
      const auto plan = static_cast<std::size_t>(row);
      return words(row) != words_of(plan) && words(row) != words_of(0);
    };
    while (row_ < table().model()->rowCount() && !is_other(row_)) ++row_;
    ASSERT_LT(row_, table().model()->rowCount());
  }

  QTableView& table() { return find<QTableView>("plans_table"); }
  QString words(int row) {
    return table().model()->index(row, 0).data(Qt::ToolTipRole).toString().section(u'\n', 0, 0);
  }
  QString words_of(std::size_t plan) {
    return plan_text(window_.selection().set()->plans[plan].plan);
  }
  QPoint place() {
    const int column = table().horizontalHeader()->logicalIndexAt(5);
    return table().visualRect(table().model()->index(row_, column)).center();
  }
  void expect_compared(const QString& expected) {
    ASSERT_TRUE(window_.selection().compared());
    EXPECT_EQ(words_of(*window_.selection().compared()), expected);
    EXPECT_EQ(window_.selection().chosen(), std::optional<std::size_t>(0));
    for (int row = 0; row < table().model()->rowCount(); ++row) {
      if (words(row) != expected) continue;
      EXPECT_TRUE(table().selectionModel()->isRowSelected(row));
    }
  }

  int row_ = 0;
};

TEST_F(ComparedRow, IsTheOneThatWasClickedWithCtrl) {
  QTest::mouseClick(table().viewport(), Qt::LeftButton, Qt::ControlModifier, place());
  expect_compared(words(row_));
  EXPECT_TRUE(table().selectionModel()->isRowSelected(row_)) << "to be copied";
  QTest::mouseClick(table().viewport(), Qt::LeftButton, {}, place());
  EXPECT_EQ(words_of(*window_.selection().chosen()), words(row_));
}

TEST_F(ComparedRow, IsTheOneBelowTheMenuThoughRowsMoveMeanwhile) {
  const QString expected = words(row_);
  QTest::mouseClick(table().viewport(), Qt::RightButton, {}, place());
  QContextMenuEvent asked(QContextMenuEvent::Mouse, place(),
                          table().viewport()->mapToGlobal(place()));
  QCoreApplication::sendEvent(table().viewport(), &asked);
  QMenu* menu =
      window_.view(u"plans"_s)->findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly).back();
  PlanSet moved = *small_set();
  std::reverse(moved.plans.begin() + 1, moved.plans.end());
  show(moved);
  for (QAction* action : menu->actions()) {
    if (action->text().startsWith(u"Compare"_s)) action->trigger();
  }
  menu->close();
  expect_compared(expected);
}

TEST_F(PlansViewTest, AFilterThatNoPlanPassesIsReported) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  auto& scatter = *window_.findChild<PlanScatter*>();
  auto& filter = find<QLineEdit>("filter");
  const auto hint_around = [](const QWidget& widget) -> QString {
    const auto* around = qobject_cast<EmptyState*>(widget.parentWidget());
    return around != nullptr && around->is_empty() ? around->hint() : QString();
  };
  EXPECT_EQ(hint_around(table), QString());
  filter.setText(u"tp=77"_s);
  for (const QWidget* widget : {static_cast<QWidget*>(&table), static_cast<QWidget*>(&scatter)}) {
    EXPECT_FALSE(widget->isVisible());
    EXPECT_THAT(hint_around(*widget), Says("No plan passes the filter"));
  }
  EXPECT_TRUE(filter.isVisible());
  EXPECT_TRUE(find<QLabel>("summary").text().startsWith(u"0 of "_s));
  filter.clear();
  EXPECT_TRUE(table.isVisible());
  EXPECT_TRUE(scatter.isVisible());
}

TEST_F(PlansViewTest, TheTitleOfASortedColumnHasRoomBesideItsArrow) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  const QHeaderView& header = *table.horizontalHeader();
  for (const char* id : {"memory", "mfu", "rate"}) {
    const int column = figure_index(to_qstring(id));
    QTest::mouseClick(header.viewport(), Qt::LeftButton, {},
                      {header.sectionViewportPosition(column) + 5, 5});
    ASSERT_EQ(header.sortIndicatorSection(), column);
    QStyleOptionHeader option;
    option.initFrom(&header);
    option.orientation = Qt::Horizontal;
    option.sortIndicator = QStyleOptionHeader::SortDown;
    option.rect = QRect(0, 0, header.sectionSize(column), header.height());
    const QRect room = table.style()->subElementRect(QStyle::SE_HeaderLabel, &option, &header);
    const QString title = table.model()->headerData(column, Qt::Horizontal).toString();
    EXPECT_GE(room.width(), header.fontMetrics().size(0, title).width()) << id;
  }
}

}  // namespace
}  // namespace shardwright::gui
