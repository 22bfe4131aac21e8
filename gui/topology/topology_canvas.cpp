#include "gui/topology/topology_canvas.hpp"

#include <algorithm>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/topology/group_routes.hpp"
#include "gui/topology/node_map.hpp"

namespace shardwright::gui {
namespace {

constexpr double kMargin = 12.0;
constexpr double kPanelWidth = 250.0;
constexpr double kLeastWidthWithPanel = 640.0;
// A smaller viewport shows a part of the map.
constexpr QSizeF kLeastMap(300.0, 270.0);

// The height of the scale of colours below the map where there is no panel.
constexpr double kStripHeight = 38.0;

QRectF panel_area(const QSizeF& size) {
  if (size.width() <= kLeastWidthWithPanel) return {};
  return {size.width() - kPanelWidth - kMargin, kMargin, kPanelWidth,
          size.height() - 2.0 * kMargin};
}

// A strip below the map; empty where the panel has the scale.
QRectF scale_area(const QSizeF& size) {
  if (!panel_area(size).isEmpty()) return {};
  return {kMargin, size.height() - kStripHeight, size.width() - 2.0 * kMargin, kStripHeight};
}

}  // namespace

TopologyCanvas::TopologyCanvas(QWidget* parent)
    : NavigableView(u"Topology of the cluster"_s, Zoom::Both, parent) {
  add_keys();
}

void TopologyCanvas::add_keys() {
  on_keys({Qt::Key_T}, [this] { toggle(Axis::Tensor); });
  on_keys({Qt::Key_C}, [this] { toggle(Axis::Context); });
  on_keys({Qt::Key_E}, [this] { toggle(Axis::Expert); });
  on_keys({Qt::Key_D}, [this] { toggle(Axis::Data); });
  on_keys({Qt::Key_P}, [this] { toggle(Axis::Pipeline); });
  on_keys({Qt::Key_Right}, [this] { turn_page(1); });
  on_keys({Qt::Key_Left}, [this] { turn_page(-1); });
  on_keys({Qt::Key_Down}, [this] { show_gpus(first_gpu_ + 8); });
  on_keys({Qt::Key_Up}, [this] { show_gpus(std::int64_t{first_gpu_} - 8); });
  on_keys({Qt::Key_B}, [this] { show_bottleneck(); });
  on_keys({Qt::Key_Home}, [this] {
    show_bottleneck();
    fit();
  });
}

void TopologyCanvas::turn_page(int pages) {
  const std::int64_t page = layout_.shown_domains, last = step_->map.domains() - page;
  show_domain(std::min(layout_.first_domain + pages * page, last));
}

QRectF TopologyCanvas::plot() const {
  const QSizeF size = room();
  const QRectF panel = panel_area(size);
  if (panel.isEmpty()) return {0.0, 0.0, size.width(), size.height() - kStripHeight};
  return {0.0, 0.0, panel.left() - kMargin, size.height()};
}

QSizeF TopologyCanvas::map_size() const {
  return plot().size().expandedTo(kLeastMap);
}

QSize TopologyCanvas::growth_of_picture() const {
  return ((map_size() - plot().size()) * unit()).toSize();
}

void TopologyCanvas::show_step(std::shared_ptr<const PlacedStep> step) {
  step_ = std::move(step);
  scene_ = {};
  scene_.bisection = step_->bisection;
  start_with(map_size());
  first_gpu_ = 0;
  clear_range();
  show_bottleneck();
}

void TopologyCanvas::clear() {
  step_.reset();
  scene_ = {};
  layout_ = {};
  viewport()->update();
}

void TopologyCanvas::load_links(double from, double to, const QString& title) {
  if (!step_) return;
  scene_.seconds = to - from;
  scene_.bytes = step_->traffic.bytes(from, to);
  scene_.utilisation = utilisation(step_->map, scene_.bytes, scene_.seconds);
  scene_.bottleneck = busiest_link(scene_.utilisation);
  // A range of Timeline may be shorter than the parts of the step, and its links busier.
  const double busiest = scene_.bottleneck ? scene_.utilisation[*scene_.bottleneck] : 0.0;
  scene_.scale_end = scale_end(std::max(step_->busiest, busiest));
  scene_.as_busy = links_as_busy(scene_.utilisation);
  scene_.span_title = title;
  scene_.is_part = from > 0.0 || to < step_->seconds;
  viewport()->update();
  Q_EMIT loaded();
}

QStringList TopologyCanvas::domain_names() const {
  QStringList names;
  for (std::uint32_t domain = 0; step_ && domain < step_->map.domains(); ++domain) {
    const std::uint32_t first = domain * step_->map.domain_size();
    const std::uint32_t last = std::min(first + step_->map.domain_size(), step_->map.ranks()) - 1;
    const std::int64_t before = step_->map.first_rank();
    const QString place =
        step_->map.domains() == step_->map.nodes() ? u"node %1"_s : u"NVLink domain %1"_s;
    names.append(first < step_->map.ranks()
                     ? place.arg(domain) + u", ranks %1–%2, stage %3"_s.arg(before + first)
                                               .arg(before + last)
                                               .arg(step_->groups.stage_of(first))
                     : place.arg(domain) + u", not used"_s);
  }
  return names;
}

void TopologyCanvas::select_range(double from, double to) {
  if (to <= from) return clear_range();
  const RangeText text = range_text(Seconds(from), Seconds(to));
  load_links(from, to, u"from %1 to %2"_s.arg(text.from, text.to));
}

void TopologyCanvas::clear_range() {
  if (!step_) return;
  const double whole = step_->seconds;
  load_links(0.0, whole,
             whole > 0.0 ? u"mean over the step of %1"_s.arg(time_text(Seconds(whole)))
                         : u"no timeline: all links are idle"_s);
}

void TopologyCanvas::select_rank(int rank) {
  if (step_) rank -= static_cast<int>(step_->map.first_rank());
  if (!step_ || rank < 0 || rank >= step_->groups.world_size()) return;
  const std::uint32_t domain = static_cast<std::uint32_t>(rank) / step_->map.domain_size();
  if (domain < layout_.first_domain || domain >= layout_.first_domain + layout_.shown_domains)
    show_domain(domain);
  select(rank);
}

void TopologyCanvas::selection_changed() {
  if (scene_.selected)
    Q_EMIT rank_selected(*scene_.selected + static_cast<int>(step_->map.first_rank()));
}

void TopologyCanvas::show_domain(std::int64_t first) {
  first_domain_ = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(first, 0, static_cast<std::int64_t>(step_->map.domains()) - 1));
  lay_out_again();
}

