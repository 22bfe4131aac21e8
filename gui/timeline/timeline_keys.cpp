// The keys of the timeline.
#include <QKeyEvent>
#include <algorithm>

#include "gui/timeline/timeline_canvas.hpp"

namespace shardwright::gui {
namespace {

constexpr double kKeyZoom = 1.5;
constexpr double kKeyPan = 0.15;  // of what is shown

}  // namespace

void TimelineCanvas::keyPressEvent(QKeyEvent* event) {
  const bool is_vertical = event->key() == Qt::Key_Up || event->key() == Qt::Key_Down;
  if (event->modifiers().testFlag(Qt::AltModifier) && is_vertical)
    return nudge_selected(event->key() == Qt::Key_Up ? -1 : 1,
                          event->modifiers().testFlag(Qt::ShiftModifier));
  // With others of these they are shortcuts of the window.
  const bool is_shortcut = static_cast<bool>(
      event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
  if (is_shortcut || !(move_window(event->key()) || move_selection(event->key())))
    QAbstractScrollArea::keyPressEvent(event);
}

bool TimelineCanvas::move_window(int key) {
  const double middle = 0.5 * (scene_.window.from + scene_.window.to);
  // The keys zoom about the mouse where it is over the tracks.
  const double focus = viewport()->underMouse() ? time_at(last_.x()) : middle;
  switch (key) {
    case Qt::Key_W:
    case Qt::Key_Plus:
      zoom(focus, kKeyZoom);
      return true;
    case Qt::Key_S:
    case Qt::Key_Minus:
      zoom(focus, 1.0 / kKeyZoom);
      return true;
    case Qt::Key_A:
    case Qt::Key_D: {
      TimeWindow window = scene_.window;
      window.pan((key == Qt::Key_A ? -kKeyPan : kKeyPan) * window.length());
      change_window(window, false);
      return true;
    }
    case Qt::Key_Home:
      change_window(TimeWindow::whole(scene_.window.limit), true);
      return true;
    case Qt::Key_Backspace:
      if (earlier_.empty()) return true;
      change_window(earlier_.back(), false);
      earlier_.pop_back();
      return true;
    default:
      return false;
  }
}

bool TimelineCanvas::move_selection(int key) {
  switch (key) {
    case Qt::Key_F:
      centre_or_fit();
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (scene_.range) show_window(scene_.range->from, scene_.range->to);
      return true;
    case Qt::Key_Escape:
      if (drag_ == Drag::Row) {
        leave_drag();
        return true;
      }
      clear_range();
      clear_op();
      return true;
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
      select_neighbour(key);
      return true;
    default:
      return false;
  }
}

void TimelineCanvas::centre_or_fit() {
  if (!scene_.selected) return;
  const Span& span = tracks_.span(*scene_.selected);
  const double from = span.start.value(), to = span.end().value();
  const double middle = 0.5 * (from + to), half = 0.5 * scene_.window.length();
  TimeWindow centred = scene_.window;
  centred.show(middle - half, middle + half);
  if (centred != scene_.window) return change_window(centred, true);
  const double margin = 0.1 * (to - from);
  show_window(from - margin, to + margin);
}

// Without a selected op the first one in view becomes it.
void TimelineCanvas::select_neighbour(int key) {
  const auto first_shown = [this](const Track& track) -> std::optional<SpanRef> {
    const SpanRow& row = tracks_.rows()[track.row];
    const PositionRange shown = row.visible(scene_.window.from, scene_.window.to);
    if (shown.size() == 0) return std::nullopt;
    return tracks_.ref(track, shown.first);
  };
  std::optional<std::size_t> at;
  if (scene_.selected) at = tracks_.track_of(*scene_.selected);
  const std::vector<Track>& tracks = tracks_.tracks();
  std::optional<SpanRef> next;
  if (!at) {
    for (std::size_t i = 0; i < tracks.size() && !next; ++i) {
      if (tracks[i].kind == TrackKind::Spans) next = first_shown(tracks[i]);
    }
  } else if (key == Qt::Key_Left || key == Qt::Key_Right) {
    const SpanRow& row = tracks_.rows()[tracks[*at].row];
    const auto position =
        row.find(tracks_.span(*scene_.selected).start.value(), scene_.selected->index);
    const std::size_t wanted = *position + (key == Qt::Key_Right ? 1 : -1);
    if (wanted < row.spans().size()) next = tracks_.ref(tracks[*at], wanted);
  } else {
    const double start = tracks_.span(*scene_.selected).start.value();
    const std::size_t step = key == Qt::Key_Down ? 1 : -1;
    for (std::size_t i = *at + step; i < tracks.size() && !next; i += step) {
      if (tracks[i].kind != TrackKind::Spans) continue;
      const SpanRow& row = tracks_.rows()[tracks[i].row];
      const PositionRange from = row.visible(start, scene_.window.limit);
      if (from.size() > 0) next = tracks_.ref(tracks[i], from.first);
    }
  }
  if (!next) return;
  select_op(*next);
  reveal(*next);
}

// The row of the chosen op, or its rank.
void TimelineCanvas::nudge_selected(int step, bool rank) {
  const auto index = scene_.selected ? tracks_.track_of(*scene_.selected) : std::nullopt;
  if (!index) return;
  const Track row = tracks_.tracks()[*index];
  const std::vector<Track>& all = tracks_.tracks();
  const auto header = std::find_if(all.begin(), all.end(), [&](const Track& track) {
    return track.kind == TrackKind::Rank && track.rank_label == row.rank_label;
  });
  if (rank && header == all.end()) return;
  nudge(rank ? *header : row, step);
  reveal(*scene_.selected);
}

}  // namespace shardwright::gui
