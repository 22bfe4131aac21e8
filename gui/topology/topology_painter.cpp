#include "gui/topology/topology_painter.hpp"

#include <QFontMetricsF>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/topology/group_routes.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

using sim::LinkIndex;

constexpr double kBadge = 13.0;
constexpr double kScaleHeight = 12.0;
constexpr double kRadius = 4.0;
// The utilisation from which a link may delay the step.
constexpr double kBusy = 0.5;
constexpr double kMarkPlace = 0.3;
constexpr double kNoteLine = 17.0;
// The width of the way of a group, and its distance from that of another axis.
constexpr double kRouteWidth = 2.0, kRouteGap = 3.0;

// On light backgrounds the scale is YlOrBr of ColorBrewer (C. Brewer, https://colorbrewer2.org,
// listed as colour-blind safe), on dark ones the order of lightness is reversed.
constexpr std::array<QRgb, 6> kLightScale = {0xffcfcfc8, 0xfffec567, 0xfffe9929,
                                             0xffd95f0e, 0xff993404, 0xff4a1500};
constexpr std::array<QRgb, 6> kDarkScale = {0xff59606b, 0xff96551f, 0xffc46a1c,
                                            0xfff08c1e, 0xfffec44f, 0xfffff7bc};

// The width of a line, in pixels, shows its share as well.
double sequential_width(double share, double widest) {
  return 1.0 + (widest - 1.0) * std::clamp(share, 0.0, 1.0);
}

// Returns a way beside another one that is straight or has right angles.
std::vector<QPointF> way_beside(const std::vector<QPointF>& points, double beside) {
  const auto across = [&](std::size_t from) {
    const QPointF way = points[from + 1] - points[from];
    const double length = std::max(1.0, std::hypot(way.x(), way.y()));
    return QPointF(-way.y(), way.x()) * (beside / length);
  };
  std::vector<QPointF> shifted = points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i + 1 < points.size()) shifted[i] += across(i);
    const bool is_end = i == 0 || i + 1 == points.size();
    if (i > 0 && (is_end || across(i) != across(i - 1))) shifted[i] += across(i - 1);
  }
  return shifted;
}

bool holds(const std::vector<std::int32_t>& ranks, std::uint32_t rank) {
  return std::binary_search(ranks.begin(), ranks.end(), static_cast<std::int32_t>(rank));
}

}  // namespace

QColor sequential_colour(double share, bool dark) {
  const auto& stops = dark ? kDarkScale : kLightScale;
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto first = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const double part = place - static_cast<double>(first);
  return mixed_colour(QColor(stops[first]), QColor(stops[first + 1]), part);
}

double scale_end(double highest) {
  for (const double end : {0.05, 0.1, 0.2, 0.5}) {
    if (highest <= end) return end;
  }
  return 1.0;
}

double place_on_scale(double load, double end) {
  return std::sqrt(std::clamp(load / end, 0.0, 1.0));
}

double widest_line(const TopologyLayout& layout) {
  constexpr double kWidest = 5.0, kGap = 2.0;
  std::set<double> tracks;
  for (const MapLine& line : layout.lines)
    if (line.points.size() > 2) tracks.insert(line.points[1].y());
  double widest = kWidest, before = std::numeric_limits<double>::lowest();
  for (const double track : tracks) {
    const double distance = track - std::exchange(before, track);
    widest = std::min(widest, std::max(distance - kGap, 0.5 * distance));
  }
  return widest;
}

QString load_text(const ClusterMap& map, const TopologyScene& scene, LinkIndex link) {
  return u"%1 of %2"_s.arg(share_text(scene.utilisation[link]),
                           bandwidth_text(map.topology().links()[link].capacity));
}

QString link_load_text(const ClusterMap& map, const TopologyScene& scene, LinkIndex link) {
  return map.link_name(link) + u": "_s + load_text(map, scene, link);
}

TopologyPainter::TopologyPainter(QPainter& painter, const ClusterMap& map, const PlanGroups& groups,
                                 const TopologyLayout& layout, const TopologyScene& scene,
                                 const Colours& colours)
    : painter_(painter),
      map_(map),
      groups_(groups),
      layout_(layout),
      scene_(scene),
      colours_(colours),
      font_(pixel_font(12)),
      bold_(pixel_font(12, true)),
      small_(pixel_font(11)) {
  if (scene_.rank()) rank_groups_ = groups_.of(*scene_.rank());
}

