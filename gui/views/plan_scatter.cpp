#include "gui/views/plan_scatter.hpp"

#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <map>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "planner/objective.hpp"

namespace shardwright::gui {
namespace {

constexpr int kBins = 5;
constexpr std::size_t kMostCategories = 8;
// Both are in pixels. The ring is as high as a line of the legend, which would cut a larger one.
constexpr double kNear = 12.0, kRing = 11.0;

// Puts ticks at 1, 2 and 5 of each power of ten, because a logarithmic axis seldom spans more than
// two. An axis on which fewer than two of these lie has evenly spaced ticks.
class SparseTicker : public ShortTicker {
 public:
  using ShortTicker::ShortTicker;

 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override {
    QVector<double> ticks;
    const double first = std::pow(10.0, std::floor(std::log10(range.lower)));
    for (double power = first; power <= range.upper && ticks.size() < 100; power *= 10.0) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (range.contains(digit * power)) ticks.append(digit * power);
      }
    }
    return ticks.size() > 1 ? ticks : ShortTicker::createTickVector(step, range);
  }
};

std::size_t index_of(int row) {
  return static_cast<std::size_t>(row);
}

double distance(QPointF a, QPointF b) {
  return std::hypot(a.x() - b.x(), a.y() - b.y());
}

}  // namespace

PlanScatter::PlanScatter(QWidget* parent) : Chart(parent) {
  setObjectName(u"scatter"_s);
  setInteractions(QCP::iRangeZoom);
  setMouseTracking(true);
  legend->setVisible(true);
  put_legend_above();
  connect(this, &Chart::restyled, this, &PlanScatter::rebuild);
}

void PlanScatter::set_axes(int x, int y, int colour) {
  x_ = x;
  y_ = y;
  colour_ = colour;
  rebuild();
}

void PlanScatter::show(PlanSetPointer set, std::vector<int> rows) {
  set_ = std::move(set);
  rows_ = std::move(rows);
  rebuild();
}

void PlanScatter::mark(std::optional<std::size_t> chosen, std::optional<std::size_t> compared) {
  chosen_ = chosen;
  compared_ = compared;
  update_marks();
}

double PlanScatter::value(int figure, int row) const {
  const PlanFigure& of = plan_figure(figure);
  return of.value ? of.value(*set_, static_cast<std::size_t>(row)) : 0.0;
}

std::vector<double> PlanScatter::values_of(int figure) const {
  std::vector<double> values;
  values.reserve(rows_.size());
  for (const int row : rows_) values.push_back(value(figure, row));
  return values;
}

QPointF PlanScatter::pixel_of(int row) const {
  return {xAxis->coordToPixel(value(x_, row)), yAxis->coordToPixel(value(y_, row))};
}

QPointF PlanScatter::pixel_at(std::size_t point) const {
  return {xAxis->coordToPixel(xs_[point]), yAxis->coordToPixel(ys_[point])};
}

// Returns the place of a category among the colours and markers. It is the same for a value
// whatever other values there are, so that nothing changes while plans stream in.
int PlanScatter::place_of(const PlanFigure& figure, double number, const QString& name) const {
  constexpr int kPlaces = static_cast<int>(kMostCategories);
  if (figure.kind == FigureKind::Degree && number >= 1.0) {
    const double power = std::log2(number);
    if (power == std::floor(power)) return static_cast<int>(power) % kPlaces;
    return kPlaces - 1;
  }
  const auto known =
      place_of_name_.try_emplace(figure.id + u'/' + name, static_cast<int>(place_of_name_.size()));
  return known.first->second % kPlaces;
}

// Makes each of a few values a category of its own, in their order. Those of one place share it.
std::vector<PlanScatter::Category> PlanScatter::categories(
    std::vector<int>& category_of_row) const {
  const PlanFigure& figure = plan_figure(colour_);
  if (figure.kind == FigureKind::Measure) return bins(category_of_row);
  struct Known {
    int row = 0;
    int category = 0;
  };
  std::map<std::pair<double, QString>, Known> known;
  std::vector<const Known*> of_row;
  of_row.reserve(rows_.size());
  for (const int row : rows_) {
    const QString name = figure.name ? figure.name(*set_, index_of(row)) : QString();
    of_row.push_back(&known.try_emplace({value(colour_, row), name}, Known{row}).first->second);
  }
  std::vector<Category> found;
  std::map<int, int> category_of_place;
  for (auto& [key, each] : known) {
    const QString text = figure.text(*set_, index_of(each.row));
    const int place = place_of(figure, key.first, text);
    const auto [at, is_new] = category_of_place.try_emplace(place, static_cast<int>(found.size()));
    each.category = at->second;
    if (is_new) {
      found.push_back({with_accelerator(figure.title, accelerator_word(set_)) + u' ' + text,
                       colours().series(place), marker(place)});
    } else if (QString& title = found[index_of(each.category)].title; !title.endsWith(u"…"_s)) {
      title += title.contains(u',') ? u" …"_s : u", "_s + text;
    }
  }
  for (const Known* each : of_row) category_of_row.push_back(each->category);
  return found;
}

