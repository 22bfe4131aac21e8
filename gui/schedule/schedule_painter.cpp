#include "gui/schedule/schedule_painter.hpp"

#include <QFontMetricsF>
#include <algorithm>
#include <set>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/painting/legend_lines.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {
namespace {

constexpr double kSummaryHeight = 26.0, kSummaryLine = 16.0, kSummaryMargin = 10.0;
constexpr double kAxisHeight = 24.0;
constexpr double kNamesWidth = 150.0, kLeastNamesWidth = 116.0;
constexpr double kLeastRow = 14.0, kMostRow = 110.0;
// The legend and the overview leave room for so many rows.
constexpr std::size_t kLeastRows = 4;
// The pixels of a slot besides its number, in usual and in small letters, with the gap behind it.
constexpr double kAroundNumber = 4.0, kAroundSmallNumber = 3.0;
constexpr double kOverviewRow = 10.0, kOverviewTop = 18.0, kOverviewBottom = 8.0;
// The most of the height that the overview takes.
constexpr double kMostOverview = 0.3;
constexpr double kLeastGap = 3.0;
// The fading of a stage's last chunk towards the background.
constexpr double kMostFade = 0.45;
constexpr double kFaint = 0.22;
constexpr double kMarkWidth = 18.0, kMarkGap = 6.0;

QString between_parts() {
  return u" · "_s;
}

double room_of_mark(ScheduleMark mark) {
  return mark == ScheduleMark::None ? 0.0 : kMarkWidth + kMarkGap;
}

std::vector<double> widths_of(const std::vector<ScheduleLegendEntry>& entries) {
  const QFontMetricsF metrics(pixel_font(12));
  std::vector<double> widths;
  for (const ScheduleLegendEntry& entry : entries)
    widths.push_back(room_of_mark(entry.mark) + metrics.horizontalAdvance(entry.text) + kLegendGap);
  return widths;
}

double width_of_numbers(const ScheduleGantt& gantt, const QFont& font) {
  return QFontMetricsF(font).horizontalAdvance(QString::number(gantt.last_microbatch()));
}

}  // namespace

std::vector<ScheduleLegendEntry> legend_of(const ScheduleGantt& gantt) {
  std::vector<ScheduleLegendEntry> entries;
  if (gantt.empty()) return entries;
  std::set<SlotPhase> phases;
  for (const GanttBox& box : gantt.stages().front().boxes) phases.insert(box.phase);
  for (const SlotPhase phase : phases)
    entries.push_back({ScheduleMark::Phase, phase, to_qstring(title_of(phase))});
  entries.push_back({ScheduleMark::NoSlot, {}, u"no slot: bubble, messages, optimizer"_s});
  entries.push_back({ScheduleMark::None, {}, u"numbers: microbatches"_s});
  if (gantt.chunks() > 1)
    entries.push_back({ScheduleMark::None, {}, u"shades: chunks of a stage"_s});
  return entries;
}

Qt::BrushStyle hatch_of(SlotPhase phase, const std::vector<ScheduleLegendEntry>& legend) {
  const bool splits = std::any_of(legend.begin(), legend.end(), [](const auto& entry) {
    return entry.mark == ScheduleMark::Phase && entry.phase == SlotPhase::BackwardInput;
  });
  return splits && phase == SlotPhase::Backward ? Qt::SolidPattern : hatch(role_of(phase));
}

