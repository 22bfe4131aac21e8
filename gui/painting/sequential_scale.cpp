#include "gui/painting/sequential_scale.hpp"

#include <algorithm>
#include <array>

#include "gui/style/mixed_colour.hpp"

namespace shardwright::gui {
namespace {

constexpr std::array<QRgb, 6> kLight = {0xffcfcfc8, 0xfffec567, 0xfffe9929,
                                        0xffd95f0e, 0xff993404, 0xff4a1500};
constexpr std::array<QRgb, 6> kDark = {0xff59606b, 0xff96551f, 0xffc46a1c,
                                       0xfff08c1e, 0xfffec44f, 0xfffff7bc};

}  // namespace

QColor sequential_colour(double share, bool dark) {
  const auto& stops = dark ? kDark : kLight;
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto first = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const double part = place - static_cast<double>(first);
  return mixed_colour(QColor(stops[first]), QColor(stops[first + 1]), part);
}

double sequential_width(double share) {
  return 1.0 + 4.0 * std::clamp(share, 0.0, 1.0);
}

}  // namespace shardwright::gui
