#include "gui/timeline/timeline_painter.hpp"

#include <QFontMetricsF>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <optional>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/timeline/memory_curve.hpp"
#include "gui/timeline/span_text.hpp"

namespace shardwright::gui {
namespace {

// The height of the axis with the minimap above it.
constexpr double kTimeAxisHeight = 42.0;
constexpr double kMinimapTop = 3.0, kMinimapHeight = 11.0;
// The computation in the header of a folded rank.
constexpr double kThinHeight = 10.0;
// Names take no more of the width.
constexpr double kMostOfNames = 0.6;
// The legend is left out where it would leave less than this height to the rows.
constexpr double kLeastRowsHeight = 66.0;
constexpr double kTickSpacing = 110.0;
// Boxes of fewer pixels get no text, and no hatch.
constexpr double kLeastLabel = 34.0;
constexpr double kLeastHatch = 6.0;
// Columns have so many shades, so that similar neighbours are painted as one.
constexpr int kLoadLevels = 8;
// The palest shade that keeps a rarely busy column visible.
constexpr int kLeastLevel = 3;
// Pixels above and below the spans of a row.
constexpr double kPadding = 3.0;

}  // namespace

TimelineGeometry::TimelineGeometry(const QSizeF& size, const std::vector<LegendEntry>& entries,
                                   double widest_name) {
  const double names_width = std::min(widest_name, size.width() * kMostOfNames);
  const double room = std::max(0.0, size.height() - kTimeAxisHeight);
  const double wanted = legend_height(widths_of(entries), size.width());
  const double below = room - wanted < kLeastRowsHeight ? 0.0 : wanted;
  const double rows = room - below;
  axis = QRectF(names_width, 0.0, std::max(1.0, size.width() - names_width), kTimeAxisHeight);
  minimap = QRectF(names_width, kMinimapTop, axis.width(), kMinimapHeight);
  names = QRectF(0.0, kTimeAxisHeight, names_width, rows);
  plot = QRectF(names_width, kTimeAxisHeight, axis.width(), rows);
  legend = QRectF(0.0, kTimeAxisHeight + rows, size.width(), below);
}

QRectF TimelineGeometry::fold_mark(double header_y) {
  return {2.0, header_y, 18.0, kRankHeight};
}

TimelinePainter::TimelinePainter(QPainter& painter, const TimelineTracks& tracks,
                                 const TimelineScene& scene, const Colours& colours,
                                 const QSizeF& size)
    : painter_(painter),
      tracks_(tracks),
      scene_(scene),
      colours_(colours),
      geometry_(size, scene.legend, scene.widest_name),
      font_(name_font()),
      bold_(pixel_font(12, true)),
      small_(legend_font()) {}

QRectF TimelinePainter::rows_area(bool pinned) const {
  QRectF area(0.0, geometry_.plot.top(), geometry_.plot.right(), geometry_.plot.height());
  if (!pinned) area.setTop(std::min(area.bottom(), area.top() + tracks_.pinned_height()));
  return area;
}

template <class Paint>
void TimelinePainter::for_visible_tracks(bool pinned, Paint paint) {
  const QRectF area = rows_area(pinned);
  for (const Track& track : tracks_.tracks()) {
    const double y = geometry_.plot.top() + track.shown_y(scene_.rows.from);
    if (track.pinned == pinned && y + track.height > area.top() && y < area.bottom())
      paint(track, y);
  }
}

void TimelinePainter::paint_tracks() {
  painter_.save();
  painter_.setFont(font_);
  const QRectF all = geometry_.axis.united(geometry_.names).united(geometry_.legend);
  painter_.fillRect(all, colours_.base);
  paint_axis();
  for (const bool pinned : {true, false}) paint_rows(pinned);
  painter_.setClipRect(geometry_.plot);
  if (scene_.show_arrows) paint_arrows();
  painter_.setClipping(false);
  paint_legend();
  painter_.restore();
}

void TimelinePainter::paint_axis() {
  painter_.fillRect(QRectF(0.0, 0.0, geometry_.axis.right(), kTimeAxisHeight), colours_.window);
  const QRectF corner(10.0, 0.0, geometry_.names.width() - 12.0, kTimeAxisHeight);
  painter_.setPen(colours_.muted_text);
  const QFontMetricsF metrics(font_);
  const QString length = time_text(Seconds(scene_.window.length())), whole = length + u" shown"_s;
  painter_.drawText(corner, Qt::AlignVCenter | Qt::AlignLeft,
                    metrics.horizontalAdvance(whole) <= corner.width() ? whole : length);
  for (const TimeTick& tick : time_ticks(scene_.window, geometry_.plot.width(), kTickSpacing)) {
    const double x =
        geometry_.plot.left() + scene_.window.pixel_of(tick.time, geometry_.plot.width());
    painter_.setPen(colours_.grid);
    painter_.drawLine(QPointF(x, kTimeAxisHeight), QPointF(x, geometry_.plot.bottom()));
    painter_.setPen(colours_.frame);
    painter_.drawLine(QPointF(x, kTimeAxisHeight - 6.0), QPointF(x, kTimeAxisHeight));
    const double width = metrics.horizontalAdvance(tick.label);
    const double left = std::clamp(x - width / 2.0, geometry_.plot.left() + 2.0,
                                   geometry_.plot.right() - width - 2.0);
    painter_.setPen(colours_.text);
    painter_.drawText(QPointF(left, kTimeAxisHeight - 9.0), tick.label);
  }
  painter_.setPen(colours_.frame);
  painter_.drawLine(QPointF(0.0, kTimeAxisHeight),
                    QPointF(geometry_.axis.right(), kTimeAxisHeight));
  paint_minimap();
}

// Shows the computation of the first rank over the whole step. The streams of a trace may have
// communication beside it: then the first of them is shown.
void TimelinePainter::paint_minimap() {
  const QRectF& map = geometry_.minimap;
  painter_.fillRect(map, colours_.base);
  std::optional<std::size_t> row;
  for (const Track& track : tracks_.tracks()) {
    const bool has_spans = track.kind == TrackKind::Spans;
    const bool computes = has_spans && track.stream == Stream::Compute;
    if (has_spans && (computes || !row)) row = track.row;
    if (track.compute_row) row = track.compute_row;
    if (computes || track.compute_row) break;
  }
  if (row)
    paint_thin(tracks_.rows()[*row], AxisWindow::whole(scene_.window.limit), map.top() + 1.0,
               map.height() - 2.0);
  if (scene_.window.shows_all()) return;
  const double from = scene_.window.from / scene_.window.limit * map.width();
  const double to = scene_.window.to / scene_.window.limit * map.width();
  painter_.setBrush(Qt::NoBrush);
  painter_.setPen(QPen(colours_.accent, 2.0));
  painter_.drawRect(QRectF(map.left() + from, map.top(), std::max(3.0, to - from), map.height()));
}

void TimelinePainter::paint_thin(const SpanRow& row, const AxisWindow& window, double y,
                                 double height) {
  const RowLayout layout = row.lay_out(window, static_cast<int>(geometry_.plot.width()));
  paint_columns(layout.columns, y, height);
  for (const SpanBox& box : layout.boxes) {
    const double x0 = std::max(box.x0, 0.0), x1 = std::min(box.x1, geometry_.plot.width());
    painter_.fillRect(QRectF(geometry_.plot.left() + x0, y, x1 - x0, height),
                      colours_.of(row.spans()[box.position].role));
  }
}

void TimelinePainter::paint_rows(bool pinned) {
  const QRectF area = rows_area(pinned);
  painter_.setClipRect(area);
  for_visible_tracks(pinned, [this](const Track& track, double y) { paint_name(track, y); });
  painter_.setPen(colours_.frame);
  painter_.drawLine(geometry_.names.topRight(), geometry_.names.bottomRight());
  painter_.setClipRect(area.intersected(geometry_.plot));
  for_visible_tracks(pinned, [this](const Track& track, double y) {
    if (track.kind == TrackKind::Spans) paint_spans(track, y);
    if (track.kind == TrackKind::Memory) paint_memory(track, y);
    if (track.compute_row)
      paint_thin(tracks_.rows()[*track.compute_row], scene_.window,
                 y + 0.5 * (kRankHeight - kThinHeight), kThinHeight);
  });
  painter_.setClipping(false);
  if (pinned || tracks_.pinned_height() == 0.0) return;
  painter_.fillRect(QRectF(area.left(), area.top() - 1.0, area.width(), 2.0), colours_.accent);
}

void TimelinePainter::paint_spans(const Track& track, double y) {
  const double top = y + kPadding, height = track.height - 2.0 * kPadding;
  const RowLayout layout =
      tracks_.rows()[track.row].lay_out(scene_.window, static_cast<int>(geometry_.plot.width()));
  painter_.setFont(small_);
  paint_columns(layout.columns, top, height);
  for (const SpanBox& box : layout.boxes) paint_box(track, box, top, height);
  paint_marks(track, y);
}

void TimelinePainter::paint_columns(const std::vector<ColumnLoad>& columns, double y,
                                    double height) {
  const auto level = [](const ColumnLoad& load) {
    return std::clamp(static_cast<int>(std::ceil(load.busy * kLoadLevels)), kLeastLevel,
                      kLoadLevels);
  };
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t next = i + 1;
    while (next < columns.size() && columns[next].role == columns[i].role &&
           level(columns[next]) == level(columns[i]) &&
           columns[next].column == columns[next - 1].column + 1)
      ++next;
    const QColor colour = mixed_colour(colours_.base, colours_.of(columns[i].role),
                                       level(columns[i]) / static_cast<double>(kLoadLevels));
    painter_.fillRect(
        QRectF(geometry_.plot.left() + columns[i].column, y, static_cast<double>(next - i), height),
        colour);
    i = next;
  }
}

