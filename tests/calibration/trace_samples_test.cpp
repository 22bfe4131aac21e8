// Collectives of traces as samples of the links that their groups lie on.
#include "calibration/trace_samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "calibration/calibrate.hpp"
#include "calibration/traces/trace_file.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright::calibration {
namespace {

TEST(GroupShape, IsReadFromTheMembers) {
  using Shape = GroupShape;
  EXPECT_EQ(shape_of_group("[0, 1, 2, 3, 4, 5, 6, 7]", 8), (Shape{{8, 1}}));
  EXPECT_EQ(shape_of_group("[9, 10, 11, 12]", 4), (Shape{{4, 1}}));
  EXPECT_EQ(shape_of_group("[3, 11, 19, 27]", 4), (Shape{{4, 8}}));
  EXPECT_EQ(shape_of_group("[0, 1, 8, 9]", 4), (Shape{{2, 1}, {2, 8}}));
  EXPECT_EQ(shape_of_group("[0, 2, 16, 18, 32, 34, 128, 130, 144, 146, 160, 162]", 12),
            (Shape{{2, 2}, {3, 16}, {2, 128}}));
  // PyTorch leaves out the middle of long lists.
  EXPECT_EQ(shape_of_group("[0, 8, 16, 24, ..., 1016]", 128), (Shape{{128, 8}}));
  EXPECT_EQ(shape_of_group("[0, 1, 2, 3, 8, 9, 10, 11, 16, ..., 123]", 64),
            (Shape{{4, 1}, {16, 8}}));
  // What the beginning tells does not lead to the last one.
  EXPECT_THAT(shape_of_group("[0, 1, 2, 3, ..., 127]", 64), testing::IsEmpty());
  EXPECT_THAT(shape_of_group("[0, 1, 2, 3, 8, 9, 10, 11, 16, ..., 251]", 64), testing::IsEmpty());
  EXPECT_EQ(shape_of_group("[0, 1, 5]", 3), (Shape{{3, 1}}));
  EXPECT_THAT(shape_of_group("", 8), testing::IsEmpty());
  EXPECT_THAT(shape_of_group("[7, 3]", 2), testing::IsEmpty());
  EXPECT_EQ(extent_of(shape_of_group("[5, 6, 13, 14]", 4)), 9);
}

struct TimedGroup {
  const char *name, *members;
  // Bus bandwidth in bytes/s.
  double bandwidth;
};

// All-reduces of several sizes, first of the one group and then of the other.
Trace trace_of_groups(std::int64_t rank, const std::vector<TimedGroup>& groups) {
  Trace trace;
  trace.file = "rank" + std::to_string(rank);
  trace.rank = rank;
  trace.world_size = 64;
  const TraceIndex name = trace.names.index_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
  std::int64_t now = 0;
  for (int call = 0; call < 3; ++call)
    for (const double bytes : {1e6, 8e6, 32e6, 128e6})
      for (const TimedGroup& group : groups) {
        DeviceActivity activity;
        activity.category = KernelCategory::Collective;
        activity.name = name;
        activity.collective = static_cast<TraceIndex>(trace.collectives.size());
        activity.start = now;
        activity.duration =
            static_cast<std::int64_t>(1e9 * (20e-6 + 1.75 * bytes / group.bandwidth));
        now = activity.end() + 5'000;
        trace.activities.push_back(activity);
        trace.collectives.push_back({"all_reduce",
                                     static_cast<std::int64_t>(bytes),
                                     8,
                                     group.name,
                                     group.name,
                                     group.members,
                                     {}});
      }
  return trace;
}

double rate_of(const ClusterSpec& cluster, std::int64_t nodes) {
  for (const ExchangeCurve& curve : cluster.exchange_curves)
    if (curve.kind == OpKind::AllReduce && curve.members == 8 && curve.nodes == nodes)
      return curve.beta.value();
  return 0.0;
}

// Eight GPUs of a node and eight GPUs of eight nodes: equal kinds, sizes and numbers of members.
TEST(TraceSamples, KeepGroupsOfOneSizeApart) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  constexpr double kInside = 350e9, kAcross = 40e9;
  for (const bool tensor_first : {true, false})
    for (const bool named : {true, false}) {
      const auto groups_of = [&](const char* node, const char* rail) {
        std::vector<TimedGroup> groups = {{named ? "tensor" : "undefined", node, kInside},
                                          {named ? "data" : "undefined", rail, kAcross}};
        if (!tensor_first) std::reverse(groups.begin(), groups.end());
        return groups;
      };
      constexpr const char *kFirstNode = "[0, 1, 2, 3, 4, 5, 6, 7]",
                           *kSecondNode = "[8, 9, 10, 11, 12, 13, 14, 15]",
                           *kFirstRail = "[0, 8, 16, 24, 32, 40, 48, 56]",
                           *kSecondRail = "[1, 9, 17, 25, 33, 41, 49, 57]";
      const std::vector<Trace> traces = {trace_of_groups(0, groups_of(kFirstNode, kFirstRail)),
                                         trace_of_groups(1, groups_of(kFirstNode, kSecondRail)),
                                         trace_of_groups(8, groups_of(kSecondNode, kFirstRail)),
                                         trace_of_groups(9, groups_of(kSecondNode, kSecondRail))};
      const auto matching = match_ranks(traces);
      ASSERT_TRUE(matching);
      EXPECT_EQ(matching->unmatched, 0);
      // Four sizes of each of the groups, the two of a kind together.
      EXPECT_EQ(matching->collectives.size(), 8U);
      CalibrationData data;
      data.recorded = samples_of(traces, {}, matching, cluster);
      const ClusterSpec refitted = calibrate(cluster, data, "test").cluster;
      EXPECT_NEAR(rate_of(refitted, 1) / (kInside / 1.75), 1.0, 0.02);
      EXPECT_NEAR(rate_of(refitted, 8) / (kAcross / 1.75), 1.0, 0.02);
    }
}

