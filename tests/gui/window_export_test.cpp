// Views as pictures and as files.
#include <QClipboard>
#include <QDockWidget>
#include <QFile>
#include <QGuiApplication>
#include <QImage>
#include <QLineEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>

#include "gui/timeline/timeline_view.hpp"
#include "gui/views/picture_export.hpp"
#include "tests/gui/clipped_parts.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class WindowExportTest : public WindowTest {
 protected:
  std::vector<ClippedPart> svg_of(const char* view) {
    const QString file = folder_.filePath(id("view.svg"));
    export_picture(*window_.view(id(view)), file);
    QFile svg(file);
    EXPECT_TRUE(svg.open(QIODevice::ReadOnly));
    return clipped_parts(svg.readAll());
  }

  // In the coordinates of the view that it lies in.
  QRectF place_of(const QWidget& widget, const char* view) {
    return QRectF(QPointF(widget.mapTo(window_.view(id(view)), QPoint())), QSizeF(widget.size()));
  }
};

TEST_F(WindowExportTest, EveryViewBecomesAPicture) {
  show_plans();
  for (const QDockWidget* dock : window_.docks()) {
    window_.raise_view(dock->objectName());
    for (const char* suffix : {"png", "svg", "pdf"}) {
      const QString file = folder_.filePath(dock->objectName() + QLatin1Char('.') + id(suffix));
      export_picture(*dock->widget(), file);
      EXPECT_GT(QFileInfo(file).size(), 1000) << qPrintable(file);
    }
  }
  EXPECT_THROW(export_picture(window_, id("/no/such/folder/a.png")), RuntimeFailure);
  EXPECT_THROW(export_picture(window_, id("a.bmp")), RuntimeFailure);
}

TEST_F(WindowExportTest, AnExportGetsTheSuffixThatItsNameLacks) {
  show_plans();
  window_.raise_view(id("plans"));
  const QString name = folder_.filePath(id("of-mine"));
  for (const char* suffix : {"png", "svg", "pdf", "csv"}) {
    const QString file = name + QLatin1Char('.') + id(suffix);
    answer_next_dialog(name);
    trigger(qPrintable(id("file.export_") + id(suffix)));
    ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
    EXPECT_GT(QFileInfo(file).size(), 100) << suffix;
    const QString said = find<MessageBar>("message_bar").text();
    EXPECT_TRUE(said.contains(id("Exported ") + file)) << qPrintable(said);
  }
  answer_next_dialog(name);
  trigger("file.save_plan");
  EXPECT_TRUE(QFileInfo(name + id(".json")).isFile());
}

// A timeline whose table takes seconds.
class LargeExportTest : public WindowExportTest {
 protected:
  static constexpr int kSpans = 400'000;

  void SetUp() override {
    WindowExportTest::SetUp();
    auto timeline = std::make_shared<Timeline>();
    timeline->ranks = {{0, "stage 0"}};
    timeline->spans.resize(kSpans);
    for (int i = 0; i < kSpans; ++i) {
      Span& span = timeline->spans[static_cast<std::size_t>(i)];
      span.name = "mlp.up";
      span.start = Seconds(i * 1e-3);
      span.duration = Seconds(1e-3);
    }
    window_.findChild<TimelineView*>()->set_timelines({timeline});
    window_.raise_view(id("timeline"));
  }

  const QString file_ = folder_.filePath(id("large.csv"));
};

// The dialog does not wait for the table, nor the window for the file.
TEST_F(LargeExportTest, IsWrittenInTheBackground) {
  answer_next_dialog(file_);
  trigger("file.export_csv");
  EXPECT_TRUE(window_.is_busy());
  EXPECT_FALSE(QFileInfo::exists(file_));
  trigger("file.export_csv");  // no dialog: one at a time
  const auto& said = find<MessageBar>("message_bar");
  EXPECT_TRUE(said.text().contains(id("is still being written"))) << qPrintable(said.text());
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  QFile csv(file_);
  ASSERT_TRUE(csv.open(QIODevice::ReadOnly));
  EXPECT_EQ(csv.readAll().count('\n'), kSpans + 1);
  EXPECT_TRUE(said.text().contains(id("Exported ") + file_)) << qPrintable(said.text());
  EXPECT_FALSE(said.text().contains(id("being written"))) << qPrintable(said.text());
}