void TimelinePainter::paint_box(const Track& track, const SpanBox& box, double y, double height) {
  const RowSpan& span = tracks_.rows()[track.row].spans()[box.position];
  const double left = geometry_.plot.left();
  const double x0 = left + std::max(box.x0, -2.0);
  const double x1 = left + std::min(box.x1, geometry_.plot.width() + 2.0);
  // A gap keeps neighbours of one colour apart.
  const double gap = x1 - x0 >= 4.0 ? 1.0 : 0.0;
  const QRectF rect(x0, y, x1 - x0 - gap, height);
  fill(rect, span.role);
  const QRectF inside = rect.intersected(geometry_.plot);
  if (inside.width() >= kLeastLabel)
    paint_label(tracks_.timelines()[track.side]->spans[span.index], inside,
                colours_.text_on(span.role));
}

void TimelinePainter::fill(const QRectF& rect, Role role) {
  painter_.fillRect(rect, colours_.of(role));
  if (hatch(role) == Qt::SolidPattern || rect.width() < kLeastHatch) return;
  painter_.fillRect(rect, hatch_brush(painter_, faded(colours_.text_on(role), 0.35), hatch(role)));
}

void TimelinePainter::paint_label(const Span& span, const QRectF& box, const QColor& colour) {
  Label& label = labels_[span.name];
  const QFontMetricsF metrics(small_);
  if (label.text.isEmpty()) {
    label.text = to_qstring(span.name);
    label.width = metrics.horizontalAdvance(label.text);
  }
  const double room = box.width() - 6.0;
  QString text = label.text;
  if (label.width > room) {
    text = metrics.elidedText(text, Qt::ElideRight, room);
  } else if (room > label.width + 110.0) {
    if (span.layer >= 0) text += u" · layer %1"_s.arg(span.layer);
    if (span.microbatch >= 0) text += u" · mb %1"_s.arg(span.microbatch);
  }
  painter_.setPen(colour);
  const double baseline = box.top() + (box.height() + metrics.ascent() - metrics.descent()) / 2.0;
  painter_.drawText(QPointF(box.left() + 3.0, baseline), text);
}

