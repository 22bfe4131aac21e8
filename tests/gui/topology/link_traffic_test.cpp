#include "gui/topology/link_traffic.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "tests/gui/example_step.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::small_step;
using gui::fixtures::step_of;
using sim::LinkIndex;
using sim::VertexIndex;
using sim::VertexKind;

double timeline_end(const Timeline& timeline) {
  double end = 0.0;
  for (const Span& span : timeline.spans) end = std::max(end, span.end().value());
  return end;
}

// Returns one collective of 1 GB within each tensor-parallel group of a plan.
Timeline one_collective(OpKind kind, Group group) {
  Timeline timeline;
  timeline.ranks = {{0, "stage 0"}};
  Span span;
  span.kind = kind;
  span.group = group;
  span.bytes = gigabytes(1.0);
  span.start = Seconds(1.0);
  span.duration = Seconds(2.0);
  timeline.spans = {span};
  return timeline;
}

// All bytes that enter a switch or a NIC leave it, and all bytes that accelerators send are
// received, in every plan and on switched, meshed and torus clusters.
TEST(LinkTraffic, ConservesBytesAtEveryVertex) {
  EXPECT_TRUE(rc::check([] {
    const std::string cluster = sim::fixtures::one_of<std::string>(
        {"dgx-h100", "mi300x-node", "tpu-v5p-torus", "a100-leaf-spine-2to1"});
    const auto step = step_of(sim::fixtures::any_small_scenario());
    const ClusterMap map(load_cluster(cluster), step.scenario.plan.world_size());
    const LinkTraffic traffic(map, step.scenario.plan, *step.timeline);
    const std::vector<Bytes> bytes = traffic.bytes(0.0, traffic.end());
    const auto& vertices = map.topology().vertices();
    std::vector<double> balance(vertices.size(), 0.0), through(vertices.size(), 0.0);
    for (LinkIndex link = 0; link < bytes.size(); ++link) {
      const sim::TopologyLink& ends = map.topology().links()[link];
      balance[ends.from] -= bytes[link].value();
      balance[ends.to] += bytes[link].value();
      through[ends.to] += bytes[link].value();
    }
    double accelerators = 0.0, sent_by_all = 0.0;
    for (VertexIndex v = 0; v < vertices.size(); ++v) {
      if (vertices[v] == VertexKind::Accelerator) {
        accelerators += balance[v];
        sent_by_all += through[v];
      } else {
        RC_ASSERT(std::abs(balance[v]) <= 1e-5 * (1.0 + through[v]));
      }
    }
    RC_ASSERT(std::abs(accelerators) <= 1e-5 * (1.0 + sent_by_all));
    // Accelerators that relay bytes count them twice.
    RC_ASSERT(sent_by_all >= traffic.sent(0.0, traffic.end()).value() * (1.0 - 1e-5));
  }));
}

TEST(LinkTraffic, OfNeighbouringRangesAddsUp) {
  const auto& step = small_step();
  const ClusterMap map(step.scenario.cluster, 32);
  const LinkTraffic traffic(map, step.scenario.plan, *step.timeline);
  const double end = timeline_end(*step.timeline);
  const auto first = traffic.bytes(0.0, 0.3 * end), second = traffic.bytes(0.3 * end, end);
  const auto whole = traffic.bytes(0.0, end);
  for (LinkIndex link = 0; link < whole.size(); ++link)
    EXPECT_NEAR((first[link] + second[link]).value(), whole[link].value(),
                1e-9 * (1.0 + whole[link].value()));
}