ScheduleGeometry::ScheduleGeometry(const QSizeF& size, const ScheduleGantt& gantt,
                                   const std::vector<ScheduleLegendEntry>& entries) {
  const std::size_t stages = gantt.stages().size();
  const double names_width = std::clamp(0.3 * size.width(), kLeastNamesWidth, kNamesWidth);
  const double width = std::max(1.0, size.width() - names_width - 10.0);
  summary_lines = schedule_summary(gantt);
  const QString whole = summary_lines.join(between_parts());
  const double in_one_line = QFontMetricsF(pixel_font(12, true)).horizontalAdvance(whole);
  if (in_one_line <= size.width() - 2.0 * kSummaryMargin) summary_lines = {whole};
  const double above =
      kSummaryHeight + kSummaryLine * static_cast<double>(summary_lines.size() - 1);
  summary = QRectF(kSummaryMargin, 0.0, size.width() - 2.0 * kSummaryMargin, above);
  const double least = kLeastRow * static_cast<double>(std::min(stages, kLeastRows));
  double room = size.height() - above - kAxisHeight;
  const double wanted = legend_height(widths_of(entries), size.width());
  const double below = room - wanted < least ? 0.0 : wanted;
  room -= below;
  const double around = kOverviewTop + kOverviewBottom;
  const double height = std::min(around + kOverviewRow * static_cast<double>(stages),
                                 std::max(around + 8.0, kMostOverview * room));
  if (!first_window(gantt, width).shows_all() && room - height >= least) {
    overview =
        QRectF(names_width, size.height() - below - height + kOverviewTop, width, height - around);
    room -= height;
  }
  row_height =
      std::clamp(room / static_cast<double>(std::max<std::size_t>(1, stages)), kLeastRow, kMostRow);
  axis = QRectF(names_width, above, width, kAxisHeight);
  rows_height = row_height * static_cast<double>(stages);
  plot = QRectF(names_width, axis.bottom(), width, std::max(0.0, std::min(room, rows_height)));
  names = QRectF(0.0, plot.top(), names_width, plot.height());
  legend = QRectF(0.0, size.height() - below, size.width(), below);
}

QRectF ScheduleGeometry::row(std::size_t stage, const AxisWindow& rows) const {
  return {plot.left(), plot.top() + row_height * static_cast<double>(stage) - rows.from,
          plot.width(), row_height};
}

SchedulePainter::SchedulePainter(QPainter& painter, const ScheduleGantt& gantt,
                                 const ScheduleScene& scene, const Colours& colours,
                                 const QSizeF& size)
    : painter_(painter),
      gantt_(gantt),
      scene_(scene),
      colours_(colours),
      geometry_(size, gantt, scene.legend),
      font_(pixel_font(12)),
      bold_(pixel_font(12, true)),
      small_(pixel_font(10)) {
  const double usual = width_of_numbers(gantt, font_) + kAroundNumber;
  const double little = width_of_numbers(gantt, small_) + kAroundSmallNumber;
  for (const SlotPhase phase : enumerators<SlotPhase>()) {
    const double width =
        gantt.typical_length(phase) / scene.window.length() * geometry_.plot.width();
    number_fonts_[phase] = width >= usual ? &font_ : width >= little ? &small_ : nullptr;
  }
}

void SchedulePainter::paint() {
  painter_.save();
  const QRectF all(0.0, 0.0, geometry_.legend.width(), geometry_.legend.bottom());
  painter_.fillRect(all, colours_.base);
  paint_summary();
  paint_axis();
  painter_.setClipRect(geometry_.plot);
  for (std::size_t stage = 0; stage < gantt_.stages().size(); ++stage) paint_stage(stage);
  painter_.setClipRect(geometry_.names);
  for (std::size_t stage = 0; stage < gantt_.stages().size(); ++stage) paint_name(stage);
  painter_.setClipping(false);
  paint_moment();
  paint_overview();
  paint_legend();
  painter_.restore();
}

void SchedulePainter::paint_summary() {
  painter_.setFont(bold_);
  painter_.setPen(colours_.text);
  const QFontMetricsF metrics(bold_);
  QStringList lines = geometry_.summary_lines;
  for (QString& line : lines)
    line = metrics.elidedText(line, Qt::ElideRight, geometry_.summary.width());
  painter_.drawText(geometry_.summary, Qt::AlignVCenter, lines.join(u'\n'));
}

