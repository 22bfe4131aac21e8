// Drawings for the HTML form of a page: SVG, and a timeline that its reader can zoom.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/timeline/timeline.hpp"

namespace shardwright::cli {

struct Bar {
  std::string name;
  double value = 0.0;
  // The value in words.
  std::string text;
};

// Horizontal bars from a common zero, one below the other.
std::string bars_figure(const std::vector<Bar>& bars);

struct CurvePoint {
  double x = 0.0, y = 0.0;
  std::string x_text, y_text;
};

// Values on logarithmic axes are above 0.
enum class CurveAxes : std::uint8_t { Logarithmic, Linear };

// Points that a line joins, on axes from the smallest to the largest value.
std::string curve_figure(const std::vector<CurvePoint>& points, const std::string& x_title,
                         const std::string& y_title, CurveAxes axes = CurveAxes::Logarithmic);

// A row for each stream of each rank. The wheel zooms, dragging moves, and the pointer names what
// it rests on. Ops of a long step are drawn together by phase and microbatch.
std::string timeline_figure(const Timeline& timeline);

}  // namespace shardwright::cli
