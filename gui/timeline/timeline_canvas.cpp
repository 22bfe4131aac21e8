#include "gui/timeline/timeline_canvas.hpp"

#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPaintEngine>
#include <QPaintEvent>
#include <QScrollBar>
#include <QTimer>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/models/text.hpp"
#include "gui/painting/focus_frame.hpp"
#include "gui/timeline/span_text.hpp"

namespace shardwright::gui {
namespace {

constexpr double kWheelStep = 120.0;  // of QWheelEvent::angleDelta, for one notch
constexpr double kZoomPerNotch = 1.25;
constexpr double kWheelPan = 0.10;
constexpr double kRowsPerNotch = 60.0;  // pixels
constexpr int kBarSteps = 100'000;      // of the scroll bar for the whole time
constexpr double kClickDistance = 4.0;  // pixels that a click may move
constexpr double kDragMargin = 16.0;    // pixels from the edge where a dragged row scrolls
constexpr std::size_t kMostEarlierWindows = 100;

}  // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent)
    : QAbstractScrollArea(parent), colours_(colours_for(palette())) {
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  setAccessibleName(QStringLiteral("Timeline of the training step"));
  viewport()->setMouseTracking(true);
  setMinimumSize(240, 160);
}

void TimelineCanvas::set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                                   std::shared_ptr<const Program> program,
                                   const DeviceLimits& limits, const sim::ReservedMemory& reserved,
                                   const QStringList& names) {
  program_ = std::move(program);
  tracks_.set_timelines(std::move(timelines), reserved, names);
  const TimelineScene before = std::move(scene_);
  scene_ = {};
  scene_.show_arrows = before.show_arrows;
  scene_.show_critical_path = before.show_critical_path;
  limits_ = limits;
  scene_.capacity = limits.memory;
  scene_.window = TimeWindow::whole(tracks_.end());
  earlier_.clear();
  orders_.clear();
  critical_path_.clear();
  matches_.clear();
  tracks_changed();
  // After the first paint.
  QTimer::singleShot(0, this, &TimelineCanvas::order_spans);
}

void TimelineCanvas::order_spans() {
  orders_.clear();
  critical_path_.clear();
  for (std::size_t side = 0; side < tracks_.timelines().size(); ++side) {
    orders_.emplace_back(tracks_.timelines()[side], program_.get());
    for (const std::uint32_t index : orders_.back().critical_path())
      critical_path_.push_back({static_cast<std::uint8_t>(side), index});
  }
  tracks_changed();
}

void TimelineCanvas::set_filter(const SpanQuery& filter) {
  tracks_.set_filter(filter);
  scene_.hovered.reset();
  tracks_changed();
}

void TimelineCanvas::set_matches(const std::vector<SpanRef>& matches) {
  matches_ = matches;
  tracks_changed();
}

void TimelineCanvas::tracks_changed() {
  scene_.critical_path = SpanMarks(tracks_, critical_path_);
  scene_.matches = SpanMarks(tracks_, matches_);
  update_scroll_bars();
  repaint_tracks();
}

void TimelineCanvas::set_show_arrows(bool show) {
  scene_.show_arrows = show;
  repaint_tracks();
}

void TimelineCanvas::set_show_critical_path(bool show) {
  scene_.show_critical_path = show;
  repaint_tracks();
}

void TimelineCanvas::repaint_tracks() {
  backing_is_old_ = true;
  viewport()->update();
}

TimelineGeometry TimelineCanvas::geometry() const {
  return TimelineGeometry(QSizeF(viewport()->size()));
}

double TimelineCanvas::time_at(double x) const {
  const QRectF plot = geometry().plot;
  return scene_.window.time_at(std::clamp(x - plot.left(), 0.0, plot.width()), plot.width());
}

const Track* TimelineCanvas::track_at(const QPointF& position) const {
  const TimelineGeometry places = geometry();
  if (!places.plot.contains(position) && !places.names.contains(position)) return nullptr;
  const auto index = tracks_.track_at(position.y() - places.plot.top(), scene_.scroll);
  return index ? &tracks_.tracks()[*index] : nullptr;
}

