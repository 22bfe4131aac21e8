#include "gui/timeline/timeline_canvas.hpp"

#include <QContextMenuEvent>
#include <QPaintEngine>
#include <QScrollBar>
#include <algorithm>

#include "gui/timeline/span_text.hpp"

namespace shardwright::gui {
namespace {

// A dragged row scrolls the others so many pixels from the edge.
constexpr double kDragMargin = 16.0;

}  // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent)
    : NavigableView(u"Timeline of the training step"_s, Zoom::Horizontal, parent),
      order_job_(
          this, [this](auto orders) { take_orders(std::move(orders)); },
          [this](const QString& /*error*/) { take_orders(nullptr); }) {
  setMinimumSize(240, 120);
  add_keys();
}

void TimelineCanvas::set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                                   std::shared_ptr<const Program> program, const RankLimits& limits,
                                   const std::vector<sim::ReservedMemory>& reserved,
                                   const QStringList& names) {
  program_ = std::move(program);
  tracks_.set_timelines(std::move(timelines), reserved, names);
  const TimelineScene before = std::move(scene_);
  scene_ = {};
  scene_.show_arrows = before.show_arrows;
  scene_.show_critical_path = before.show_critical_path;
  scene_.rows = before.rows;
  scene_.limits = limits;
  start_with(tracks_.end());
  orders_.reset();
  matches_.clear();
  tracks_changed();
  order_spans();
}

void TimelineCanvas::order_spans() {
  if (tracks_.timelines().empty()) return order_job_.cancel();
  order_job_.start([timelines = tracks_.timelines(), program = program_](const auto& stop) {
    SpanOrders orders;
    for (std::size_t side = 0; side < timelines.size() && !stop.stop_requested(); ++side) {
      orders.sides.emplace_back(timelines[side], program.get());
      for (const std::uint32_t index : orders.sides.back().critical_path())
        orders.critical_path.push_back({static_cast<std::uint8_t>(side), index});
    }
    return orders;
  });
}

void TimelineCanvas::take_orders(std::shared_ptr<const SpanOrders> orders) {
  orders_ = std::move(orders);
  tracks_changed();
  Q_EMIT ordered();
}

void TimelineCanvas::set_filter(const SpanQuery& filter) {
  tracks_.set_filter(filter);
  scene_.hovered.reset();
  tracks_changed();
  // What is left begins at the top, however far the rows were scrolled.
  verticalScrollBar()->setValue(0);
}

void TimelineCanvas::set_difference(std::shared_ptr<const TimelineDifference> difference) {
  if (!difference && tracks_.difference() == nullptr) return;
  tracks_.set_difference(std::move(difference));
  tracks_changed();
}

void TimelineCanvas::set_matches(const std::vector<SpanRef>& matches) {
  matches_ = matches;
  tracks_changed();
}

void TimelineCanvas::tracks_changed() {
  scene_.critical_path = SpanMarks(tracks_, critical_path());
  scene_.matches = SpanMarks(tracks_, matches_);
  scene_.legend = legend_of(tracks_, scene_.show_critical_path && !scene_.critical_path.empty(),
                            !scene_.matches.empty());
  scene_.widest_name = widest_name(tracks_);
  lay_out();
  part_changed();
}

void TimelineCanvas::set_show_arrows(bool show) {
  scene_.show_arrows = show;
  part_changed();
}

void TimelineCanvas::set_show_critical_path(bool show) {
  scene_.show_critical_path = show;
  tracks_changed();
}

void TimelineCanvas::part_changed() {
  backing_is_old_ = true;
  viewport()->update();
}

const Track* TimelineCanvas::track_at(const QPointF& position) const {
  const TimelineGeometry places = geometry();
  if (!places.plot.contains(position) && !places.names.contains(position)) return nullptr;
  const auto index = tracks_.track_at(position.y() - places.plot.top(), scene_.rows.from);
  return index ? &tracks_.tracks()[*index] : nullptr;
}

std::optional<SpanRef> TimelineCanvas::item_at(const QPointF& position) const {
  const QRectF plot = this->plot();
  const Track* at = track_at(position);
  if (!plot.contains(position) || at == nullptr || at->kind != TrackKind::Spans)
    return std::nullopt;
  const Track& track = *at;
  const SpanRow& row = tracks_.rows()[track.row];
  const double time = time_at(position.x());
  if (const auto exact = row.at(time)) return tracks_.ref(track, *exact);
  // The mouse may miss a narrow span by two pixels.
  const double slack = 2.0 * scene_.window.length() / plot.width();
  const PositionRange near = row.visible(time - slack, time + slack);
  if (near.size() == 0 || row.spans()[near.last - 1].end < time - slack) return std::nullopt;
  return tracks_.ref(track, near.last - 1);
}

