#include "gui/timeline/timeline_tracks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "gui/models/text.hpp"
#include "gui/timeline/span_text.hpp"
#include "sim/step/simulate.hpp"
#include "tests/gui/timeline/timeline_view_fixture.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::measured;
using gui::fixtures::small_step;
using gui::fixtures::step_of;
using gui::fixtures::tracks_of;

TimelineTracks predicted_tracks() {
  return tracks_of({small_step().timeline});
}

TimelineTracks compared_tracks(double slower = 1.1) {
  return tracks_of({small_step().timeline, measured(*small_step().timeline, slower)});
}

const std::vector<Span>& step_spans() {
  return small_step().timeline->spans;
}

TEST(TimelineTracks, ShowEachSpanOnceInTheRowOfItsStream) {
  const TimelineTracks tracks = predicted_tracks();
  std::set<std::uint32_t> seen;
  for (const Track& track : tracks.tracks()) {
    if (track.kind != TrackKind::Spans) continue;
    for (const RowSpan& each : tracks.rows()[track.row].spans()) {
      const Span& span = step_spans()[each.index];
      EXPECT_EQ(span.rank, track.rank);
      EXPECT_EQ(span.stream, track.stream);
      EXPECT_TRUE(seen.insert(each.index).second);
    }
  }
  EXPECT_EQ(seen.size(), step_spans().size());
}

TEST(TimelineTracks, LieBelowEachOtherWithoutGaps) {
  const TimelineTracks tracks = compared_tracks();
  double y = 0.0;
  for (std::size_t i = 0; i < tracks.tracks().size(); ++i) {
    const Track& track = tracks.tracks()[i];
    EXPECT_EQ(track.y, y);
    EXPECT_EQ(tracks.track_at(y + track.height / 2.0, 0.0), std::optional(i));
    y += track.height;
  }
  EXPECT_EQ(y, tracks.height());
  EXPECT_FALSE(tracks.track_at(y + 1.0, 0.0));
  EXPECT_FALSE(tracks.track_at(-1.0, 0.0));
}

// Returns the step with all times multiplied, as if it were another plan's.
std::shared_ptr<const Timeline> predicted(double slower) {
  Timeline timeline = *measured(*small_step().timeline, slower);
  timeline.origin = TimelineOrigin::Predicted;
  return std::make_shared<const Timeline>(std::move(timeline));
}

// Returns all texts that distinguish the timelines.
std::set<std::string> titles_of(const TimelineTracks& tracks) {
  std::set<std::string> titles;
  for (const Track& track : tracks.tracks()) {
    if (track.kind != TrackKind::Rank) titles.insert(track.note.toStdString());
  }
  return titles;
}

TEST(TimelineTracks, TwoOfOneOriginGoByTheNamesOfTheirFiles) {
  const QStringList files = {u"fast.json"_s, u"a/<slow>.json"_s};
  const TimelineTracks tracks = tracks_of({small_step().timeline, predicted(1.5)}, {}, files);
  EXPECT_EQ(titles_of(tracks), (std::set<std::string>{"fast.json", "a/<slow>.json"}));
  // Both tool tips compare the second timeline with the first.
  for (const std::uint8_t side : {0, 1}) {
    const QString tip = span_tool_tip(tracks, {side, 200});
    EXPECT_THAT(tip, Says("(a/&lt;slow&gt;.json +50.0 % of fast.json)"));
    EXPECT_TRUE(tip.contains(u">fast.json\u00a0"_s));
    EXPECT_TRUE(tip.contains(u">a/&lt;slow&gt;.json\u00a0"_s));
    EXPECT_FALSE(tip.contains(u"predicted"_s));
  }
  const TextTable table = span_table(shown_spans(tracks, 0.0, tracks.end()));
  const qsizetype file = table.header.indexOf(u"File"_s);
  ASSERT_GE(file, 0);
  std::map<QString, std::size_t> rows;
  for (const QStringList& row : table.rows) {
    ASSERT_EQ(row.size(), table.header.size());
    EXPECT_EQ(row.front(), u"predicted"_s);
    ++rows[row[file]];
  }
  for (const QString& each : files) EXPECT_EQ(rows[each], step_spans().size());
}