// Links are not refitted to groups that may lie anywhere.
TEST(TraceSamples, LeaveOutGroupsWhoseMembersLieInNoPattern) {
  const char* members = "[0, 1, 2, ..., 57]";
  const std::vector<Trace> traces = {trace_of_groups(0, {{"odd", members, 350e9}}),
                                     trace_of_groups(1, {{"odd", members, 350e9}})};
  const RunSamples samples = samples_of(traces, {}, match_ranks(traces), load_cluster("dgx-h100"));
  EXPECT_THAT(samples.exchanges, testing::IsEmpty());
  EXPECT_THAT(samples.left_out,
              testing::ElementsAre(testing::HasSubstr("all_reduce of group odd")));
}

// Kernels that read what the cache still holds are faster than the memory.
// Ranks 2 and 3 wait at each large all-gather for rank 1, which caused most of the waits. Without
// its trace the wait looks like a transfer, but two of half the size take a seventh of the time.
TEST(TraceSamples, LeaveOutWaitsForRanksWithoutATrace) {
  const auto gathered = [](const std::vector<std::string>& ranks,
                           std::vector<std::string>& left_out) {
    std::vector<Trace> traces;
    for (const std::string& rank : ranks)
      traces.push_back(std::get<Trace>(read_recording(
          SHARDWRIGHT_SOURCE_DIR "/tests/calibration/traces/files/nanogpt/" + rank + ".json.gz")));
    RunSamples samples = samples_of(traces, {}, match_ranks(traces), load_cluster("dgx-h100"));
    left_out = std::move(samples.left_out);
    return std::ranges::count_if(samples.exchanges, [](const ExchangeTiming& timing) {
      return timing.kind == OpKind::AllGather && timing.bytes > Bytes(100e6);
    });
  };
  std::vector<std::string> left_out;
  EXPECT_EQ(gathered({"rank2", "rank3"}, left_out), 0);
  EXPECT_THAT(left_out, testing::Contains(testing::HasSubstr("all_gather with 151 MB")));
  EXPECT_EQ(gathered({"rank1", "rank2"}, left_out), 1);
  EXPECT_THAT(left_out, testing::Not(testing::Contains(testing::HasSubstr("all_gather"))));
}

TEST(TraceSamples, TakeTheBandwidthOfMemoryFromNoKernelsInTheCache) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const AcceleratorSpec& device = cluster.accelerator;
  ASSERT_GT(device.l2_cache, Bytes(0.0));
  // Eight ops of a step, each with so many times the cache, at so much of the memory's bandwidth.
  const auto samples_with = [&](double caches, double rate) {
    MatchedOp op;
    op.name = "residual";
    op.kind = OpKind::Residual;
    op.ops = op.matched = op.kernels = 8.0;
    const Bytes half = device.l2_cache * (4.0 * caches);
    op.work = MemoryWork{half, half, Flop(0), 8};
    op.measured = (half + half) / (device.memory_bandwidth * rate);
    ProgramMatch match;
    match.steps = 1;
    match.ops = {op};
    return samples_of({}, {match}, {}, cluster);
  };
  EXPECT_EQ(samples_with(4.0, 0.9).kernels.size(), 1U);
  EXPECT_THAT(samples_with(4.0, 0.9).left_out, testing::IsEmpty());
  EXPECT_THAT(samples_with(0.5, 0.9).kernels, testing::IsEmpty());
  EXPECT_THAT(samples_with(0.5, 0.9).left_out,
              testing::ElementsAre(testing::HasSubstr("residual kernels is not refitted")));
  EXPECT_THAT(samples_with(4.0, 1.5).kernels, testing::IsEmpty());
}

// No timing determines a figure that others contain.
TEST(TraceSamples, SayWhichFiguresOthersContain) {
  ClusterSpec cluster = load_cluster("dgx-h100");
  const std::vector<TimedGroup> groups = {{"tensor", "[0, 1, 2, 3, 4, 5, 6, 7]", 350e9}};
  const std::vector<Trace> traces = {trace_of_groups(0, groups), trace_of_groups(1, groups)};
  CalibrationData data;
  data.recorded = samples_of(traces, {}, match_ranks(traces), cluster);
  data.stack = load_stack("megatron-core");
  const Calibration result = calibrate(cluster, data, "test");
  const auto ratio = std::find_if(
      result.figures.begin(), result.figures.end(),
      [](const auto& figure) { return figure.pointer == "/stack/communication/collective_ratio"; });
  ASSERT_NE(ratio, result.figures.end());
  EXPECT_EQ(ratio->fit.verdict, FitVerdict::Contained);
  EXPECT_EQ(ratio->fit.value, 1.0);
  EXPECT_EQ(result.cluster.stack->communication.collective_ratio, 1.0);
  for (const CalibratedFigure& figure : result.figures)
    EXPECT_TRUE(figure.samples > 0 || !is_determined(figure.fit.verdict)) << figure.pointer;
}

}  // namespace
}  // namespace shardwright::calibration
