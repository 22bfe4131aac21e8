#include "gui/style/palette.hpp"

#include <gtest/gtest.h>

#include <set>

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
    for (const Role role : all_roles()) seen.insert(colours.of(role).rgb());
    EXPECT_EQ(seen.size(), kRoles);
  }
}

}  // namespace
}  // namespace shardwright::gui
