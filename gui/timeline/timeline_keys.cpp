// The keys of the timeline.
#include <algorithm>

#include "gui/timeline/timeline_canvas.hpp"

namespace shardwright::gui {

void TimelineCanvas::add_keys() {
  on_keys({Qt::Key_Left}, [this] { select_neighbour(true, -1); });
  on_keys({Qt::Key_Right}, [this] { select_neighbour(true, 1); });
  on_keys({Qt::Key_Up}, [this] { select_neighbour(false, -1); });
  on_keys({Qt::Key_Down}, [this] { select_neighbour(false, 1); });
  on_keys({Qt::Key_F}, [this] { centre_or_fit(); });
  on_keys({Qt::Key_Return, Qt::Key_Enter}, [this] {
    if (scene_.range) show_window(scene_.range->from, scene_.range->to);
  });
  on_keys({Qt::Key_Escape}, [this] {
    clear_range();
    clear_selection();
  });
  on_keys({Qt::ALT | Qt::Key_Up}, [this] { nudge_selected(-1, false); });
  on_keys({Qt::ALT | Qt::Key_Down}, [this] { nudge_selected(1, false); });
  on_keys({Qt::ALT | Qt::SHIFT | Qt::Key_Up}, [this] { nudge_selected(-1, true); });
  on_keys({Qt::ALT | Qt::SHIFT | Qt::Key_Down}, [this] { nudge_selected(1, true); });
}

void TimelineCanvas::centre_or_fit() {
  if (!scene_.selected) return;
  const Span& span = tracks_.span(*scene_.selected);
  const double from = span.start.value(), to = span.end().value();
  const double middle = 0.5 * (from + to), half = 0.5 * scene_.window.length();
  const AxisWindow before = scene_.window;
  show_window(middle - half, middle + half);
  if (scene_.window != before) return;
  const double margin = 0.1 * (to - from);
  show_window(from - margin, to + margin);
}

std::optional<SpanRef> TimelineCanvas::first_in_view() const {
  for (const Track& track : tracks_.tracks()) {
    if (track.kind != TrackKind::Spans) continue;
    const PositionRange shown =
        tracks_.rows()[track.row].visible(scene_.window.from, scene_.window.to);
    if (shown.size() > 0) return tracks_.ref(track, shown.first);
  }
  return std::nullopt;
}

// The op before or behind this one in its row.
std::optional<SpanRef> TimelineCanvas::beside(SpanRef ref, int step) const {
  const Track& track = tracks_.tracks()[*tracks_.track_of(ref)];
  const SpanRow& row = tracks_.rows()[track.row];
  const std::size_t position =
      *row.find(tracks_.span(ref).start.value(), ref.index) + static_cast<std::size_t>(step);
  return position < row.spans().size() ? std::optional(tracks_.ref(track, position)) : std::nullopt;
}

// The op that runs at the start of this one, or next after it, in the nearest row below or above.
std::optional<SpanRef> TimelineCanvas::below(SpanRef ref, int step) const {
  const std::vector<Track>& tracks = tracks_.tracks();
  const double start = tracks_.span(ref).start.value();
  const auto next = static_cast<std::size_t>(step);
  for (std::size_t i = *tracks_.track_of(ref) + next; i < tracks.size(); i += next) {
    if (tracks[i].kind != TrackKind::Spans) continue;
    const PositionRange later = tracks_.rows()[tracks[i].row].visible(start, scene_.window.limit);
    if (later.size() > 0) return tracks_.ref(tracks[i], later.first);
  }
  return std::nullopt;
}

void TimelineCanvas::select_neighbour(bool in_row, int step) {
  const bool is_shown = scene_.selected && tracks_.track_of(*scene_.selected);
  const std::optional<SpanRef> next = !is_shown ? first_in_view()
                                      : in_row  ? beside(*scene_.selected, step)
                                                : below(*scene_.selected, step);
  if (!next) return;
  select_op(*next);
  reveal(*next);
}

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
