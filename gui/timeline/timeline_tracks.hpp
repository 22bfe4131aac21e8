// The tracks of a timeline from top to bottom: pinned ones, then for each label of ranks its
// streams, the predicted one above the measured one, and its memory, unless the ranks are folded.
//
// Ranks with the same label ("stage 3") belong together: a prediction has one rank of each stage, a
// measurement may have several. This file knows no widget. Times are in seconds, heights and places
// in pixels.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/timeline/timeline.hpp"
#include "gui/models/text.hpp"
#include "gui/timeline/span_query.hpp"
#include "gui/timeline/span_row.hpp"
#include "gui/timeline/timeline_difference.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::gui {

// A span of one of the timelines shown: the indices into TimelineTracks::timelines and
// Timeline::spans.
struct SpanRef {
  std::uint8_t side = 0;
  std::uint32_t index = 0;

  auto operator<=>(const SpanRef&) const = default;
};

enum class TrackKind : std::uint8_t { Rank, Spans, Memory };

inline constexpr double kRankHeight = 24.0;

struct Track {
  TrackKind kind = TrackKind::Rank;
  // The label of its rank: "stage 3".
  QString rank_label;
  QString label;
  // "measured, rank 3" if two timelines are compared (side_title()); "measured" where the rank's
  // label says which it is.
  QString note;
  // The timeline whose spans or memory it shows.
  std::uint8_t side = 0;
  std::int32_t rank = 0;
  std::optional<Stream> stream;
  // The number of its peer among those of the same stream and rank.
  std::size_t ordinal = 0;
  std::int32_t peer = -1;
  // The device's stream in the trace of another program, else -1.
  std::int32_t queue = -1;
  bool pinned = false;
  // The index into `rows` or `memory_rows`.
  std::size_t row = 0;
  // The row of the computation of a folded rank, which its header shows.
  std::optional<std::size_t> compute_row;
  // The distance from the top of the first track, in pixels.
  double y = 0.0;
  double height = 0.0;

  // The distance from the top of the view after `scroll` pixels of the tracks that are not pinned
  // have moved above it.
  double shown_y(double scroll) const { return pinned ? y : y - scroll; }
  // Identifies the track, as "stage 3/compute/0/0" does. All steps have the same keys, and so have
  // all ranks with the same label.
  QString key() const;
};

struct MemoryPoint {
  double time = 0.0;
  // The memory from this time on.
  double bytes = 0.0;
  // The part that is not allocated: context, buffers, fragmentation.
  double base = 0.0;
};

struct MemoryRow {
  std::vector<MemoryPoint> points;
  MemoryPoint peak;

  bool has_base() const { return !points.empty() && points.back().base > 0.0; }
  // Returns the memory at a time, which is zero before the first point.
  MemoryPoint at(double time) const;
};

struct MessageArrow {
  SpanRef from, to;
};

