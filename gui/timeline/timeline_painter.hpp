// Paints a timeline: tracks below a time axis, names at the left, a legend at the bottom. Knows no
// widget, so that the window and exported files look the same. Times are in seconds.
#pragma once

#include <QFont>
#include <QPainter>
#include <QRectF>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gui/timeline/span_marks.hpp"
#include "gui/timeline/span_text.hpp"
#include "gui/timeline/timeline_legend.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

struct TimeRange {
  double from = 0.0, to = 0.0;

  bool operator==(const TimeRange&) const = default;
};

struct TimelineScene : PaintedScene<SpanRef> {
  // True if all messages in view have arrows, false if those of the selected op alone have some.
  bool show_arrows = false;
  bool show_critical_path = true;
  SpanMarks critical_path;
  SpanMarks matches;
  std::optional<TimeRange> range;
  // The moment of the schedule's replay, in seconds.
  std::optional<double> moment;
  // The place that a dragged row would take, in pixels below the top.
  std::optional<double> drop_line;
  RankLimits limits;
  std::vector<LegendEntry> legend;
  double widest_name = 0.0;
};

QFont name_font();
// The pixels that the names of all tracks take with what lies around them.
double widest_name(const TimelineTracks& tracks);

struct TimelineGeometry {
  TimelineGeometry(const QSizeF& size, const std::vector<LegendEntry>& entries, double widest_name);

  QRectF axis, names, plot, legend;
  // The whole step above the axis, with a frame around the part in view.
  QRectF minimap;

  // The mark that folds and unfolds the rank whose header lies there.
  static QRectF fold_mark(double header_y);
};

class TimelinePainter {
 public:
  TimelinePainter(QPainter& painter, const TimelineTracks& tracks, const TimelineScene& scene,
                  const Colours& colours, const QSizeF& size);

  // Paints everything that does not follow the mouse.
  void paint_tracks();
  // Paints the selected range, and the spans that are selected or under the mouse.
  void paint_overlay();

 private:
  template <class Paint>
  void for_visible_tracks(bool pinned, Paint paint);
  QRectF rows_area(bool pinned) const;
  void paint_axis();
  void paint_minimap();
  // Paints the spans of a row over a part of the step, without their names.
  void paint_thin(const SpanRow& row, const AxisWindow& window, double y, double height);
  void paint_rows(bool pinned);
  void paint_name(const Track& track, double y);
  void paint_memory_name(const Track& track, const QRectF& row);
  void paint_spans(const Track& track, double y);
  void paint_columns(const std::vector<ColumnLoad>& columns, double y, double height);
  void paint_box(const Track& track, const SpanBox& box, double y, double height);
  void fill(const QRectF& rect, Role role);
  void paint_label(const Span& span, const QRectF& box, const QColor& colour);
  void paint_marks(const Track& track, double y);
  void paint_memory(const Track& track, double y);
  void paint_arrows();
  void paint_arrow(const MessageArrow& arrow, const QColor& colour);
  std::optional<QRectF> box_of(SpanRef ref) const;
  void paint_outline(SpanRef ref, const QColor& colour, double pen_width);
  void paint_range();
  void paint_moment();
  void paint_drop_line();
  void paint_legend();
  void paint_legend_mark(const LegendEntry& entry, const QRectF& box);

  QPainter& painter_;
  const TimelineTracks& tracks_;
  const TimelineScene& scene_;
  const Colours& colours_;
  TimelineGeometry geometry_;
  QFont font_, bold_, small_;
  struct Label {
    QString text;
    double width = 0.0;
  };
  std::unordered_map<std::string, Label> labels_;
};

// The largest number of arrows that are painted: more would cover everything.
inline constexpr std::size_t kMostArrows = 400;

}  // namespace shardwright::gui