void SchedulePainter::paint_axis() {
  painter_.setFont(font_);
  const QFontMetricsF metrics(font_);
  const double width = geometry_.plot.width();
  for (const TimeTick& tick : time_ticks(scene_.window, width, 90.0)) {
    const double x = geometry_.plot.left() + scene_.window.pixel_of(tick.time, width);
    painter_.setPen(colours_.grid);
    painter_.drawLine(QPointF(x, geometry_.axis.bottom() - 5.0),
                      QPointF(x, geometry_.plot.bottom()));
    const double label = metrics.horizontalAdvance(tick.label);
    const double left = std::clamp(x - label / 2.0, geometry_.plot.left(),
                                   std::max(geometry_.plot.left(), geometry_.plot.right() - label));
    painter_.setPen(colours_.muted_text);
    painter_.drawText(QPointF(left, geometry_.axis.bottom() - 8.0), tick.label);
  }
  painter_.setFont(small_);
  painter_.setPen(colours_.muted_text);
  painter_.drawText(QRectF(0.0, geometry_.axis.top(), geometry_.names.width() - 10.0,
                           geometry_.axis.height() - 5.0),
                    Qt::AlignRight | Qt::AlignBottom, u"bubble"_s);
}

void SchedulePainter::paint_stage(std::size_t stage) {
  const QRectF row = geometry_.row(stage, scene_.rows);
  const double inset = std::min(3.0, 0.1 * row.height());
  const QRectF lane = row.adjusted(0.0, inset, 0.0, -inset);
  painter_.fillRect(lane, bubble_fill());
  paint_boxes(stage, lane, scene_.window);
}

void SchedulePainter::paint_boxes(std::size_t stage, const QRectF& lane, const AxisWindow& window) {
  const GanttStage& of_stage = gantt_.stages()[stage];
  double painted_to = -1.0;
  for (std::size_t i = 0; i < of_stage.boxes.size(); ++i) {
    const GanttBox& box = of_stage.boxes[i];
    if (box.finish < window.from || box.start > window.to) continue;
    const double x0 = window.pixel_of(box.start, lane.width());
    const double x1 = window.pixel_of(box.finish, lane.width());
    // The first of several boxes within one pixel stands for all.
    if (box.lane != GanttLane::Lower && x1 < painted_to + 0.5) continue;
    painted_to = x1;
    const double gap = x1 - x0 >= kLeastGap ? 1.0 : 0.0;
    QRectF rect(lane.left() + x0, lane.top(), std::max(0.5, x1 - x0 - gap), lane.height());
    if (box.lane == GanttLane::Upper) rect.setBottom(lane.center().y() - 0.5);
    if (box.lane == GanttLane::Lower) rect.setTop(lane.center().y() + 0.5);
    paint_box(box, rect, BoxRef{stage, i});
  }
}

// Paints all stages over the whole step, with a frame around the part in view.
void SchedulePainter::paint_overview() {
  const QRectF& area = geometry_.overview;
  if (area.isEmpty()) return;
  painter_.setFont(small_);
  painter_.setPen(colours_.muted_text);
  painter_.drawText(QRectF(10.0, area.top(), geometry_.names.width() - 20.0, area.height()),
                    Qt::AlignVCenter | Qt::AlignLeft, u"the whole step"_s);
  const double height = area.height() / static_cast<double>(gantt_.stages().size());
  painter_.setClipRect(area);
  for (std::size_t stage = 0; stage < gantt_.stages().size(); ++stage) {
    const QRectF row(area.left(), area.top() + height * static_cast<double>(stage), area.width(),
                     height);
    const QRectF lane = row.adjusted(0.0, 0.0, 0.0, height > 4.0 ? -1.0 : 0.0);
    painter_.fillRect(lane, bubble_fill());
    paint_boxes(stage, lane, AxisWindow::whole(gantt_.makespan()));
  }
  painter_.setClipping(false);
  const AxisWindow whole = AxisWindow::whole(gantt_.makespan());
  const double from = area.left() + whole.pixel_of(scene_.window.from, area.width());
  const double to = area.left() + whole.pixel_of(scene_.window.to, area.width());
  painter_.setPen(QPen(colours_.accent, 2.0));
  painter_.setBrush(Qt::NoBrush);
  painter_.drawRect(QRectF(from, area.top() - 2.0, std::max(3.0, to - from), area.height() + 3.0));
}

