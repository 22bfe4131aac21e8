// What the timeline shows from top to bottom: the tracks that are pinned, then for each kind of
// rank its streams, the predicted one above the measured one, and its memory, unless it is folded.
//
// Ranks belong together by their label ("stage 3"): a prediction has one rank of each stage, a
// measurement may have several. Holds no widget.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/timeline/timeline.hpp"
#include "gui/timeline/span_query.hpp"
#include "gui/timeline/span_row.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::gui {

// A span of one of the timelines shown.
struct SpanRef {
  std::uint8_t side = 0;    // into TimelineTracks::timelines
  std::uint32_t index = 0;  // into Timeline::spans

  auto operator<=>(const SpanRef&) const = default;
};

enum class TrackKind : std::uint8_t { Rank, Spans, Memory };

inline constexpr double kRankHeight = 24.0;  // pixels of a rank's header

struct Track {
  TrackKind kind = TrackKind::Rank;
  QString rank_label;  // of the rank that it belongs to: "stage 3"
  QString label;
  QString note;           // "measured, rank 3" where two timelines are compared (side_title())
  std::uint8_t side = 0;  // whose spans or memory it shows
  std::int32_t rank = 0;
  std::optional<Stream> stream;  // of spans
  std::size_t ordinal = 0;       // of the peer, among those of the same stream and rank
  std::int32_t peer = -1;
  bool pinned = false;
  std::size_t row = 0;  // into `rows` or `memory_rows`
  double y = 0.0;       // from the top of the first track, in pixels
  double height = 0.0;

  // Where it lies below the top of the view once that `scroll` pixels of those that are not pinned
  // are above it.
  double shown_y(double scroll) const { return pinned ? y : y - scroll; }
  // The same for such tracks of all steps, and of all ranks that one label stands for:
  // "stage 3/compute/0/0".
  QString key() const;
};

struct MemoryPoint {
  double time = 0.0;   // in seconds
  double bytes = 0.0;  // from then on
  double base = 0.0;   // of them not allocated: context, buffers, fragmentation
};

// The memory of one rank.
struct MemoryRow {
  std::vector<MemoryPoint> points;  // ascending in time
  MemoryPoint peak;

  bool has_base() const { return !points.empty() && points.back().base > 0.0; }
  // What holds at a time; nothing before the first point.
  MemoryPoint at(double time) const;
};

// The start and the end of an arrow.
struct MessageArrow {
  SpanRef from, to;
};