void TopologyCanvas::show_gpus(std::int64_t first) {
  first_gpu_ = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(first, 0, static_cast<std::int64_t>(step_->map.domain_size()) - 1));
  lay_out_again();
}

// The domain of the busiest link's lower end.
void TopologyCanvas::show_bottleneck() {
  std::int64_t domain = 0;
  if (scene_.bottleneck) {
    const sim::TopologyLink& link = step_->map.topology().links()[*scene_.bottleneck];
    const auto per_domain = static_cast<std::int64_t>(step_->map.domain_size());
    const sim::VertexIndex inner = std::min(link.from, link.to);
    const auto kind = step_->map.topology().vertices()[inner];
    if (kind == sim::VertexKind::Accelerator) {
      domain = inner / per_domain;
    } else if (kind == sim::VertexKind::Nic) {
      for (const sim::LinkIndex each : step_->map.links_from(inner)) {
        if (step_->map.level(each) == LinkLevel::HostBus)
          domain = step_->map.topology().links()[each].to / per_domain;
      }
    }
  }
  show_domain(domain);
}

void TopologyCanvas::lay_out() {
  start_with(map_size());
  lay_out_again();
}

void TopologyCanvas::lay_out_again() {
  const QRectF area(QPointF(kMargin, kMargin), map_size() - QSizeF(2.0 * kMargin, 2.0 * kMargin));
  if (step_) layout_ = gui::lay_out(step_->map, area, first_domain_, first_gpu_);
  viewport()->update();
}

QPointF TopologyCanvas::layout_place(const QPointF& position) const {
  const QRectF area = plot();
  return {scene_.window.value_at(position.x(), area.width()),
          scene_.rows.value_at(position.y(), area.height())};
}

void TopologyCanvas::find_routes() {
  if (scene_.rank() == scene_.routed_rank && scene_.axis == scene_.routed_axis) return;
  scene_.routed_rank = scene_.rank();
  scene_.routed_axis = scene_.axis;
  scene_.routes.clear();
  if (!scene_.rank()) return;
  for (const AxisGroup& group : step_->groups.of(*scene_.rank()))
    scene_.routes.push_back(scene_.shows(group.axis) ? links_of(step_->map, group)
                                                     : std::vector<sim::LinkIndex>());
}

void TopologyCanvas::paint(QPainter& painter) {
  find_routes();
  TopologyPainter(painter, step_->map, step_->groups, layout_, scene_, colours())
      .paint(plot(), panel_area(room()), scale_area(room()));
}

