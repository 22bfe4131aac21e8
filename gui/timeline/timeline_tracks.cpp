#include "gui/timeline/timeline_tracks.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/timeline/timeline_difference.hpp"

namespace shardwright::gui {
namespace {

constexpr std::uint32_t kNoRow = std::numeric_limits<std::uint32_t>::max();
constexpr double kSpanHeight = 20.0;
constexpr double kMemoryHeight = 60.0;

// Identifies a row. Rows stand in the order of their keys.
struct RowKey {
  std::uint8_t side = 0;
  std::int32_t rank = 0;
  Stream stream = Stream::Compute;
  std::int32_t peer = -1, queue = -1;

  auto operator<=>(const RowKey&) const = default;
};

// Numbers rows in the order in which they come. Almost all spans belong to few ranks, whose rows it
// finds without a search.
class RowNumbers {
 public:
  std::uint32_t of(const RowKey& key) {
    if (key.rank < 0 || key.rank >= kFewRanks || key.peer >= 0 || key.queue >= 0)
      return numbered(key);
    const std::size_t slot =
        (static_cast<std::size_t>(key.side) * kFewRanks + static_cast<std::size_t>(key.rank)) *
            kStreams +
        static_cast<std::size_t>(key.stream);
    if (fast_.size() <= slot) fast_.resize(slot + 1, kNoRow);
    if (fast_[slot] == kNoRow) fast_[slot] = numbered(key);
    return fast_[slot];
  }
  const std::map<RowKey, std::uint32_t>& all() const { return numbers_; }

 private:
  static constexpr std::int32_t kFewRanks = 64;

  std::uint32_t numbered(const RowKey& key) {
    return numbers_.emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

  std::map<RowKey, std::uint32_t> numbers_;
  std::vector<std::uint32_t> fast_;
};

// Puts the items that `order` names first, in its order; the others keep theirs.
template <class Item, class Key>
void put_in_order(std::vector<Item>& items, const QStringList& order, const Key& key) {
  if (order.isEmpty()) return;
  const auto place = [&](const Item& item) {
    const qsizetype index = order.indexOf(key(item));
    return index < 0 ? order.size() : index;
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const Item& a, const Item& b) { return place(a) < place(b); });
}

QString stream_title(Stream stream) {
  return to_qstring(name_of(stream)).replace(u'_', u' ');
}

// The phase of another program's kernel is unknown: it has the role of its kind.
Role role_of(const Span& span, KernelCategory category) {
  switch (category) {
    case KernelCategory::Gemm:
      return Role::MatrixProducts;
    case KernelCategory::Attention:
      return Role::Attention;
    case KernelCategory::Elementwise:
      return Role::MemoryBound;
    case KernelCategory::Collective:
      return span.group ? gui::role_of(*span.group) : Role::Data;
    case KernelCategory::MemoryCopy:
      return Role::Host;
    case KernelCategory::Other:
      return Role::Other;
  }
  return Role::Other;
}

}  // namespace

Role role_of(const Span& span, bool has_pipeline) {
  // With one stage, a group across tensor and pipeline parallelism is a tensor group.
  if (span.group == Group::ModelParallel && !has_pipeline) return Role::Tensor;
  return span.group ? role_of(*span.group) : role_of(span.kind, span.phase);
}

QString kind_title(const Timeline& timeline, const Span& span) {
  if (span.kernel < 0) return to_qstring(name_of(span.kind)).replace(u'_', u' ');
  return to_qstring(title_of(timeline.kernels[static_cast<std::size_t>(span.kernel)].category));
}

QString title_of(TimelineOrigin origin) {
  return origin == TimelineOrigin::Predicted ? u"predicted"_s : u"measured"_s;
}

QString Track::key() const {
  const QString what = stream ? to_qstring(name_of(*stream)) : label;
  return u"%1/%2/%3/%4"_s.arg(rank_label, what).arg(ordinal).arg(side);
}

MemoryPoint MemoryRow::at(double time) const {
  const auto after =
      std::upper_bound(points.begin(), points.end(), time,
                       [](double t, const MemoryPoint& point) { return t < point.time; });
  return after == points.begin() ? MemoryPoint{time} : *std::prev(after);
}

void TimelineTracks::set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                                   const std::vector<sim::ReservedMemory>& reserved,
                                   const QStringList& names) {
  reserved_.clear();
  difference_.reset();
  std::vector<std::size_t> order(timelines.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return timelines[a]->origin < timelines[b]->origin;
  });
  timelines_.clear();
  names_.clear();
  for (const std::size_t i : order) {
    timelines_.push_back(std::move(timelines[i]));
    reserved_.push_back(i < reserved.size() ? reserved[i] : sim::ReservedMemory());
    if (!names.isEmpty()) names_.append(names[static_cast<qsizetype>(i)]);
  }
  end_ = 0.0;
  for (const auto& timeline : timelines_) {
    for (const Span& span : timeline->spans) end_ = std::max(end_, span.end().value());
  }
  rebuild();
}

