#include "gui/topology/topology_view.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <QFontMetricsF>
#include <QSignalSpy>
#include <QSlider>
#include <QToolButton>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gui/topology/node_map.hpp"
#include "gui/views/empty_state.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/painted_view_test.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::colours_in;
using gui::fixtures::drag;
using gui::fixtures::move_mouse;
using gui::fixtures::shown;
using gui::fixtures::small_step;
using gui::fixtures::svg_of;
using gui::fixtures::tool_tip_at;
using gui::fixtures::turn_wheel;
using sim::LinkIndex;

// Boxes of one kind do not overlap and nothing leaves the area, for clusters and areas of any size.
TEST(TopologyLayout, KeepsItsPartsApart) {
  for (const char* name : {"dgx-h100", "gb200-nvl72", "tpu-v5p-torus", "mi250x-frontier",
                           "a100-leaf-spine-2to1", "l40s-pcie-workstation"}) {
    const ClusterSpec cluster = load_cluster(name);
    for (const std::int64_t ranks : {1, 8, 100, 512, 16384}) {
      if (cluster.fabric.kind == FabricKind::None && ranks > cluster.node.accelerators) continue;
      if (cluster.fabric.kind == FabricKind::Torus && ranks > 4096) continue;
      const ClusterMap map(cluster, ranks);
      for (const QSizeF size : {QSizeF(420, 280), QSizeF(1000, 500), QSizeF(2500, 1300)}) {
        const QRectF area(QPointF(10.0, 10.0), size);
        const TopologyLayout layout = lay_out(map, area, 0);
        std::map<ItemKind, std::vector<QRectF>> boxes;
        for (const MapItem& item : layout.items) {
          EXPECT_TRUE(area.adjusted(-1, -1, 1, 1).contains(item.box))
              << name << " " << ranks << " " << size.width();
          for (const QRectF& other : boxes[item.kind])
            EXPECT_FALSE(other.adjusted(0.1, 0.1, -0.1, -0.1).intersects(item.box))
                << name << " " << ranks << " " << size.width();
          boxes[item.kind].push_back(item.box);
        }
      }
    }
  }
}

// The load of the busiest link is written there.
TEST(TopologyLayout, APlaceBesideTheDrawingCoversNothing) {
  for (const char* name : {"dgx-h100", "gb200-nvl72", "tpu-v5p-torus", "l40s-pcie-workstation"}) {
    const ClusterMap map(load_cluster(name), 8);
    for (const QSizeF size : {QSizeF(420, 280), QSizeF(1000, 500)}) {
      const TopologyLayout layout = lay_out(map, QRectF(QPointF(10.0, 10.0), size), 0);
      for (double y = layout.area.top(); y < layout.area.bottom(); y += 7.0) {
        const std::optional<QRectF> found = layout.place_beside(y, 17.0);
        ASSERT_TRUE(found) << name << " " << y;
        const QRectF place = *found;
        EXPECT_TRUE(layout.area.contains(place)) << name << " " << y;
        for (const LevelLabel& level : layout.levels)
          EXPECT_FALSE(layout.box_of(level).intersects(place)) << name << " " << y;
        for (const MapItem& item : layout.items)
          EXPECT_FALSE(item.box.intersects(place)) << name << " " << y;
        for (const MapLine& line : layout.lines)
          for (const QPointF& point : line.points)
            EXPECT_GT(point.x(), place.right()) << name << " " << y;
      }
    }
  }
}

// Each link of the fabric is drawn once, in a line of its own or with others.
TEST(TopologyLayout, DrawsEveryFabricLinkOnce) {
  for (const char* name : {"dgx-h100", "gb200-nvl72", "a100-leaf-spine-2to1"}) {
    const ClusterMap map(load_cluster(name), 512);
    const TopologyLayout layout = lay_out(map, {0.0, 0.0, 1000.0, 500.0}, 2);
    std::set<LinkIndex> drawn;
    for (const MapLine& line : layout.lines) {
      for (const LinkIndex link : line.links) EXPECT_TRUE(drawn.insert(link).second) << name;
    }
    for (LinkIndex link = 0; link < map.topology().links().size(); ++link) {
      if (map.level(link) != LinkLevel::Leaf && map.level(link) != LinkLevel::Spine) continue;
      EXPECT_TRUE(drawn.contains(link)) << name << " " << map.link_name(link).toStdString();
    }
  }
}

