#include "gui/topology/topology_layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/topology/link_tracks.hpp"

namespace shardwright::gui {
namespace {

using sim::LinkIndex;
using sim::VertexIndex;
using sim::VertexKind;

// The names of the levels at the left, with the gap beside them.
constexpr double kLevelsWidth = 74.0, kLevelsGap = 6.0, kLevelHeight = 20.0;
// The distance between a note and the names of the levels.
constexpr double kApart = 1.0;
// The least width of a domain that is drawn whole, and the width of the stack of all others.
constexpr double kLeastDomain = 190.0, kStackWidth = 96.0;
constexpr double kGap = 14.0;
// The title stands at the bottom of its domain.
constexpr double kTitleHeight = 24.0;
// The least width of a GPU with its gap, and the most GPUs of a domain.
constexpr double kLeastGpu = 20.0;
constexpr std::uint32_t kMostGpus = 16;
constexpr double kMostDomainHeight = 190.0;
constexpr double kSwitchHeight = 24.0;
// The gap below the lowest switches, as a multiple of the mean gap.
constexpr double kLowestGap = 1.4;
constexpr double kMostSwitchWidth = 88.0, kLeastSwitchWidth = 30.0;
// The mouse points at a line within this distance.
constexpr double kNear = 5.0;

double distance(const QPointF& point, const QPointF& a, const QPointF& b) {
  const QPointF way = b - a;
  const double length = QPointF::dotProduct(way, way);
  const double along =
      length > 0.0 ? std::clamp(QPointF::dotProduct(point - a, way) / length, 0.0, 1.0) : 0.0;
  const QPointF off = point - (a + along * way);
  return std::hypot(off.x(), off.y());
}

double distance(const QPointF& point, const MapLine& line) {
  double least = distance(point, line.points[0], line.points[1]);
  for (std::size_t i = 2; i < line.points.size(); ++i)
    least = std::min(least, distance(point, line.points[i - 1], line.points[i]));
  return least;
}

class Builder {
 public:
  Builder(const ClusterMap& map, const QRectF& area, std::uint32_t first_gpu)
      : map_(map), first_gpu_(first_gpu) {
    layout_.area = area;
  }

  TopologyLayout build(std::uint32_t first_domain) {
    const double width = layout_.area.width() - kLevelsWidth;
    const auto fit =
        static_cast<std::uint32_t>(std::max(1.0, (width - kStackWidth) / kLeastDomain));
    const std::uint32_t domains = map_.domains();
    shown_ = std::min(domains, std::max(1U, fit));
    has_stack_ = shown_ < domains;
    layout_.shown_domains = shown_;
    layout_.first_domain = std::min(first_domain, domains - shown_);
    place_rows();
    for (std::uint32_t i = 0; i < shown_; ++i) add_domain(i);
    if (has_stack_) add_more_domains();
    add_fabric();
    return std::move(layout_);
  }

 private:
  const std::vector<sim::TopologyLink>& links() const { return map_.topology().links(); }

  // The levels share the height: the domains at the bottom, the switches above.
  void place_rows() {
    const std::size_t levels =
        map_.switches().empty() ? (has_torus() ? 1 : 0) : map_.switches().size();
    const double height = layout_.area.height();
    domain_height_ = std::min(kMostDomainHeight, levels == 0 ? height : 0.5 * height);
    const double room = height - domain_height_;
    const auto gaps = static_cast<double>(levels);
    const double mean = levels == 0 ? 0.0 : std::min(120.0, room / gaps);
    // Most links end at the lowest switches, which have more room below them than others.
    const double lowest = levels > 1 ? kLowestGap * mean : mean;
    const double other = levels > 1 ? (gaps * mean - lowest) / (gaps - 1.0) : 0.0;
    // The rest of the height is shared above and below.
    const double used = domain_height_ + mean * gaps;
    domain_top_ = layout_.area.bottom() - domain_height_ - 0.5 * (height - used);
    for (std::size_t level = 0; level < levels; ++level)
      level_y_.push_back(domain_top_ - lowest - other * static_cast<double>(level) +
                         0.5 * kSwitchHeight);
  }

  bool has_torus() const {
    const auto& vertices = map_.topology().vertices();
    return !vertices.empty() && vertices.back() == VertexKind::TorusRouter;
  }