// Sorts many values into bins of equal width from light to dark.
std::vector<PlanScatter::Category> PlanScatter::bins(std::vector<int>& category_of_row) const {
  const PlanFigure& figure = plan_figure(colour_);
  const std::vector<double> values = values_of(colour_);
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  const double least = *lowest, most = *highest;
  const double width = (most - least) / kBins;
  const int count = width > 0.0 ? kBins : 1;
  std::vector<Category> found;
  for (int bin = 0; bin < count; ++bin) {
    const QString range = u"%1 %2 … %3"_s.arg(
        with_accelerator(figure.title, accelerator_word(set_)),
        figure.number_text(least + bin * width), figure.number_text(least + (bin + 1) * width));
    found.push_back({range, scale_colour(bin, count, colours().dark), marker(bin)});
  }
  for (const double each : values) {
    const double place = width > 0.0 ? (each - least) / width : 0.0;
    category_of_row.push_back(std::clamp(static_cast<int>(place), 0, count - 1));
  }
  return found;
}

void PlanScatter::rebuild() {
  clear_all();
  outline_ = nullptr;
  chosen_mark_ = compared_mark_ = nullptr;
  front_.clear();
  if (!set_) return replot(rpQueuedReplot);
  xs_ = values_of(x_);
  ys_ = values_of(y_);
  if (!rows_.empty()) {
    // On several pools the search lists the best plans alone, which need not hold the front.
    if (set_->request.cluster.pools.empty()) add_front();
    add_points();
    fit_axis(*xAxis, xs_);
    fit_axis(*yAxis, ys_);
    fitted_x_ = xAxis->range();
    fitted_y_ = yAxis->range();
  }
  label_axis(*xAxis, x_, xs_);
  label_axis(*yAxis, y_, ys_);
  update_marks();
}

// Shows all points with a margin, on a logarithmic axis if they span more than a factor of four.
void PlanScatter::fit_axis(QCPAxis& axis, std::vector<double> values) const {
  std::sort(values.begin(), values.end());
  const std::size_t spare = crowd_only_ ? values.size() / 10 : 0;
  const double least = values[spare], most = values[values.size() - 1 - spare];
  const bool logarithmic = least > 0.0 && most > 4.0 * least;
  axis.setScaleType(logarithmic ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  if (logarithmic) {
    const double margin = std::pow(most / least, 0.07);
    axis.setTicker(QSharedPointer<SparseTicker>::create(&axis));
    return axis.setRange(least / margin, most * margin);
  }
  axis.setTicker(QSharedPointer<ShortTicker>::create(&axis));
  // A single value gets its own size on both sides; a figure that cannot be negative begins at
  // zero.
  const double alone = most != 0.0 ? 0.2 * std::abs(most) : 1.0;
  const double margin = most > least ? 0.07 * (most - least) : alone;
  axis.setRange(least >= 0.0 ? std::max(0.0, least - margin) : least - margin, most + margin);
}

void PlanScatter::label_axis(QCPAxis& axis, int figure, const std::vector<double>& values) const {
  const auto most = std::max_element(values.begin(), values.end());
  label_memory(axis, plan_figure(figure).heading(accelerator_word(set_)),
               most == values.end() ? 0.0 : *most);
}

void PlanScatter::add_points() {
  std::vector<int> category_of_row;
  const auto found = categories(category_of_row);
  std::vector<QVector<double>> xs(found.size()), ys(found.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto category = static_cast<std::size_t>(category_of_row[i]);
    xs[category].append(xs_[i]);
    ys[category].append(ys_[i]);
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    QCPGraph* points = addGraph();
    points->setName(found[i].title);
    points->setLineStyle(QCPGraph::lsNone);
    points->setScatterStyle(scatter_style(found[i].shape, found[i].colour));
    points->setData(xs[i], ys[i]);
  }
}

void PlanScatter::add_front() {
  const double x_sign = plan_figure(x_).lower_is_better ? 1.0 : -1.0;
  const double y_sign = plan_figure(y_).lower_is_better ? 1.0 : -1.0;
  std::vector<planner::TradeOff> points;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    points.push_back({x_sign * xs_[i], y_sign * ys_[i]});
  const std::vector<std::size_t> front = planner::pareto_front(points);
  auto* line = new QCPCurve(xAxis, yAxis);
  line->setName(tr("Pareto front"));
  line->setPen(QPen(colours().text, 1.4, Qt::DashLine));
  QVector<double> xs, ys;
  for (const std::size_t i : front) {
    // A front is a staircase, because nothing better is known between two of its plans.
    if (!xs.isEmpty()) {
      xs.append(xs_[i]);
      ys.append(ys.last());
    }
    xs.append(xs_[i]);
    ys.append(ys_[i]);
    front_.push_back(rows_[i]);
  }
  line->setData(xs, ys);
}

void PlanScatter::update_marks() {
  const auto ring = [this](QCPGraph*& graph, std::optional<std::size_t> plan, const QColor& colour,
                           const QString& name) {
    if (graph != nullptr) removeGraph(graph);
    graph = nullptr;
    if (!set_ || !plan || *plan >= set_->plans.size()) return;
    graph = addGraph();
    graph->setName(name);
    graph->setLineStyle(QCPGraph::lsNone);
    QPen pen(colour, 2.0);
    graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, pen, Qt::NoBrush, kRing));
    const int row = static_cast<int>(*plan);
    graph->addData(value(x_, row), value(y_, row));
  };
  ring(chosen_mark_, chosen_, colours().accent, compared_ ? tr("A: chosen") : tr("chosen"));
  ring(compared_mark_, compared_, colours().warning, tr("B: compared"));
  replot(rpQueuedReplot);
}