// Lines between two levels that would cross rise to tracks instead, of which each switch has one:
// no two of them lie on each other but those of one track, which end at the same switch.
TEST(TopologyLayout, LinksThatWouldCrossHaveATrackForEachSwitch) {
  for (const QSizeF size : {QSizeF(820, 380), QSizeF(1000, 500), QSizeF(2500, 1300)}) {
    const ClusterMap map(load_cluster("dgx-h100"), 512);
    const TopologyLayout layout = lay_out(map, QRectF(QPointF(0.0, 0.0), size), 6);
    std::map<double, std::set<double>> ends_of_track;
    std::size_t on_tracks = 0;
    for (const MapLine& line : layout.lines) {
      if (line.points.size() == 2) continue;
      ASSERT_EQ(line.points.size(), 4U);
      ++on_tracks;
      EXPECT_EQ(line.points[0].x(), line.points[1].x());
      EXPECT_EQ(line.points[1].y(), line.points[2].y());
      EXPECT_EQ(line.points[2].x(), line.points[3].x());
      ends_of_track[line.points[1].y()].insert(line.points[3].x());
    }
    EXPECT_GE(on_tracks, 24U);  // These are the eight rails of three nodes.
    EXPECT_GE(ends_of_track.size(), 8U);
    double before = -100.0;
    for (const auto& [height, ends] : ends_of_track) {
      EXPECT_EQ(ends.size(), 1U);
      EXPECT_GE(height - before, 2.5);
      EXPECT_GE(height - before - widest_line(layout), 1.0);  // Two lines do not read as one.
      before = height;
    }
  }
}

// Links whose lines do not cross are straight.
TEST(TopologyLayout, AFanOfLinksIsStraight) {
  const ClusterMap map(load_cluster("dgx-h100"), 8);
  const TopologyLayout layout = lay_out(map, {0.0, 0.0, 1000.0, 500.0}, 0);
  for (const MapLine& line : layout.lines) EXPECT_EQ(line.points.size(), 2U);
  EXPECT_EQ(widest_line(layout), 5.0);
}

// If many links are equally busy, none is the bottleneck, and a scale to 100 % would leave all
// pale.
TEST(TopologyPainter, CountsTheBusiestLinksAndScalesToThem) {
  EXPECT_EQ(links_as_busy({}), 0U);
  EXPECT_EQ(links_as_busy({0.0, 0.0}), 0U);
  EXPECT_EQ(links_as_busy({0.2, 0.7, 0.3}), 1U);
  EXPECT_EQ(links_as_busy({0.095, 0.0949, 0.02, 0.095}), 3U);
  EXPECT_EQ(scale_end(0.0), 0.05);
  EXPECT_EQ(scale_end(0.095), 0.1);
  EXPECT_EQ(scale_end(0.49), 0.5);
  EXPECT_EQ(scale_end(0.7), 1.0);
}

// The map draws a few nodes of a large cluster, and the slider changes which link is the busiest.
TEST(TopologyPainter, MarksALinkThatIsDrawnOrNone) {
  TopologyLayout layout;
  layout.lines.resize(3);
  for (sim::LinkIndex link = 0; link < 3; ++link) layout.lines[link].links = {link};
  EXPECT_EQ(busiest_line(layout, {}), nullptr);
  EXPECT_EQ(busiest_line(layout, {0.1, 0.495, 0.2, 0.5}), &layout.lines[1]);
  EXPECT_EQ(busiest_line(layout, {0.1, 0.4, 0.2, 0.5}), nullptr);
  EXPECT_EQ(busiest_line(layout, {0.1, 0.498, 0.5, 0.4}), &layout.lines[2]);
}

TEST(PlanGroups, HoldTheRankAndAgreeAmongMembers) {
  Plan plan;
  plan.dp = 4;
  plan.tp = 2;
  plan.pp = 3;
  plan.cp = 2;
  const PlanGroups groups(plan);
  EXPECT_EQ(groups.axes().size(), 4U);
  for (std::int64_t rank = 0; rank < plan.world_size(); ++rank) {
    for (const AxisGroup& group : groups.of(rank)) {
      EXPECT_TRUE(std::binary_search(group.ranks.begin(), group.ranks.end(), rank));
      const std::map<Axis, std::size_t> sizes = {
          {Axis::Tensor, 2}, {Axis::Context, 2}, {Axis::Pipeline, 3}, {Axis::Data, 8}};
      EXPECT_EQ(group.ranks.size(), sizes.at(group.axis));
      for (const std::int32_t other : group.ranks) {
        const auto theirs = groups.of(other);
        const auto same = std::find_if(theirs.begin(), theirs.end(),
                                       [&](const AxisGroup& g) { return g.axis == group.axis; });
        EXPECT_EQ(same->ranks, group.ranks);
      }
    }
  }
  EXPECT_TRUE(groups.of(-1).empty());
  EXPECT_TRUE(groups.of(plan.world_size()).empty());
}