std::optional<SpanRef> TimelineCanvas::span_at(const QPointF& position) const {
  const QRectF plot = geometry().plot;
  const Track* at = track_at(position);
  if (!plot.contains(position) || at == nullptr || at->kind != TrackKind::Spans)
    return std::nullopt;
  const Track& track = *at;
  const SpanRow& row = tracks_.rows()[track.row];
  const double time = time_at(position.x());
  if (const auto exact = row.at(time)) return tracks_.ref(track, *exact);
  // What is narrower than the mouse is steady may be missed by two pixels.
  const double slack = 2.0 * scene_.window.length() / plot.width();
  const PositionRange near = row.visible(time - slack, time + slack);
  if (near.size() == 0 || row.spans()[near.last - 1].end < time - slack) return std::nullopt;
  return tracks_.ref(track, near.last - 1);
}

void TimelineCanvas::change_window(const TimeWindow& window, bool remember) {
  if (window == scene_.window) return;
  if (remember && earlier_.size() < kMostEarlierWindows) earlier_.push_back(scene_.window);
  scene_.window = window;
  update_scroll_bars();
  repaint_tracks();
  Q_EMIT window_changed();
}

void TimelineCanvas::show_window(double from, double to) {
  TimeWindow window = scene_.window;
  window.show(from, to);
  change_window(window, true);
}

void TimelineCanvas::zoom(double time, double factor) {
  TimeWindow window = scene_.window;
  window.zoom_about(time, factor);
  change_window(window, false);
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
      ref.index >= tracks_.timelines()[ref.side]->spans.size() || scene_.selected == ref)
    return;
  scene_.selected = ref;
  viewport()->update();
  Q_EMIT op_selected(ref);
}

void TimelineCanvas::clear_op() {
  if (!scene_.selected) return;
  scene_.selected.reset();
  viewport()->update();
  Q_EMIT op_cleared();
}

void TimelineCanvas::reveal(SpanRef ref) {
  const auto index = tracks_.track_of(ref);
  if (!index) return;
  const Track& track = tracks_.tracks()[*index];
  const double rows = geometry().rows_height(), y = track.shown_y(scene_.scroll);
  if (!track.pinned && (y < tracks_.pinned_height() || y + track.height > rows))
    verticalScrollBar()->setValue(
        static_cast<int>(track.y - 0.5 * (tracks_.pinned_height() + rows)));
  const Span& span = tracks_.span(ref);
  const double from = span.start.value(), to = span.end().value();
  if (from >= scene_.window.from && to <= scene_.window.to) return;
  const double half = std::max(0.5 * scene_.window.length(), to - from);
  TimeWindow window = scene_.window;
  window.show(0.5 * (from + to) - half, 0.5 * (from + to) + half);
  change_window(window, true);
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
  const bool moves = before.folded != arrangement.folded || before.ranks != arrangement.ranks ||
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

bool TimelineCanvas::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), tool_tip_at(help->pos()), viewport());
    return true;
  }
  if (event->type() == QEvent::Leave && scene_.hovered) {
    scene_.hovered.reset();
    viewport()->update();
  }
  return QAbstractScrollArea::viewportEvent(event);
}

QString TimelineCanvas::text_of(SpanRef ref) const {
  std::optional<SpanRef> before;
  if (ref.side < orders_.size()) {
    if (const auto index = orders_[ref.side].before(ref.index)) before = {ref.side, *index};
  }
  return span_tool_tip(tracks_, ref, limits_, before);
}

QString TimelineCanvas::tool_tip_at(const QPointF& position) const {
  if (const auto span = span_at(position)) return text_of(*span);
  const Track* track = track_at(position);
  if (track == nullptr) return {};
  const bool on_name = geometry().names.contains(position);
  // The name of a row may be longer than its place.
  const QString name =
      on_name && !track->note.isEmpty()
          ? QStringLiteral("%1 · %2 · %3").arg(track->rank_label, track->label, track->note)
          : QString();
  if (track->kind != TrackKind::Memory) return name;
  const MemoryRow& memory = tracks_.memory_rows()[track->row];
  if (!on_name) return memory_tool_tip(memory, time_at(position.x()));
  return QStringLiteral("<div>%1</div>").arg(name.toHtmlEscaped()) +
         memory_tool_tip(memory, std::nullopt);
}

void TimelineCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), colours_.base);
  if (tracks_.empty()) return;
  TimelinePainter timeline(painter, tracks_, scene_, colours_, QSizeF(viewport()->size()));
  // Pictures of another resolution, and those that are no pixels, are painted afresh.
  const bool to_screen = painter.paintEngine()->type() == QPaintEngine::Raster &&
                         qFuzzyCompare(painter.deviceTransform().m11(), devicePixelRatioF());
  if (to_screen) {
    paint_from_backing(painter);
  } else {
    timeline.paint_tracks();
  }
  timeline.paint_overlay();
  if (hasFocus()) paint_focus(painter, viewport()->rect(), colours_);
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
    TimelinePainter(tracks_painter, tracks_, scene_, colours_, QSizeF(viewport()->size()))
        .paint_tracks();
    backing_is_old_ = false;
  }
  painter.drawPixmap(0, 0, backing_);
}

void TimelineCanvas::resizeEvent(QResizeEvent*) {
  update_scroll_bars();
  repaint_tracks();
}

void TimelineCanvas::update_scroll_bars() {
  setting_bars_ = true;
  const double rows = geometry().rows_height();
  verticalScrollBar()->setRange(0, static_cast<int>(std::max(0.0, tracks_.height() - rows)));
  verticalScrollBar()->setPageStep(static_cast<int>(rows));
  verticalScrollBar()->setSingleStep(20);
  const TimeWindow& window = scene_.window;
  const double share = window.length() / window.limit;
  horizontalScrollBar()->setRange(0, static_cast<int>(std::lround((1.0 - share) * kBarSteps)));
  horizontalScrollBar()->setPageStep(std::max(1, static_cast<int>(share * kBarSteps)));
  horizontalScrollBar()->setSingleStep(std::max(1, static_cast<int>(0.1 * share * kBarSteps)));
  horizontalScrollBar()->setValue(
      static_cast<int>(std::lround(window.from / window.limit * kBarSteps)));
  setting_bars_ = false;
  scene_.scroll = verticalScrollBar()->value();
}

void TimelineCanvas::scrollContentsBy(int dx, int dy) {
  if (setting_bars_) return;
  if (dy != 0) {
    scene_.scroll = verticalScrollBar()->value();
    repaint_tracks();
  }
  if (dx == 0) return;
  TimeWindow window = scene_.window;
  window.pan(horizontalScrollBar()->value() * window.limit / kBarSteps - window.from);
  change_window(window, false);
}

void TimelineCanvas::wheelEvent(QWheelEvent* event) {
  if (tracks_.empty()) return;
  // Some platforms turn Shift + wheel into a horizontal wheel.
  const QPoint delta = event->angleDelta();
  const double notches = (delta.y() != 0 ? delta.y() : delta.x()) / kWheelStep;
  const bool over_axis = geometry().axis.contains(event->position());
  const bool sideways = event->modifiers().testFlag(Qt::ShiftModifier) || delta.y() == 0;
  if (event->modifiers().testFlag(Qt::ControlModifier) || (over_axis && !sideways)) {
    zoom(time_at(event->position().x()), std::pow(kZoomPerNotch, notches));
  } else if (sideways) {
    TimeWindow window = scene_.window;
    window.pan(-notches * kWheelPan * window.length());
    change_window(window, false);
  } else {
    QScrollBar* bar = verticalScrollBar();
    bar->setValue(bar->value() - static_cast<int>(std::lround(notches * kRowsPerNotch)));
  }
  event->accept();
}

