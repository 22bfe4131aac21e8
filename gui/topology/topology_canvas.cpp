#include "gui/topology/topology_canvas.hpp"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>

#include "gui/models/text.hpp"
#include "gui/painting/focus_frame.hpp"

namespace shardwright::gui {
namespace {

constexpr double kMargin = 12.0;
constexpr double kPanelWidth = 250.0;
constexpr double kLeastWidthWithPanel = 640.0;

QRectF map_area(const QSizeF& size) {
  const double panel = size.width() > kLeastWidthWithPanel ? kPanelWidth + 2.0 * kMargin : 0.0;
  return {kMargin, kMargin, size.width() - panel - 2.0 * kMargin, size.height() - 2.0 * kMargin};
}

QRectF panel_area(const QSizeF& size) {
  if (size.width() <= kLeastWidthWithPanel) return {};
  return {size.width() - kPanelWidth - kMargin, kMargin, kPanelWidth,
          size.height() - 2.0 * kMargin};
}

}  // namespace

TopologyCanvas::TopologyCanvas(QWidget* parent)
    : QWidget(parent), colours_(colours_for(palette())) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(QStringLiteral("Topology of the cluster"));
  setMinimumSize(300, 300);
}

void TopologyCanvas::set_plan(const ClusterSpec& cluster, const Plan& plan,
                              const Timeline* timeline) {
  auto map = std::make_unique<ClusterMap>(cluster, plan.world_size());
  map_ = std::move(map);
  groups_.emplace(plan);
  traffic_ = timeline == nullptr ? LinkTraffic() : LinkTraffic(*map_, plan, *timeline);
  scene_ = {};
  first_gpu_ = 0;
  if (timeline == nullptr) {
    scene_.utilisation.assign(map_->topology().links().size(), 0.0);
    scene_.bytes.assign(scene_.utilisation.size(), Bytes());
    scene_.span_title = QStringLiteral("no timeline: links are idle");
  } else {
    double end = 0.0;
    for (const Span& span : timeline->spans) end = std::max(end, span.end().value());
    step_ = end;
    clear_range();
  }
  show_bottleneck();
}

void TopologyCanvas::clear() {
  map_.reset();
  groups_.reset();
  traffic_ = {};
  scene_ = {};
  layout_ = {};
  update();
}

void TopologyCanvas::load_links(double from, double to, const QString& title) {
  if (!map_ || traffic_.end() <= 0.0) return;
  scene_.seconds = to - from;
  scene_.bytes = traffic_.bytes(from, to);
  scene_.utilisation = utilisation(*map_, scene_.bytes, scene_.seconds);
  scene_.bottleneck = busiest_link(scene_.utilisation);
  scene_.as_busy = links_as_busy(scene_.utilisation);
  scene_.span_title = title;
  update();
}

void TopologyCanvas::select_range(double from, double to) {
  if (to <= from) return clear_range();
  load_links(from, to,
             QStringLiteral("from %1 ms to %2 ms")
                 .arg(fixed_text(from * 1e3, 3), fixed_text(to * 1e3, 3)));
}

void TopologyCanvas::clear_range() {
  load_links(0.0, step_, QStringLiteral("mean over the step of %1").arg(time_text(Seconds(step_))));
}

void TopologyCanvas::select_rank(int rank) {
  if (!map_ || rank < 0 || rank >= groups_->world_size()) return;
  const bool same = scene_.pinned && scene_.rank == rank;
  scene_.rank = rank;
  scene_.pinned = true;
  const std::uint32_t domain = static_cast<std::uint32_t>(rank) / map_->domain_size();
  if (domain < layout_.first_domain || domain >= layout_.first_domain + layout_.shown_domains)
    show_domain(domain);
  update();
  if (!same) Q_EMIT rank_selected(rank);
}

void TopologyCanvas::clear_rank() {
  if (!scene_.rank) return;
  const bool pinned = std::exchange(scene_.pinned, false);
  scene_.rank.reset();
  update();
  if (pinned) Q_EMIT rank_cleared();
}

void TopologyCanvas::show_domain(std::int64_t first) {
  first_domain_ = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(first, 0, static_cast<std::int64_t>(map_->domains()) - 1));
  lay_out_again();
}

void TopologyCanvas::show_gpus(std::int64_t first) {
  first_gpu_ = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(first, 0, static_cast<std::int64_t>(map_->domain_size()) - 1));
  lay_out_again();
}

// The domain of the busiest link's lower end.
void TopologyCanvas::show_bottleneck() {
  std::int64_t domain = 0;
  if (scene_.bottleneck) {
    const sim::TopologyLink& link = map_->topology().links()[*scene_.bottleneck];
    const auto per_domain = static_cast<std::int64_t>(map_->domain_size());
    const sim::VertexIndex inner = std::min(link.from, link.to);
    const auto kind = map_->topology().vertices()[inner];
    if (kind == sim::VertexKind::Accelerator) {
      domain = inner / per_domain;
    } else if (kind == sim::VertexKind::Nic) {
      for (const sim::LinkIndex each : map_->links_from(inner)) {
        if (map_->level(each) == LinkLevel::HostBus)
          domain = map_->topology().links()[each].to / per_domain;
      }
    }
  }
  show_domain(domain);
}

