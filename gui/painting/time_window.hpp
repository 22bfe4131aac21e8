// The part of a time range that a view shows, and how time maps to its width.
#pragma once

#include <QString>
#include <vector>

namespace shardwright::gui {

// Times in seconds. What is shown never leaves [0, limit] and is never shorter than
// kShortestWindow.
struct TimeWindow {
  double from = 0.0;
  double to = 1.0;
  double limit = 1.0;  // the end of what there is to see

  // Shows all of [0, end].
  static TimeWindow whole(double end);

  double length() const { return to - from; }
  double x_of(double time, double width) const { return (time - from) / length() * width; }
  double time_at(double x, double width) const { return from + x / width * length(); }
  bool shows_all() const { return from <= 0.0 && to >= limit; }

  void show(double first, double last);
  // `factor` above 1 comes closer; what lies at `time` stays where it is as long as the limits let
  // it.
  void zoom_about(double time, double factor);
  void pan(double seconds);

  bool operator==(const TimeWindow&) const = default;
};

inline constexpr double kShortestWindow = 100e-9;

struct TimeTick {
  double time = 0.0;
  QString label;  // with its unit
};

// Ticks at round times, `spacing` pixels apart or somewhat more.
std::vector<TimeTick> time_ticks(const TimeWindow& window, double width, double spacing);

}  // namespace shardwright::gui