class TimelineTracks {
 public:
  // One timeline, or a prediction and a measurement. None of them is null. `reserved` lies below
  // the tensors of a prediction, so that its peak is that of the step's memory breakdown. `names`
  // of the files that they are of, one each or none at all, tell two of one origin apart.
  void set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                     const sim::ReservedMemory& reserved = {}, const QStringList& names = {});
  // Spans that do not match are left out.
  void set_filter(const SpanQuery& filter);

  // Of a folded rank there is its header alone. Kept for the timelines that follow.
  void fold(const QString& rank_label, bool folded);
  bool is_folded(const QString& rank_label) const { return folded_.contains(rank_label); }
  // Pinned tracks stand above all others, which scroll below them. Kept likewise.
  void pin(const Track& track, bool pinned);
  // Where a track that is dragged would go: a rank among ranks, a pinned one among those, any other
  // among those of its rank.
  struct DropPlace {
    std::size_t position = 0;  // among its like, without itself
    double shown_y = 0.0;      // of the gap there, below the top of the view
  };
  std::optional<DropPlace> drop_place(const Track& track, double shown_y, double scroll) const;
  // The tracks of its key go there together, a rank with all that is below its header. Kept
  // likewise.
  void move(const Track& track, std::size_t position);
  // Before the one that is above it (-1), or behind the one below it (1); false at the end.
  bool nudge(const Track& track, int step);
  bool can_nudge(const Track& track, int step) const;
  bool is_reordered() const { return !rank_order_.isEmpty() || !row_order_.isEmpty(); }

  // What is folded, pinned and moved, to be kept between sessions: labels of ranks, keys of tracks.
  struct Arrangement {
    QStringList folded, pinned;
    QStringList ranks, rows;  // in the order that the user gave them; others follow
  };
  Arrangement arrangement() const;
  void arrange(const Arrangement& arrangement);

  bool empty() const { return rows_.empty(); }
  bool compares() const { return timelines_.size() > 1; }
  const std::vector<std::shared_ptr<const Timeline>>& timelines() const { return timelines_; }
  // Two predictions, or two measurements.
  bool compares_alike() const;
  // What tells a timeline from the other one: "predicted" or "measured", the name of its file where
  // that is the same of both.
  QString side_title(std::size_t side) const;
  const std::vector<Track>& tracks() const { return tracks_; }
  const std::vector<SpanRow>& rows() const { return rows_; }
  const std::vector<MemoryRow>& memory_rows() const { return memory_rows_; }
  double end() const { return end_; }        // of the last span, in seconds
  double height() const { return height_; }  // of all tracks
  double pinned_height() const { return pinned_height_; }
  std::size_t shown_spans() const { return shown_spans_; }
  std::size_t all_spans() const;

  const Span& span(SpanRef ref) const { return timelines_[ref.side]->spans[ref.index]; }
  SpanRef ref(const Track& track, std::size_t position) const {
    return {track.side, rows_[track.row].spans()[position].index};
  }
  // The track that lies there, as Track::shown_y() has it; none beyond the ends.
  std::optional<std::size_t> track_at(double shown_y, double scroll) const;
  // The track that shows a span; none if it is filtered out.
  std::optional<std::size_t> track_of(SpanRef ref) const;

  // Messages with a given end, and all of one side.
  std::vector<MessageArrow> arrows_of(SpanRef ref) const;
  const std::vector<Flow>& flows(std::uint8_t side) const { return timelines_[side]->flows; }

  // The same op in the other timeline: same stage, stream, name, phase, layer and microbatch, and
  // as many such ones before it.
  std::optional<SpanRef> counterpart(SpanRef ref) const;

  // Spans that match, in the order of tracks and starts; those that are filtered out are not found.
  std::vector<SpanRef> find(const SpanQuery& query) const;

 private:
  // A rank of a timeline.
  struct RankPlace {
    std::uint8_t side = 0;
    std::int32_t rank = 0;

    bool operator==(const RankPlace&) const = default;
  };
  // A row of spans before it has its place.
  struct RowPlace {
    Stream stream = Stream::Compute;
    std::size_t ordinal = 0;  // of the peer, among those of the same stream and rank
    RankPlace place;
    std::int32_t peer = -1;
    std::size_t row = 0;
  };

  void rebuild();
  void sort_spans_into_rows();
  void collect_memory();
  void place_all();
  static Track header_of(const QString& label, const RankPlace& rank);
  // Its streams and its memory.
  void add_rank(const QString& label, const std::vector<RankPlace>& ranks,
                std::vector<Track>& tracks);
  void add_memory(const QString& label, const RankPlace& rank, std::vector<Track>& tracks);
  void place(Track track);
  // What a track can change places with, and itself: from top to bottom.
  struct Block {
    QString key;
    double top = 0.0, bottom = 0.0;
  };
  std::vector<Block> blocks_beside(const Track& track) const;
  // Where `nudge` takes it.
  std::optional<std::size_t> position_beside(const Track& track, int step) const;
  QString note_of(const RankPlace& rank) const;

  std::vector<std::shared_ptr<const Timeline>> timelines_;
  QStringList names_;             // of their files; empty where nobody said them
  sim::ReservedMemory reserved_;  // beside the tensors of predictions
  SpanQuery filter_;
  std::set<QString> folded_;  // labels of ranks
  QStringList pinned_;        // keys of tracks, in their order
  QStringList rank_order_;    // labels, where the user gave them an order; others follow …
  QStringList row_order_;     // … and keys of tracks, likewise within their rank
  std::vector<Track> tracks_;
  std::vector<SpanRow> rows_;
  std::vector<RowPlace> row_places_;
  std::vector<MemoryRow> memory_rows_;
  std::vector<RankPlace> memory_places_;                  // of them
  std::vector<std::optional<std::size_t>> track_of_row_;  // none: a rank that is not listed
  std::vector<std::vector<std::uint32_t>> row_of_span_;   // by side and index; kNoRow: filtered out
  double end_ = 0.0, height_ = 0.0, pinned_height_ = 0.0;
  std::size_t shown_spans_ = 0;
};

// The role that colours a span: of its group for communication, else of its kind and phase. What
// spans tensor and pipeline parallelism is of the latter only where the step `has_pipeline`.
Role role_of(const Span& span, bool has_pipeline);

// "predicted" or "measured".
QString title_of(TimelineOrigin origin);

}  // namespace shardwright::gui