  QRectF domain_box(std::uint32_t i) const {
    const double left = layout_.area.left() + kLevelsWidth;
    const double right = layout_.area.right() - (has_stack_ ? kStackWidth + kGap : 0.0);
    const double pitch = std::min((right - left + kGap) / shown_, 460.0);
    return {left + pitch * i, domain_top_, pitch - kGap, domain_height_};
  }

  void add_item(MapItem item) {
    if (item.vertex) item_of_vertex_[*item.vertex] = layout_.items.size();
    layout_.items.push_back(std::move(item));
  }

  std::uint32_t domain_end(std::uint32_t domain) const {
    return std::min((domain + 1) * map_.domain_size(), map_.topology().accelerators());
  }

  QString domain_title(std::uint32_t domain) const {
    const auto per_node = static_cast<std::uint32_t>(map_.cluster().node.accelerators);
    if (map_.domain_size() <= per_node) return u"node %1"_s.arg(domain);
    return u"domain %1"_s.arg(domain);
  }

  void add_domain(std::uint32_t index) {
    const std::uint32_t domain = layout_.first_domain + index;
    const QRectF box = domain_box(index);
    const std::uint32_t first = domain * map_.domain_size(), end = domain_end(domain);
    add_item({ItemKind::Domain, box, domain_title(domain), {}, domain, 1});
    const double inner = box.width() - 16.0;
    const auto fit = static_cast<std::uint32_t>(std::max(1.0, inner / kLeastGpu));
    const std::uint32_t gpus = end - first;
    const std::uint32_t cells = std::min({gpus, fit, kMostGpus});
    const bool folded = cells < gpus;
    const std::uint32_t shown = folded ? std::max(1U, cells - 2) : cells;
    const std::uint32_t from = std::min(first_gpu_, gpus - shown);
    const double pitch = inner / (shown + (folded ? 2 : 0));
    // The parts from the top are NICs, GPUs, switch and title; no line crosses the title there.
    const double nic_y = box.top() + 8.0, nic_height = 13.0;
    const double switch_height = 20.0, switch_y = box.bottom() - switch_height - kTitleHeight;
    const double gpu_y = nic_y + nic_height + 20.0;
    const double gpu_height = std::max(14.0, switch_y - gpu_y - 20.0);
    const double cell = std::min(pitch - 4.0, 48.0);
    std::vector<VertexIndex> gpu_vertices;
    for (std::uint32_t i = 0; i < shown; ++i) {
      const VertexIndex gpu = first + from + i;
      const double left = box.left() + 8.0 + pitch * (i + 0.5) - cell / 2.0;
      add_item({ItemKind::Gpu,
                {left, gpu_y, cell, gpu_height},
                QString::number(map_.first_rank() + gpu),
                gpu,
                gpu,
                1});
      gpu_vertices.push_back(gpu);
    }
    if (folded) {
      const QRectF more(box.left() + 8.0 + pitch * shown + 2.0, gpu_y, 2.0 * pitch - 4.0,
                        gpu_height);
      more_gpus_[domain] = layout_.items.size();
      add_item({ItemKind::MoreGpus, more, u"+%1"_s.arg(gpus - shown), {}, first, gpus - shown});
    }
    add_scale_up({box.left() + 8.0, switch_y, inner, switch_height}, gpu_vertices);
    add_nics(gpu_vertices, nic_y, nic_height);
  }

  // One bar stands for the switch, or for the direct links among accelerators.
  void add_scale_up(const QRectF& bar, const std::vector<VertexIndex>& gpus) {
    std::optional<VertexIndex> vertex;
    for (const VertexIndex gpu : gpus) {
      MapLine line;
      const QRectF box = layout_.items[item_of_vertex_.at(gpu)].box;
      line.points = {{box.center().x(), box.bottom()}, {box.center().x(), bar.top()}};
      for (const LinkIndex link : map_.links_from(gpu)) {
        if (map_.level(link) != LinkLevel::ScaleUp) continue;
        line.links.push_back(link);
        line.links.push_back(ClusterMap::way_back(link));
        if (map_.topology().vertices()[links()[link].to] == VertexKind::ScaleUpSwitch)
          vertex = links()[link].to;
      }
      if (!line.links.empty()) layout_.lines.push_back(std::move(line));
    }
    add_item({ItemKind::ScaleUpSwitch, bar, to_qstring(map_.cluster().node.scale_up.name), vertex});
  }