void TimelineTracks::set_filter(const SpanQuery& filter) {
  filter_ = filter;
  rebuild();
}

void TimelineTracks::set_difference(std::shared_ptr<const TimelineDifference> difference) {
  difference_ = std::move(difference);
  rebuild();
}

bool TimelineTracks::compares_same_origin() const {
  return compares() && timelines_[0]->origin == timelines_[1]->origin;
}

QString TimelineTracks::side_title(std::size_t side) const {
  return compares_same_origin() && !names_.isEmpty() ? names_[static_cast<qsizetype>(side)]
                                                     : title_of(timelines_[side]->origin);
}

TipSource TimelineTracks::source(std::size_t side) const {
  if (static_cast<qsizetype>(side) < names_.size())
    return TipSource(u"file %1"_s.arg(names_[static_cast<qsizetype>(side)]));
  return timelines_[side]->origin == TimelineOrigin::Predicted
             ? simulated_step()
             : TipSource(u"measured by the ranks of the run"_s);
}

std::size_t TimelineTracks::all_spans() const {
  std::size_t count = 0;
  for (const auto& timeline : timelines_) count += timeline->spans.size();
  return count;
}

void TimelineTracks::rebuild() {
  rows_.clear();
  row_places_.clear();
  row_of_span_.clear();
  shown_spans_ = 0;
  sort_spans_into_rows();
  collect_memory();
  place_all();
}

void TimelineTracks::fold(const QString& rank_label, bool folded) {
  (folded ? folded_ : unfolded_).insert(rank_label);
  (folded ? unfolded_ : folded_).erase(rank_label);
  place_all();
}

bool TimelineTracks::is_folded(const QString& rank_label) const {
  return folded_.contains(rank_label) ||
         (folded_at_first_.contains(rank_label) && !unfolded_.contains(rank_label));
}

QString TimelineTracks::label_of(const RankPlace& rank) const {
  for (const TimelineRank& each : timelines_[rank.side]->ranks)
    if (each.rank == rank.rank) return to_qstring(each.label);
  return {};
}

QString TimelineTracks::rank_label_of(SpanRef ref) const {
  return label_of({ref.side, span(ref).rank});
}

void TimelineTracks::pin(const Track& track, bool pinned) {
  const QString key = track.key();
  pinned_.removeAll(key);
  if (pinned) pinned_.append(key);
  place_all();
}

TimelineTracks::Arrangement TimelineTracks::arrangement() const {
  return {QStringList(folded_.begin(), folded_.end()), pinned_,
          QStringList(unfolded_.begin(), unfolded_.end()), rank_order_, row_order_};
}

void TimelineTracks::arrange(const Arrangement& arrangement) {
  folded_ = std::set<QString>(arrangement.folded.begin(), arrangement.folded.end());
  unfolded_ = std::set<QString>(arrangement.unfolded.begin(), arrangement.unfolded.end());
  pinned_ = arrangement.pinned;
  rank_order_ = arrangement.ranks;
  row_order_ = arrangement.rows;
  place_all();
}