void TopologyPainter::paint(const QRectF& plot, const QRectF& panel, const QRectF& strip) {
  painter_.save();
  painter_.setRenderHint(QPainter::Antialiasing, true);
  const QTransform before = painter_.transform();
  const double zoom = plot.width() / scene_.window.length();
  painter_.setClipRect(plot);
  painter_.translate(plot.topLeft());
  painter_.scale(zoom, zoom);
  painter_.translate(-scene_.window.from, -scene_.rows.from);
  paint_map();
  painter_.setTransform(before);
  painter_.setClipping(false);
  paint_panel(panel);
  if (!strip.isEmpty()) paint_scale_beside_title(strip);
  painter_.restore();
}

void TopologyPainter::paint_map() {
  const auto paint_items = [this](bool domains) {
    for (const MapItem& item : layout_.items) {
      if ((item.kind == ItemKind::Domain) == domains) paint_item(item);
    }
  };
  paint_items(true);
  paint_lines();
  paint_group_routes();
  paint_items(false);
  paint_bottleneck();
  painter_.setFont(small_);
  painter_.setPen(colours_.muted_text);
  for (const LevelLabel& level : layout_.levels)
    painter_.drawText(layout_.box_of(level), Qt::AlignVCenter | Qt::AlignLeft, level.text);
}

TopologyPainter::Load TopologyPainter::load_of(const MapLine& line) const {
  Load load;
  if (scene_.utilisation.empty()) return load;
  for (const LinkIndex link : line.links) {
    if (scene_.utilisation[link] > load.share) load = {scene_.utilisation[link], link};
  }
  return load;
}

// Busy lines are painted last, so that none covers them.
void TopologyPainter::paint_lines() {
  std::vector<std::pair<double, const MapLine*>> lines;
  for (const MapLine& line : layout_.lines) lines.emplace_back(load_of(line).share, &line);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const double widest = widest_line(layout_);
  for (const auto& [load, line] : lines) {
    const double share = place_on_scale(load, scene_.scale_end);
    painter_.setPen(QPen(sequential_colour(share, colours_.dark), sequential_width(share, widest),
                         Qt::SolidLine, Qt::FlatCap));
    draw_way(line->points);
  }
}

void TopologyPainter::draw_way(const std::vector<QPointF>& points) {
  painter_.drawPolyline(points.data(), static_cast<int>(points.size()));
}

void TopologyPainter::paint_group_routes() {
  double place = -0.5 * static_cast<double>(rank_groups_.size() - 1);
  for (std::size_t i = 0; i < rank_groups_.size(); ++i) {
    const AxisGroup& group = rank_groups_[i];
    const double beside = kRouteGap * place++;
    if (!shows(group.axis)) continue;
    const std::vector<LinkIndex>& passed = scene_.routes[i];
    painter_.setPen(
        QPen(colours_.of(role_of(group.axis)), kRouteWidth, Qt::SolidLine, Qt::FlatCap));
    for (const MapLine& line : layout_.lines) {
      if (std::none_of(line.links.begin(), line.links.end(),
                       [&](LinkIndex link) { return std::ranges::binary_search(passed, link); }))
        continue;
      draw_way(way_beside(line.points, beside));
    }
  }
}

void TopologyPainter::paint_item(const MapItem& item) {
  painter_.setFont(small_);
  switch (item.kind) {
    case ItemKind::Gpu:
      return paint_gpu(item);
    case ItemKind::MoreGpus:
    case ItemKind::MoreDomains:
    case ItemKind::MoreSwitches:
      return paint_stack(item);
    case ItemKind::Domain:
      painter_.setPen(QPen(colours_.frame, 1.0));
      painter_.setBrush(colours_.window);
      painter_.drawRoundedRect(item.box, kRadius, kRadius);
      painter_.setPen(colours_.text);
      painter_.drawText(item.box.adjusted(8.0, 0.0, -8.0, -5.0), Qt::AlignBottom | Qt::AlignLeft,
                        QFontMetricsF(small_).elidedText(domain_text(map_, groups_, item),
                                                         Qt::ElideRight, item.box.width() - 16.0));
      return;
    case ItemKind::Nic:
    case ItemKind::Switch:
    case ItemKind::ScaleUpSwitch:
      painter_.setPen(QPen(colours_.frame, 1.0));
      painter_.setBrush(colours_.base);
      painter_.drawRoundedRect(item.box, 3.0, 3.0);
      painter_.setPen(colours_.text);
      painter_.drawText(
          item.box, Qt::AlignCenter,
          QFontMetricsF(small_).elidedText(item.label, Qt::ElideRight, item.box.width() - 4.0));
  }
}