// A file says what the view says of a span, and not the keys of files.
TEST(TimelineTracks, TheTableOfSpansHasTheWordsOfTheView) {
  const TimelineTracks tracks = tracks_of({small_step().timeline});
  const TextTable table = span_table(shown_spans(tracks, 0.0, tracks.end()));
  std::set<std::string> words;
  for (const QStringList& row : table.rows) {
    for (const char* column : {"Stream", "Kind", "Phase", "Group"})
      words.insert(row[table.header.indexOf(to_qstring(column))].toStdString());
  }
  EXPECT_TRUE(words.contains("tensor parallel"));
  for (const std::string& word : words) EXPECT_EQ(word.find('_'), std::string::npos) << word;
}

// A measurement that is given first stands below the prediction, and so does its name.
TEST(TimelineTracks, NamesFollowTheOrderOfTheTimelines) {
  const auto slow = measured(*small_step().timeline, 2.0);
  TimelineTracks tracks = tracks_of({slow, small_step().timeline}, {}, {u"run"_s, u"plan"_s});
  EXPECT_EQ(tracks.side_title(0).toStdString(), "predicted");
  EXPECT_EQ(tracks.side_title(1).toStdString(), "measured");
  EXPECT_TRUE(span_tool_tip(tracks, {0, 200}).contains(u"measured +100.0 % of pred"_s));
  EXPECT_FALSE(span_table(shown_spans(tracks, 0.0, 1.0)).header.contains(u"File"_s));
  tracks.set_timelines({slow, measured(*small_step().timeline, 1.0)}, {},
                       {u"first"_s, u"second"_s});
  EXPECT_EQ(tracks.side_title(0).toStdString(), "first");
  EXPECT_EQ(tracks.side_title(1).toStdString(), "second");
  // All ranks of a measurement are listed.
  EXPECT_TRUE(titles_of(tracks).contains("second, rank 0"));
}

TEST(TimelineTracks, WhatSpansTensorAndPipelineIsTensorParallelWhereThereIsOneStage) {
  Span norm;
  norm.group = Group::ModelParallel;
  norm.kind = OpKind::AllReduce;
  EXPECT_EQ(role_of(norm, true), Role::Pipeline);
  EXPECT_EQ(role_of(norm, false), Role::Tensor);
  // In a step, messages of its own pipeline decide.
  const auto role_in = [&norm](bool with_pipeline) {
    Timeline timeline;
    timeline.ranks = {{0, "stage 0"}};
    timeline.spans = {norm};
    if (with_pipeline) {
      Span message = norm;
      message.group = Group::Pipeline;
      message.kind = OpKind::Send;
      message.stream = Stream::SendActivation;
      timeline.spans.push_back(message);
    }
    const TimelineTracks tracks =
        tracks_of({std::make_shared<const Timeline>(std::move(timeline))});
    return tracks.rows()[tracks.tracks()[*tracks.track_of({0, 0})].row].spans().front().role;
  };
  EXPECT_EQ(role_in(true), Role::Pipeline);
  EXPECT_EQ(role_in(false), Role::Tensor);
}