void TimelineTracks::sort_spans_into_rows() {
  RowNumbers numbers;
  std::vector<std::vector<RowSpan>> rows;
  for (std::size_t side = 0; side < timelines_.size(); ++side) {
    const std::vector<Span>& spans = timelines_[side]->spans;
    const std::vector<TracedKernel>& categories = timelines_[side]->kernels;
    const bool has_pipeline = std::any_of(
        spans.begin(), spans.end(), [](const Span& span) { return span.group == Group::Pipeline; });
    std::vector<std::uint32_t>& row_of_span = row_of_span_.emplace_back(spans.size(), kNoRow);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Span& span = spans[i];
      if (!filter_.matches(span)) continue;
      const std::uint32_t row = numbers.of(
          {static_cast<std::uint8_t>(side), span.rank, span.stream, span.peer, span.queue});
      if (row >= rows.size()) rows.resize(row + 1);
      row_of_span[i] = row;
      rows[row].push_back(
          {span.start.value(), span.end().value(), static_cast<std::uint32_t>(i),
           difference_ ? difference_->role(side, i)
           : span.kernel < 0
               ? role_of(span, has_pipeline)
               : role_of(span, categories[static_cast<std::size_t>(span.kernel)].category)});
      ++shown_spans_;
    }
  }
  for (std::vector<RowSpan>& row : rows) rows_.emplace_back(std::move(row));
  RowKey last;
  std::size_t ordinal = 0;
  for (const auto& [key, row] : numbers.all()) {
    const bool same_stream = !row_places_.empty() && key.side == last.side &&
                             key.rank == last.rank && key.stream == last.stream;
    ordinal = same_stream ? ordinal + 1 : 0;
    row_places_.push_back({key.stream, ordinal, {key.side, key.rank}, key.peer, key.queue, row});
    last = key;
  }
}

void TimelineTracks::collect_memory() {
  memory_rows_.clear();
  memory_places_.clear();
  for (std::size_t side = 0; side < timelines_.size(); ++side) {
    const bool predicted = timelines_[side]->origin == TimelineOrigin::Predicted;
    std::map<std::int32_t, std::pair<MemoryRow, Bytes>> rows;
    for (const MemoryLevel& level : timelines_[side]->memory) {
      auto& [row, highest] = rows[level.rank];
      highest = std::max(highest, level.level);
      const Bytes base = predicted ? reserved_[side].beside(highest) : Bytes();
      row.points.push_back({level.time.value(), (level.level + base).value(), base.value()});
      if (row.points.back().bytes > row.peak.bytes) row.peak = row.points.back();
    }
    for (auto& [rank, row] : rows) {
      memory_places_.push_back({static_cast<std::uint8_t>(side), rank});
      memory_rows_.push_back(std::move(row.first));
    }
  }
}

void TimelineTracks::place_all() {
  // The ranks of each label, in the order in which labels come.
  std::vector<std::pair<QString, std::vector<RankPlace>>> kinds;
  for (std::size_t side = 0; side < timelines_.size(); ++side) {
    for (const TimelineRank& rank : timelines_[side]->ranks) {
      const QString label = to_qstring(rank.label);
      auto kind = std::find_if(kinds.begin(), kinds.end(),
                               [&](const auto& each) { return each.first == label; });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {label, {}});
      kind->second.push_back({static_cast<std::uint8_t>(side), rank.rank});
    }
  }
  folded_at_first_.clear();
  for (std::size_t i = 1; i < kinds.size() && kinds.size() > kMostUnfolded; ++i)
    folded_at_first_.insert(kinds[i].first);
  put_in_order(kinds, rank_order_, [](const auto& kind) { return kind.first; });
  std::vector<Track> all;
  for (const auto& [label, ranks] : kinds) {
    std::vector<Track> own;
    add_rank(label, ranks, own);
    put_in_order(own, row_order_, [](const Track& track) { return track.key(); });
    all.push_back(header_of(label, ranks.front()));
    all.insert(all.end(), own.begin(), own.end());
  }

  tracks_.clear();
  track_of_row_.assign(rows_.size(), std::nullopt);
  height_ = 0.0;
  for (const QString& key : pinned_) {
    for (Track& track : all) {
      if (track.kind == TrackKind::Rank || track.pinned || track.key() != key) continue;
      track.pinned = true;
      place(track);
    }
  }
  pinned_height_ = height_;
  for (Track& track : all) {
    const bool hidden = track.kind != TrackKind::Rank && is_folded(track.rank_label);
    if (!track.pinned && !hidden) place(std::move(track));
  }
}

