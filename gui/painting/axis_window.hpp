// The part of an axis that a view shows, and how it maps to pixels.
#pragma once

#include <QString>
#include <optional>
#include <vector>

namespace shardwright::gui {

// An interval of [0, limit] that is never shorter than kShortestWindow. Its unit is the axis's own:
// seconds on a time axis, pixels of the unzoomed content on the axes of rows and maps.
struct AxisWindow {
  double from = 0.0;
  double to = 1.0;
  double limit = 1.0;

  static AxisWindow whole(double end);

  double length() const { return to - from; }
  double middle() const { return 0.5 * (from + to); }
  double pixel_of(double value, double pixels) const { return (value - from) / length() * pixels; }
  double value_at(double pixel, double pixels) const { return from + pixel / pixels * length(); }
  bool shows_all() const { return from <= 0.0 && to >= limit; }

  void show(double first, double last);
  // A `factor` above 1 shows less. The value `centre` keeps its place as far as the limits allow.
  void zoom_about(double centre, double factor);
  void pan(double distance);

  bool operator==(const AxisWindow&) const = default;
};

inline constexpr double kShortestWindow = 100e-9;

// The state that every painted view has: the part of its content in view, the item under the mouse
// and the selected one.
template <class ItemType>
struct PaintedScene {
  using Item = ItemType;

  // The part in view from left to right, and from top to bottom.
  AxisWindow window, rows;
  std::optional<Item> hovered, selected;
};

struct TimeTick {
  double time = 0.0;
  QString label;
};

// Ticks at round times, `spacing` pixels apart or somewhat more.
std::vector<TimeTick> time_ticks(const AxisWindow& window, double width, double spacing);

}  // namespace shardwright::gui
