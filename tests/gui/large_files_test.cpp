// Files that take long to read: what is seen of it, and how it is stopped.
#include <QProgressBar>
#include <QToolButton>

#include "gui/timeline/timeline_view.hpp"
#include "gui/window/pick_list.hpp"
#include "gui/window/progress_status.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/window_fixture.hpp"
#include "tests/sanitized.hpp"

namespace shardwright::gui {
namespace {

class LargeFilesTest : public WindowTest {
 protected:
  TimelineView& timeline() { return *window_.findChild<TimelineView*>(); }
};

// Blanks cost the parser time and the test little.
// Takes about as long to read under a sanitizer.
std::string padded(const std::string& text) {
  return std::string((kSanitized ? 16 : 100) << 20, ' ') + text;
}

TEST_F(LargeFilesTest, TheReadingOfALargeFileIsSeenAndStopped) {
  window_.document().reset(small_choice());
  show_plans();
  const QString large =
      write("large.json", padded(to_json(*fixtures::small_step().timeline).dump()));
  const auto& status = find<ReadingStatus>("reading");
  EXPECT_FALSE(status.isVisible());
  const auto begin = [&] {
    window_.open({large});
    EXPECT_TRUE(wait_for([&] { return find<QProgressBar>("reading_bar").value() > 50; }));
    EXPECT_TRUE(status.text().contains(u"Reading large.json"_s) &&
                status.text().contains(u"B of 1"_s))
        << qPrintable(status.text());
  };
  const auto is_stopped = [&] {
    return wait_for([&] { return !window_.is_busy() && !status.isVisible(); }) &&
           said().contains(u"reading of large.json"_s);
  };
  const std::size_t before = timeline().canvas().tracks().timelines().size();
  begin();
  QTest::mouseClick(&find<QToolButton>("stop_reading"), Qt::LeftButton);
  EXPECT_TRUE(is_stopped());
  begin();
  const QString next = write_plan("plan.json", 3);
  window_.open({next});  // The file waits, and nobody wants it either.
  QTest::keyClick(&window_, Qt::Key_Escape);
  EXPECT_TRUE(is_stopped());
  EXPECT_TRUE(said().contains(u"large.json, plan.json was"_s));
  EXPECT_EQ(timeline().canvas().tracks().timelines().size(), before);
  EXPECT_NE(window_.selection().scenario(), small_set()->scenario(3));

  // The user can open the stopped file again and read it to its end.
  drop({large});
  EXPECT_EQ(timeline().canvas().tracks().all_spans(),
            fixtures::small_step().timeline->spans.size());
  EXPECT_FALSE(said().contains(u"was stopped"_s));
}

// Esc closes a list that is open, and is the views' own where nothing is read.
TEST_F(LargeFilesTest, EscStopsTheReadingOnlyWhereNothingElseTakesIt) {
  const QString large = write("large.json", padded("{}"));
  window_.open({large});
  trigger("help.palette");
  auto& palette = find<PickList>("command_palette");
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
  EXPECT_FALSE(palette.isVisible());
  EXPECT_TRUE(window_.is_busy());
  trigger("file.stop_reading");
  EXPECT_FALSE(window_.actions().find(u"file.stop_reading"_s)->isEnabled());
}

TEST_F(LargeFilesTest, ADamagedLargeFileHasItsError) {
  drop({write("large.json", padded("{\"schema\": \"shardwright/plan\""))});
  EXPECT_THAT(said(), Says("well-formed JSON"));
  EXPECT_FALSE(find<ReadingStatus>("reading").isVisible());
}

}  // namespace
}  // namespace shardwright::gui