Track TimelineTracks::header_of(const QString& label, const RankPlace& rank) const {
  Track header;
  header.label = header.rank_label = label;
  header.side = rank.side;
  header.rank = rank.rank;
  header.height = kRankHeight;
  const auto computes = [&](const RowPlace& row) {
    return row.place == rank && row.stream == Stream::Compute;
  };
  auto row = std::find_if(row_places_.begin(), row_places_.end(), computes);
  if (row == row_places_.end())
    row = std::find_if(row_places_.begin(), row_places_.end(),
                       [&](const RowPlace& each) { return each.place == rank; });
  if (is_folded(label) && row != row_places_.end()) header.compute_row = row->row;
  return header;
}

void TimelineTracks::add_rank(const QString& label, const std::vector<RankPlace>& ranks,
                              std::vector<Track>& tracks) {
  std::vector<RowPlace> own;
  for (const RowPlace& each : row_places_) {
    if (std::find(ranks.begin(), ranks.end(), each.place) != ranks.end()) own.push_back(each);
  }
  std::stable_sort(own.begin(), own.end(), [](const RowPlace& a, const RowPlace& b) {
    return std::tie(a.stream, a.ordinal) < std::tie(b.stream, b.ordinal);
  });
  for (const RowPlace& each : own) {
    Track track;
    track.kind = TrackKind::Spans;
    track.rank_label = label;
    track.label = stream_title(each.stream);
    if (each.queue >= 0) track.label = u"stream %1"_s.arg(each.queue);
    if (each.ordinal > 0 && each.peer >= 0) track.label += u" (peer %1)"_s.arg(each.peer);
    track.note = note_of(label, each.place);
    track.side = each.place.side;
    track.rank = each.place.rank;
    track.stream = each.stream;
    track.ordinal = each.ordinal;
    track.peer = each.peer;
    track.queue = each.queue;
    track.row = each.row;
    track.height = kSpanHeight;
    tracks.push_back(std::move(track));
  }
  for (const RankPlace& rank : ranks) add_memory(label, rank, tracks);
}

void TimelineTracks::add_memory(const QString& label, const RankPlace& rank,
                                std::vector<Track>& tracks) {
  const auto place = std::find(memory_places_.begin(), memory_places_.end(), rank);
  if (place == memory_places_.end()) return;
  Track track;
  track.kind = TrackKind::Memory;
  track.rank_label = label;
  track.label = u"memory"_s;
  track.note = note_of(label, rank);
  track.side = rank.side;
  track.rank = rank.rank;
  track.row = static_cast<std::size_t>(place - memory_places_.begin());
  track.height = kMemoryHeight;
  tracks.push_back(std::move(track));
}

void TimelineTracks::place(Track track) {
  if (track.kind == TrackKind::Spans) track_of_row_[track.row] = tracks_.size();
  track.y = height_;
  height_ += track.height;
  tracks_.push_back(std::move(track));
}

QString TimelineTracks::note_of(const QString& label, const RankPlace& rank) const {
  if (!compares()) return {};
  const QString title = side_title(rank.side), name = u"rank %1"_s.arg(rank.rank);
  // Ranks of traces are labelled so.
  const bool names_rank = label == name;
  return names_rank || timelines_[rank.side]->origin == TimelineOrigin::Predicted
             ? title
             : u"%1, %2"_s.arg(title, name);
}

