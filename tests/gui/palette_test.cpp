#include "gui/style/palette.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

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

}  // namespace
}  // namespace shardwright::gui
