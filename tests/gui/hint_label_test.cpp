#include <QApplication>
#include <QStyle>

#include "gui/style/palette.hpp"
#include "gui/views/widgets.hpp"
#include "tests/gui/contrast.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class HintLabelTest : public WindowTest {
 protected:
  void TearDown() override { QApplication::setPalette(before_); }

  const QPalette before_ = QApplication::palette();
};

// WCAG asks for 4.5 : 1 where text is read.
TEST_F(HintLabelTest, EveryTextOfTheWindowIsLegibleInLightAndDark) {
  show_plans();
  for (const QPalette& palette :
       {light_palette(), dark_palette(), QApplication::style()->standardPalette()}) {
    QApplication::setPalette(palette);
    QCoreApplication::processEvents();
    int hints = 0;
    for (const QLabel* label : window_.findChildren<QLabel*>()) {
      if (!label->isEnabled() || label->text().isEmpty()) continue;
      const QColor ground = label->palette().color(label->backgroundRole());
      const QColor text = label->palette().color(label->foregroundRole());
      EXPECT_GE(contrast(mixed_colour(ground, text, text.alphaF()), ground), 4.5)
          << qPrintable(label->text());
      if (qobject_cast<const HintLabel*>(label) == nullptr) continue;
      ++hints;
      EXPECT_NE(text, label->palette().color(QPalette::Text)) << qPrintable(label->text());
    }
    EXPECT_GT(hints, 4);
  }
}

}  // namespace
}  // namespace shardwright::gui