TEST(PlanGroups, RanksAreListedInShort) {
  EXPECT_EQ(ranks_text({0, 1, 2, 3}).toStdString(), "0–3");
  EXPECT_EQ(ranks_text({0, 8, 16}).toStdString(), "0, 8, 16");
  EXPECT_EQ(ranks_text({0, 8, 16, 24, 32, 40, 48, 56, 64}).toStdString(), "0, 8, 16, 24, … 64");
  EXPECT_EQ(ranks_text({}).toStdString(), "");
}

class TopologyViewTest : public ::testing::Test {
 protected:
  TopologyViewTest() {
    view_.show_step(std::make_shared<const PlacedStep>(
        small_step().scenario.cluster, small_step().scenario.plan, small_step().timeline.get()));
    shown(view_, {760, 480});
  }

  TopologyCanvas& canvas() { return view_.canvas(); }
  QWidget& paper() { return *canvas().viewport(); }
  const TopologyScene& scene() { return canvas().scene(); }
  QPointF place_of_rank(std::uint32_t rank) {
    for (const MapItem& item : canvas().layout_shown().items) {
      if (item.kind == ItemKind::Gpu && item.first == rank) return item.box.center();
    }
    return {-1.0, -1.0};
  }

  TopologyView view_;
};

TEST_F(TopologyViewTest, MarksTheBusiestLink) {
  ASSERT_TRUE(scene().bottleneck.has_value());
  for (const double share : scene().utilisation)
    EXPECT_LE(share, scene().utilisation[*scene().bottleneck]);
  EXPECT_GT(scene().utilisation[*scene().bottleneck], 0.0);
  EXPECT_LE(scene().utilisation[*scene().bottleneck], 1.0);
}

// Without room for the panel the scale of colours stands below the map.
TEST_F(TopologyViewTest, ANarrowMapHasTheScaleBelowIt) {
  const auto colours_at_bottom = [&] {
    const QImage picture = paper().grab().toImage();
    std::set<QRgb> colours;
    for (int x = picture.width() / 2; x < picture.width(); ++x)
      colours.insert(picture.pixel(x, picture.height() - 23));
    int of_scale = 0;
    for (int i = 0; i < 60; ++i)
      of_scale += colours.contains(sequential_colour((i + 0.5) / 60, false).rgb()) ? 1 : 0;
    return of_scale;
  };
  EXPECT_LT(colours_at_bottom(), 10);
  shown(view_, {560, 480});
  EXPECT_GE(colours_at_bottom(), 50);
  for (const MapItem& item : canvas().layout_shown().items)
    EXPECT_LT(item.box.bottom(), paper().height() - 38.0);
}

TEST_F(TopologyViewTest, HoverShowsGroupsAndClickKeepsThem) {
  QSignalSpy selected(&canvas(), &TopologyCanvas::rank_selected);
  const std::uint32_t first = canvas().layout_shown().first_domain * canvas().map().domain_size();
  move_mouse(paper(), place_of_rank(first + 2), Qt::NoButton);
  EXPECT_EQ(scene().rank(), std::optional<std::int32_t>(first + 2));
  EXPECT_FALSE(scene().selected.has_value());
  move_mouse(paper(), {3.0, 3.0}, Qt::NoButton);
  EXPECT_FALSE(scene().rank().has_value());
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, place_of_rank(first + 3).toPoint());
  EXPECT_TRUE(scene().selected.has_value());
  ASSERT_EQ(selected.size(), 1);
  EXPECT_EQ(selected[0][0].toUInt(), first + 3);
  move_mouse(paper(), place_of_rank(first), Qt::NoButton);
  EXPECT_EQ(scene().rank(), std::optional<std::int32_t>(first + 3));
  QTest::keyClick(&canvas(), Qt::Key_Escape);
  EXPECT_FALSE(scene().rank().has_value());
}

