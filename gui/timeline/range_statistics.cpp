#include "gui/timeline/range_statistics.hpp"

#include <algorithm>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// The longest heading of a column, in characters.
constexpr qsizetype kLongestName = 24;
constexpr std::size_t kOpKinds = static_cast<std::size_t>(OpKind::Receive) + 1;

QString kind_title(OpKind kind) {
  return to_qstring(name_of(kind)).replace(u'_', u' ');
}

// Keeps the beginning and the end of a long name.
QString shortened(const QString& name) {
  if (name.size() <= kLongestName) return name;
  const qsizetype half = kLongestName / 2;
  return name.left(half - 1) + u"…"_s + name.right(half);
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
  std::array<KindStatistics, kOpKinds> kinds;
  std::array<double, 2> compute_busy{};
  std::array<int, 2> compute_rows{};
  for (const Track& track : tracks.tracks()) {
    if (track.kind != TrackKind::Spans) continue;
    const std::vector<RowSpan>& spans = tracks.rows()[track.row].spans();
    const std::vector<Span>& all = tracks.timelines()[track.side]->spans;
    const PositionRange range = tracks.rows()[track.row].visible(from, to);
    double busy = 0.0;
    for (std::size_t i = range.first; i < range.last; ++i) {
      const double inside = std::min(spans[i].end, to) - std::max(spans[i].start, from);
      if (inside < 0.0 || (inside == 0.0 && spans[i].end > spans[i].start)) continue;
      KindStatistics& kind = kinds[static_cast<std::size_t>(all[spans[i].index].kind)];
      kind.seconds[track.side] += inside;
      ++kind.count[track.side];
      busy += inside;
    }
    if (track.stream != Stream::Compute) continue;
    compute_busy[track.side] += busy;
    ++compute_rows[track.side];
  }
  for (std::size_t side = 0; side < 2; ++side) {
    if (compute_rows[side] > 0 && result.length() > 0.0)
      result.compute_busy[side] = compute_busy[side] / compute_rows[side] / result.length();
  }
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    kinds[kind].kind = static_cast<OpKind>(kind);
    if (kinds[kind].count[0] + kinds[kind].count[1] > 0) result.kinds.push_back(kinds[kind]);
  }
  std::stable_sort(result.kinds.begin(), result.kinds.end(), [](const auto& a, const auto& b) {
    return a.seconds[0] + a.seconds[1] > b.seconds[0] + b.seconds[1];
  });
  return result;
}

void RangeStatisticsModel::set(RangeStatistics statistics, QStringList sides) {
  beginResetModel();
  statistics_ = std::move(statistics);
  sides_ = std::move(sides);
  total_ = {};
  for (const KindStatistics& kind : statistics_.kinds) {
    for (std::size_t side = 0; side < 2; ++side) {
      total_.seconds[side] += kind.seconds[side];
      total_.count[side] += kind.count[side];
    }
  }
  endResetModel();
}

int RangeStatisticsModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid() || statistics_.kinds.empty()) return 0;
  return static_cast<int>(statistics_.kinds.size()) + 1;
}

int RangeStatisticsModel::columnCount(const QModelIndex& parent) const {
  if (parent.isValid()) return 0;
  return sides_.size() > 1 ? Difference + 1 : Share + 1;
}

QVariant RangeStatisticsModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const auto row = static_cast<std::size_t>(index.row());
  const bool is_total = row == statistics_.kinds.size();
  if (role == Qt::TextAlignmentRole)
    return QVariant(index.column() == Kind ? Qt::AlignLeft | Qt::AlignVCenter
                                           : Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  if (is_total && index.column() == Kind) return u"all"_s;
  return text(is_total ? total_ : statistics_.kinds[row], index.column());
}

QString RangeStatisticsModel::text(const KindStatistics& line, int column) const {
  const std::size_t other = 1;
  switch (column) {
    case Kind:
      return kind_title(line.kind);
    case Count:
      return count_text(static_cast<std::int64_t>(line.count[0]));
    case Time:
      return time_text(Seconds(line.seconds[0]));
    case Share:
      return percent_text(total_.seconds[0] > 0.0 ? line.seconds[0] / total_.seconds[0] : 0.0);
    case OtherCount:
      return count_text(static_cast<std::int64_t>(line.count[other]));
    case OtherTime:
      return time_text(Seconds(line.seconds[other]));
    case Difference:
      if (line.seconds[0] <= 0.0 || line.count[other] == 0) return u"–"_s;
      return signed_percent_text(line.seconds[other] / line.seconds[0] - 1.0);
    default:
      return {};
  }
}

QVariant RangeStatisticsModel::headerData(int section, Qt::Orientation orientation,
                                          int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(section == Kind ? Qt::AlignLeft | Qt::AlignVCenter
                                    : Qt::AlignRight | Qt::AlignVCenter);
  // The tool tip has the whole name that its heading cuts.
  const bool is_tip = role == Qt::ToolTipRole;
  if (role != Qt::DisplayRole && !is_tip) return {};
  const auto of_side = [&](const char* what, qsizetype side) {
    QString text = to_qstring(what);
    if (sides_.size() < 2) return text;
    return text + u", "_s + (is_tip ? sides_[side] : shortened(sides_[side]));
  };
  switch (section) {
    case Kind:
      return u"kind"_s;
    case Count:
      return of_side("spans", 0);
    case Time:
      return of_side("time", 0);
    case Share:
      return u"share"_s;
    case OtherCount:
      return of_side("spans", 1);
    case OtherTime:
      return of_side("time", 1);
    default:
      return u"difference"_s;
  }
}

}  // namespace shardwright::gui
