// Where the parts of a cluster are drawn: levels from the GPUs below to the highest switches above.
// Some scale-up domains are drawn whole, one beside the other; the others are one stack, and so are
// switches that serve only those. Knows no painter.
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
  Domain,  // frame of a node or rack
  Gpu,
  ScaleUpSwitch,  // or what stands for the direct links of a mesh or ring
  Nic,
  Switch,
  MoreGpus,  // of a domain
  MoreDomains,
  MoreSwitches,  // of a level
};

struct MapItem {
  ItemKind kind = ItemKind::Gpu;
  QRectF box;
  QString label;
  std::optional<sim::VertexIndex> vertex;
  std::uint32_t first = 0, count = 1;  // ranks, domains or switches that it stands for
};

// A line that stands for one link both ways, or for all those that are hidden behind a stack.
struct MapLine {
  QPointF a, b;
  std::vector<sim::LinkIndex> links;
};

struct LevelLabel {
  QString text;
  double y = 0.0;  // of its middle
};

struct TopologyLayout {
  std::vector<MapItem> items;
  std::vector<MapLine> lines;
  std::vector<LevelLabel> levels;
  std::uint32_t first_domain = 0, shown_domains = 0;
  QRectF area;  // that all lies in

  QRectF box_of(const LevelLabel& level) const;
  // For a note of this height about what lies at `y`: as near to it as can be in the column of the
  // levels' names, clear of these and of the drawing; none where there is no room.
  std::optional<QRectF> place_beside(double y, double height) const;
  // The item with the smallest box around the point.
  std::optional<std::size_t> item_at(const QPointF& point) const;
  // The nearest line within a few pixels.
  std::optional<std::size_t> line_at(const QPointF& point) const;
};

// `first_domain` is moved down where fewer domains than fit come after it; `first_gpu` is that of
// each domain drawn.
TopologyLayout lay_out(const ClusterMap& map, const QRectF& area, std::uint32_t first_domain,
                       std::uint32_t first_gpu = 0);

}  // namespace shardwright::gui
