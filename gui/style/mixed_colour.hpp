// A colour between two others.
#pragma once

#include <QColor>
#include <cmath>

namespace shardwright::gui {

// Mixes channel by channel. A `share` of 0 is `first`, one of 1 is `second`.
inline QColor mixed_colour(const QColor& first, const QColor& second, double share) {
  const auto blend = [share](int from, int to) {
    return static_cast<int>(std::lround(from + (to - from) * share));
  };
  return {blend(first.red(), second.red()), blend(first.green(), second.green()),
          blend(first.blue(), second.blue())};
}

}  // namespace shardwright::gui