QColor SchedulePainter::bubble_fill() const {
  return faded(colours_.of(Role::Bubble), colours_.dark ? 0.35 : 0.30);
}

// Later chunks are nearer to the background.
QColor SchedulePainter::fill_of(const GanttBox& box) const {
  const QColor colour = colours_.of(role_of(box.phase));
  if (gantt_.chunks() < 2) return colour;
  const double share = static_cast<double>(box.chunk) / static_cast<double>(gantt_.chunks() - 1);
  return mixed_colour(colour, colours_.base, kMostFade * share);
}

void SchedulePainter::paint_box(const GanttBox& box, const QRectF& rect, const BoxRef& ref) {
  const bool ahead = scene_.moment && box.start > *scene_.moment;
  const QColor fill = fill_of(box);
  const QColor ink = ahead ? colours_.muted_text : ink_on(fill);
  painter_.fillRect(rect, ahead ? faded(fill, kFaint) : fill);
  const QString number = QString::number(box.microbatch);
  const QFont* font = number_fonts_[box.phase];
  const bool has_number = font != nullptr && rect.height() >= 11.0 &&
                          QFontMetricsF(*font).horizontalAdvance(number) <= rect.width();
  const Qt::BrushStyle strokes = hatch_of(box.phase, scene_.legend);
  if (strokes != Qt::SolidPattern && rect.width() >= 4.0) {
    // The strokes leave room for the number.
    const double stripe = has_number ? std::max(4.0, 0.28 * rect.height()) : rect.height();
    painter_.fillRect(QRectF(rect.left(), rect.bottom() - stripe, rect.width(), stripe),
                      hatch_brush(painter_, faded(ink, ahead ? 0.35 : 0.6), strokes));
  }
  if (has_number) {
    painter_.setFont(*font);
    painter_.setPen(ink);
    painter_.drawText(
        rect.adjusted(0.0, 0.0, 0.0, rect.height() > 24.0 ? -0.22 * rect.height() : 0.0),
        Qt::AlignCenter, number);
  }
  const bool running = scene_.moment && box.start <= *scene_.moment && box.finish > *scene_.moment;
  const bool selected = scene_.selected == ref;
  if (!running && !selected && scene_.hovered != ref) return;
  const QColor outline = selected ? colours_.accent : running ? colours_.warning : colours_.text;
  painter_.setBrush(Qt::NoBrush);
  // The inner line sets the outline off from boxes of a similar colour.
  for (const QPen& pen : {QPen(colours_.base, 4.0), QPen(outline, 2.0)}) {
    const double inset = 0.5 * pen.widthF();
    painter_.setPen(pen);
    painter_.drawRect(rect.adjusted(inset, inset, -inset, -inset));
  }
}

void SchedulePainter::paint_name(std::size_t stage) {
  const QRectF row = geometry_.row(stage, scene_.rows);
  const QRectF name(10.0, row.top(), geometry_.names.width() - 20.0, row.height());
  painter_.setFont(row.height() >= 15.0 ? font_ : small_);
  painter_.setPen(colours_.text);
  painter_.drawText(name, Qt::AlignVCenter, u"stage %1"_s.arg(stage));
  painter_.setPen(colours_.muted_text);
  painter_.drawText(name, Qt::AlignVCenter | Qt::AlignRight,
                    percent_text(gantt_.stages()[stage].bubble));
}

void SchedulePainter::paint_moment() {
  if (!scene_.moment) return;
  const double x =
      geometry_.plot.left() + scene_.window.pixel_of(*scene_.moment, geometry_.plot.width());
  if (x < geometry_.plot.left() - 0.5 || x > geometry_.plot.right() + 0.5) return;
  painter_.setPen(QPen(colours_.accent, 2.0));
  painter_.drawLine(QPointF(x, geometry_.axis.bottom() - 4.0), QPointF(x, geometry_.plot.bottom()));
  painter_.setBrush(colours_.accent);
  painter_.setPen(Qt::NoPen);
  const double top = geometry_.axis.bottom() - 4.0;
  painter_.drawPolygon(
      QPolygonF({QPointF(x - 5.0, top - 6.0), QPointF(x + 5.0, top - 6.0), QPointF(x, top + 1.0)}));
}