  // A NIC stands above the first of its accelerators that are drawn.
  void add_nics(const std::vector<VertexIndex>& gpus, double y, double height) {
    for (const VertexIndex gpu : gpus) {
      for (const LinkIndex link : map_.links_from(gpu)) {
        if (map_.level(link) != LinkLevel::HostBus) continue;
        const VertexIndex nic = links()[link].to;
        const QRectF box = layout_.items[item_of_vertex_.at(gpu)].box;
        if (!item_of_vertex_.contains(nic)) {
          const double width = std::min(20.0, box.width());
          add_item(
              {ItemKind::Nic, {box.center().x() - width / 2.0, y, width, height}, QString(), nic});
        }
        const QRectF nic_box = layout_.items[item_of_vertex_.at(nic)].box;
        layout_.lines.push_back(
            {{{nic_box.center().x(), nic_box.bottom()}, {box.center().x(), box.top()}},
             {link, ClusterMap::way_back(link)}});
      }
    }
  }

  void add_more_domains() {
    const QRectF last = domain_box(shown_ - 1);
    const std::uint32_t hidden = map_.domains() - shown_;
    const bool nodes =
        map_.domain_size() <= static_cast<std::uint32_t>(map_.cluster().node.accelerators);
    add_item({ItemKind::MoreDomains,
              {last.right() + kGap, last.top(), kStackWidth, last.height()},
              u"%1 more\n%2%3"_s.arg(count_text(hidden), nodes ? u"node"_s : u"domain"_s,
                                     hidden == 1 ? QString() : u"s"_s),
              {},
              0,
              hidden});
    more_domains_ = layout_.items.size() - 1;
  }

  void add_fabric() {
    if (map_.switches().empty()) {
      if (has_torus()) add_torus();
      add_level_labels();
      return;
    }
    std::vector<VertexIndex> below;
    for (const MapItem& item : layout_.items) {
      if (item.kind == ItemKind::Nic) below.push_back(*item.vertex);
    }
    for (std::size_t level = 0; level < map_.switches().size(); ++level) {
      std::vector<VertexIndex> here;
      for (const VertexIndex vertex : below) {
        for (const LinkIndex link : map_.links_from(vertex)) {
          const VertexIndex up = links()[link].to;
          if (map_.switch_level(up) == static_cast<int>(level)) here.push_back(up);
        }
      }
      std::sort(here.begin(), here.end());
      here.erase(std::unique(here.begin(), here.end()), here.end());
      add_switch_level(level, here);
      below = here;
    }
    add_fabric_lines();
    add_level_labels();
  }

  void add_switch_level(std::size_t level, std::vector<VertexIndex>& here) {
    const auto& all = map_.switches()[level];
    const double left = layout_.area.left() + kLevelsWidth, right = domain_box(shown_ - 1).right();
    const double width = right - left;
    const auto fit = static_cast<std::size_t>(std::max(1.0, width / (kLeastSwitchWidth + 6.0)));
    if (here.size() > fit) here.resize(fit);
    const double pitch = width / static_cast<double>(std::max<std::size_t>(1, here.size()));
    const double box = std::min(kMostSwitchWidth, pitch - 6.0);
    for (std::size_t i = 0; i < here.size(); ++i) {
      const QString title = map_.vertex_name(here[i]);
      add_item({ItemKind::Switch,
                {left + pitch * (static_cast<double>(i) + 0.5) - box / 2.0,
                 level_y_[level] - kSwitchHeight / 2.0, box, kSwitchHeight},
                box > 60.0 ? title : title.section(QLatin1Char(' '), 1),
                here[i]});
    }
    const auto hidden = static_cast<std::uint32_t>(all.size() - here.size());
    if (hidden == 0) return;
    const double stack_left = has_stack_ ? right + kGap : right - kStackWidth;
    add_item({ItemKind::MoreSwitches,
              {stack_left, level_y_[level] - kSwitchHeight / 2.0, kStackWidth, kSwitchHeight},
              u"%1 more"_s.arg(count_text(hidden)),
              {},
              static_cast<std::uint32_t>(level),
              hidden});
    more_switches_[level] = layout_.items.size() - 1;
  }