std::optional<std::size_t> TimelineTracks::track_at(double shown_y, double scroll) const {
  const double y = shown_y < pinned_height_ ? shown_y : shown_y + scroll;
  const auto after = std::upper_bound(tracks_.begin(), tracks_.end(), y,
                                      [](double at, const Track& track) { return at < track.y; });
  if (after == tracks_.begin()) return std::nullopt;
  const Track& track = *std::prev(after);
  if (y >= track.y + track.height) return std::nullopt;
  return static_cast<std::size_t>(std::prev(after) - tracks_.begin());
}

std::optional<std::size_t> TimelineTracks::track_of(SpanRef ref) const {
  if (ref.side >= row_of_span_.size() || ref.index >= row_of_span_[ref.side].size())
    return std::nullopt;
  const std::uint32_t row = row_of_span_[ref.side][ref.index];
  if (row == kNoRow) return std::nullopt;
  return track_of_row_[row];
}

std::vector<MessageArrow> TimelineTracks::arrows_of(SpanRef ref) const {
  std::vector<MessageArrow> arrows;
  for (const Flow& flow : flows(ref.side)) {
    if (flow.from == ref.index || flow.to == ref.index)
      arrows.push_back({{ref.side, flow.from}, {ref.side, flow.to}});
  }
  return arrows;
}

std::optional<SpanRef> TimelineTracks::counterpart(SpanRef ref) const {
  const std::optional<std::size_t> track_index = track_of(ref);
  if (!compares() || !track_index) return std::nullopt;
  const Track& own = tracks_[*track_index];
  // The counterpart lies in the same stream of the other timeline's first rank of this label: in
  // the row of the same peer by number, or in that of the last peer.
  const Track* other = nullptr;
  for (const Track& track : tracks_) {
    if (track.kind != TrackKind::Spans || track.side == own.side || track.stream != own.stream ||
        track.rank_label != own.rank_label || track.ordinal > own.ordinal)
      continue;
    const bool better = other == nullptr || track.rank < other->rank ||
                        (track.rank == other->rank && track.ordinal > other->ordinal);
    if (better) other = &track;
  }
  if (other == nullptr) return std::nullopt;
  const Span& wanted = span(ref);
  const auto is_same = [&](const Span& each) { return identity_of(each) == identity_of(wanted); };
  std::size_t before = 0;
  for (const RowSpan& each : rows_[own.row].spans()) {
    if (each.index == ref.index) break;
    before += is_same(timelines_[ref.side]->spans[each.index]) ? 1 : 0;
  }
  for (const RowSpan& each : rows_[other->row].spans()) {
    if (is_same(timelines_[other->side]->spans[each.index]) && before-- == 0)
      return SpanRef{other->side, each.index};
  }
  return std::nullopt;
}

bool TimelineTracks::is_shown(SpanRef ref) const {
  return ref.side < row_of_span_.size() && ref.index < row_of_span_[ref.side].size() &&
         row_of_span_[ref.side][ref.index] != kNoRow;
}

std::vector<SpanRef> TimelineTracks::find(const SpanQuery& query) const {
  std::vector<SpanRef> found;
  if (query.empty()) return found;
  const auto add_row = [&](std::uint8_t side, std::size_t row) {
    const std::vector<Span>& spans = timelines_[side]->spans;
    for (const RowSpan& each : rows_[row].spans()) {
      if (query.matches(spans[each.index])) found.push_back({side, each.index});
    }
  };
  for (const Track& track : tracks_) {
    if (track.kind == TrackKind::Spans) add_row(track.side, track.row);
    if (track.kind != TrackKind::Rank || !is_folded(track.rank_label)) continue;
    for (const RowPlace& row : row_places_) {
      if (!track_of_row_[row.row] && label_of(row.place) == track.rank_label)
        add_row(row.place.side, row.row);
    }
  }
  return found;
}

}  // namespace shardwright::gui