TEST_F(TopologyViewTest, KeysChooseAnAxisAndTurnPages) {
  QTest::keyClick(&canvas(), Qt::Key_D);
  EXPECT_EQ(scene().axis, std::optional(Axis::Data));
  QTest::keyClick(&canvas(), Qt::Key_D);
  EXPECT_FALSE(scene().axis.has_value());
  const std::uint32_t first = canvas().layout_shown().first_domain;
  ASSERT_LT(canvas().layout_shown().shown_domains, canvas().map().domains());
  QTest::keyClick(&canvas(), Qt::Key_Right);
  EXPECT_GT(canvas().layout_shown().first_domain, first);
  QTest::keyClick(&canvas(), Qt::Key_Left);
  EXPECT_EQ(canvas().layout_shown().first_domain, first);
}

TEST_F(TopologyViewTest, AZoomedMapIsPointedAtWhereItIsDrawn) {
  const std::uint32_t rank =
      canvas().layout_shown().first_domain * canvas().map().domain_size() + 3;
  const QPointF at = place_of_rank(rank);
  turn_wheel(paper(), at, 5);
  const double zoom = canvas().viewport()->height() / scene().rows.length();
  EXPECT_NEAR(zoom, std::pow(1.25, 5), 1e-6);
  EXPECT_EQ(canvas().item_at(at), std::optional(static_cast<std::int32_t>(rank)));
  drag(paper(), {100, 200}, {60, 170}, Qt::LeftButton);
  EXPECT_EQ(canvas().item_at(at + QPointF(-40.0, -30.0)),
            std::optional(static_cast<std::int32_t>(rank)));
  EXPECT_FALSE(scene().selected.has_value());
  QTest::keyClick(&canvas(), Qt::Key_Home);
  EXPECT_EQ(scene().window.from, 0.0);
  EXPECT_EQ(canvas().item_at(place_of_rank(rank)), std::optional(static_cast<std::int32_t>(rank)));
}

TEST_F(TopologyViewTest, SelectedRankComesIntoView) {
  canvas().select_rank(31);
  EXPECT_GE(place_of_rank(31).x(), 0.0);
  canvas().select_rank(32);
  EXPECT_EQ(scene().rank(), std::optional<std::int32_t>(31)) << "there are 32 ranks";
}

TEST_F(TopologyViewTest, RangeChangesTheLoad) {
  const double whole = scene().utilisation[*scene().bottleneck];
  // The gradients are reduced at the end of the step, where the network is busier.
  double end = 0.0;
  for (const Span& span : small_step().timeline->spans) end = std::max(end, span.end().value());
  view_.select_range(0.0, 1e-6);
  EXPECT_NE(scene().span_title.indexOf(u"from"_s), -1);
  view_.select_range(0.9 * end, end);
  EXPECT_NEAR(scene().seconds, 0.1 * end, 1e-9);
  view_.clear_range();
  EXPECT_EQ(scene().utilisation[*scene().bottleneck], whole);
}

TEST_F(TopologyViewTest, ToolTipShowsTheLoadOfALink) {
  const MapLine& line = canvas().layout_shown().lines.front();
  const QPoint at = (0.5 * (line.points[0] + line.points[1])).toPoint();
  EXPECT_THAT(tool_tip_at(paper(), at), Says("GB/s"));
}

TEST_F(TopologyViewTest, PaintsInLightAndDarkAndAsVectors) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    view_.setPalette(palette);
    canvas().select_rank(5);
    EXPECT_GT(colours_in(paper()), 20U);
  }
  const QByteArray text = svg_of(view_);
  EXPECT_TRUE(text.contains("Busiest link"));
  EXPECT_TRUE(text.contains("Bisection bandwidth"));
}

// The figures of `shardwright clusters show dgx-h100`: 8 NICs of 50 GB/s a node, without
// oversubscription.
TEST_F(TopologyViewTest, ShowsTheBisectionBandwidthOfTheNodesInUse) {
  EXPECT_EQ(canvas().map().nodes(), 4U);
  EXPECT_NEAR(scene().bisection.value(), 2 * 8 * 50e9, 1e3);
  Plan alone;
  view_.show_step(
      std::make_shared<const PlacedStep>(small_step().scenario.cluster, alone, nullptr));
  // Within a node the NICs carry traffic beside NVSwitch.
  EXPECT_NEAR(scene().bisection.value(), 4 * (450e9 + 50e9), 1e3);
  ClusterSpec single = small_step().scenario.cluster;
  single.node.accelerators = single.node.nic.per_node = single.node.scale_up.domain = 1;
  view_.show_step(std::make_shared<const PlacedStep>(single, alone, nullptr));
  EXPECT_EQ(scene().bisection, BytesPerSecond(0.0));
}

