#include "gui/topology/group_routes.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "gui/topology/link_traffic.hpp"
#include "gui/topology/topology_view.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/painted_view_test.hpp"

namespace shardwright::gui {
namespace {

// Whatever nodes the members lie on: each sends all of its bytes and receives as many, to members
// of its own domain or of the next, and the ways lead from any member to all others.
TEST(GroupRoutes, OfARingReachAllMembersAndAreEven) {
  for (const std::vector<std::int32_t>& members : {std::vector<std::int32_t>{0, 1, 2, 3},
                                                   {0, 8, 16, 24},
                                                   {0, 1, 8, 9, 16, 17},
                                                   {3, 4},
                                                   {0, 8}}) {
    std::vector<double> received(members.size(), 0.0);
    std::vector<std::set<std::int32_t>> next(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      double sent = 0.0;
      for (const Hop& hop : ring_hops(members, i, 8)) {
        const auto to = std::find(members.begin(), members.end(), hop.to) - members.begin();
        ASSERT_LT(static_cast<std::size_t>(to), members.size());
        received[static_cast<std::size_t>(to)] += hop.share;
        next[i].insert(static_cast<std::int32_t>(to));
        sent += hop.share;
      }
      EXPECT_DOUBLE_EQ(sent, 1.0);
    }
    for (const double bytes : received) EXPECT_DOUBLE_EQ(bytes, 1.0);
    std::set<std::int32_t> reached = {0};
    for (std::size_t round = 0; round < members.size(); ++round)
      for (const std::int32_t at : std::set(reached))
        reached.insert(next[static_cast<std::size_t>(at)].begin(),
                       next[static_cast<std::size_t>(at)].end());
    EXPECT_EQ(reached.size(), members.size());
  }
}

// The links of all tensor groups of a stage are those that carry an all-reduce of them all.
TEST(GroupRoutes, AreTheLinksThatCarryTheTraffic) {
  const Scenario& scenario = fixtures::small_step().scenario;
  const ClusterMap map(scenario.cluster, scenario.plan.world_size());
  const PlanGroups groups(scenario.plan);
  for (const auto& [axis, of_axis] :
       {std::pair(Axis::Tensor, Group::Tensor), std::pair(Axis::Data, Group::Data)}) {
    Timeline timeline;
    timeline.ranks = {{0, "stage 0"}};
    Span span;
    span.stream = Stream::TensorParallel;
    span.name = "all_reduce";
    span.kind = OpKind::AllReduce;
    span.group = of_axis;
    span.bytes = Bytes(1e6);
    span.duration = Seconds(1.0);
    timeline.spans = {span};
    const std::vector<Bytes> bytes = LinkTraffic(map, scenario.plan, timeline).bytes(0.0, 1.0);
    std::set<sim::LinkIndex> carrying, drawn;
    for (sim::LinkIndex link = 0; link < bytes.size(); ++link)
      if (bytes[link].value() > 0.0) carrying.insert(link);
    for (std::int64_t rank = 0; rank < groups.world_size(); ++rank) {
      if (groups.stage_of(rank) != 0) continue;
      for (const AxisGroup& group : groups.of(rank)) {
        if (group.axis != axis) continue;
        const std::vector<sim::LinkIndex> links = links_of(map, group);
        drawn.insert(links.begin(), links.end());
      }
    }
    EXPECT_FALSE(drawn.empty());
    EXPECT_EQ(drawn, carrying);
  }
}

// The way of a selected GPU's group is drawn along the lines that it takes, for the axis that is
// shown.
TEST(GroupRoutes, AreDrawnForTheSelectedRank) {
  const Scenario& scenario = fixtures::small_step().scenario;
  TopologyView view;
  view.show_step(std::make_shared<const PlacedStep>(scenario.cluster, scenario.plan,
                                                    fixtures::small_step().timeline.get()));
  fixtures::shown(view, {1200, 600});
  TopologyCanvas& canvas = view.canvas();
  const auto pixels_of = [&](Axis axis) {
    const QRgb colour = colours_for(canvas.palette()).of(role_of(axis)).rgb();
    const QImage picture = canvas.viewport()->grab().toImage();
    int count = 0;
    for (int y = 0; y < picture.height(); ++y)
      for (int x = 0; x < picture.width() - 280; ++x)
        count += picture.pixel(x, y) == colour ? 1 : 0;
    return count;
  };
  canvas.select_rank(0);
  QTest::keyClick(&canvas, Qt::Key_T);
  const int tensor = pixels_of(Axis::Tensor);
  EXPECT_EQ(pixels_of(Axis::Data), 0);
  QTest::keyClick(&canvas, Qt::Key_D);
  EXPECT_GT(pixels_of(Axis::Data), 300);
  EXPECT_GT(tensor, 100);
  EXPECT_EQ(pixels_of(Axis::Tensor), 0);
  QTest::keyClick(&canvas, Qt::Key_Escape);
  EXPECT_EQ(pixels_of(Axis::Data), 0);
}

}  // namespace
}  // namespace shardwright::gui