void SchedulePainter::paint_legend() {
  if (geometry_.legend.isEmpty()) return;
  painter_.fillRect(geometry_.legend, colours_.window);
  painter_.setFont(font_);
  const QFontMetricsF metrics(font_);
  const std::vector<ScheduleLegendEntry>& entries = scene_.legend;
  const std::vector<QPointF> places =
      places_in_legend(widths_of(entries), geometry_.legend.width());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ScheduleLegendEntry& entry = entries[i];
    const QPointF at = geometry_.legend.topLeft() + places[i];
    if (entry.mark != ScheduleMark::None)
      paint_legend_mark(entry, QRectF(at.x(), at.y() - 6.0, kMarkWidth, 12.0));
    painter_.setPen(entry.mark == ScheduleMark::None ? colours_.muted_text : colours_.text);
    painter_.drawText(
        at + QPointF(room_of_mark(entry.mark), (metrics.ascent() - metrics.descent()) / 2.0),
        entry.text);
  }
}

void SchedulePainter::paint_legend_mark(const ScheduleLegendEntry& entry, const QRectF& swatch) {
  if (entry.mark == ScheduleMark::NoSlot) return painter_.fillRect(swatch, bubble_fill());
  const Role role = role_of(entry.phase);
  painter_.fillRect(swatch, colours_.of(role));
  const Qt::BrushStyle strokes = hatch_of(entry.phase, scene_.legend);
  if (strokes != Qt::SolidPattern)
    painter_.fillRect(swatch, hatch_brush(painter_, faded(colours_.text_on(role), 0.6), strokes));
}

AxisWindow first_window(const ScheduleGantt& gantt, double plot_width) {
  AxisWindow window = AxisWindow::whole(gantt.makespan());
  double shortest = gantt.makespan();
  for (const SlotPhase phase : enumerators<SlotPhase>())
    if (const double length = gantt.typical_length(phase); length > 0.0)
      shortest = std::min(shortest, length);
  const double legible =
      plot_width / (width_of_numbers(gantt, pixel_font(10)) + kAroundSmallNumber) * shortest;
  if (!gantt.empty() && legible < gantt.makespan()) window.show(0.0, legible);
  return window;
}

QStringList schedule_summary(const ScheduleGantt& gantt) {
  const ScheduleShape& shape = gantt.shape();
  QString text =
      u"%1 · %2"_s.arg(to_qstring(name_of(gantt.kind())), counted_text(shape.stages, "stage"));
  if (gantt.chunks() > 1) text += u" of "_s + counted_text(gantt.chunks(), "chunk");
  return {
      text + between_parts() + counted_text(shape.microbatches, "microbatch"),
      u"%1 · bubble %2"_s.arg(time_text(Seconds(gantt.makespan())), percent_text(gantt.bubble())) +
          (gantt.busiest() ? u" in stage %1, the busiest"_s.arg(*gantt.busiest())
                           : u" of the time of all stages"_s)};
}

TipSource source_of(const ScheduleGantt& gantt) {
  return gantt.busiest() ? simulated_step()
                         : TipSource(u"the order of the schedule, with slots of equal length"_s);
}

QString schedule_summary_tip(const ScheduleGantt& gantt) {
  const QString meaning =
      gantt.busiest()
          ? u"The stage that computes longest decides how long the step takes: its bubble is "
            "the one of the step in Why. Those of the other stages stand beside their names."_s
          : u"The mean of the stages' bubbles, which stand beside their names."_s;
  return tool_tip(schedule_summary(gantt).join(between_parts()), source_of(gantt), {{meaning}});
}

}  // namespace shardwright::gui