// In a ring all-reduce within a node each member sends and receives 2 (n - 1) / n of the buffer
// (nccl-tests, doc/PERFORMANCE.md), all through the node's switch.
TEST(LinkTraffic, OfAnAllReduceInsideANodeIsTheRings) {
  Plan plan;
  plan.tp = 8;
  const ClusterMap map(load_cluster("dgx-h100"), 8);
  const LinkTraffic traffic(map, plan, one_collective(OpKind::AllReduce, Group::Tensor));
  const std::vector<Bytes> bytes = traffic.bytes(0.0, 10.0);
  for (LinkIndex link = 0; link < bytes.size(); ++link) {
    const double expected = map.level(link) == LinkLevel::ScaleUp ? 2.0 * 7.0 / 8.0 * 1e9 : 0.0;
    EXPECT_NEAR(bytes[link].value(), expected, 1e3) << map.link_name(link).toStdString();
  }
  EXPECT_NEAR(traffic.bytes(0.0, 2.0)[0].value(), 0.5 * 2.0 * 7.0 / 8.0 * 1e9, 1e3);
}

// A gradient all-reduce of 4 nodes of 8 leaves each node once through each of its NICs, which
// carries 1/8 of the bytes of a member.
TEST(LinkTraffic, OfAnAllReduceAcrossNodesUsesEveryNicEqually) {
  Plan plan;
  plan.dp = 32;
  const ClusterMap map(load_cluster("dgx-h100"), 32);
  const LinkTraffic traffic(map, plan, one_collective(OpKind::AllReduce, Group::Data));
  const std::vector<Bytes> bytes = traffic.bytes(0.0, 10.0);
  for (LinkIndex link = 0; link < bytes.size(); ++link) {
    if (map.level(link) != LinkLevel::Leaf) continue;
    EXPECT_NEAR(bytes[link].value(), 2.0 * 31.0 / 32.0 * 1e9 / 8.0, 1e3);
  }
}

TEST(LinkTraffic, UtilisationIsOfTheCapacity) {
  Plan plan;
  plan.tp = 8;
  const ClusterMap map(load_cluster("dgx-h100"), 8);
  const LinkTraffic traffic(map, plan, one_collective(OpKind::AllGather, Group::Tensor));
  const auto shares = utilisation(map, traffic.bytes(1.0, 3.0), 2.0);
  EXPECT_NEAR(shares[0], 7.0 / 8.0 * 1e9 / (450e9 * 2.0), 1e-6);
  for (const double share : utilisation(map, traffic.bytes(1.0, 3.0), 0.0)) EXPECT_EQ(share, 0.0);
}

TEST(LinkTraffic, IgnoresWhatCannotMove) {
  Plan plan;
  plan.tp = 8;
  const ClusterMap map(load_cluster("dgx-h100"), 8);
  Timeline timeline = one_collective(OpKind::AllReduce, Group::Data);
  timeline.spans.push_back(timeline.spans[0]);
  timeline.spans[1].rank = 99;
  timeline.spans.push_back(timeline.spans[0]);
  timeline.spans[2].kind = OpKind::Send;
  timeline.spans[2].peer = 8;
  const LinkTraffic traffic(map, plan, timeline);
  EXPECT_EQ(traffic.sent(0.0, 10.0), Bytes());
}

TEST(ClusterMap, NamesItsParts) {
  const ClusterMap map(load_cluster("dgx-h100"), 512);
  EXPECT_EQ(map.domains(), 64U);
  EXPECT_EQ(map.vertex_name(12).toStdString(), "GPU 12");
  EXPECT_EQ(map.switches().at(0).size(), 16U);
  EXPECT_EQ(map.vertex_name(map.switches().at(0).front()).toStdString(), "leaf 0");
  std::size_t links = 0;
  for (VertexIndex v = 0; v < map.topology().vertices().size(); ++v) {
    for (const LinkIndex link : map.links_from(v)) {
      EXPECT_EQ(map.topology().links()[link].from, v);
      EXPECT_EQ(map.topology().links()[ClusterMap::way_back(link)].to, v);
      ++links;
    }
  }
  EXPECT_EQ(links, map.topology().links().size());
}

TEST(ClusterMap, LinkTableHasARowForEachLink) {
  const ClusterMap map(load_cluster("dgx-h100"), 8);
  const std::size_t links = map.topology().links().size();
  const TextTable table =
      link_table(map, std::vector<Bytes>(links), std::vector<double>(links, 0.0));
  EXPECT_EQ(table.rows.size(), links);
}

}  // namespace
}  // namespace shardwright::gui