  // Returns the item that stands for a vertex: its own, or the stack that hides it.
  std::optional<std::size_t> item_of(VertexIndex vertex) const {
    const auto own = item_of_vertex_.find(vertex);
    if (own != item_of_vertex_.end()) return own->second;
    const int level = map_.switch_level(vertex);
    if (level >= 0) {
      const auto stack = more_switches_.find(static_cast<std::size_t>(level));
      return stack == more_switches_.end() ? std::nullopt : std::optional(stack->second);
    }
    return map_.topology().vertices()[vertex] == VertexKind::Nic ? stack_of(vertex) : std::nullopt;
  }

  // Returns the stack that hides a NIC: the folded part of its domain, or that of all other
  // domains.
  std::optional<std::size_t> stack_of(VertexIndex nic) const {
    for (const LinkIndex link : map_.links_from(nic)) {
      if (map_.level(link) != LinkLevel::HostBus) continue;
      const auto folded = more_gpus_.find(links()[link].to / map_.domain_size());
      if (folded != more_gpus_.end()) return folded->second;
    }
    return more_domains_;
  }

  // Links between the same two items become one line.
  void add_fabric_lines() {
    std::unordered_map<std::uint64_t, std::size_t> line_of_pair;
    // The lines to each level, by its height, and the boxes that they connect.
    std::map<double, std::pair<std::vector<std::size_t>, std::vector<ConnectedBoxes>>> levels;
    for (LinkIndex link = 0; link < links().size(); link += 2) {
      if (map_.level(link) != LinkLevel::Leaf && map_.level(link) != LinkLevel::Spine) continue;
      const auto lower = item_of(links()[link].from), upper = item_of(links()[link].to);
      if (!lower || !upper) continue;
      const std::uint64_t pair = (static_cast<std::uint64_t>(*lower) << 32U) | *upper;
      const auto [at, is_new] = line_of_pair.try_emplace(pair, layout_.lines.size());
      if (is_new) {
        const QRectF from = layout_.items[*lower].box, to = layout_.items[*upper].box;
        auto& [lines, boxes] = levels[to.top()];
        lines.push_back(layout_.lines.size());
        boxes.push_back({from, to});
        layout_.lines.emplace_back();
      }
      layout_.lines[at->second].links.push_back(link);
      layout_.lines[at->second].links.push_back(ClusterMap::way_back(link));
    }
    for (auto& [top, level] : levels) {
      const auto& [lines, boxes] = level;
      double floor = domain_top_;
      for (const ConnectedBoxes& each : boxes) floor = std::min(floor, each.lower.top());
      std::vector<std::vector<QPointF>> ways = ways_between(boxes, floor);
      for (std::size_t i = 0; i < lines.size(); ++i)
        layout_.lines[lines[i]].points = std::move(ways[i]);
    }
  }

  // Each router stands above its node; a bar stands for the links among all routers.
  void add_torus() {
    std::vector<VertexIndex> routers;
    std::vector<LinkIndex> all;
    for (LinkIndex link = 0; link < links().size(); ++link) {
      if (map_.level(link) == LinkLevel::Torus) all.push_back(link);
    }
    QString title = u"torus"_s;
    for (std::size_t axis = 0; axis < map_.topology().torus().size(); ++axis)
      title += u"%1%2"_s.arg(axis == 0 ? u" "_s : u"×"_s).arg(map_.topology().torus()[axis].nodes);
    const QRectF last = domain_box(shown_ - 1);
    const QRectF bar(layout_.area.left() + kLevelsWidth, level_y_[0] - kSwitchHeight / 2.0,
                     last.right() - layout_.area.left() - kLevelsWidth, kSwitchHeight);
    add_item({ItemKind::Switch, bar, title, {}});
    const std::vector<MapItem> items = layout_.items;
    for (const MapItem& item : items) {
      if (item.kind != ItemKind::Nic) continue;
      MapLine line{{{item.box.center().x(), item.box.top()}, {item.box.center().x(), bar.bottom()}},
                   {}};
      for (const LinkIndex link : map_.links_from(*item.vertex)) {
        if (map_.level(link) != LinkLevel::Leaf) continue;
        line.links.push_back(link);
        line.links.push_back(ClusterMap::way_back(link));
        for (const LinkIndex beyond : map_.links_from(links()[link].to)) {
          if (map_.level(beyond) != LinkLevel::Torus) continue;
          line.links.push_back(beyond);
          line.links.push_back(ClusterMap::way_back(beyond));
        }
      }
      layout_.lines.push_back(std::move(line));
    }
    if (!more_domains_) return;
    const QRectF stack = layout_.items[*more_domains_].box;
    layout_.lines.push_back(
        {{{stack.center().x(), stack.top()}, {bar.right(), bar.center().y()}}, std::move(all)});
  }