std::optional<std::int32_t> TopologyCanvas::item_at(const QPointF& position) const {
  if (!step_ || !plot().contains(position)) return std::nullopt;
  const auto index = layout_.item_at(layout_place(position));
  if (!index) return std::nullopt;
  const MapItem& item = layout_.items[*index];
  if (item.kind != ItemKind::Gpu || item.first >= step_->map.ranks()) return std::nullopt;
  return static_cast<std::int32_t>(item.first);
}

QString TopologyCanvas::tool_tip_at(const QPointF& position) const {
  if (!plot().contains(position)) return {};
  const auto item = layout_.item_at(layout_place(position));
  if (item && layout_.items[*item].kind != ItemKind::Domain) {
    const MapItem& at = layout_.items[*item];
    if (at.kind == ItemKind::Gpu) {
      const bool is_used = at.first < step_->map.ranks();
      return tip_of(u"rank %1"_s.arg(step_->map.first_rank() + at.first), at.first,
                    {{u"stage"_s, is_used ? QString::number(step_->groups.stage_of(at.first))
                                          : u"none, the plan does not use it"_s}});
    }
    return at.vertex ? tip_of(step_->map.vertex_name(*at.vertex), *at.vertex)
                     : at.label.simplified();
  }
  if (const auto links = layout_.links_at(layout_place(position)); !links.empty())
    return tip_of(links);
  return item ? tip_of(layout_.items[*item]) : QString();
}

TipLine TopologyCanvas::line_of(sim::LinkIndex link) const {
  return {step_->map.link_name(link),
          load_text(step_->map, scene_, link) + u", "_s + bytes_text(scene_.bytes[link])};
}

QString TopologyCanvas::tip_of(const QString& title, sim::VertexIndex vertex,
                               std::vector<TipLine> lines) const {
  std::optional<sim::LinkIndex> busiest;
  for (const sim::LinkIndex out : step_->map.links_from(vertex)) {
    for (const sim::LinkIndex link : {out, ClusterMap::way_back(out)})
      if (!busiest || scene_.utilisation[link] > scene_.utilisation[*busiest]) busiest = link;
  }
  if (busiest) {
    const TipLine line = line_of(*busiest);
    lines.push_back({u"busiest link, "_s + line.what, line.value});
  }
  return tool_tip(title, simulated_step(), lines);
}

QString TopologyCanvas::tip_of(const MapItem& domain) const {
  const double load = domain_load(step_->map, scene_.utilisation, domain.first);
  return tool_tip(domain_text(step_->map, step_->groups, domain), simulated_step(),
                  {{u"busiest link"_s, u"%1 of its capacity"_s.arg(share_text(load))}});
}

QString TopologyCanvas::tip_of(const std::vector<sim::LinkIndex>& links) const {
  if (links.size() > 2) {
    const sim::LinkIndex busiest = *std::max_element(
        links.begin(), links.end(),
        [&](auto a, auto b) { return scene_.utilisation[a] < scene_.utilisation[b]; });
    return tool_tip(u"%1 links, the busiest of them"_s.arg(links.size() / 2), simulated_step(),
                    {line_of(busiest)});
  }
  std::vector<TipLine> lines;
  for (const sim::LinkIndex link : links) lines.push_back(line_of(link));
  return tool_tip(lines.size() == 1 ? u"link"_s : u"link, both ways"_s, simulated_step(), lines);
}

// A double click on an item counts as a second click on it.
bool TopologyCanvas::double_click_fits_at(const QPointF& position) const {
  const auto item = layout_.item_at(layout_place(position));
  return !item || layout_.items[*item].kind == ItemKind::Domain;
}

void TopologyCanvas::click(const QPointF& position) {
  const auto index =
      plot().contains(position) ? layout_.item_at(layout_place(position)) : std::nullopt;
  if (!index) return clear_selection();
  const MapItem& item = layout_.items[*index];
  if (item.kind == ItemKind::MoreDomains) {
    const std::uint32_t next = layout_.first_domain + layout_.shown_domains;
    return show_domain(next < step_->map.domains() ? next : 0);
  }
  if (item.kind == ItemKind::MoreGpus) {
    const std::uint32_t next = first_gpu_ + step_->map.domain_size() - item.count;
    return show_gpus(next < step_->map.domain_size() ? next : 0);
  }
  NavigableView::click(position);
}

void TopologyCanvas::toggle(Axis axis) {
  scene_.axis = scene_.axis == axis ? std::nullopt : std::optional(axis);
  viewport()->update();
}

}  // namespace shardwright::gui