TEST_F(LargeExportTest, IsStoppedByItsMessage) {
  answer_next_dialog(file_);
  trigger("file.export_csv");
  const auto& said = find<MessageBar>("message_bar");
  const QString writes = id("400,000 rows are being written to ") + file_;
  ASSERT_TRUE(wait_for([&] { return said.text().contains(writes); }));
  click(writes, "offer");
  EXPECT_FALSE(window_.is_busy());
  EXPECT_TRUE(said.text().contains(id("was stopped"))) << qPrintable(said.text());
  QTest::qWait(500);
  EXPECT_FALSE(QFileInfo::exists(file_));
}

TEST_F(LargeExportTest, IsRefusedByTheClipboard) {
  QGuiApplication::clipboard()->setText(id("before"));
  trigger("edit.copy_data");
  const QString said = find<MessageBar>("message_bar").text();
  EXPECT_TRUE(said.contains(id("400,000 rows are too many for the clipboard"))) << qPrintable(said);
  EXPECT_EQ(QGuiApplication::clipboard()->text(), id("before"));
  answer_next_dialog(file_);
  click(id("too many"), "offer");
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  EXPECT_TRUE(QFileInfo::exists(file_));
}

// What is scrolled out of sight is in the picture all the same.
TEST_F(WindowExportTest, APictureHasAllOfAView) {
  show_plans();
  window_.resize(640, 480);
  QWidget& scenario = *window_.view(id("scenario"));
  QCoreApplication::processEvents();
  const QSize before = scenario.size();
  const auto* area = scenario.findChild<QScrollArea*>();
  const int hidden = area->widget()->height() - area->viewport()->height();
  ASSERT_GT(hidden, 100);
  EXPECT_EQ(picture_of(scenario, 1.0).height(), before.height() + hidden);
  EXPECT_EQ(scenario.size(), before);
}

// Of a line that is longer than its field and scrolled to its end.
TEST_F(WindowExportTest, AScrolledLineEndsAtItsFieldInSvg) {
  window_.resize(1400, 1300);
  auto& field = find<QLineEdit>("constraints");
  field.setFocus();
  QTest::keyClicks(&field, id("not zero=3; not schedule=1f1b; not tp=1; not pp=3; not cp=16"));
  QCoreApplication::processEvents();
  ASSERT_FALSE(
      window_.view(id("scenario"))->findChild<QScrollArea*>()->verticalScrollBar()->isVisible());
  int found = 0;
  for (const ClippedPart& part : svg_of("scenario")) {
    if (!part.content.contains(id("not schedule=1f1b"))) continue;
    ++found;
    EXPECT_TRUE(part.is_clipped);
    EXPECT_TRUE(place_of(field, "scenario").contains(part.clip.boundingRect()));
  }
  EXPECT_EQ(found, 1);
}

// Below and beside them lie the scroll bars.
TEST_F(WindowExportTest, CellsEndAtTheEdgesOfTheirTableInSvg) {
  show_plans();
  window_.raise_view(id("plans"));
  auto& table = find<QTableView>("plans_table");
  ASSERT_TRUE(table.horizontalScrollBar()->isVisible());
  const QRectF cells = place_of(*table.viewport(), "plans");
  int found = 0;
  for (const ClippedPart& part : svg_of("plans")) {
    const QRectF clip = part.clip.boundingRect();
    if (!part.content.contains(id("<text")) || !clip.intersects(cells)) continue;
    ++found;
    EXPECT_TRUE(cells.contains(clip)) << clip.top() << " to " << clip.bottom();
  }
  EXPECT_GT(found, 0);
}

TEST_F(WindowExportTest, CtrlEExportsTheViewInFront) {
  show_plans();
  for (const char* view : {"topology", "plans"}) {
    window_.raise_view(id(view));
    ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
    const QString file = folder_.filePath(id(view) + id("-by-key.png"));
    window_.activateWindow();  // after the dialog before
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
    const QSize seen = window_.view(id(view))->size();
    QString suggested;
    answer_next_dialog(file, &suggested);
    QTest::keyClick(&window_, Qt::Key_E, Qt::ControlModifier);
    EXPECT_EQ(suggested, id(view) + id(".png"));
    const QImage picture(file);
    ASSERT_FALSE(picture.isNull()) << view;
    EXPECT_EQ(picture.size(), 2 * seen) << view;
  }
}

}  // namespace
}  // namespace shardwright::gui
