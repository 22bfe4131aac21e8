// What stands around the table of plans: its batch, and that a filter leaves nothing of it.
#include "gui/views/plans_view.hpp"

#include <QAction>
#include <QLabel>
#include <QLineEdit>
#include <QSettings>
#include <QTableView>

#include "gui/views/empty_state.hpp"
#include "gui/views/plan_scatter.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class PlansViewTest : public WindowTest {
 protected:
  bool is_batch_shown() {
    return !find<QTableView>("plans_table").isColumnHidden(figure_index(id("batch")));
  }
  void show(PlanSet set) {
    window_.selection().show(std::make_shared<const PlanSet>(std::move(set)));
  }
  void plan(const ScenarioChoice& choice) {
    window_.document().reset(choice);
    window_.start();
    ASSERT_TRUE(wait_for([&] { return window_.selection().set() && !window_.is_busy(); }));
  }
};

TEST_F(PlansViewTest, ABatchThatTheSearchChoseIsTold) {
  ScenarioChoice choice = small_choice();
  choice.gpus = 2;
  choice.global_batch = 0;
  plan(choice);
  const std::int64_t batch = window_.selection().set()->plans.front().plan.global_batch;
  const QString told = find<QLabel>("summary").text();
  EXPECT_TRUE(
      told.contains(id("Batch: %1 sequences (chosen: the knee of the throughput)").arg(batch)))
      << qPrintable(told);
  EXPECT_TRUE(is_batch_shown());
}

// The user's choice of columns holds for the batches that he names.
TEST_F(PlansViewTest, TheColumnOfTheBatchComesAndGoesWithAnOpenBatch) {
  show_plans();
  EXPECT_FALSE(is_batch_shown());
  EXPECT_FALSE(find<QLabel>("summary").text().contains(id("Batch:")));
  PlanSet open = *small_set();
  open.request.global_batch = 0;
  show(open);
  EXPECT_TRUE(is_batch_shown());
  auto& column = find<QAction>("column_batch");
  EXPECT_TRUE(column.isChecked());
  column.setChecked(false);  // by the user, while more plans come
  show(open);
  EXPECT_FALSE(is_batch_shown());
  show(*small_set());
  EXPECT_FALSE(is_batch_shown());
  column.setChecked(true);
  show(open);
  show(*small_set());
  EXPECT_TRUE(is_batch_shown());
}

TEST_F(PlansViewTest, ASessionKeepsTheColumnsThatTheUserChose) {
  PlanSet open = *small_set();
  open.request.global_batch = 0;
  show(open);
  ASSERT_TRUE(is_batch_shown());
  QSettings settings(folder_.filePath(id("session.ini")), QSettings::IniFormat);
  auto& plans = *window_.findChild<PlansView*>();
  plans.save(settings);
  EXPECT_TRUE(is_batch_shown());
  Selection selection;
  PlansView next(&selection);
  next.restore(settings);
  const auto& table = *next.findChild<QTableView*>(id("plans_table"));
  EXPECT_TRUE(table.isColumnHidden(figure_index(id("batch"))));
  EXPECT_FALSE(table.isColumnHidden(figure_index(id("step"))));
}

TEST_F(PlansViewTest, AFilterThatNoPlanPassesSaysSo) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  auto& scatter = *window_.findChild<PlanScatter*>();
  auto& filter = find<QLineEdit>("filter");
  const auto hint_around = [](const QWidget& widget) -> QString {
    const auto* around = qobject_cast<EmptyState*>(widget.parentWidget());
    return around != nullptr && around->is_empty() ? around->hint() : QString();
  };
  EXPECT_EQ(hint_around(table), QString());
  filter.setText(id("tp=77"));
  for (const QWidget* widget : {static_cast<QWidget*>(&table), static_cast<QWidget*>(&scatter)}) {
    EXPECT_FALSE(widget->isVisible());
    EXPECT_TRUE(hint_around(*widget).contains(id("No plan passes the filter")))
        << qPrintable(hint_around(*widget));
  }
  EXPECT_TRUE(filter.isVisible());
  EXPECT_TRUE(find<QLabel>("summary").text().startsWith(id("0 of ")));
  filter.clear();
  EXPECT_TRUE(table.isVisible());
  EXPECT_TRUE(scatter.isVisible());
}

}  // namespace
}  // namespace shardwright::gui
