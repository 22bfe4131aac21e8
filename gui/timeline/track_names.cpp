// The names of the rows at the left of a timeline.
#include <QFontMetricsF>
#include <algorithm>
#include <cmath>

#include "gui/style/palette.hpp"
#include "gui/timeline/timeline_painter.hpp"

namespace shardwright::gui {
namespace {

// The pixels left of a name, those on both of its sides, and those between it and its note.
constexpr double kNameLeft = 20.0, kAroundName = 26.0, kBesideNote = 8.0;
// The length of the step stands above the names. Longer names of files are cut.
constexpr double kLeastNames = 90.0, kMostNames = 212.0;

// A pinned track names its rank, because it stands apart from the header.
QString label_of(const Track& track) {
  return track.pinned ? u"%1 · %2"_s.arg(track.rank_label, track.label) : track.label;
}

QString memory_label_of(const Track& track) {
  return track.note.isEmpty() ? label_of(track) : label_of(track) + u' ' + track.note;
}

// A measured row below its prediction needs no name of its own.
bool repeats_name_above(const Track& track) {
  return !track.pinned && track.side > 0 && track.queue < 0 && (&track - 1)->stream == track.stream;
}

}  // namespace

QFont name_font() {
  return pixel_font(12);
}

double widest_name(const TimelineTracks& tracks) {
  const QFontMetricsF metrics(name_font()), small(legend_font()), bold(pixel_font(12, true));
  const auto width_of = [&](const Track& track) {
    switch (track.kind) {
      case TrackKind::Rank:
        return bold.horizontalAdvance(track.label);
      case TrackKind::Memory:
        return std::max(metrics.horizontalAdvance(memory_label_of(track)),
                        small.horizontalAdvance(memory_line(tracks.memory_rows()[track.row])));
      default:
        break;
    }
    const double note = track.note.isEmpty() ? 0.0 : small.horizontalAdvance(track.note);
    return metrics.horizontalAdvance(label_of(track)) + kBesideNote + note;
  };
  double widest = kLeastNames;
  for (const Track& track : tracks.tracks())
    widest = std::max(widest, std::min(kMostNames, kAroundName + std::ceil(width_of(track))));
  return widest;
}

void TimelinePainter::paint_name(const Track& track, double y) {
  const QRectF row(0.0, y, geometry_.names.width(), track.height);
  if (track.kind == TrackKind::Rank) {
    painter_.fillRect(QRectF(0.0, y, geometry_.axis.right(), track.height), colours_.window);
    painter_.setPen(colours_.muted_text);
    painter_.setFont(font_);
    painter_.drawText(TimelineGeometry::fold_mark(y), Qt::AlignCenter,
                      tracks_.is_folded(track.rank_label) ? u"▸"_s : u"▾"_s);
    painter_.setPen(colours_.text);
    painter_.setFont(bold_);
    painter_.drawText(row.adjusted(kNameLeft, 0.0, -4.0, 0.0), Qt::AlignVCenter, track.label);
    return;
  }
  painter_.setPen(colours_.grid);
  painter_.drawLine(row.bottomLeft(), QPointF(geometry_.axis.right(), row.bottom()));
  if (track.kind == TrackKind::Memory) return paint_memory_name(track, row);
  const bool is_second = repeats_name_above(track);
  const QString label = is_second ? QString() : label_of(track);
  const QFontMetricsF metrics(font_), small_metrics(small_);
  const double room = row.width() - kAroundName;
  // The name of a file may be long and leaves the label its place.
  const double label_width = std::min(metrics.horizontalAdvance(label) + kBesideNote, 0.5 * room);
  const QString note =
      small_metrics.elidedText(track.note, Qt::ElideMiddle, room - (is_second ? 0.0 : label_width));
  painter_.setFont(small_);
  painter_.setPen(colours_.muted_text);
  painter_.drawText(row.adjusted(0.0, 0.0, kNameLeft - kAroundName, 0.0),
                    Qt::AlignVCenter | Qt::AlignRight, note);
  const double note_width =
      note.isEmpty() ? 0.0 : small_metrics.horizontalAdvance(note) + kBesideNote;
  painter_.setFont(font_);
  painter_.setPen(colours_.text);
  painter_.drawText(row.adjusted(kNameLeft, 0.0, 0.0, 0.0), Qt::AlignVCenter,
                    metrics.elidedText(label, Qt::ElideRight, room - note_width));
}

void TimelinePainter::paint_memory_name(const Track& track, const QRectF& row) {
  const QRectF upper(kNameLeft, row.top() + 5.0, row.width() - kAroundName, 18.0);
  painter_.setFont(font_);
  painter_.setPen(colours_.text);
  const QString label = memory_label_of(track);
  painter_.drawText(upper, Qt::AlignVCenter,
                    QFontMetricsF(font_).elidedText(label, Qt::ElideRight, upper.width()));
  painter_.setFont(small_);
  painter_.setPen(colours_.muted_text);
  const MemoryRow& memory = tracks_.memory_rows()[track.row];
  painter_.drawText(upper.translated(0.0, 18.0), Qt::AlignVCenter, memory_line(memory));
}

}  // namespace shardwright::gui
