#include "gui/timeline/range_statistics.hpp"

#include <algorithm>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// Kinds of ops, and behind them categories of kernels.
constexpr std::size_t kKinds = kEnumCount<OpKind> + kEnumCount<KernelCategory>;

std::size_t kind_of(const Timeline& timeline, const Span& span) {
  if (span.kernel < 0) return index_of(span.kind);
  return kEnumCount<OpKind> +
         index_of(timeline.kernels[static_cast<std::size_t>(span.kernel)].category);
}

QString title_of(const Track& track) {
  const QString title = u"%1 · %2"_s.arg(track.rank_label, track.label);
  return track.note.isEmpty() ? title : title + u", "_s + track.note;
}

}  // namespace

std::size_t RangeStatistics::count(std::size_t side) const {
  std::size_t sum = 0;
  for (const KindStatistics& kind : kinds) sum += kind.count[side];
  return sum;
}

RangeStatistics range_statistics(const TimelineTracks& tracks, double from, double to) {
  RangeStatistics result;
  result.from = from;
  result.to = to;
  std::array<KindStatistics, kKinds> kinds;
  std::array<double, 2> compute_busy{};
  std::array<int, 2> compute_rows{};
  for (const Track& track : tracks.tracks()) {
    if (track.kind != TrackKind::Spans) continue;
    const std::vector<RowSpan>& spans = tracks.rows()[track.row].spans();
    const Timeline& timeline = *tracks.timelines()[track.side];
    const PositionRange range = tracks.rows()[track.row].visible(from, to);
    double busy = 0.0;
    std::size_t count = 0;
    for (std::size_t i = range.first; i < range.last; ++i) {
      const double inside = std::min(spans[i].end, to) - std::max(spans[i].start, from);
      if (inside < 0.0 || (inside == 0.0 && spans[i].end > spans[i].start)) continue;
      const Span& span = timeline.spans[spans[i].index];
      KindStatistics& kind = kinds[kind_of(timeline, span)];
      if (kind.title.isEmpty()) kind.title = kind_title(timeline, span);
      kind.seconds[track.side] += inside;
      ++kind.count[track.side];
      busy += inside;
      ++count;
    }
    if (count > 0) result.rows.push_back({title_of(track), busy, count});
    if (track.stream != Stream::Compute) continue;
    compute_busy[track.side] += busy;
    ++compute_rows[track.side];
  }
  for (std::size_t side = 0; side < 2; ++side) {
    if (compute_rows[side] > 0 && result.length() > 0.0)
      result.compute_busy[side] = compute_busy[side] / compute_rows[side] / result.length();
  }
  for (const KindStatistics& kind : kinds)
    if (kind.count[0] + kind.count[1] > 0) result.kinds.push_back(kind);
  std::stable_sort(result.kinds.begin(), result.kinds.end(), [](const auto& a, const auto& b) {
    return a.seconds[0] + a.seconds[1] > b.seconds[0] + b.seconds[1];
  });
  return result;
}

TextTable statistics_table(const RangeStatistics& statistics, const QStringList& sides) {
  const bool compares = sides.size() > 1;
  const auto of_side = [&](const QString& what, qsizetype side) {
    return compares ? what + u", "_s + sides[side] : what;
  };
  TextTable table;
  table.header = {u"kind"_s, of_side(u"spans"_s, 0), of_side(u"time"_s, 0), u"share"_s};
  if (compares) table.header += {of_side(u"spans"_s, 1), of_side(u"time"_s, 1), u"difference"_s};
  KindStatistics total;
  for (const KindStatistics& kind : statistics.kinds) {
    for (std::size_t side = 0; side < 2; ++side) {
      total.seconds[side] += kind.seconds[side];
      total.count[side] += kind.count[side];
    }
  }
  const auto add = [&](const QString& title, const KindStatistics& line) {
    const double share = total.seconds[0] > 0.0 ? line.seconds[0] / total.seconds[0] : 0.0;
    QStringList row = {title, count_text(line.count[0]), time_text(Seconds(line.seconds[0])),
                       percent_text(share)};
    if (compares) {
      const bool has_both = line.seconds[0] > 0.0 && line.count[1] > 0;
      row += {count_text(line.count[1]), time_text(Seconds(line.seconds[1])),
              has_both ? signed_percent_text(line.seconds[1] / line.seconds[0] - 1.0) : u"–"_s};
    }
    table.rows.push_back(row);
  };
  for (const KindStatistics& kind : statistics.kinds) add(kind.title, kind);
  if (!statistics.kinds.empty()) add(u"all"_s, total);
  return table;
}

TextTable row_table(const RangeStatistics& statistics) {
  TextTable table;
  table.header = {u"row"_s, u"spans"_s, u"time"_s, u"busy"_s};
  for (const RowStatistics& row : statistics.rows) {
    const double busy = statistics.length() > 0.0 ? row.seconds / statistics.length() : 0.0;
    table.rows.push_back(
        {row.title, count_text(row.count), time_text(Seconds(row.seconds)), percent_text(busy)});
  }
  return table;
}

}  // namespace shardwright::gui