void TimelineCanvas::select_range(double from, double to) {
  const TimeRange range{std::clamp(std::min(from, to), 0.0, scene_.window.limit),
                        std::clamp(std::max(from, to), 0.0, scene_.window.limit)};
  if (scene_.range == range) return;
  scene_.range = range;
  viewport()->update();
  Q_EMIT range_selected(range.from, range.to);
}

void TimelineCanvas::clear_range() {
  if (!scene_.range) return;
  scene_.range.reset();
  viewport()->update();
  Q_EMIT range_cleared();
}

void TimelineCanvas::select_op(SpanRef ref) {
  if (ref.side >= tracks_.timelines().size() ||
      ref.index >= tracks_.timelines()[ref.side]->spans.size())
    return;
  select(ref);
}

void TimelineCanvas::selection_changed() {
  if (scene_.selected) {
    Q_EMIT op_selected(*scene_.selected);
  } else {
    Q_EMIT op_cleared();
  }
}

void TimelineCanvas::reveal(SpanRef ref) {
  if (!tracks_.is_shown(ref)) return;
  if (!tracks_.track_of(ref)) fold(tracks_.rank_label_of(ref), false);
  const auto index = tracks_.track_of(ref);
  if (!index) return;
  const Track& track = tracks_.tracks()[*index];
  const double rows = plot().height(), y = track.shown_y(scene_.rows.from);
  if (!track.pinned && (y < tracks_.pinned_height() || y + track.height > rows))
    verticalScrollBar()->setValue(
        static_cast<int>(track.y - 0.5 * (tracks_.pinned_height() + rows)));
  const Span& span = tracks_.span(ref);
  const double from = span.start.value(), to = span.end().value();
  if (from >= scene_.window.from && to <= scene_.window.to) return;
  const double half = std::max(0.5 * scene_.window.length(), to - from);
  show_window(0.5 * (from + to) - half, 0.5 * (from + to) + half);
}

void TimelineCanvas::fold(const QString& rank_label, bool folded) {
  if (tracks_.is_folded(rank_label) == folded) return;
  tracks_.fold(rank_label, folded);
  scene_.hovered.reset();
  tracks_changed();
  Q_EMIT rows_changed();
}

void TimelineCanvas::pin(const Track& track, bool pinned) {
  tracks_.pin(track, pinned);
  scene_.hovered.reset();
  tracks_changed();
}

void TimelineCanvas::move(const Track& track, std::size_t position) {
  tracks_.move(track, position);
  order_changed();
}

void TimelineCanvas::nudge(const Track& track, int step) {
  if (tracks_.nudge(track, step)) order_changed();
}

void TimelineCanvas::order_changed() {
  scene_.hovered.reset();
  tracks_changed();
  Q_EMIT rows_changed();
}

void TimelineCanvas::arrange(const TimelineTracks::Arrangement& arrangement) {
  const TimelineTracks::Arrangement before = tracks_.arrangement();
  const bool moves = before.folded != arrangement.folded ||
                     before.unfolded != arrangement.unfolded || before.ranks != arrangement.ranks ||
                     before.rows != arrangement.rows;
  tracks_.arrange(arrangement);
  scene_.hovered.reset();
  tracks_changed();
  if (moves) Q_EMIT rows_changed();
}

void TimelineCanvas::scroll_to(const QString& label) {
  fold(label, false);
  for (const Track& track : tracks_.tracks()) {
    if (track.kind != TrackKind::Rank || track.label != label) continue;
    return verticalScrollBar()->setValue(static_cast<int>(track.y - tracks_.pinned_height()));
  }
}

void TimelineCanvas::mark_moment(std::optional<double> moment) {
  if (scene_.moment == moment) return;
  scene_.moment = moment;
  viewport()->update();
}

QString TimelineCanvas::text_of(SpanRef ref) const {
  std::optional<SpanRef> before;
  if (orders_ && ref.side < orders_->sides.size()) {
    if (const auto index = orders_->sides[ref.side].before(ref.index)) before = {ref.side, *index};
  }
  return span_tool_tip(tracks_, ref, scene_.limits.of(tracks_.span(ref).rank), before);
}

QString TimelineCanvas::tool_tip_at(const QPointF& position) const {
  if (const auto span = item_at(position)) return text_of(*span);
  const Track* track = track_at(position);
  if (track == nullptr) return {};
  const bool on_name = geometry().names.contains(position);
  // The name of a row may be longer than its place.
  const QString name = on_name && !track->note.isEmpty()
                           ? u"%1 · %2 · %3"_s.arg(track->rank_label, track->label, track->note)
                           : QString();
  if (track->kind != TrackKind::Memory) return name;
  const MemoryRow& memory = tracks_.memory_rows()[track->row];
  const auto tip = [&](std::optional<double> time) {
    return memory_tool_tip(memory, tracks_.source(track->side),
                           scene_.limits.of(track->rank).memory, time);
  };
  if (!on_name) return tip(time_at(position.x()));
  return u"<div>%1</div>"_s.arg(name.toHtmlEscaped()) + tip(std::nullopt);
}