TEST(TimelineTracks, ManyRanksAreFoldedButForTheFirst) {
  auto many = std::make_shared<Timeline>(*small_step().timeline);
  const std::int32_t of_all = many->ranks.front().rank;
  const std::vector<Span> first = many->spans;
  many->ranks = {{of_all, "stage 0"}};
  for (std::int32_t stage = 1; stage < 6; ++stage) {
    const std::int32_t rank = 1000 + stage;
    many->ranks.push_back({rank, "stage " + std::to_string(stage)});
    for (Span span : first) {
      if (span.rank != of_all) continue;
      span.rank = rank;
      many->spans.push_back(span);
    }
  }
  TimelineTracks tracks;
  tracks.set_timelines({many});
  EXPECT_FALSE(tracks.is_folded(u"stage 0"_s));
  EXPECT_TRUE(tracks.is_folded(u"stage 5"_s));
  for (const Track& track : tracks.tracks())
    EXPECT_EQ(track.compute_row.has_value(), tracks.is_folded(track.rank_label));
  tracks.fold(u"stage 5"_s, false);
  EXPECT_FALSE(tracks.is_folded(u"stage 5"_s));
  // A later timeline and a later session remember it.
  TimelineTracks later;
  later.arrange(tracks.arrangement());
  later.set_timelines({many});
  EXPECT_FALSE(later.is_folded(u"stage 5"_s));
  EXPECT_TRUE(later.is_folded(u"stage 4"_s));
}

TEST(TimelineTracks, AFoldedRankHasItsHeaderAlone) {
  TimelineTracks tracks = predicted_tracks();
  const std::vector<Track> before = tracks.tracks();
  const QString label = before.front().rank_label;
  tracks.fold(label, true);
  std::size_t hidden = 0;
  for (const Track& track : before)
    hidden += track.rank_label == label && track.kind != TrackKind::Rank ? 1 : 0;
  ASSERT_GT(hidden, 0U);
  EXPECT_EQ(tracks.tracks().size(), before.size() - hidden);
  EXPECT_EQ(tracks.tracks().front().label, label);
  for (std::uint32_t i = 0; i < step_spans().size(); i += 37) {
    const Track& own = before[*predicted_tracks().track_of({0, i})];
    EXPECT_EQ(tracks.track_of({0, i}).has_value(), own.rank_label != label);
  }
  // Later timelines are folded in the same way.
  tracks.set_timelines({small_step().timeline});
  EXPECT_EQ(tracks.tracks().size(), before.size() - hidden);
  tracks.fold(label, false);
  EXPECT_EQ(tracks.tracks().size(), before.size());
  EXPECT_EQ(tracks.height(), predicted_tracks().height());
}

std::vector<std::string> keys_of(const TimelineTracks& tracks) {
  std::vector<std::string> keys;
  for (const Track& track : tracks.tracks()) {
    const bool is_rank = track.kind == TrackKind::Rank;
    keys.push_back((is_rank ? track.rank_label : track.key()).toStdString());
  }
  return keys;
}

std::vector<std::string> ranks_of(const TimelineTracks& tracks) {
  std::vector<std::string> labels;
  for (const Track& track : tracks.tracks()) {
    if (track.kind == TrackKind::Rank) labels.push_back(track.label.toStdString());
  }
  return labels;
}

// Every move keeps all tracks, each with its rank, without gaps, and the spans in their rows.
TEST(TimelineTracks, KeepTogetherHoweverTheyAreMoved) {
  rc::check("moves permute the tracks", [] {
    TimelineTracks tracks = compared_tracks();
    const std::vector<std::string> before = keys_of(tracks);
    const int moves = *rc::gen::inRange(1, 6);
    for (int i = 0; i < moves; ++i) {
      const auto count = tracks.tracks().size();
      const Track track = tracks.tracks()[*rc::gen::inRange<std::size_t>(0, count)];
      const double y = *rc::gen::inRange(-50, static_cast<int>(tracks.height()) + 50);
      if (*rc::gen::arbitrary<bool>() && track.kind != TrackKind::Rank) {
        tracks.pin(track, !track.pinned);
      } else if (const auto place = tracks.drop_place(track, y, 0.0)) {
        tracks.move(track, place->position);
      }
    }
    RC_ASSERT_FALSE(keys_of(tracks).empty());
    auto sorted = keys_of(tracks), expected = before;
    std::sort(sorted.begin(), sorted.end());
    std::sort(expected.begin(), expected.end());
    RC_ASSERT(sorted == expected);
    double y = 0.0;
    QString rank;
    for (const Track& track : tracks.tracks()) {
      RC_ASSERT(track.y == y);
      y += track.height;
      if (track.kind == TrackKind::Rank) rank = track.label;
      RC_ASSERT(track.pinned || track.rank_label == rank);
      if (track.kind != TrackKind::Spans) continue;
      const SpanRef first = tracks.ref(track, 0);
      RC_ASSERT(tracks.tracks()[*tracks.track_of(first)].key() == track.key());
    }
    // The arrangement can be kept and restored.
    TimelineTracks::Arrangement arrangement = tracks.arrangement();
    TimelineTracks again = compared_tracks();
    again.arrange(arrangement);
    RC_ASSERT(keys_of(again) == keys_of(tracks));
    again.arrange({});
    RC_ASSERT(keys_of(again) == before);
  });
}