void TopologyCanvas::lay_out_again() {
  if (map_) layout_ = lay_out(*map_, map_area(QSizeF(size())), first_domain_, first_gpu_);
  update();
}

void TopologyCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), colours_.base);
  if (!map_) return;
  TopologyPainter(painter, *map_, *groups_, layout_, scene_, colours_)
      .paint(panel_area(QSizeF(size())));
  if (hasFocus()) paint_focus(painter, rect(), colours_);
}

void TopologyCanvas::resizeEvent(QResizeEvent*) {
  lay_out_again();
}

bool TopologyCanvas::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), tool_tip_at(help->pos()), this);
    return true;
  }
  if (event->type() == QEvent::Leave && scene_.rank && !scene_.pinned) clear_rank();
  return QWidget::event(event);
}

QString TopologyCanvas::tool_tip_at(const QPointF& position) const {
  if (!map_) return {};
  const auto item = layout_.item_at(position);
  if (item && layout_.items[*item].kind != ItemKind::Domain) {
    const MapItem& at = layout_.items[*item];
    if (at.kind == ItemKind::Gpu)
      return QStringLiteral("<b>rank %1</b><br>stage %2")
          .arg(at.first)
          .arg(at.first < map_->ranks() ? QString::number(groups_->stage_of(at.first))
                                        : QStringLiteral("none: not used by the plan"));
    return at.vertex ? map_->vertex_name(*at.vertex) : at.label.simplified();
  }
  const auto line = layout_.line_at(position);
  if (!line && item) return domain_text(*map_, *groups_, layout_.items[*item]);
  if (!line) return {};
  const MapLine& at = layout_.lines[*line];
  if (at.links.size() > 2) {
    const sim::LinkIndex busiest = *std::max_element(
        at.links.begin(), at.links.end(),
        [&](auto a, auto b) { return scene_.utilisation[a] < scene_.utilisation[b]; });
    return QStringLiteral("%1 links, the busiest<br>%2")
        .arg(at.links.size() / 2)
        .arg(link_load_text(*map_, scene_, busiest));
  }
  QStringList text;
  for (const sim::LinkIndex link : at.links)
    text.append(link_load_text(*map_, scene_, link) + QStringLiteral(", ") +
                bytes_text(scene_.bytes[link]));
  return text.join(QStringLiteral("<br>"));
}

void TopologyCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (!map_ || scene_.pinned) return;
  const auto item = layout_.item_at(event->position());
  std::optional<std::int32_t> rank;
  if (item && layout_.items[*item].kind == ItemKind::Gpu &&
      layout_.items[*item].first < map_->ranks())
    rank = static_cast<std::int32_t>(layout_.items[*item].first);
  if (rank == scene_.rank) return;
  scene_.rank = rank;
  update();
}

void TopologyCanvas::mousePressEvent(QMouseEvent* event) {
  if (!map_ || event->button() != Qt::LeftButton) return;
  const auto index = layout_.item_at(event->position());
  if (!index) return clear_rank();
  const MapItem& item = layout_.items[*index];
  switch (item.kind) {
    case ItemKind::Gpu:
      return select_rank(static_cast<int>(item.first));
    case ItemKind::MoreDomains: {
      const std::uint32_t next = layout_.first_domain + layout_.shown_domains;
      return show_domain(next < map_->domains() ? next : 0);
    }
    case ItemKind::MoreGpus:
      return show_gpus(first_gpu_ + (map_->domain_size() - item.count) < map_->domain_size()
                           ? first_gpu_ + (map_->domain_size() - item.count)
                           : 0);
    default:
      return clear_rank();
  }
}

void TopologyCanvas::keyPressEvent(QKeyEvent* event) {
  if (!map_) return QWidget::keyPressEvent(event);
  const auto toggle = [this](Axis axis) {
    scene_.axis = scene_.axis == axis ? std::nullopt : std::optional(axis);
    update();
  };
  const auto page = static_cast<std::int64_t>(layout_.shown_domains);
  switch (event->key()) {
    case Qt::Key_T:
      return toggle(Axis::Tensor);
    case Qt::Key_C:
      return toggle(Axis::Context);
    case Qt::Key_E:
      return toggle(Axis::Expert);
    case Qt::Key_D:
      return toggle(Axis::Data);
    case Qt::Key_P:
      return toggle(Axis::Pipeline);
    case Qt::Key_Right:
      return show_domain(
          std::min<std::int64_t>(layout_.first_domain + page, map_->domains() - page));
    case Qt::Key_Left:
      return show_domain(layout_.first_domain - page);
    case Qt::Key_Down:
      return show_gpus(first_gpu_ + 8);
    case Qt::Key_Up:
      return show_gpus(std::int64_t{first_gpu_} - 8);
    case Qt::Key_B:
    case Qt::Key_Home:
      return show_bottleneck();
    case Qt::Key_Escape:
      return clear_rank();
    default:
      QWidget::keyPressEvent(event);
  }
}

void TopologyCanvas::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  colours_ = colours_for(palette());
  update();
}

}  // namespace shardwright::gui