  void add_level_labels() {
    for (std::size_t level = 0; level < level_y_.size(); ++level) {
      const QString title =
          map_.switches().empty() ? u"torus"_s : ClusterMap::level_title(static_cast<int>(level));
      layout_.levels.push_back({title, level_y_[level]});
    }
    bool seen_nic = false, seen_gpu = false, seen_switch = false;
    for (const MapItem& item : layout_.items) {
      const auto label = [&](bool& seen, const QString& text) {
        if (!std::exchange(seen, true)) layout_.levels.push_back({text, item.box.center().y()});
      };
      if (item.kind == ItemKind::Nic) label(seen_nic, u"NIC"_s);
      if (item.kind == ItemKind::Gpu) label(seen_gpu, to_qstring(accelerator_word(map_.cluster())));
      if (item.kind == ItemKind::ScaleUpSwitch) label(seen_switch, u"scale-up"_s);
    }
  }

  const ClusterMap& map_;
  std::uint32_t first_gpu_;
  TopologyLayout layout_;
  std::uint32_t shown_ = 0;
  bool has_stack_ = false;
  double domain_top_ = 0.0, domain_height_ = 0.0;
  std::vector<double> level_y_;
  std::unordered_map<VertexIndex, std::size_t> item_of_vertex_;
  std::optional<std::size_t> more_domains_;
  // The stacks of GPUs by domain, and of switches by level.
  std::unordered_map<std::uint32_t, std::size_t> more_gpus_;
  std::unordered_map<std::size_t, std::size_t> more_switches_;
};

}  // namespace

QRectF TopologyLayout::box_of(const LevelLabel& level) const {
  return {area.left(), level.y - 0.5 * kLevelHeight, kLevelsWidth - kLevelsGap, kLevelHeight};
}

std::optional<QRectF> TopologyLayout::place_beside(double y, double height) const {
  const auto place = [&](double top) {
    const double lowest = std::max(area.top(), area.bottom() - height);
    return QRectF(area.left(), std::clamp(top, area.top(), lowest), kLevelsWidth - kLevelsGap,
                  height);
  };
  std::vector<QRectF> places = {place(y - 0.5 * height)};
  for (const LevelLabel& level : levels) {
    places.push_back(place(box_of(level).top() - height - kApart));
    places.push_back(place(box_of(level).bottom() + kApart));
  }
  std::erase_if(places, [this](const QRectF& each) {
    return std::any_of(levels.begin(), levels.end(),
                       [&](const LevelLabel& level) { return box_of(level).intersects(each); });
  });
  const auto nearest =
      std::min_element(places.begin(), places.end(), [y](const QRectF& a, const QRectF& b) {
        return std::abs(a.center().y() - y) < std::abs(b.center().y() - y);
      });
  return nearest == places.end() ? std::nullopt : std::optional(*nearest);
}

std::optional<std::size_t> TopologyLayout::item_at(const QPointF& point) const {
  std::optional<std::size_t> best;
  const auto size = [&](std::size_t i) { return items[i].box.width() * items[i].box.height(); };
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].box.contains(point) && (!best || size(i) < size(*best))) best = i;
  }
  return best;
}

std::vector<LinkIndex> TopologyLayout::links_at(const QPointF& point) const {
  constexpr double kOnEachOther = 0.5;
  std::vector<double> away;
  double nearest = kNear;
  for (const MapLine& line : lines)
    nearest = std::min(nearest, away.emplace_back(distance(point, line)));
  std::vector<LinkIndex> links;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (nearest < kNear && away[i] < nearest + kOnEachOther)
      links.insert(links.end(), lines[i].links.begin(), lines[i].links.end());
  }
  return links;
}

TopologyLayout lay_out(const ClusterMap& map, const QRectF& area, std::uint32_t first_domain,
                       std::uint32_t first_gpu) {
  return Builder(map, area, first_gpu).build(first_domain);
}

}  // namespace shardwright::gui