TEST(TimelineTracks, ARankIsDroppedWhereItsMiddlesSay) {
  TimelineTracks tracks = predicted_tracks();
  const std::vector<std::string> before = ranks_of(tracks);
  ASSERT_GE(before.size(), 2U);
  const Track first = tracks.tracks().front();
  // A rank stays in its place if it is dropped on itself or on the upper half of the next one.
  const auto header_of_next =
      std::find_if(tracks.tracks().begin() + 1, tracks.tracks().end(),
                   [](const Track& track) { return track.kind == TrackKind::Rank; });
  EXPECT_EQ(tracks.drop_place(first, header_of_next->y + 1.0, 0.0)->position, 0U);
  const auto last = tracks.drop_place(first, tracks.height() + 100.0, 0.0);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->shown_y, tracks.height());
  tracks.move(first, last->position);
  EXPECT_EQ(ranks_of(tracks).back(), before.front());
  EXPECT_TRUE(tracks.is_reordered());
  // Other steps with these ranks have the same order.
  tracks.set_timelines({measured(*small_step().timeline, 1.3)});
  EXPECT_EQ(ranks_of(tracks).back(), before.front());
}

TEST(TimelineTracks, AreNudgedUpToTheEndsOfTheirLike) {
  TimelineTracks tracks = predicted_tracks();
  const std::vector<std::string> before = keys_of(tracks);
  Track row = tracks.tracks()[1];
  EXPECT_FALSE(tracks.can_nudge(row, -1));
  EXPECT_FALSE(tracks.nudge(row, -1));
  ASSERT_TRUE(tracks.nudge(row, 1));
  EXPECT_EQ(tracks.tracks()[2].key(), row.key());
  ASSERT_TRUE(tracks.nudge(row, -1));
  EXPECT_EQ(keys_of(tracks), before);
  int steps = 0;
  while (tracks.nudge(row, 1)) ASSERT_LT(++steps, 100);
  // The row stays within its rank.
  EXPECT_EQ(ranks_of(tracks), ranks_of(predicted_tracks()));
}

TEST(TimelineTracks, PinnedOnesStandAboveAllOthersWhereverThoseAreScrolled) {
  TimelineTracks tracks = compared_tracks();
  const double height = tracks.height();
  const auto last = std::find_if(tracks.tracks().rbegin(), tracks.tracks().rend(),
                                 [](const Track& track) { return track.kind == TrackKind::Spans; });
  const Track pinned = *last;
  const std::uint32_t span = tracks.rows()[pinned.row].spans().front().index;
  const auto other = tracks.counterpart({pinned.side, span});
  tracks.pin(pinned, true);
  ASSERT_TRUE(tracks.tracks().front().pinned);
  EXPECT_EQ(tracks.tracks().front().row, pinned.row);
  EXPECT_EQ(tracks.pinned_height(), pinned.height);
  EXPECT_EQ(tracks.height(), height);
  EXPECT_EQ(tracks.track_of({pinned.side, span}), std::optional<std::size_t>(0));
  // The place of a row does not change its counterpart.
  EXPECT_EQ(tracks.counterpart({pinned.side, span}), other);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(tracks.counterpart(*other), (SpanRef{pinned.side, span}));
  for (const double scroll : {0.0, 35.0, 90.0}) {
    EXPECT_EQ(tracks.track_at(1.0, scroll), std::optional<std::size_t>(0));
    for (std::size_t i = 0; i < tracks.tracks().size(); ++i) {
      const double middle = tracks.tracks()[i].shown_y(scroll) + tracks.tracks()[i].height / 2.0;
      if (i > 0 && middle < tracks.pinned_height()) continue;
      EXPECT_EQ(tracks.track_at(middle, scroll), std::optional(i));
    }
  }
  tracks.pin(tracks.tracks().front(), false);
  EXPECT_EQ(tracks.pinned_height(), 0.0);
  EXPECT_FALSE(tracks.tracks().front().pinned);
}