// The number is turned if the box is too narrow.
std::optional<QFont> upright_font(const QString& number, double height) {
  constexpr int kLargest = 11, kSmallest = 7;
  for (int pixels = kLargest; pixels >= kSmallest; --pixels) {
    const QFont font = pixel_font(pixels);
    if (QFontMetricsF(font).horizontalAdvance(number) <= height) return font;
  }
  return std::nullopt;
}

// A number that does not fit stands in the line of its domain, and in the tip.
void TopologyPainter::paint_rank_number(const MapItem& item) {
  const QFontMetricsF metrics(small_);
  if (metrics.horizontalAdvance(item.label) <= item.box.width() - 2.0) {
    painter_.drawText(item.box.adjusted(0.0, 3.0, 0.0, 0.0), Qt::AlignHCenter | Qt::AlignTop,
                      item.label);
    return;
  }
  constexpr double kAboveNumber = 3.0;
  const double room = item.box.height() - 2.0 * kAboveNumber;
  const auto font = upright_font(item.label, room);
  if (!font) return;
  painter_.save();
  painter_.setFont(*font);
  painter_.translate(item.box.center().x(), item.box.top() + kAboveNumber);
  painter_.rotate(90.0);
  painter_.drawText(QRectF(0.0, -item.box.width() / 2.0, room, item.box.width()),
                    Qt::AlignVCenter | Qt::AlignLeft, item.label);
  painter_.restore();
}

// Paints a badge with a letter for each axis along which the GPU works with the rank that stands
// out.
void TopologyPainter::paint_gpu(const MapItem& item) {
  const std::uint32_t rank = item.first;
  const bool is_rank = scene_.rank() == static_cast<std::int32_t>(rank);
  const bool used = rank < map_.ranks();
  painter_.setPen(QPen(is_rank ? colours_.accent : colours_.frame, is_rank ? 2.5 : 1.0));
  painter_.setBrush(used ? colours_.base : colours_.window);
  painter_.drawRoundedRect(item.box, 3.0, 3.0);
  painter_.setPen(used ? colours_.text : colours_.muted_text);
  paint_rank_number(item);
  double y = item.box.bottom() - 3.0 - kBadge;
  for (const AxisGroup& group : rank_groups_) {
    if (!shows(group.axis) || !holds(group.ranks, rank) || y < item.box.top() + 16.0) continue;
    paint_badge(QPointF(item.box.center().x() - kBadge / 2.0, y), group.axis);
    y -= kBadge + 1.0;
  }
}

void TopologyPainter::paint_badge(const QPointF& corner, Axis axis) {
  const Role role = role_of(axis);
  const QRectF badge(corner, QSizeF(kBadge, kBadge));
  painter_.setPen(Qt::NoPen);
  painter_.setBrush(colours_.of(role));
  painter_.drawRoundedRect(badge, 2.0, 2.0);
  painter_.setFont(small_);
  painter_.setPen(colours_.text_on(role));
  painter_.drawText(badge, Qt::AlignCenter, QString(letter_of(axis)));
}

// Writes the number of ranks of each group in domains that are not drawn.
void TopologyPainter::paint_hidden_members(const MapItem& item) {
  const std::int64_t from = std::int64_t{layout_.first_domain} * map_.domain_size();
  const std::int64_t to = from + std::int64_t{layout_.shown_domains} * map_.domain_size();
  double y = item.box.top() + 8.0;
  for (const AxisGroup& group : rank_groups_) {
    const auto hidden = std::count_if(group.ranks.begin(), group.ranks.end(),
                                      [&](auto rank) { return rank < from || rank >= to; });
    if (!shows(group.axis) || hidden == 0) continue;
    paint_badge(QPointF(item.box.left() + 12.0, y), group.axis);
    painter_.setPen(colours_.text);
    painter_.drawText(QPointF(item.box.left() + 12.0 + kBadge + 5.0, y + kBadge - 2.0),
                      u"× %1"_s.arg(hidden));
    y += kBadge + 3.0;
  }
}

void TopologyPainter::paint_stack(const MapItem& item) {
  for (const double shift : {6.0, 3.0, 0.0}) {
    painter_.setPen(QPen(colours_.frame, 1.0));
    painter_.setBrush(colours_.window);
    painter_.drawRoundedRect(item.box.adjusted(shift, shift / 2.0, shift - 6.0, shift / 2.0 - 3.0),
                             kRadius, kRadius);
  }
  painter_.setPen(colours_.text);
  painter_.drawText(item.box.adjusted(0.0, 0.0, -6.0, -3.0), Qt::AlignCenter, item.label);
  if (item.kind == ItemKind::MoreDomains) paint_hidden_members(item);
}

