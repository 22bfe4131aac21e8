#include <gtest/gtest.h>

#include "gui/style/palette.hpp"
#include "gui/views/widgets.hpp"
#include "tests/gui/contrast.hpp"
#include "tests/gui/painted_view_test.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::shown;

// WCAG asks for 3 : 1 where graphics show a state.
TEST(ToggleButton, OnDiffersFromOffInLightAndDark) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    ToggleButton button;
    button.setPalette(palette);
    button.setText(u"Messages"_s);
    shown(button, {90, 26});
    const QImage off = button.grab().toImage();
    button.setChecked(true);
    const QImage on = button.grab().toImage();
    ASSERT_EQ(on.size(), off.size());
    int marked = 0, legible = 0;
    for (int y = 0; y < on.height(); ++y) {
      for (int x = 0; x < on.width(); ++x) {
        const QColor pixel = on.pixelColor(x, y);
        marked += contrast(pixel, off.pixelColor(x, y)) >= 3.0 ? 1 : 0;
        legible += contrast(pixel, on.pixelColor(6, on.height() / 2)) >= 4.5 ? 1 : 0;
      }
    }
    EXPECT_GT(marked, 2 * on.width()) << is_dark(palette);
    EXPECT_GT(legible, on.width()) << is_dark(palette);  // The text stays.
  }
}

}  // namespace
}  // namespace shardwright::gui