TEST(TimelineTracks, TheirArrangementOutlivesThem) {
  TimelineTracks tracks = predicted_tracks();
  tracks.pin(tracks.tracks()[1], true);
  tracks.fold(tracks.tracks().back().rank_label, true);
  TimelineTracks others;
  others.arrange(tracks.arrangement());
  others.set_timelines({small_step().timeline});
  EXPECT_EQ(keys_of(others), keys_of(tracks));
}

TEST(TimelineTracks, PutThePredictionAboveTheMeasurement) {
  const TimelineTracks tracks =
      tracks_of({measured(*small_step().timeline, 1.1), small_step().timeline});
  for (std::size_t i = 0; i + 1 < tracks.tracks().size(); ++i) {
    const Track& track = tracks.tracks()[i];
    if (track.kind != TrackKind::Spans || track.side != 0) continue;
    EXPECT_EQ(tracks.timelines()[0]->origin, TimelineOrigin::Predicted);
    EXPECT_EQ(tracks.tracks()[i + 1].side, 1);
    EXPECT_EQ(tracks.tracks()[i + 1].stream, track.stream);
  }
}

TEST(TimelineTracks, CounterpartIsTheSameOpAndLeadsBack) {
  const TimelineTracks tracks = compared_tracks();
  const std::vector<Span>& spans = step_spans();
  for (std::uint32_t i = 0; i < spans.size(); i += 37) {
    const auto other = tracks.counterpart({0, i});
    ASSERT_TRUE(other.has_value());
    EXPECT_EQ(*other, (SpanRef{1, i}));
    EXPECT_EQ(tracks.counterpart(*other), (SpanRef{0, i}));
  }
}

// In every plan each send has one arrow, to a receive of the same bytes that does not end before
// the send begins.
TEST(TimelineTracks, EverySendHasAnArrowToItsReceive) {
  EXPECT_TRUE(rc::check([] {
    const auto step = step_of(sim::fixtures::any_small_scenario());
    const TimelineTracks tracks = tracks_of({step.timeline});
    std::set<SpanRef> received;
    std::size_t receives = 0;
    for (std::uint32_t i = 0; i < step.timeline->spans.size(); ++i) {
      const Span& span = step.timeline->spans[i];
      receives += span.kind == OpKind::Receive ? 1 : 0;
      if (span.kind != OpKind::Send) continue;
      const std::vector<MessageArrow> arrows = tracks.arrows_of({0, i});
      RC_ASSERT(arrows.size() == 1);
      RC_ASSERT(arrows[0].from == (SpanRef{0, i}));
      const Span& other = tracks.span(arrows[0].to);
      RC_ASSERT(other.kind == OpKind::Receive && other.bytes == span.bytes);
      RC_ASSERT(other.end() >= span.start);
      RC_ASSERT(received.insert(arrows[0].to).second);
    }
    RC_ASSERT(received.size() == receives);
  }));
}

TEST(TimelineTracks, FilterLeavesOutWhatDoesNotMatch) {
  TimelineTracks tracks = predicted_tracks();
  tracks.set_filter(SpanQuery::parse(u"kind=attention phase=forward"_s));
  std::size_t expected = 0;
  for (const Span& span : step_spans())
    expected += span.kind == OpKind::Attention && span.phase == Phase::Forward ? 1 : 0;
  ASSERT_GT(expected, 0U);
  EXPECT_EQ(tracks.shown_spans(), expected);
  EXPECT_EQ(tracks.all_spans(), step_spans().size());
  tracks.set_filter({});
  EXPECT_EQ(tracks.shown_spans(), tracks.all_spans());
}

