// Views as pictures and as files.
#include <QDockWidget>
#include <QFile>
#include <QImage>
#include <QLineEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>

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
    EXPECT_GT(QFileInfo(file).size(), 100) << suffix;
    const QString said = find<MessageBar>("message_bar").text();
    EXPECT_TRUE(said.contains(id("Exported ") + file)) << qPrintable(said);
  }
  answer_next_dialog(name);
  trigger("file.save_plan");
  EXPECT_TRUE(QFileInfo(name + id(".json")).isFile());
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
