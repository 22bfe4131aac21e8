#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QWindow>
#include <nlohmann/json.hpp>

#include "gui/timeline/timeline_view.hpp"
#include "gui/views/run_view.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/tiny_run.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class WindowDropTest : public WindowTest {
 protected:
  // Offers them as files and as text, as file managers do. Returns false where nobody takes them.
  bool drop_on(const QWidget& target, const QList<QUrl>& urls) {
    const QPoint at = target.mapTo(&window_, target.rect().center());
    QMimeData data;
    data.setUrls(urls);
    data.setText(urls.front().toString());
    QWindow* handle = window_.windowHandle();
    QDragEnterEvent enter(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(handle, &enter);
    QDragMoveEvent move(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    if (enter.isAccepted()) {  // It stays so while the pointer moves.
      move.setDropAction(enter.dropAction());
      move.accept();
    }
    QCoreApplication::sendEvent(handle, &move);
    if (!move.isAccepted()) {
      QDragLeaveEvent leave;
      QCoreApplication::sendEvent(handle, &leave);
      return false;
    }
    QDropEvent drop(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(handle, &drop);
    EXPECT_TRUE(is_idle());
    return drop.isAccepted();
  }

  bool is_in_front(const char* view) {
    const auto& dock = find<QDockWidget>(view);
    return dock.isAncestorOf(window_.childAt(dock.geometry().center()));
  }
};

// A field would take the name of the file as its text.
TEST_F(WindowDropTest, APlanIsOpenedWhateverItIsDroppedOn) {
  window_.document().reset(small_choice());
  show_plans();
  const std::vector<QWidget*> targets = {
      &find<QLineEdit>("constraints"), find<QComboBox>("model").lineEdit(),
      &find<QSpinBox>("gpus"),         &find<QLineEdit>("filter"),
      &find<QLineEdit>("run_data"),    window_.view(u"plans"_s),
  };
  std::size_t plan = 0;
  for (const QWidget* target : targets) {
    const QString path = write_plan("plan.json", ++plan);
    window_.raise_view(u"run"_s);
    EXPECT_TRUE(drop_on(*target, {QUrl::fromLocalFile(path)})) << qPrintable(target->objectName());
    EXPECT_EQ(window_.selection().scenario(), small_set()->scenario(plan))
        << qPrintable(target->objectName());
    for (const QLineEdit* field : window_.findChildren<QLineEdit*>())
      EXPECT_FALSE(field->text().contains(u"plan.json"_s)) << qPrintable(field->objectName());
  }
}

TEST_F(WindowDropTest, ATimelineComesToTheFront) {
  show_plans();
  ASSERT_FALSE(is_in_front("timeline"));
  const QString file = write("step.json", to_json(*fixtures::small_step().timeline).dump());
  ASSERT_TRUE(drop_on(*window_.view(u"plans"_s), {QUrl::fromLocalFile(file)}));
  EXPECT_TRUE(is_in_front("timeline"));
  const auto& shown = window_.findChild<TimelineView*>()->canvas().tracks().timelines();
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown.front()->spans.size(), fixtures::small_step().timeline->spans.size());
}

TEST_F(WindowDropTest, TheFolderOfARunComesWithItsPlan) {
  ASSERT_TRUE(QDir(folder_.path()).mkdir(u"run"_s));
  write(
      "run/metrics.jsonl",
      "{\"step\": 0, \"loss\": 5, \"step_s\": 0.1}\n{\"step\": 1, \"loss\": 4, \"step_s\": 0.1}\n");
  write("run/plan.json", to_json(tiny_scenario()).dump());
  show_plans();
  const QUrl run = QUrl::fromLocalFile(folder_.filePath(u"run"_s));
  ASSERT_TRUE(drop_on(*window_.view(u"plans"_s), {run}));
  EXPECT_TRUE(is_in_front("run"));
  EXPECT_EQ(window_.findChild<RunView*>()->follower().steps().size(), 2U);
  EXPECT_EQ(window_.selection().scenario()->plan, tiny_scenario().plan);
}

TEST_F(WindowDropTest, WhatIsNoFileOfThisMachineIsNotTaken) {
  show_plans();
  const PlanSetPointer before = window_.selection().set();
  EXPECT_FALSE(drop_on(*window_.view(u"plans"_s), {QUrl(u"https://example.org/plan.json"_s)}));
  EXPECT_FALSE(drop_on(find<QLineEdit>("constraints"), {QUrl(u"https://example.org/a.json"_s)}));
  EXPECT_EQ(window_.selection().set(), before);
  EXPECT_EQ(find<QLineEdit>("constraints").text(), QString());
}

TEST_F(WindowDropTest, AFolderOfNothingIsReported) {
  ASSERT_TRUE(QDir(folder_.path()).mkdir(u"empty"_s));
  show_plans();
  const PlanSetPointer before = window_.selection().set();
  EXPECT_TRUE(
      drop_on(*window_.view(u"plans"_s), {QUrl::fromLocalFile(folder_.filePath(u"empty"_s))}));
  EXPECT_THAT(said(), Says("empty"));
  EXPECT_EQ(window_.selection().set(), before);
}

}  // namespace
}  // namespace shardwright::gui