TEST(TimelineTracks, HoldNothingWithoutSpans) {
  EXPECT_TRUE(tracks_of({}).empty());
  EXPECT_TRUE(tracks_of({std::make_shared<const Timeline>()}).empty());
}

// Readers refuse such a file, but a timeline may be made in other ways.
TEST(TimelineTracks, LeaveOutSpansOfRanksThatAreNotListed) {
  Timeline timeline;
  timeline.ranks = {{0, "stage 0"}};
  timeline.spans.resize(2);
  timeline.spans[1].rank = 7;
  timeline.spans[1].duration = Seconds(1.0);
  const TimelineTracks tracks = tracks_of({std::make_shared<const Timeline>(timeline)});
  EXPECT_TRUE(tracks.track_of({0, 0}).has_value());
  EXPECT_FALSE(tracks.track_of({0, 1}).has_value());
}

TEST(TimelineTracks, MemoryIsThatOfTheTimeline) {
  const TimelineTracks tracks = predicted_tracks();
  ASSERT_EQ(tracks.memory_rows().size(), 2U);
  const std::vector<TimelineRank>& ranks = small_step().timeline->ranks;
  for (const MemoryLevel& level : small_step().timeline->memory) {
    const std::size_t row = level.rank == ranks[0].rank ? 0 : 1;
    EXPECT_EQ(level.rank, ranks[row].rank);
    EXPECT_LE(level.level.value(), tracks.memory_rows()[row].peak.bytes);
  }
  const MemoryRow& row = tracks.memory_rows().front();
  EXPECT_EQ(row.at(row.peak.time).bytes, row.peak.bytes);
  EXPECT_EQ(MemoryRow().at(1.0).bytes, 0.0);
  EXPECT_FALSE(row.has_base());
}

// Two views must not give two peaks for one step.
TEST(TimelineTracks, ThePeakOfAPredictionIsThatOfTheStepsMemory) {
  const Scenario& scenario = small_step().scenario;
  const sim::ReservedMemory reserved =
      sim::reserved_memory(scenario.plan, scenario.model, scenario.stack);
  const TimelineTracks tracks =
      tracks_of({small_step().timeline, measured(*small_step().timeline, 2.0)}, reserved);
  const sim::StepResult step = sim::simulate_step(scenario);
  ASSERT_EQ(tracks.memory_rows().size(), 4U);
  std::size_t stage = 0;
  for (const Track& track : tracks.tracks()) {
    if (track.kind != TrackKind::Memory || track.side != 0) continue;
    const MemoryRow& row = tracks.memory_rows()[track.row];
    const sim::MemoryPeak& peak = step.stages[stage++].memory;
    EXPECT_NEAR(row.peak.bytes, peak.peak.value(), 1.0);
    EXPECT_NEAR(row.peak.bytes - row.peak.base, peak.allocated().value(), 1.0);
    const std::string allocated = bytes_text(peak.allocated()).toStdString();
    EXPECT_THAT(memory_line(row).toStdString(), ::testing::EndsWith(", allocated " + allocated));
    EXPECT_THAT(memory_tool_tip(row, tracks.source(0), Bytes(), std::nullopt).toStdString(),
                ::testing::HasSubstr("optimizer states"));
  }
  EXPECT_EQ(stage, 2U);
  // A run records allocated memory only.
  for (const Track& track : tracks.tracks()) {
    if (track.kind == TrackKind::Memory && track.side == 1) {
      EXPECT_FALSE(tracks.memory_rows()[track.row].has_base());
      EXPECT_FALSE(memory_line(tracks.memory_rows()[track.row]).contains(u','));
    }
  }
}

}  // namespace
}  // namespace shardwright::gui
