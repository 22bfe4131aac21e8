#include "gui/style/palette.hpp"

#include <gtest/gtest.h>

#include <QImage>
#include <QPainter>
#include <set>
#include <vector>

#include "tests/gui/contrast.hpp"

namespace shardwright::gui {
namespace {

TEST(Palette, FollowsTheLightnessOfTheWindow) {
  EXPECT_FALSE(colours_for(light_palette()).dark);
  EXPECT_TRUE(colours_for(dark_palette()).dark);
}

TEST(Palette, EveryRoleHasAColourOfItsOwn) {
  for (const auto& palette : {light_palette(), dark_palette()}) {
    const Colours colours = colours_for(palette);
    std::set<QRgb> seen;
    for (const Role role : enumerators<Role>()) seen.insert(colours.of(role).rgb());
    EXPECT_EQ(seen.size(), kEnumCount<Role>);
  }
}

// WCAG asks for 4.5 : 1 where text is read.
TEST(Palette, TextIsLegibleOnEveryFillAndInChosenRows) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    const Colours colours = colours_for(palette);
    for (const Role role : enumerators<Role>())
      EXPECT_GE(contrast(colours.text_on(role), colours.of(role)), 4.5)
          << qPrintable(title_of(role));
    EXPECT_GE(
        contrast(palette.color(QPalette::HighlightedText), palette.color(QPalette::Highlight)),
        4.5);
    for (const auto ground : {QPalette::Base, QPalette::Window})
      EXPECT_GE(contrast(palette.color(QPalette::Link), palette.color(ground)), 4.5);
  }
}

// A reader who sees no colours recognises what a stream runs by its hatch.
TEST(Palette, WhatOneRowMayShowHasHatchesOfItsOwn) {
  const std::vector<std::vector<Role>> rows = {
      {Role::Forward, Role::BackwardInput, Role::BackwardWeight, Role::Recompute, Role::Optimizer,
       Role::MatrixProducts, Role::Attention, Role::MemoryBound},
      {Role::Tensor, Role::Data, Role::Pipeline, Role::Context, Role::Expert}};
  for (const std::vector<Role>& row : rows) {
    std::set<Qt::BrushStyle> seen;
    for (const Role role : row) seen.insert(hatch(role));
    EXPECT_EQ(seen.size(), row.size());
  }
}

// A screen of two device pixels a pixel, and letters of another size, show the same strokes.
TEST(Palette, HatchesAreAsCoarseOnEachScreen) {
  const auto hatched = [](Qt::BrushStyle style, int pixels, double ratio, double zoom) {
    QImage image(pixels, pixels, QImage::Format_RGB32);
    image.fill(Qt::white);
    image.setDevicePixelRatio(ratio);
    QPainter painter(&image);
    painter.scale(zoom, zoom);
    painter.fillRect(QRectF(0, 0, 64, 64), hatch_brush(painter, Qt::black, style));
    return image;
  };
  for (const Role role : enumerators<Role>()) {
    if (hatch(role) == Qt::SolidPattern) continue;
    const QImage usual = hatched(hatch(role), 32, 1.0, 1.0);
    const QImage fine = hatched(hatch(role), 64, 2.0, 1.0);
    std::set<QRgb> colours;
    int others = 0;
    for (int y = 0; y < 64; ++y) {
      for (int x = 0; x < 64; ++x) {
        colours.insert(usual.pixel(x / 2, y / 2));
        others += fine.pixel(x, y) != usual.pixel(x / 2, y / 2) ? 1 : 0;
      }
    }
    EXPECT_EQ(colours.size(), 2U) << qPrintable(title_of(role));
    EXPECT_EQ(others, 0) << qPrintable(title_of(role));
    EXPECT_EQ(hatched(hatch(role), 64, 1.0, 1.5), hatched(hatch(role), 64, 1.0, 2.0));
  }
}

}  // namespace
}  // namespace shardwright::gui
