// Paints a cluster with the load on its links. Knows no widget.
#pragma once

#include <QFont>
#include <QPainter>
#include <optional>

#include "gui/painting/axis_window.hpp"
#include "gui/topology/link_traffic.hpp"
#include "gui/topology/plan_groups.hpp"
#include "gui/topology/topology_layout.hpp"

namespace shardwright::gui {

struct TopologyScene : PaintedScene<std::int32_t> {
  // The share of each link's capacity that is used, and the bytes that pass it.
  std::vector<double> utilisation;
  std::vector<Bytes> bytes;
  // The utilisation at the end of the colour scale, the same for all parts of the step.
  double scale_end = 1.0;
  // The length of the time that both are of, and its description: "mean over the step of 1.2 s".
  double seconds = 0.0;
  QString span_title;
  // True if the time is a part of the step.
  bool is_part = false;
  std::optional<sim::LinkIndex> bottleneck;
  // The number of links as busy as the bottleneck, itself included.
  std::size_t as_busy = 0;
  // Zero where the cluster has no two halves that reach each other.
  BytesPerSecond bisection;
  // The axis whose groups are shown; none: those of all axes.
  std::optional<Axis> axis;

  // The links that the groups of a rank send along, in the order of PlanGroups::of(); empty for
  // those that are not shown. They change with the rank and the axis that they are of.
  std::vector<std::vector<sim::LinkIndex>> routes;
  std::optional<std::int32_t> routed_rank;
  std::optional<Axis> routed_axis;

  std::optional<std::int32_t> rank() const { return selected ? selected : hovered; }
  bool shows(Axis of) const { return !axis || *axis == of; }
};

class TopologyPainter {
 public:
  TopologyPainter(QPainter& painter, const ClusterMap& map, const PlanGroups& groups,
                  const TopologyLayout& layout, const TopologyScene& scene, const Colours& colours);

  // Paints the part of the cluster in view into `plot`, its description into `panel`, and the scale
  // of colours alone into `strip` where there is no panel.
  void paint(const QRectF& plot, const QRectF& panel, const QRectF& strip = {});

 private:
  struct Load {
    double share = 0.0;
    sim::LinkIndex link = 0;
  };

  Load load_of(const MapLine& line) const;
  void paint_map();
  void paint_lines();
  // Draws the ways of the groups of the rank that stands out beside the lines, in the colours of
  // their axes.
  void draw_way(const std::vector<QPointF>& points);
  void paint_group_routes();
  void paint_item(const MapItem& item);
  void paint_gpu(const MapItem& item);
  void paint_rank_number(const MapItem& item);
  void paint_badge(const QPointF& corner, Axis axis);
  void paint_stack(const MapItem& item);
  void paint_hidden_members(const MapItem& item);
  void paint_bottleneck();
  void paint_busiest_load(double share, double y);
  void paint_panel(const QRectF& panel);
  double paint_scale(const QRectF& panel, double y);
  void paint_scale_beside_title(const QRectF& strip);
  // Paints the colours with their numbers below, and returns the place under them.
  double paint_colours(const QPointF& corner, double width);
  QString busiest_title(bool is_marked) const;
  double paint_bottleneck_text(const QRectF& panel, double y);
  double paint_bisection(const QRectF& panel, double y);
  void paint_groups(const QRectF& panel, double y);
  double paint_text(const QRectF& panel, double y, const QString& text, const QColor& colour,
                    const QFont& font);
  bool shows(Axis axis) const { return scene_.shows(axis); }
  // Names accelerators as the cluster has them.
  QString in_words(const QString& text) const;

  QPainter& painter_;
  const ClusterMap& map_;
  const PlanGroups& groups_;
  const TopologyLayout& layout_;
  const TopologyScene& scene_;
  const Colours& colours_;
  std::vector<AxisGroup> rank_groups_;
  QFont font_, bold_, small_;
};

// Returns the letters in which a number fits into this height when it is turned; none if they could
// not be read.
std::optional<QFont> upright_font(const QString& number, double height);

// Returns the colour of a load, from 0 to 1 of the end of the scale: the higher, the further from
// the background in lightness, so that it reads in grey and with colour vision deficiencies.
QColor sequential_colour(double share, bool dark);

// Returns the end of the colour scale: the least of 5, 10, 20, 50 and 100 % that the highest
// utilisation does not exceed.
double scale_end(double highest);

// Returns the place of a load on the colour scale, from 0 to 1. It grows with the square root of
// the load, so that the means of a step can be told apart on the scale of its bursts.
double place_on_scale(double load, double end);

// Returns the width of a line of the highest load, in pixels: less where lines run beside each
// other so closely that they would read as one.
double widest_line(const TopologyLayout& layout);

// "81 % of 50 GB/s".
QString load_text(const ClusterMap& map, const TopologyScene& scene, sim::LinkIndex link);

// "NIC 0 of node 3 → leaf 0: 81 % of 50 GB/s".
QString link_load_text(const ClusterMap& map, const TopologyScene& scene, sim::LinkIndex link);

}  // namespace shardwright::gui