void TopologyPainter::paint_bottleneck() {
  const MapLine* line = busiest_line(layout_, scene_.utilisation);
  if (line == nullptr) return;
  const Load load = load_of(*line);
  // The mark is near the lower end, where lines do not cross yet.
  const QPointF middle = line->points[0] + kMarkPlace * (line->points[1] - line->points[0]);
  const double share = place_on_scale(load.share, scene_.scale_end);
  painter_.setPen(QPen(colours_.bad, sequential_width(share, widest_line(layout_)) + 2.0));
  draw_way(line->points);
  painter_.setBrush(Qt::NoBrush);
  painter_.setPen(QPen(colours_.bad, 2.0));
  painter_.drawEllipse(middle, 9.0, 9.0);
  paint_busiest_load(load.share, middle.y());
}

// The load stands beside the drawing, at the height of the mark; within it, it would cover links.
void TopologyPainter::paint_busiest_load(double share, double y) {
  const auto both = layout_.place_beside(y, 2.0 * kNoteLine);
  const bool tells_others = scene_.as_busy > 1 && both.has_value();
  const auto label = tells_others ? both : layout_.place_beside(y, kNoteLine);
  if (!label) return;
  const QRectF first(label->topLeft(), QSizeF(label->width(), kNoteLine));
  painter_.setPen(colours_.bad);
  painter_.setFont(bold_);
  painter_.drawText(first, Qt::AlignVCenter | Qt::AlignLeft, u"◯ "_s + share_text(share));
  if (!tells_others) return;
  painter_.setFont(small_);
  painter_.drawText(first.translated(0.0, kNoteLine),
                    Qt::AlignVCenter | Qt::AlignLeft | Qt::TextDontClip,
                    u"1 of %1"_s.arg(count_text(scene_.as_busy)));
}

double TopologyPainter::paint_text(const QRectF& panel, double y, const QString& text,
                                   const QColor& colour, const QFont& font) {
  painter_.setFont(font);
  painter_.setPen(colour);
  const QRectF below(panel.left(), y, panel.width(), std::numeric_limits<std::int16_t>::max());
  constexpr int kFlags = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;
  const QString whole = with_whole_rates(text);
  const QRectF used = painter_.boundingRect(below, kFlags, whole);
  // A low panel leaves out whole texts, because half a sentence says nothing.
  if (used.bottom() <= panel.bottom()) painter_.drawText(used, kFlags, whole);
  return used.bottom() + 2.0;
}

void TopologyPainter::paint_panel(const QRectF& panel) {
  if (panel.width() < 60.0) return;
  painter_.setPen(colours_.grid);
  painter_.drawLine(QPointF(panel.left() - 10.0, panel.top()),
                    QPointF(panel.left() - 10.0, panel.bottom()));
  double y = paint_scale(panel, panel.top());
  y = paint_bottleneck_text(panel, y + 10.0);
  y = paint_bisection(panel, y + 10.0);
  paint_groups(panel, y + 12.0);
}

double TopologyPainter::paint_scale(const QRectF& panel, double y) {
  y = paint_text(panel, y, u"Link utilisation"_s, colours_.text, bold_);
  y = paint_text(panel, y, scene_.span_title, colours_.muted_text, small_) + 4.0;
  return paint_colours({panel.left(), y}, panel.width() - 14.0);
}

// The title takes the left half of the strip, the colours the right one.
void TopologyPainter::paint_scale_beside_title(const QRectF& strip) {
  constexpr double kBesideTitle = 24.0, kAboveColours = 4.0;
  const QRectF left = strip.adjusted(0.0, 0.0, -0.5 * strip.width(), 0.0);
  const double y = paint_text(left, strip.top(), u"Link utilisation"_s, colours_.text, bold_);
  painter_.setFont(small_);
  painter_.setPen(colours_.muted_text);
  const QRectF below(left.left(), y, left.width(), strip.bottom() - y);
  painter_.drawText(
      below, Qt::AlignLeft | Qt::AlignTop,
      QFontMetricsF(small_).elidedText(scene_.span_title, Qt::ElideRight, below.width()));
  paint_colours({left.right() + kBesideTitle, strip.top() + kAboveColours},
                0.5 * strip.width() - 2.0 * kBesideTitle);
}