TEST_F(TopologyViewTest, SaysWhatToDoWithoutAPlan) {
  view_.clear();
  EXPECT_TRUE(view_.findChild<EmptyState*>()->is_empty());
  EXPECT_TRUE(view_.table().rows.empty());
  for (const Qt::Key key : {Qt::Key_T, Qt::Key_Right, Qt::Key_B, Qt::Key_Escape})
    QTest::keyClick(&canvas(), key);
  move_mouse(paper(), {100.0, 100.0}, Qt::NoButton);
  view_.select_range(0.0, 1.0);
}

// Each of 2,048 nodes has a cell of its own on one screen, which answers and leads to the node.
TEST_F(TopologyViewTest, AllNodesAreOnOneScreen) {
  const std::uint32_t nodes = 2048;
  Plan plan;
  plan.dp = 8 * static_cast<std::int64_t>(nodes);
  plan.global_batch = plan.dp;
  view_.show_step(std::make_shared<const PlacedStep>(load_cluster("dgx-h100"), plan, nullptr));
  view_.resize(900, 320);
  QTest::mouseClick(view_.findChild<QToolButton*>(u"topology_all_nodes"_s), Qt::LeftButton);
  QApplication::processEvents();
  auto& map = *view_.findChild<NodeMap*>();
  ASSERT_TRUE(map.isVisible());
  for (std::uint32_t node = 0; node < nodes; ++node) {
    EXPECT_TRUE(QRectF(map.rect()).contains(map.cell(node)));
    if (node > 0) {
      EXPECT_FALSE(map.cell(node).adjusted(0.1, 0.1, -0.1, -0.1).intersects(map.cell(node - 1)));
    }
  }
  EXPECT_GE(map.cell(0).width(), 4.0);
  const QPoint place = map.cell(777).center().toPoint();
  EXPECT_THAT(tool_tip_at(map, place), Says("node 777"));
  // A drag from one cell to another is no click.
  drag(map, map.cell(5).center().toPoint(), place, Qt::LeftButton);
  EXPECT_TRUE(map.isVisible());
  const auto shown = [&](std::uint32_t node) {
    const TopologyLayout& layout = view_.canvas().layout_shown();
    return view_.canvas().isVisible() && !map.isVisible() && layout.first_domain <= node &&
           node < layout.first_domain + layout.shown_domains;
  };
  QTest::mouseClick(&map, Qt::LeftButton, {}, place);
  EXPECT_TRUE(shown(777));
  // Keys go there too: down and up a line, and no further than the last one.
  QTest::mouseClick(view_.findChild<QToolButton*>(u"topology_all_nodes"_s), Qt::LeftButton);
  for (const auto key : {Qt::Key_End, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_Left})
    QTest::keyClick(&map, key);
  QTest::keyClick(&map, Qt::Key_Return);
  EXPECT_TRUE(shown(nodes - 2));
}

// The load of a cell is that of the busiest link of its node by any way of looking.
TEST(DomainLoads, AreThoseOfTheirBusiestLinks) {
  const ClusterMap map(load_cluster("dgx-h100"), 64);
  std::vector<double> utilisation(map.topology().links().size(), 0.0);
  for (sim::LinkIndex link = 0; link < utilisation.size(); ++link) {
    if (map.level(link) != LinkLevel::Leaf && map.level(link) != LinkLevel::ScaleUp) continue;
    utilisation.assign(utilisation.size(), 0.0);
    utilisation[link] = 0.5;
    const std::vector<double> loads = domain_loads(map, utilisation);
    EXPECT_EQ(loads.size(), 8U);
    EXPECT_EQ(std::count(loads.begin(), loads.end(), 0.5), 1) << map.link_name(link).toStdString();
  }
}

// A range of another view takes the place of the slider's, whose label says so.
TEST_F(TopologyViewTest, TheSliderFollowsARangeOfAnotherView) {
  auto& slider = *view_.findChild<QSlider*>(u"topology_moment"_s);
  EXPECT_TRUE(slider.isEnabled());
  slider.setValue(40);
  const QString of_slider = view_.canvas().scene().span_title;
  view_.select_range(0.0, 1e-6);
  EXPECT_EQ(slider.value(), 0);
  slider.setValue(40);
  EXPECT_EQ(view_.canvas().scene().span_title, of_slider);
  view_.clear_range();
  EXPECT_EQ(slider.value(), 0);
  EXPECT_NE(view_.canvas().scene().span_title, of_slider);
}

