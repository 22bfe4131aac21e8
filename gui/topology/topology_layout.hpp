// The places of the parts of a cluster: levels from the GPUs at the bottom to the highest switches
// at the top. Some scale-up domains are drawn whole, side by side. The others are one stack, and so
// are switches that serve only those. This file knows no painter.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/topology/cluster_map.hpp"

namespace shardwright::gui {

enum class ItemKind : std::uint8_t {
  Domain,
  Gpu,
  // The switch of a domain, or a bar that stands for the direct links of a mesh or ring.
  ScaleUpSwitch,
  Nic,
  Switch,
  // The stacks of GPUs of a domain, of all other domains, and of switches of a level.
  MoreGpus,
  MoreDomains,
  MoreSwitches,
};

struct MapItem {
  ItemKind kind = ItemKind::Gpu;
  QRectF box;
  QString label;
  std::optional<sim::VertexIndex> vertex;
  // The ranks, domains or switches that it stands for.
  std::uint32_t first = 0, count = 1;
};

// A line that stands for both directions of a link, or for all links behind a stack.
struct MapLine {
  // The corners from the lower end to the upper one.
  std::vector<QPointF> points;
  std::vector<sim::LinkIndex> links;
};

struct LevelLabel {
  QString text;
  double y = 0.0;
};

struct TopologyLayout {
  std::vector<MapItem> items;
  std::vector<MapLine> lines;
  std::vector<LevelLabel> levels;
  std::uint32_t first_domain = 0, shown_domains = 0;
  QRectF area;

  QRectF box_of(const LevelLabel& level) const;
  // Returns a place for a note of this height near `y` in the column of the levels' names. It
  // covers neither these nor the drawing. Returns none if there is no room.
  std::optional<QRectF> place_beside(double y, double height) const;
  // Returns the item with the smallest box around the point.
  std::optional<std::size_t> item_at(const QPointF& point) const;
  // Returns the links of the nearest line within a few pixels, and of all that lie on it there.
  std::vector<sim::LinkIndex> links_at(const QPointF& point) const;
};

// Begins with an earlier domain than `first_domain` if there is room for more than follow it.
// `first_gpu` is the first GPU drawn of each domain.
TopologyLayout lay_out(const ClusterMap& map, const QRectF& area, std::uint32_t first_domain,
                       std::uint32_t first_gpu = 0);

}  // namespace shardwright::gui