std::optional<int> PlanScatter::row_at(QPointF pixel) const {
  if (!set_) return std::nullopt;
  std::optional<int> nearest;
  double least = kNear;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double away = distance(pixel_at(i), pixel);
    if (away >= least) continue;
    least = away;
    nearest = rows_[i];
  }
  return nearest;
}

void PlanScatter::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) {
    pressed_ = true;
    rectangle_ = event->modifiers().testFlag(Qt::ShiftModifier);
    lasso_ = QPolygonF({event->position()});
  } else if (event->button() == Qt::MiddleButton) {
    panning_ = true;
    pan_from_ = event->position();
  }
}

void PlanScatter::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  if (panning_) {
    xAxis->moveRange(xAxis->pixelToCoord(pan_from_.x()) - xAxis->pixelToCoord(at.x()));
    yAxis->moveRange(yAxis->pixelToCoord(pan_from_.y()) - yAxis->pixelToCoord(at.y()));
    pan_from_ = at;
    return replot(rpQueuedReplot);
  }
  if (pressed_) {
    if (rectangle_) {
      lasso_ = QPolygonF({lasso_.front(), QPointF(at.x(), lasso_.front().y()), at,
                          QPointF(lasso_.front().x(), at.y())});
    } else {
      lasso_.append(at);
    }
    return draw_lasso();
  }
  const auto row = row_at(at);
  if (!row) return QToolTip::hideText();
  const auto plan = static_cast<std::size_t>(*row);
  QToolTip::showText(event->globalPosition().toPoint(),
                     tool_tip(plan_text(set_->plans[plan].plan), source_of(*set_),
                              {tip_line(x_, plan), tip_line(y_, plan)}),
                     this);
}

TipLine PlanScatter::tip_line(int figure, std::size_t plan) const {
  const PlanFigure& of = plan_figure(figure);
  const double best = of.value ? of.value(*set_, 0) : 0.0;
  const QString text = of.text(*set_, plan);
  return {of.heading(accelerator_word(set_)),
          best > 0.0 ? tr("%1, %2 of plan 1's").arg(text, share_text(of.value(*set_, plan) / best))
                     : text};
}

void PlanScatter::draw_lasso() {
  if (outline_ == nullptr) {
    outline_ = new QCPCurve(xAxis, yAxis);
    outline_->removeFromLegend();
    outline_->setPen(QPen(colours().accent, 1.5, Qt::DotLine));
    outline_->setBrush(faded(colours().accent, 0.12));
  }
  QVector<double> xs, ys;
  for (const QPointF& point : lasso_ + QPolygonF({lasso_.front()})) {
    xs.append(xAxis->pixelToCoord(point.x()));
    ys.append(yAxis->pixelToCoord(point.y()));
  }
  outline_->setData(xs, ys);
  replot(rpQueuedReplot);
}

std::set<int> PlanScatter::rows_in_lasso() const {
  std::set<int> inside;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (lasso_.containsPoint(pixel_at(i), Qt::OddEvenFill)) inside.insert(rows_[i]);
  }
  return inside;
}

void PlanScatter::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() == Qt::MiddleButton) panning_ = false;
  if (event->button() != Qt::LeftButton || !pressed_) return;
  pressed_ = false;
  if (outline_ != nullptr) removePlottable(outline_);
  outline_ = nullptr;
  const QRectF box = lasso_.boundingRect();
  if (std::max(box.width(), box.height()) > kNear) {
    const auto inside = rows_in_lasso();
    replot(rpQueuedReplot);
    if (!inside.empty()) Q_EMIT lassoed(inside);
    return;
  }
  const auto row = row_at(event->position());
  if (!row) return;
  if (event->modifiers().testFlag(Qt::ControlModifier)) {
    Q_EMIT compared(*row);
  } else {
    Q_EMIT clicked(*row);
  }
}

void PlanScatter::mouseDoubleClickEvent(QMouseEvent*) {
  // The first double click after a zoom shows all points.
  const bool is_fitted = xAxis->range() == fitted_x_ && yAxis->range() == fitted_y_;
  crowd_only_ = is_fitted && !crowd_only_;
  rebuild();
}

}  // namespace shardwright::gui