TEST_F(TopologyViewTest, TheSliderGoesThroughTheStep) {
  auto& slider = *view_.findChild<QSlider*>(u"topology_moment"_s);
  const QString whole = view_.canvas().scene().span_title;
  const double seconds = view_.canvas().scene().seconds;
  slider.setFocus();
  QTest::keyClick(&slider, Qt::Key_Right);
  EXPECT_NE(view_.canvas().scene().span_title, whole);
  EXPECT_NEAR(view_.canvas().scene().seconds, seconds / slider.maximum(), 1e-9);
  QTest::keyClick(&slider, Qt::Key_Home);
  EXPECT_EQ(view_.canvas().scene().span_title, whole);
}

// A colour means the same load wherever the slider is, and no load lies beyond the scale.
TEST_F(TopologyViewTest, AllPositionsOfTheSliderHaveOneScale) {
  auto& slider = *view_.findChild<QSlider*>(u"topology_moment"_s);
  const double end = scene().scale_end;
  double highest = 0.0;
  for (int position = 0; position <= slider.maximum(); ++position) {
    slider.setValue(position);
    EXPECT_EQ(scene().scale_end, end) << position;
    highest = std::max(highest,
                       *std::max_element(scene().utilisation.begin(), scene().utilisation.end()));
  }
  EXPECT_LE(highest, end);
  EXPECT_EQ(scale_end(highest), end);
}

// Nothing passes the links of a single rank, which answer nevertheless.
TEST_F(TopologyViewTest, LinksOfAStepWithoutTrafficAreIdle) {
  Scenario alone = small_step().scenario;
  alone.plan = {};
  alone.model = load_model("gpt2");
  alone.plan.seq_len = 1024;
  const fixtures::ExampleStep step = fixtures::step_of(alone);
  view_.show_step(
      std::make_shared<const PlacedStep>(alone.cluster, alone.plan, step.timeline.get()));
  EXPECT_FALSE(view_.findChild<QSlider*>()->isEnabled());
  EXPECT_EQ(scene().utilisation.size(), canvas().map().topology().links().size());
  const MapLine& line = canvas().layout_shown().lines.front();
  EXPECT_THAT(tool_tip_at(paper(), (0.5 * (line.points[0] + line.points[1])).toPoint()),
              Says("GB/s"));
  QTest::mouseClick(view_.findChild<QToolButton*>(u"topology_all_nodes"_s), Qt::LeftButton);
  QTest::qWait(1);
  const QPoint place = view_.findChild<NodeMap*>()->cell(0).center().toPoint();
  EXPECT_THAT(tool_tip_at(*view_.findChild<NodeMap*>(), place), Says("node 0"));
}

TEST_F(TopologyViewTest, ReportsAPlanThatTheClusterCannotHold) {
  QSignalSpy problems(&view_, &View::problem);
  ClusterSpec small = load_cluster("tpu-v5p-torus");
  small.fabric.torus = {2};
  EXPECT_THROW(PlacedStep(small, small_step().scenario.plan, nullptr), InputError);
  view_.show_problem(u"The torus is too small."_s);
  ASSERT_EQ(problems.size(), 1);
  EXPECT_TRUE(view_.findChild<EmptyState*>()->is_empty());
  // The problem is taken back once: afterwards the window may show one of another view.
  for (int i = 0; i < 2; ++i)
    view_.show_step(std::make_shared<const PlacedStep>(small_step().scenario.cluster,
                                                       small_step().scenario.plan, nullptr));
  EXPECT_EQ(problems.size(), 2);
  EXPECT_TRUE(problems.back()[0].toString().isEmpty());
}

// Numbers of six digits in a low map, too.
TEST(TopologyPainter, TurnedNumbersFitOrAreLeftOut) {
  for (const char* number : {"7", "512", "1024", "16383", "131071"}) {
    for (double height = 6.0; height < 60.0; height += 2.0) {
      const auto font = upright_font(to_qstring(number), height);
      if (font) {
        EXPECT_LE(QFontMetricsF(*font).horizontalAdvance(to_qstring(number)), height);
      }
    }
    EXPECT_TRUE(upright_font(to_qstring(number), 60.0)) << number;
  }
  EXPECT_FALSE(upright_font(u"131071"_s, 16.0));
}

}  // namespace
}  // namespace shardwright::gui