class TimelineTracks {
 public:
  // Shows one timeline or compares two, of which none is null. `reserved`, one for each timeline or
  // fewer, is added to the tensors of a prediction, so that its peak equals that of the step's
  // memory breakdown. `names` are the files of the timelines, one for each or none at all; they
  // distinguish two of one origin.
  void set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                     const std::vector<sim::ReservedMemory>& reserved = {},
                     const QStringList& names = {});
  void set_filter(const SpanQuery& filter);
  // Colours the ops of two timelines by their difference, which is that of these two; null: by what
  // they are, as after set_timelines().
  void set_difference(std::shared_ptr<const TimelineDifference> difference);
  const TimelineDifference* difference() const { return difference_.get(); }

  // Reduces a rank to its header, which shows its computation alone. This, pins and the order hold
  // for later timelines as well. Of more than kMostUnfolded ranks all but the first are folded at
  // first.
  void fold(const QString& rank_label, bool folded);
  bool is_folded(const QString& rank_label) const;
  static constexpr std::size_t kMostUnfolded = 4;
  // Pinned tracks stand above all others, which scroll below them.
  void pin(const Track& track, bool pinned);
  // The place that a dragged track would take: a rank among ranks, a pinned track among pinned
  // ones, any other among those of its rank.
  struct DropPlace {
    // The position among these without the track itself.
    std::size_t position = 0;
    // The distance of the gap from the top of the view.
    double shown_y = 0.0;
  };
  std::optional<DropPlace> drop_place(const Track& track, double shown_y, double scroll) const;
  // Moves all tracks of the same key there, and a rank with all tracks below its header.
  void move(const Track& track, std::size_t position);
  // Exchanges the track with the one above it (-1) or below it (1). Returns false at the end.
  bool nudge(const Track& track, int step);
  bool can_nudge(const Track& track, int step) const;
  bool is_reordered() const { return !rank_order_.isEmpty() || !row_order_.isEmpty(); }

  // The folded, pinned and moved tracks, which are kept between sessions.
  struct Arrangement {
    // Labels of ranks, and keys of tracks.
    QStringList folded, pinned;
    // Labels of ranks that the user has unfolded.
    QStringList unfolded;
    // Labels and keys in the order that the user gave them; others follow.
    QStringList ranks, rows;
  };
  Arrangement arrangement() const;
  void arrange(const Arrangement& arrangement);

  bool empty() const { return rows_.empty(); }
  bool compares() const { return timelines_.size() > 1; }
  const std::vector<std::shared_ptr<const Timeline>>& timelines() const { return timelines_; }
  // True if two predictions or two measurements are compared.
  bool compares_same_origin() const;
  // The name that distinguishes a timeline from the other one: "predicted" or "measured", or the
  // name of its file if both have the same origin.
  QString side_title(std::size_t side) const;
  const std::vector<Track>& tracks() const { return tracks_; }
  const std::vector<SpanRow>& rows() const { return rows_; }
  const std::vector<MemoryRow>& memory_rows() const { return memory_rows_; }
  // Where the spans of a side come from.
  TipSource source(std::size_t side) const;
  double end() const { return end_; }
  double height() const { return height_; }
  double pinned_height() const { return pinned_height_; }
  std::size_t shown_spans() const { return shown_spans_; }
  std::size_t all_spans() const;

  const Span& span(SpanRef ref) const { return timelines_[ref.side]->spans[ref.index]; }
  SpanRef ref(const Track& track, std::size_t position) const {
    return {track.side, rows_[track.row].spans()[position].index};
  }
  // Returns the track at this distance from the top of the view, or none beyond the ends.
  std::optional<std::size_t> track_at(double shown_y, double scroll) const;
  // Returns the track that shows a span, or none if the span is filtered out.
  std::optional<std::size_t> track_of(SpanRef ref) const;

  // Return the messages that start or end at a span, and all messages of one side.
  std::vector<MessageArrow> arrows_of(SpanRef ref) const;
  const std::vector<Flow>& flows(std::uint8_t side) const { return timelines_[side]->flows; }

  // Returns the same op in the other timeline: the one with the same stage, stream, name, phase,
  // layer and microbatch, and with as many such ops before it.
  std::optional<SpanRef> counterpart(SpanRef ref) const;

  // The label of the rank that a span is of.
  QString rank_label_of(SpanRef ref) const;

  // Returns the spans that match, in the order of tracks and starts, those of folded ranks among
  // them.
  std::vector<SpanRef> find(const SpanQuery& query) const;
  // False if the filter leaves the span out; a span of a folded rank is shown.
  bool is_shown(SpanRef ref) const;

 private:
  struct RankPlace {
    std::uint8_t side = 0;
    std::int32_t rank = 0;

    bool operator==(const RankPlace&) const = default;
  };
  struct RowPlace {
    Stream stream = Stream::Compute;
    // The number of the peer among those of the same stream and rank.
    std::size_t ordinal = 0;
    RankPlace place;
    std::int32_t peer = -1;
    std::int32_t queue = -1;
    std::size_t row = 0;
  };

  void rebuild();
  void sort_spans_into_rows();
  void collect_memory();
  void place_all();
  Track header_of(const QString& label, const RankPlace& rank) const;
  QString label_of(const RankPlace& rank) const;
  void add_rank(const QString& label, const std::vector<RankPlace>& ranks,
                std::vector<Track>& tracks);
  void add_memory(const QString& label, const RankPlace& rank, std::vector<Track>& tracks);
  void place(Track track);
  // A track, or a rank with its tracks, that is moved as a whole.
  struct Block {
    QString key;
    double top = 0.0, bottom = 0.0;
  };
  // Returns the blocks that a track can change places with, and itself, from top to bottom.
  std::vector<Block> blocks_beside(const Track& track) const;
  // Returns the place to which `nudge` moves the track.
  std::optional<std::size_t> position_beside(const Track& track, int step) const;
  QString note_of(const QString& label, const RankPlace& rank) const;

  std::vector<std::shared_ptr<const Timeline>> timelines_;
  // The names of their files; empty if nobody gave any.
  QStringList names_;
  // Each timeline has the memory of a predicted rank that is not allocated.
  std::vector<sim::ReservedMemory> reserved_;
  SpanQuery filter_;
  std::shared_ptr<const TimelineDifference> difference_;
  // The arrangement: labels of folded ranks, keys of pinned tracks in their order, and the labels
  // and keys that the user has put in order.
  std::set<QString> folded_, unfolded_;
  // Ranks that are folded because there are many.
  std::set<QString> folded_at_first_;
  QStringList pinned_;
  QStringList rank_order_;
  QStringList row_order_;
  std::vector<Track> tracks_;
  std::vector<SpanRow> rows_;
  std::vector<RowPlace> row_places_;
  std::vector<MemoryRow> memory_rows_;
  std::vector<RankPlace> memory_places_;
  // Each row has its track, or none if the timeline does not list the rank.
  std::vector<std::optional<std::size_t>> track_of_row_;
  // Each side and index has its row, or kNoRow if the span is filtered out.
  std::vector<std::vector<std::uint32_t>> row_of_span_;
  double end_ = 0.0, height_ = 0.0, pinned_height_ = 0.0;
  std::size_t shown_spans_ = 0;
};

// Returns the role that colours a span: that of its group for communication, else that of its kind
// and phase. A group across tensor and pipeline parallelism has the pipeline's role only if the
// step `has_pipeline`.
Role role_of(const Span& span, bool has_pipeline);
// The kind of an op in words, or the category of another program's kernel.
QString kind_title(const Timeline& timeline, const Span& span);

// "predicted" or "measured".
QString title_of(TimelineOrigin origin);

}  // namespace shardwright::gui
