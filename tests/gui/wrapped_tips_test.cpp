#include "gui/window/wrapped_tips.hpp"

#include <gtest/gtest.h>

#include <QApplication>
#include <QDir>
#include <QHeaderView>
#include <QHelpEvent>
#include <QPushButton>
#include <QTableView>
#include <QToolButton>
#include <QToolTip>
#include <set>

#include "gui/painting/navigable_view.hpp"
#include "gui/topology/node_map.hpp"
#include "gui/views/chart.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/tiny_run.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using WrappedTipsTest = WindowTest;

// Qt would show each of them in one line, however long it is.
TEST_F(WrappedTipsTest, LongTipsAreBrokenIntoLines) {
  show_plans();
  const auto width_of_tip = [](QWidget& widget, const QPoint& at) {
    QHelpEvent help(QEvent::ToolTip, at, widget.mapToGlobal(at));
    QCoreApplication::sendEvent(&widget, &help);
    int width = 0;
    for (const QWidget* shown : QApplication::topLevelWidgets())
      if (shown->inherits("QTipLabel") && shown->isVisible()) width = shown->width();
    return width;
  };
  auto& button = find<QPushButton>("run_start");
  window_.raise_view(u"run"_s);
  button.setToolTip(u"Start & wait "_s.repeated(30));
  const int one_line = button.fontMetrics().horizontalAdvance(button.toolTip());
  const int width = width_of_tip(button, button.rect().center());
  EXPECT_GT(width, 100);
  EXPECT_LT(width, one_line / 2);
  EXPECT_THAT(QToolTip::text(), Says("&amp;"));
  button.setToolTip(u"Start"_s);
  width_of_tip(button, button.rect().center());
  EXPECT_EQ(QToolTip::text(), u"Start"_s);

  // The tips of headers come from their models.
  window_.raise_view(u"plans"_s);
  auto& header = *find<QTableView>("plans_table").horizontalHeader();
  for (int column = 0; column < header.count(); ++column) {
    const QString tip =
        header.model()->headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString();
    if (header.isSectionHidden(column) || tip.size() < 90) continue;
    const QPoint at(header.sectionViewportPosition(column) + 5, 5);
    if (!header.viewport()->rect().contains(at)) continue;
    const int all = header.fontMetrics().horizontalAdvance(tip);
    EXPECT_GT(width_of_tip(*header.viewport(), at), 100);
    EXPECT_LT(width_of_tip(*header.viewport(), at), all) << qPrintable(tip);
  }
  QToolTip::hideText();
}

class TipsOfMarksTest : public WindowTest {
 protected:
  // Tips without a figure, such as those of a point where no plan runs, have no share.
  void look_at(const QWidget& chart, QWidget& marks) {
    for (int y = 5; y < marks.height(); y += 16) {
      for (int x = 5; x < marks.width(); x += 60) {
        const QString tip = fixtures::tool_tip_at(marks, {x, y});
        if (!tip.contains(u"<table"_s)) continue;
        answers_.insert(chart.objectName());
        ++tips_;
        ASSERT_TRUE(tip.contains(u">source"_s)) << qPrintable(tip);
        ASSERT_TRUE(tip.count(u"<tr>"_s) == 1 || tip.contains(u'%')) << qPrintable(tip);
      }
    }
  }

  // Rests the mouse all over a view, so that a chart that somebody adds is asked, too.
  void look_at(const char* view) {
    window_.raise_view(to_qstring(view));
    ASSERT_TRUE(is_idle());
    QCoreApplication::processEvents();
    for (auto* chart : window_.findChildren<QWidget*>()) {
      const bool is_chart =
          qobject_cast<Chart*>(chart) != nullptr || qobject_cast<NodeMap*>(chart) != nullptr;
      auto* area = qobject_cast<NavigableArea*>(chart);
      if (!chart->isVisible() || (!is_chart && area == nullptr)) continue;
      ++charts_;
      ASSERT_NO_FATAL_FAILURE(look_at(*chart, area != nullptr ? *area->viewport() : *chart))
          << view;
    }
  }

  std::size_t charts_ = 0, tips_ = 0;
  // The names of the charts of which a mark has said something.
  std::set<QString> answers_;
};

TEST_F(TipsOfMarksTest, EachMarkHasAShareAndNamesItsSource) {
  window_.document().reset(small_choice());
  ASSERT_TRUE(has_plans());
  for (const char* view :
       {"plans", "why", "timeline", "schedule", "topology", "sweeps", "forecast"})
    ASSERT_NO_FATAL_FAILURE(look_at(view));
  EXPECT_GT(charts_, 7U);
  EXPECT_GT(tips_, 100U);
  EXPECT_TRUE(answers_.contains(u"trajectory"_s));
  find<QToolButton>("topology_all_nodes").click();
  ASSERT_NO_FATAL_FAILURE(look_at("topology"));
}

// A run beside the prediction of its plan, then the trials of a tuning.
TEST_F(TipsOfMarksTest, OfARunAndOfTrialsTheyDoSo) {
  const QDir folder(folder_.path());
  ASSERT_TRUE(folder.mkpath(u"tune/trial-0000"_s) && folder.mkpath(u"run"_s));
  const std::string step = R"("loss": 5, "step_s": 0.1, "tokens_per_s": 900, "mfu": 0.02, )"
                           R"("tensor_peak_bytes": 4e6})";
  const std::string steps = "{\"step\": 0, " + step + "\n{\"step\": 1, " + step + "\n";
  write("run/plan.json", to_json(tiny_scenario()).dump());
  write("run/metrics.jsonl", steps);
  write("tune/trial-0000/metrics.jsonl", steps);
  write("tune/tuning.json",
        R"({"schema": "shardwright/tuning", "version": 1,
            "study": {"vary": ["lr=1e-4..1e-1"], "search": "random", "rungs": [1]},
            "results": [{"trial": 0, "rung": 0, "values": [0.001], "steps": 2, "loss": 4.5}]})");
  for (const char* opened : {"run", "tune"}) {
    window_.open({folder.filePath(to_qstring(opened))});
    ASSERT_TRUE(is_idle());
    ASSERT_NO_FATAL_FAILURE(look_at("run"));
  }
  for (const char* chart : {"run_loss", "run_rate", "run_mfu", "run_memory", "trials_loss"})
    EXPECT_TRUE(answers_.contains(to_qstring(chart))) << chart;
}

}  // namespace
}  // namespace shardwright::gui
