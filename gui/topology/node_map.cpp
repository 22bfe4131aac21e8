#include "gui/topology/node_map.hpp"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/topology/topology_painter.hpp"

namespace shardwright::gui {
namespace {

constexpr const char* kTitle = "Each cell has the colour of its busiest link.";
constexpr double kMapMargin = 10.0, kBelowTitle = 8.0;
constexpr double kLargestCell = 48.0;
constexpr double kScaleWidth = 120.0, kBesideScale = 8.0;

double busiest_around(const ClusterMap& map, const std::vector<double>& utilisation,
                      sim::VertexIndex vertex) {
  double most = 0.0;
  for (const sim::LinkIndex link : map.links_from(vertex))
    most = std::max({most, utilisation[link], utilisation[ClusterMap::way_back(link)]});
  return most;
}

}  // namespace

double domain_load(const ClusterMap& map, const std::vector<double>& utilisation,
                   std::uint32_t domain) {
  const sim::Topology& topology = map.topology();
  const std::uint32_t first = domain * map.domain_size();
  const std::uint32_t end = std::min(first + map.domain_size(), topology.accelerators());
  double load = 0.0;
  for (std::uint32_t gpu = first; gpu < end; ++gpu) {
    load = std::max(load, busiest_around(map, utilisation, gpu));
    for (const sim::LinkIndex link : map.links_from(gpu)) {
      const sim::VertexIndex other = topology.links()[link].to;
      if (topology.vertices()[other] == sim::VertexKind::Nic)
        load = std::max(load, busiest_around(map, utilisation, other));
    }
  }
  return load;
}

std::vector<double> domain_loads(const ClusterMap& map, const std::vector<double>& utilisation) {
  std::vector<double> loads;
  for (std::uint32_t domain = 0; domain < map.domains(); ++domain)
    loads.push_back(domain_load(map, utilisation, domain));
  return loads;
}

NodeMap::NodeMap(QWidget* parent) : QWidget(parent) {
  setObjectName(u"node_map"_s);
  setAccessibleName(u"Load of all nodes"_s);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(160, 120);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void NodeMap::show_loads(std::vector<double> loads, double scale_end, QStringList names) {
  loads_ = std::move(loads);
  scale_end_ = scale_end;
  names_ = std::move(names);
  if (current_ >= loads_.size()) current_ = 0;
  place_title();
  update();
}

// A narrow map has a title of several lines.
void NodeMap::place_title() {
  const QRect room(static_cast<int>(kMapMargin), static_cast<int>(kMapMargin),
                   std::max(1, width() - 2 * static_cast<int>(kMapMargin)), height());
  title_ = fontMetrics().boundingRect(room, Qt::AlignLeft | Qt::TextWordWrap, tr(kTitle));
}

double NodeMap::top_of_cells() const {
  return title_.bottom() + fontMetrics().height() + 2.0 * kBelowTitle;
}

void NodeMap::resizeEvent(QResizeEvent*) {
  place_title();
}

void NodeMap::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) place_title();
}

std::pair<std::size_t, double> NodeMap::grid() const {
  const double wide = width() - 2.0 * kMapMargin;
  const double high = height() - top_of_cells() - kMapMargin;
  const auto count = static_cast<double>(std::max<std::size_t>(1, loads_.size()));
  double side = std::min(kLargestCell, std::sqrt(wide * high / count));
  const auto columns_of = [&] { return std::max(1.0, std::floor(wide / side)); };
  // The last line may not be full.
  while (side > 1.0 && std::ceil(count / columns_of()) * side > high) side *= 0.98;
  return {static_cast<std::size_t>(columns_of()), side};
}

QRectF NodeMap::cell(std::size_t domain) const {
  const auto [columns, side] = grid();
  return {kMapMargin + static_cast<double>(domain % columns) * side,
          top_of_cells() + static_cast<double>(domain / columns) * side, side, side};
}

std::optional<std::size_t> NodeMap::domain_at(const QPointF& position) const {
  for (std::size_t i = 0; i < loads_.size(); ++i)
    if (cell(i).contains(position)) return i;
  return std::nullopt;
}