void TimelinePainter::paint_marks(const Track& track, double y) {
  const int width = static_cast<int>(geometry_.plot.width());
  const SpanRow& row = tracks_.rows()[track.row];
  if (scene_.show_critical_path) {
    for (const auto& [x0, x1] : scene_.critical_path.visible(row, track.row, scene_.window, width))
      painter_.fillRect(QRectF(geometry_.plot.left() + x0, y + track.height - 4.0, x1 - x0, 3.0),
                        colours_.text);
  }
  for (const auto& [x0, x1] : scene_.matches.visible(row, track.row, scene_.window, width)) {
    painter_.fillRect(QRectF(geometry_.plot.left() + x0, y + 1.0, x1 - x0, 3.0), colours_.warning);
  }
}

void TimelinePainter::paint_memory(const Track& track, double y) {
  const QRectF row(geometry_.plot.left(), y, geometry_.plot.width(), track.height);
  MemoryScale scale(tracks_.memory_rows(), scene_.limits.of(track.rank).memory);
  for (const DeviceLimits& limits : scene_.limits.stages)
    scale.largest = std::max(scale.largest, limits.memory);
  paint_memory_curve(painter_, tracks_.memory_rows()[track.row], row, scene_.window, scale,
                     colours_, small_);
}

std::optional<QRectF> TimelinePainter::box_of(SpanRef ref) const {
  const auto index = tracks_.track_of(ref);
  if (!index) return std::nullopt;
  const Track& track = tracks_.tracks()[*index];
  const Span& span = tracks_.span(ref);
  const double width = geometry_.plot.width();
  const double x0 = scene_.window.pixel_of(span.start.value(), width);
  const double x1 = scene_.window.pixel_of(span.end().value(), width);
  const double y = geometry_.plot.top() + track.shown_y(scene_.rows.from) + kPadding;
  return QRectF(geometry_.plot.left() + x0, y, std::max(1.0, x1 - x0),
                track.height - 2.0 * kPadding);
}