void TimelineCanvas::paint(QPainter& painter) {
  TimelinePainter timeline(painter, tracks_, scene_, colours(), room());
  // Pictures of another resolution and vector pictures are painted afresh.
  const bool to_screen =
      painter.paintEngine()->type() == QPaintEngine::Raster &&
      qFuzzyCompare(painter.deviceTransform().m11(), devicePixelRatioF() * unit());
  if (to_screen) {
    paint_from_backing(painter);
  } else {
    timeline.paint_tracks();
  }
  timeline.paint_overlay();
}

void TimelineCanvas::paint_from_backing(QPainter& painter) {
  const double ratio = devicePixelRatioF();
  if (backing_.size() != viewport()->size() * ratio) {
    backing_ = QPixmap(viewport()->size() * ratio);
    backing_.setDevicePixelRatio(ratio);
    backing_is_old_ = true;
  }
  if (backing_is_old_) {
    QPainter tracks_painter(&backing_);
    tracks_painter.scale(unit(), unit());
    TimelinePainter(tracks_painter, tracks_, scene_, colours(), room()).paint_tracks();
    backing_is_old_ = false;
  }
  painter.save();
  painter.scale(1.0 / unit(), 1.0 / unit());
  painter.drawPixmap(0, 0, backing_);
  painter.restore();
}

bool TimelineCanvas::wheel_zooms_at(const QPointF& position) const {
  return geometry().axis.contains(position);
}

// A second click on a name folds or unfolds again.
bool TimelineCanvas::double_click_fits_at(const QPointF& position) const {
  return !geometry().names.contains(position);
}

void TimelineCanvas::click(const QPointF& position) {
  if (position.x() < plot().left()) return fold_at(position);
  const QRectF minimap = geometry().minimap;
  if (minimap.contains(position)) return look_at(minimap, position.x());
  clear_range();
  NavigableView::click(position);
}

bool TimelineCanvas::begin_drag(const QPointF& position) {
  dragged_.reset();
  if (const Track* track = track_at(position); track != nullptr && position.x() < plot().left())
    dragged_ = *track;
  return true;
}

void TimelineCanvas::drag_to(const QPointF& position) {
  if (dragged_) return drag_row(position);
  const QRectF minimap = geometry().minimap;
  if (minimap.contains(press_position())) return look_at(minimap, position.x());
  if (press_position().x() >= plot().left())
    select_range(time_at(press_position().x()), time_at(position.x()));
}

void TimelineCanvas::drag_row(const QPointF& position) {
  viewport()->setCursor(Qt::ClosedHandCursor);
  const QRectF plot = this->plot();
  QScrollBar* bar = verticalScrollBar();
  if (!dragged_->pinned && position.y() > plot.bottom() - kDragMargin)
    bar->setValue(bar->value() + bar->singleStep());
  if (!dragged_->pinned && position.y() < plot.top() + tracks_.pinned_height() + kDragMargin)
    bar->setValue(bar->value() - bar->singleStep());
  const auto place = tracks_.drop_place(*dragged_, position.y() - plot.top(), scene_.rows.from);
  scene_.drop_line = place ? std::optional(place->shown_y) : std::nullopt;
  viewport()->update();
}

void TimelineCanvas::end_drag(const QPointF& position) {
  if (!dragged_ && scene_.range) Q_EMIT range_selected(scene_.range->from, scene_.range->to);
  if (!dragged_) return;
  const Track dragged = *dragged_;
  cancel_drag();
  const double y = position.y() - plot().top();
  if (const auto place = tracks_.drop_place(dragged, y, scene_.rows.from))
    move(dragged, place->position);
}

void TimelineCanvas::cancel_drag() {
  if (!dragged_) return clear_range();
  dragged_.reset();
  scene_.drop_line.reset();
  viewport()->update();
}

void TimelineCanvas::fold_at(const QPointF& position) {
  const Track* track = track_at(position);
  if (track == nullptr || track->kind != TrackKind::Rank) return;
  const QString label = track->rank_label;
  fold(label, !tracks_.is_folded(label));
}

void TimelineCanvas::contextMenuEvent(QContextMenuEvent* event) {
  Q_EMIT menu_wanted(QPointF(event->pos()) / unit());
}

}  // namespace shardwright::gui
