// This header computes relative luminance and contrast as WCAG 2.1 defines them.
#pragma once

#include <QColor>
#include <algorithm>
#include <cmath>

namespace shardwright::gui {

inline double luminance(const QColor& colour) {
  const auto linear = [](double channel) {
    return channel <= 0.03928 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) +
         0.0722 * linear(colour.blueF());
}

inline double contrast(const QColor& a, const QColor& b) {
  const auto [least, most] = std::minmax({luminance(a), luminance(b)});
  return (most + 0.05) / (least + 0.05);
}

}  // namespace shardwright::gui