void TimelinePainter::paint_arrows() {
  std::vector<MessageArrow> shown;
  for (std::size_t i = 0; i < tracks_.timelines().size(); ++i) {
    const auto side = static_cast<std::uint8_t>(i);
    for (const Flow& flow : tracks_.flows(side)) {
      const MessageArrow arrow{{side, flow.from}, {side, flow.to}};
      const double first = tracks_.span(arrow.from).start.value();
      const double last = tracks_.span(arrow.to).end().value();
      if (std::max(first, last) < scene_.window.from || std::min(first, last) > scene_.window.to)
        continue;
      shown.push_back(arrow);
      if (shown.size() > kMostArrows) return;
    }
  }
  for (const MessageArrow& arrow : shown) paint_arrow(arrow, colours_.muted_text);
}

void TimelinePainter::paint_arrow(const MessageArrow& arrow, const QColor& colour) {
  const auto from = box_of(arrow.from), to = box_of(arrow.to);
  if (!from || !to) return;
  // Rows that are scrolled below the pinned tracks hide their arrows.
  const auto pinned = [this](SpanRef ref) {
    return tracks_.tracks()[*tracks_.track_of(ref)].pinned;
  };
  painter_.setClipRect(
      geometry_.plot.intersected(rows_area(pinned(arrow.from) || pinned(arrow.to))));
  const bool down = to->top() > from->top();
  const QPointF start(from->center().x(), down ? from->bottom() : from->top());
  const QPointF end(to->center().x(), down ? to->top() : to->bottom());
  const double bend = 0.4 * (end.y() - start.y());
  QPainterPath path(start);
  // Messages of a prediction start and end together; the bow keeps their arrows off the grid.
  const double bow = std::min(14.0, 0.2 * std::abs(end.y() - start.y()));
  path.cubicTo(start + QPointF(bow, bend), end + QPointF(bow, -bend), end);
  painter_.setRenderHint(QPainter::Antialiasing, true);
  painter_.setPen(QPen(colour, 1.2));
  painter_.setBrush(Qt::NoBrush);
  painter_.drawPath(path);
  const double way = down ? 1.0 : -1.0;
  painter_.setBrush(colour);
  painter_.setPen(Qt::NoPen);
  painter_.drawPolygon(
      QPolygonF({end, end + QPointF(-3.0, -6.0 * way), end + QPointF(4.0, -5.0 * way)}));
  painter_.setRenderHint(QPainter::Antialiasing, false);
  painter_.setClipRect(geometry_.plot);
}

void TimelinePainter::paint_overlay() {
  painter_.save();
  painter_.setFont(font_);
  paint_range();
  paint_moment();
  paint_drop_line();
  painter_.setClipRect(geometry_.plot);
  for (const auto& ref : {scene_.hovered, scene_.selected}) {
    if (!ref) continue;
    if (ref == scene_.selected) {
      for (const MessageArrow& arrow : tracks_.arrows_of(*ref)) paint_arrow(arrow, colours_.accent);
    }
    if (tracks_.compares()) {
      if (const auto other = tracks_.counterpart(*ref)) paint_outline(*other, colours_.accent, 1.0);
    }
    paint_outline(*ref, ref == scene_.selected ? colours_.accent : colours_.text, 2.0);
  }
  painter_.restore();
}

void TimelinePainter::paint_outline(SpanRef ref, const QColor& colour, double pen_width) {
  const auto box = box_of(ref);
  if (!box) return;
  const bool pinned = tracks_.tracks()[*tracks_.track_of(ref)].pinned;
  if (!pinned && box->bottom() < rows_area(pinned).top()) return;
  painter_.setBrush(Qt::NoBrush);
  // Rectangles that reach far out of the view overflow the raster engine.
  const QRectF shown = box->intersected(geometry_.plot.adjusted(-10.0, 0.0, 10.0, 0.0));
  // A halo sets the outline off from spans of a similar colour.
  for (const QPen& pen : {QPen(colours_.base, pen_width + 2.0), QPen(colour, pen_width)}) {
    painter_.setPen(pen);
    painter_.drawRect((shown.isEmpty() ? QRectF() : shown).adjusted(-1.0, -1.0, 1.0, 1.0));
  }
}

