#include "core/base/enum_names.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace shardwright {

enum class Season : std::uint8_t { Spring, Summer, Autumn, Winter };
constexpr auto enum_names(Season) {
  return std::array{"spring", "summer", "autumn", "winter"};
}

enum class Nameless { One };

namespace {

static_assert(kEnumCount<Season> == 4 && kEnumCount<Nameless> == 1);
static_assert(NamedEnum<Season> && !NamedEnum<Nameless>);
static_assert(name_of(Season::Autumn) == std::string_view("autumn"));
static_assert(enumerators<Season>().back() == Season::Winter);

TEST(EnumArray, HoldsAnElementForEachEnumerator) {
  EnumArray<Season, int> days{};
  days[Season::Summer] = 92;
  EXPECT_EQ(days.size(), 4u);
  EXPECT_EQ(days[1], 92);
  EXPECT_NE(days, (EnumArray<Season, int>{}));
}

}  // namespace
}  // namespace shardwright