QString NodeMap::tip_of(std::size_t domain) const {
  return tool_tip(names_[static_cast<qsizetype>(domain)], simulated_step(),
                  {{tr("busiest link"), tr("%1 of its capacity").arg(percent_text(loads_[domain]))},
                   {tr("A click shows it.")}});
}

bool NodeMap::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto domain = domain_at(help->pos());
  if (!domain) {
    QToolTip::hideText();
  } else {
    QToolTip::showText(help->globalPos(), tip_of(*domain), this);
  }
  return true;
}

void NodeMap::paint_scale(QPainter& painter, const Colours& colours) const {
  const QFontMetrics metrics = fontMetrics();
  const double top = title_.bottom() + kBelowTitle, high = metrics.height();
  double left = kMapMargin;
  const auto write = [&](const QString& text) {
    const double width = metrics.horizontalAdvance(text);
    painter.drawText(QRectF(left, top, width + 1.0, high), Qt::AlignLeft | Qt::AlignVCenter, text);
    left += width + kBesideScale;
  };
  const auto fill = [&](double from, double to) {
    const double width = kScaleWidth * (to - from);
    for (double x = 0.0; x < width; ++x)
      painter.fillRect(QRectF(left + x, top + 0.2 * high, 1.0, 0.6 * high),
                       sequential_colour(from + x / kScaleWidth, colours.dark));
    left += width + kBesideScale;
  };
  const auto percent = [&](double part) {
    return to_qstring(format_number(100.0 * part * scale_end_)) + u" %"_s;
  };
  constexpr double kPart = 0.25;
  const double middle = place_on_scale(kPart, 1.0);
  write(tr("idle"));
  fill(0.0, middle);
  write(percent(kPart));
  fill(middle, 1.0);
  write(tr("%1 of its capacity").arg(percent(1.0)));
}

void NodeMap::paintEvent(QPaintEvent*) {
  const Colours colours = colours_for(palette());
  QPainter painter(this);
  painter.fillRect(rect(), colours.base);
  painter.setPen(colours.text);
  painter.drawText(title_, Qt::AlignLeft | Qt::TextWordWrap, tr(kTitle));
  paint_scale(painter, colours);
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    const QRectF place = cell(i);
    const double gap = place.width() >= 6.0 ? 1.0 : 0.0;
    const double share = place_on_scale(loads_[i], scale_end_);
    painter.fillRect(place.adjusted(0.0, 0.0, -gap, -gap), sequential_colour(share, colours.dark));
  }
  if (!hasFocus() || loads_.empty()) return;
  painter.setPen(QPen(colours.accent, 2.0));
  // The frame lies within the cell, so that it reaches into no other one and not into the title.
  painter.drawRect(cell(current_).adjusted(1.0, 1.0, -1.0, -1.0));
}

void NodeMap::go_to(std::size_t domain) {
  current_ = domain;
  update();
  QToolTip::showText(mapToGlobal(cell(current_).bottomRight().toPoint()), tip_of(current_), this);
}

void NodeMap::keyPressEvent(QKeyEvent* event) {
  const std::size_t columns = grid().first, count = loads_.size();
  const auto forward = [&](std::size_t by) {
    if (current_ + by < count) go_to(current_ + by);
  };
  const auto back = [&](std::size_t by) {
    if (current_ >= by) go_to(current_ - by);
  };
  switch (event->key()) {
    case Qt::Key_Right:
      return forward(1);
    case Qt::Key_Left:
      return back(1);
    case Qt::Key_Down:
      return forward(columns);
    case Qt::Key_Up:
      return back(columns);
    case Qt::Key_Home:
      return back(current_);
    case Qt::Key_End:
      return forward(count - 1 - current_);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (count > 0) Q_EMIT clicked(static_cast<std::uint32_t>(current_));
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void NodeMap::mousePressEvent(QMouseEvent* event) {
  pressed_ = event->button() == Qt::LeftButton ? domain_at(event->position()) : std::nullopt;
}

void NodeMap::mouseReleaseEvent(QMouseEvent* event) {
  const auto pressed = std::exchange(pressed_, std::nullopt);
  if (event->button() == Qt::LeftButton && pressed && pressed == domain_at(event->position()))
    Q_EMIT clicked(static_cast<std::uint32_t>(*pressed));
}

}  // namespace shardwright::gui