void TimelinePainter::paint_range() {
  if (!scene_.range) return;
  const QRectF& plot = geometry_.plot;
  const double x0 = plot.left() + scene_.window.pixel_of(scene_.range->from, plot.width());
  const double x1 = plot.left() + scene_.window.pixel_of(scene_.range->to, plot.width());
  const double left = std::clamp(x0, plot.left(), plot.right());
  const double right = std::clamp(x1, plot.left(), plot.right());
  painter_.fillRect(QRectF(left, plot.top(), right - left, plot.height()),
                    faded(colours_.accent, 0.16));
  painter_.fillRect(QRectF(left, plot.top() - 4.0, right - left, 4.0), colours_.accent);
  painter_.setPen(colours_.accent);
  for (const double x : {x0, x1}) {
    if (x >= plot.left() && x <= plot.right())
      painter_.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
  }
  const QString text = time_text(Seconds(scene_.range->to - scene_.range->from));
  const double width = QFontMetricsF(bold_).horizontalAdvance(text) + 10.0;
  const double at = std::clamp((left + right - width) / 2.0, plot.left(), plot.right() - width);
  painter_.fillRect(QRectF(at, 3.0, width, 18.0), colours_.accent);
  painter_.setPen(Qt::white);
  painter_.setFont(bold_);
  painter_.drawText(QRectF(at, 3.0, width, 18.0), Qt::AlignCenter, text);
  painter_.setFont(font_);
}

void TimelinePainter::paint_moment() {
  if (!scene_.moment || *scene_.moment < scene_.window.from || *scene_.moment > scene_.window.to)
    return;
  const QRectF& plot = geometry_.plot;
  const double x = plot.left() + scene_.window.pixel_of(*scene_.moment, plot.width());
  painter_.setPen(QPen(colours_.accent, 1.0, Qt::DashLine));
  painter_.drawLine(QPointF(x, plot.top() - 6.0), QPointF(x, plot.bottom()));
}

void TimelinePainter::paint_drop_line() {
  if (!scene_.drop_line) return;
  const QRectF rows = rows_area(true);
  const double y = std::clamp(rows.top() + *scene_.drop_line, rows.top(), rows.bottom());
  painter_.setPen(QPen(colours_.accent, 3.0));
  painter_.drawLine(QPointF(rows.left(), y), QPointF(rows.right(), y));
}

void TimelinePainter::paint_legend() {
  if (geometry_.legend.isEmpty()) return;
  painter_.fillRect(geometry_.legend, colours_.window);
  painter_.setPen(colours_.frame);
  painter_.drawLine(geometry_.legend.topLeft(), geometry_.legend.topRight());
  painter_.setFont(small_);
  const QFontMetricsF metrics(small_);
  const std::vector<QPointF> places =
      places_in_legend(widths_of(scene_.legend), geometry_.legend.width());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const QPointF at = geometry_.legend.topLeft() + places[i];
    paint_legend_mark(scene_.legend[i], QRectF(at.x(), at.y() - 5.0, 11.0, 10.0));
    const bool marked = scene_.legend[i].mark != LegendMark::None;
    painter_.setPen(marked ? colours_.text : colours_.muted_text);
    painter_.drawText(
        at + QPointF(marked ? kLegendMarkWidth : 0.0, (metrics.ascent() - metrics.descent()) / 2.0),
        scene_.legend[i].text);
  }
}

void TimelinePainter::paint_legend_mark(const LegendEntry& entry, const QRectF& box) {
  switch (entry.mark) {
    case LegendMark::Role:
      return fill(box, entry.role);
    case LegendMark::NotAllocated:
      return painter_.fillRect(box, not_allocated(colours_));
    case LegendMark::CriticalPath:
      return painter_.fillRect(QRectF(box.left(), box.bottom() - 4.0, box.width(), 3.0),
                               colours_.text);
    case LegendMark::Match:
      return painter_.fillRect(QRectF(box.left(), box.top(), box.width(), 3.0), colours_.warning);
    case LegendMark::None:
      return;
  }
}

}  // namespace shardwright::gui