double TopologyPainter::paint_colours(const QPointF& corner, double width) {
  const double y = corner.y();
  const int steps = 60;
  painter_.setPen(Qt::NoPen);
  for (int i = 0; i < steps; ++i) {
    const double share = (i + 0.5) / steps;
    const double height = 2.0 + (kScaleHeight - 2.0) * share;
    painter_.setBrush(sequential_colour(share, colours_.dark));
    painter_.drawRect(QRectF(corner.x() + width * i / steps, y + kScaleHeight - height,
                             width / steps + 0.5, height));
  }
  painter_.setFont(small_);
  painter_.setPen(colours_.muted_text);
  for (const double part : {0.0, 0.25, 1.0})
    painter_.drawText(QRectF(corner.x() + width * place_on_scale(part, 1.0) - 20.0,
                             y + kScaleHeight + 2.0, 40.0, 14.0),
                      part == 0.0 ? Qt::AlignRight : Qt::AlignCenter,
                      to_qstring(format_number(100.0 * part * scene_.scale_end)) + u" %"_s);
  return y + kScaleHeight + 18.0;
}

double TopologyPainter::paint_bottleneck_text(const QRectF& panel, double y) {
  if (!scene_.bottleneck)
    return paint_text(panel, y, in_words(u"No traffic between GPUs in this time."_s),
                      colours_.muted_text, font_);
  const MapLine* line = busiest_line(layout_, scene_.utilisation);
  const LinkIndex link = line != nullptr ? load_of(*line).link : *scene_.bottleneck;
  y = paint_text(panel, y, busiest_title(line != nullptr), colours_.bad, bold_);
  y = paint_text(panel, y, with_whole_quantities(link_load_text(map_, scene_, link)), colours_.text,
                 font_);
  y = paint_text(
      panel, y,
      u"%1 in %2"_s.arg(bytes_text(scene_.bytes[link]), time_text(Seconds(scene_.seconds))),
      colours_.muted_text, small_);
  // A mean over the step hides bursts, in which exposed communication waits for the links.
  if (scene_.is_part || scene_.utilisation[link] >= kBusy) return y;
  return paint_text(panel, y + 2.0,
                    u"On average no link is busy: communication delays the step in "
                    "bursts. Select a range in Timeline to see one."_s,
                    colours_.muted_text, small_);
}

QString TopologyPainter::in_words(const QString& text) const {
  return with_accelerator(text, accelerator_word(map_.cluster()));
}

QString TopologyPainter::busiest_title(bool is_marked) const {
  const QString mark = is_marked ? u"◯ "_s : QString();
  if (scene_.as_busy < 2)
    return mark + (is_marked ? u"Busiest link"_s : u"Busiest link, which is not drawn here"_s);
  const QString equal = u"Busiest links: %1 are equal, "_s.arg(count_text(scene_.as_busy));
  return mark + equal + (is_marked ? u"one is marked"_s : u"none is drawn here"_s);
}

double TopologyPainter::paint_bisection(const QRectF& panel, double y) {
  if (scene_.bisection.value() <= 0.0) return y;
  y = paint_text(panel, y, u"Bisection bandwidth"_s, colours_.text, bold_);
  const BytesPerSecond each = 2.0 * scene_.bisection / map_.topology().accelerators();
  y = paint_text(
      panel, y,
      u"%1, %2 per accelerator"_s.arg(bandwidth_text(scene_.bisection), bandwidth_text(each)),
      colours_.text, font_);
  return paint_text(panel, y, QString::fromUtf8(planner::kBisectionMeaning), colours_.muted_text,
                    small_);
}

void TopologyPainter::paint_groups(const QRectF& panel, double y) {
  if (!scene_.rank()) {
    paint_text(panel, y,
               in_words(u"Point at one of the GPUs to see its groups, click to select it."_s),
               colours_.muted_text, font_);
    return;
  }
  y = paint_text(panel, y,
                 u"Rank %1 · stage %2%3"_s.arg(map_.first_rank() + *scene_.rank())
                     .arg(groups_.stage_of(*scene_.rank()))
                     .arg(scene_.selected ? u" · Esc clears"_s : QString()),
                 colours_.text, bold_);
  y = paint_text(panel, y,
                 u"Lines beside the links show the way of each group's rings and messages."_s,
                 colours_.muted_text, small_) +
      4.0;
  for (const AxisGroup& group : rank_groups_) {
    const Role role = role_of(group.axis);
    painter_.setOpacity(shows(group.axis) ? 1.0 : 0.35);
    if (y + kBadge <= panel.bottom()) paint_badge(QPointF(panel.left(), y + 1.0), group.axis);
    const QRectF text = panel.adjusted(kBadge + 6.0, 0.0, 0.0, 0.0);
    y = paint_text(text, y, title_of(role) + u": "_s + counted_text(group.ranks.size(), "rank"),
                   colours_.text, font_);
    y = paint_text(text, y, ranks_text(group.ranks, map_.first_rank()), colours_.muted_text,
                   small_) +
        4.0;
  }
  painter_.setOpacity(1.0);
}

}  // namespace shardwright::gui