void TimelineCanvas::mousePressEvent(QMouseEvent* event) {
  pressed_ = last_ = event->position();
  moved_ = false;
  on_name_ = event->button() == Qt::LeftButton && geometry().names.contains(pressed_);
  dragged_.reset();
  if (const Track* track = track_at(pressed_); on_name_ && track != nullptr) dragged_ = *track;
  if (tracks_.empty()) return;
  const bool pans =
      event->button() == Qt::MiddleButton ||
      (event->button() == Qt::LeftButton && event->modifiers().testFlag(Qt::ShiftModifier));
  const bool in_time = event->position().x() >= geometry().plot.left();
  if (pans) {
    drag_ = Drag::Pan;
    viewport()->setCursor(Qt::ClosedHandCursor);
  } else if (event->button() == Qt::LeftButton && in_time) {
    drag_ = Drag::Range;
  }
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPointF position = event->position();
  moved_ = moved_ || (position - pressed_).manhattanLength() > kClickDistance;
  if (on_name_ && dragged_ && moved_ && drag_ != Drag::Pan) {
    drag_row(position);
  } else if (drag_ == Drag::Range && moved_) {
    select_range(time_at(pressed_.x()), time_at(position.x()));
  } else if (drag_ == Drag::Pan) {
    TimeWindow window = scene_.window;
    window.pan((last_.x() - position.x()) / geometry().plot.width() * window.length());
    change_window(window, false);
    QScrollBar* bar = verticalScrollBar();
    bar->setValue(bar->value() + static_cast<int>(last_.y() - position.y()));
  } else if (const auto span = span_at(position); span != scene_.hovered) {
    scene_.hovered = span;
    viewport()->update();
  }
  last_ = position;
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const Drag drag = std::exchange(drag_, Drag::None);
  viewport()->unsetCursor();
  if (drag == Drag::Row) {
    on_name_ = false;
    return drop_row(event->position());
  }
  if (std::exchange(on_name_, false) && drag == Drag::None && !moved_)
    return fold_at(event->position());
  if (drag != Drag::Range || moved_) return;
  clear_range();
  if (const auto span = span_at(event->position())) {
    select_op(*span);
  } else {
    clear_op();
  }
}

void TimelineCanvas::drag_row(const QPointF& position) {
  drag_ = Drag::Row;
  viewport()->setCursor(Qt::ClosedHandCursor);
  const QRectF plot = geometry().plot;
  QScrollBar* bar = verticalScrollBar();
  if (!dragged_->pinned && position.y() > plot.bottom() - kDragMargin)
    bar->setValue(bar->value() + bar->singleStep());
  if (!dragged_->pinned && position.y() < plot.top() + tracks_.pinned_height() + kDragMargin)
    bar->setValue(bar->value() - bar->singleStep());
  const auto place = tracks_.drop_place(*dragged_, position.y() - plot.top(), scene_.scroll);
  scene_.drop_line = place ? std::optional(place->shown_y) : std::nullopt;
  viewport()->update();
}

void TimelineCanvas::drop_row(const QPointF& position) {
  const Track dragged = *dragged_;
  leave_drag();
  const double y = position.y() - geometry().plot.top();
  if (const auto place = tracks_.drop_place(dragged, y, scene_.scroll))
    move(dragged, place->position);
}

void TimelineCanvas::leave_drag() {
  drag_ = Drag::None;
  on_name_ = false;
  dragged_.reset();
  scene_.drop_line.reset();
  viewport()->unsetCursor();
  viewport()->update();
}

void TimelineCanvas::fold_at(const QPointF& position) {
  const Track* track = track_at(position);
  if (track == nullptr || track->kind != TrackKind::Rank) return;
  const QString label = track->rank_label;
  fold(label, !tracks_.is_folded(label));
}

void TimelineCanvas::contextMenuEvent(QContextMenuEvent* event) {
  Q_EMIT menu_wanted(QPointF(event->pos()));
}

// A second click on a name folds or unfolds again.
void TimelineCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (geometry().names.contains(event->position())) return mousePressEvent(event);
  change_window(TimeWindow::whole(scene_.window.limit), true);
}

void TimelineCanvas::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  colours_ = colours_for(palette());
  repaint_tracks();
}

}  // namespace shardwright::gui
