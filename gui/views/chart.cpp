#include "gui/views/chart.hpp"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QEvent>
#include <QGuiApplication>
#include <QHelpEvent>
#include <QLineF>
#include <QMenu>
#include <QRegularExpression>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gui/models/text.hpp"
#include "gui/views/picture_export.hpp"

namespace shardwright::gui {
namespace {

// The pixels of an entry of the legend besides its text, and those between labels.
constexpr int kLegendAround = 52;
constexpr double kBesideLabels = 8.0, kAboveLabels = 2.0;
constexpr int kFewestTicks = 2;
constexpr int kTipReach = 9;
// How far a click may move.
constexpr double kStill = 4.0;

bool is_vector(const QPaintEngine* engine) {
  return engine != nullptr &&
         (engine->type() == QPaintEngine::SVG || engine->type() == QPaintEngine::Pdf ||
          engine->type() == QPaintEngine::Picture);
}

// Compares the colours that charts use. Stylesheets and themes change the palette of a widget more
// than once, and charts should replot once.
bool same_look(const Colours& a, const Colours& b) {
  return a.dark == b.dark && a.base == b.base && a.text == b.text && a.accent == b.accent;
}

}  // namespace

Chart::Chart(QWidget* parent) : QCustomPlot(parent) {
  setNoAntialiasingOnDrag(true);
  // The library keeps a second picture of each chart for what lies above it, which is nothing here.
  layer(u"overlay"_s)->setMode(QCPLayer::lmLogical);
  setAttribute(Qt::WA_NoMousePropagation, false);
  axisRect()->setupFullAxesBox(false);
  for (QCPAxis* axis : {xAxis2, yAxis2}) axis->setVisible(false);
  for (QCPAxis* axis : {xAxis, yAxis}) axis->setTicker(QSharedPointer<ShortTicker>::create(axis));
  connect(this, &QCustomPlot::beforeReplot, this, &Chart::lay_out_anew);
  connect(this, &QCustomPlot::afterReplot, this, &Chart::drop_unseen_picture);
  restyle();
}

void Chart::allow_zoom() {
  setInteractions(QCP::iRangeDrag | QCP::iRangeZoom | QCP::iSelectAxes);
}

void Chart::put_legend_above() {
  plotLayout()->insertRow(0);
  plotLayout()->addElement(0, 0, legend);
  plotLayout()->setRowStretchFactor(0, 0.001);
  legend->setFillOrder(QCPLayoutGrid::foColumnsFirst);
  legend->setBorderPen(Qt::NoPen);
  // The axes are as wide as the legend may be, which would be a few pixels while it has no entry.
  legend->setMaximumSize(QWIDGETSIZE_MAX / 2, QWIDGETSIZE_MAX);
  is_legend_above_ = true;
  restyle();
  connect(this, &QCustomPlot::beforeReplot, this, &Chart::arrange_legend);
}

// Lays out a second time after a change of size, because ticks are chosen before the axes get their
// new length.
void Chart::lay_out_anew() {
  if (laid_out_ == size()) return;
  laid_out_ = size();
  updateLayout();
}

// Puts as many entries into a line as the width has room for.
void Chart::arrange_legend() {
  const QFontMetrics metrics(font());
  int widest = 1;
  for (int i = 0; i < legend->itemCount(); ++i) {
    if (auto* item = qobject_cast<QCPPlottableLegendItem*>(legend->item(i)))
      widest = std::max(widest, metrics.horizontalAdvance(item->plottable()->name()));
  }
  const int columns = std::max(1, width() / (widest + kLegendAround));
  if (legend->wrap() == columns) return;
  legend->setWrap(columns);
  legend->setFillOrder(QCPLayoutGrid::foColumnsFirst);  // This call places the entries anew.
}

void Chart::clear_all() {
  clearPlottables();
  clearItems();
}

QCPItemText* Chart::add_label(const QString& text, double x, double y, Qt::Alignment alignment) {
  auto* label = new QCPItemText(this);
  label->setText(text);
  label->setColor(colours_.text);
  label->setFont(font());
  label->setPositionAlignment(alignment);
  label->setPadding(QMargins(4, 1, 4, 1));
  label->position->setCoords(x, y);
  return label;
}

QCPItemText* Chart::add_note(const QString& text, double x_share, double y_share,
                             Qt::Alignment alignment) {
  auto* label = add_label(text, 0.0, 0.0, alignment);
  label->position->setType(QCPItemPosition::ptAxisRectRatio);
  label->position->setCoords(x_share, y_share);
  label->setTextAlignment(alignment & Qt::AlignHorizontal_Mask);
  return label;
}

bool Chart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !toolTip().isEmpty()) return QCustomPlot::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QString text = tool_tip_at(help->pos());
  if (text.isEmpty()) return QCustomPlot::event(event);
  // The tip goes as the mouse leaves the mark.
  QRect mark(0, 0, kTipReach, kTipReach);
  mark.moveCenter(help->pos());
  QToolTip::showText(help->globalPos(), text, this, mark);
  return true;
}

void Chart::paintEvent(QPaintEvent* event) {
  QPaintDevice* device = redirected(nullptr) != nullptr ? redirected(nullptr) : this;
  const bool is_other_size = device->devicePixelRatioF() != devicePixelRatioF();
  const bool is_dropped = mPaintBuffers.isEmpty();
  if (!is_vector(device->paintEngine()) && !is_other_size && !is_dropped) {
    QCustomPlot::paintEvent(event);
    return;
  }
  if (is_dropped) replot(rpQueuedReplot);
  QCPPainter painter;
  if (painter.begin(this)) toPainter(&painter, width(), height());
}

void Chart::drop_unseen_picture() {
  if (visibleRegion().isEmpty()) mPaintBuffers.clear();
}

void Chart::mousePressEvent(QMouseEvent* event) {
  pressed_at_.reset();
  if (event->button() == Qt::LeftButton) pressed_at_ = event->position();
  QCustomPlot::mousePressEvent(event);
}

void Chart::mouseReleaseEvent(QMouseEvent* event) {
  QCustomPlot::mouseReleaseEvent(event);
  // The second press of a double click comes as another event, so that its release finds none.
  const auto pressed = std::exchange(pressed_at_, std::nullopt);
  if (pressed && event->button() == Qt::LeftButton &&
      QLineF(*pressed, event->position()).length() < kStill)
    click(event->position());
}

void Chart::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  if (event->type() == QEvent::PaletteChange && same_look(colours_, colours_for(palette()))) return;
  restyle();
  Q_EMIT restyled();
  replot(rpQueuedReplot);
}

void Chart::contextMenuEvent(QContextMenuEvent* event) {
  auto* menu = new QMenu(this);
  menu->setObjectName(u"chart_menu"_s);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction(tr("Copy the chart"), this, [this] {
    QGuiApplication::clipboard()->setImage(picture_of(*this, kExportScale));
  });
  for (const QString& suffix : {u"png"_s, u"svg"_s, u"pdf"_s})
    menu->addAction(tr("Export the chart as %1 …").arg(suffix.toUpper()), this,
                    [this, suffix] { Q_EMIT export_wanted(suffix); });
  menu->popup(event->globalPos());
}

// QCustomPlot keeps the wheel to itself everywhere. Where it zooms nothing, the view around the
// chart scrolls.
void Chart::wheelEvent(QWheelEvent* event) {
  const bool zooms = interactions().testFlag(QCP::iRangeZoom) &&
                     !legend->outerRect().contains(event->position().toPoint());
  if (zooms) return QCustomPlot::wheelEvent(event);
  event->ignore();
}

void Chart::style_axis(QCPAxis* axis) const {
  axis->setBasePen(QPen(colours_.frame));
  axis->setTickPen(QPen(colours_.frame));
  axis->setSubTickPen(Qt::NoPen);
  axis->setTickLabelColor(colours_.muted_text);
  axis->setLabelColor(colours_.text);
  axis->setTickLabelFont(font());
  axis->setLabelFont(font());
  axis->setSelectedBasePen(axis->basePen());
  axis->setSelectedTickPen(axis->tickPen());
  axis->setSelectedLabelFont(font());
  axis->setSelectedTickLabelFont(font());
  axis->setSelectedLabelColor(colours_.text);
  axis->setSelectedTickLabelColor(colours_.muted_text);
  axis->grid()->setPen(QPen(colours_.grid));
  axis->grid()->setZeroLinePen(QPen(colours_.grid));
  axis->grid()->setSubGridVisible(false);
}

void Chart::restyle() {
  colours_ = colours_for(palette());
  setBackground(QBrush(colours_.base));
  for (QCPAxis* axis : {xAxis, yAxis, xAxis2, yAxis2}) style_axis(axis);
  legend->setBrush(faded(colours_.base, 0.85));
  if (legend->borderPen() != Qt::NoPen) legend->setBorderPen(QPen(colours_.grid));
  legend->setTextColor(colours_.text);
  legend->setFont(font());
  legend->setRowSpacing(0);
  // The entry is as high as its text, which would stand above the middle of a higher one.
  legend->setIconSize(26, QFontMetrics(font()).height() + 2);
  legend->setMargins(is_legend_above_ ? QMargins(10, 5, 6, 3) : QMargins(6, 3, 6, 3));
}

void Chart::label_memory(QCPAxis& axis, const QString& label, double most) {
  const bool is_memory = label.contains(u"(GB)"_s) && most > 0.0;
  double factor = 1.0;
  QString unit = u"GB"_s;
  for (const QString& smaller : {u"MB"_s, u"kB"_s}) {
    if (!is_memory || factor * most >= 1.0) break;
    factor *= 1000.0;
    unit = smaller;
  }
  axis.setLabel(QString(label).replace(u"(GB)"_s, u'(' + unit + u')'));
  if (const auto ticker = axis.ticker().dynamicCast<ShortTicker>()) ticker->set_factor(factor);
}

qsizetype ShortTicker::first_touching(const QVector<double>& ticks,
                                      const QVector<QString>& labels) const {
  const QFontMetrics metrics(axis_->tickLabelFont());
  const bool along = axis_->orientation() == Qt::Horizontal;
  double last_end = -std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, qsizetype>> places;
  for (qsizetype i = 0; i < ticks.size(); ++i) {
    if (!labels[i].isEmpty()) places.emplace_back(axis_->coordToPixel(ticks[i]), i);
  }
  if (places.size() > 1 && places.front().first > places.back().first)
    std::reverse(places.begin(), places.end());  // A vertical axis grows upwards.
  for (const auto& [at, i] : places) {
    const double half = 0.5 * (along ? metrics.horizontalAdvance(labels[i]) : metrics.height());
    if (at - half < last_end) return i;
    last_end = at + half + (along ? kBesideLabels : kAboveLabels);
  }
  return labels.size();
}

qsizetype ShortTicker::keep_apart(const QVector<double>& ticks, QVector<QString>& labels) const {
  for (auto i = first_touching(ticks, labels); i < labels.size(); i = first_touching(ticks, labels))
    labels[i].clear();
  return std::count_if(labels.begin(), labels.end(),
                       [](const QString& label) { return !label.isEmpty(); });
}

void ShortTicker::generate(const QCPRange& range, const QLocale& locale, QChar format,
                           int precision, QVector<double>& ticks, QVector<double>* sub_ticks,
                           QVector<QString>* labels) {
  const int usual = tickCount();
  const auto generate_of = [&](int count) {
    setTickCount(count);
    QCPAxisTicker::generate(range, locale, format, precision, ticks, sub_ticks, labels);
    setTickCount(usual);
  };
  generate_of(usual);
  if (labels == nullptr) return;
  // Fewer ticks are better than some without a label, but a short range of long numbers may hold
  // only one of the fewer.
  int best = usual;
  qsizetype most = 0;
  for (int count = usual; count >= kFewestTicks; --count) {
    generate_of(count);
    const bool touching = first_touching(ticks, *labels) < labels->size();
    const qsizetype kept = keep_apart(ticks, *labels);
    if (!touching && kept > 1) return;
    if (kept > most) {
      most = kept;
      best = count;
    }
  }
  generate_of(best);
  keep_apart(ticks, *labels);
}

QString ShortTicker::getTickLabel(double tick, const QLocale& locale, QChar format, int precision) {
  tick *= factor_;
  const double largest = std::max(largest_ * factor_, std::abs(tick));
  if (largest < 10'000.0 || tick == 0.0) {
    return std::abs(tick) < 1000.0 ? QCPAxisTicker::getTickLabel(tick, locale, format, precision)
                                   : fixed_text(tick, 0);
  }
  const double scale = largest < 1e6 ? 1e3 : largest < 1e9 ? 1e6 : 1e9;
  const QString prefix = scale < 1e6 ? u" k"_s : scale < 1e9 ? u" M"_s : u" G"_s;
  return locale.toString(tick / scale, 'g', 4) + prefix;
}

QVector<QString> ShortTicker::createLabelVector(const QVector<double>& ticks, const QLocale& locale,
                                                QChar format, int precision) {
  // The numbers of a logarithmic axis lie too far apart for one prefix.
  const bool is_linear = axis_->scaleType() == QCPAxis::stLinear && !ticks.isEmpty();
  largest_ = is_linear ? std::max(std::abs(ticks.front()), std::abs(ticks.back())) : 0.0;
  QVector<QString> labels = QCPAxisTicker::createLabelVector(ticks, locale, format, precision);
  if (!is_linear) return labels;
  static const QRegularExpression kNumber(u"^-?\\d+(?:\\.(\\d+))?(?= |$)"_s);
  qsizetype most = 0;
  for (const QString& label : labels) most = std::max(most, kNumber.match(label).capturedLength(1));
  for (QString& label : labels) {
    const QRegularExpressionMatch number = kNumber.match(label);
    const qsizetype decimals = number.capturedLength(1);
    if (!number.hasMatch() || decimals == most || label == u"0") continue;
    label.insert(number.capturedEnd(),
                 (decimals == 0 ? u"."_s : QString()) + QString(most - decimals, u'0'));
  }
  return labels;
}

double WholeTicker::getTickStep(const QCPRange& range) {
  return std::max(1.0, ShortTicker::getTickStep(range));
}

void HatchedBars::set_fill(const QColor& colour, const QColor& lines, Qt::BrushStyle hatch) {
  setBrush(colour);
  hatch_ = hatch == Qt::SolidPattern ? QBrush(Qt::NoBrush) : QBrush(faded(lines, 0.45), hatch);
}

void HatchedBars::draw(QCPPainter* painter) {
  QCPBars::draw(painter);
  if (hatch_.style() == Qt::NoBrush) return;
  const QBrush fill = std::exchange(mBrush, hatch_brush(*painter, hatch_.color(), hatch_.style()));
  QCPBars::draw(painter);
  mBrush = fill;
}

void HatchedBars::drawLegendIcon(QCPPainter* painter, const QRectF& rect) const {
  QCPBars::drawLegendIcon(painter, rect);
  if (hatch_.style() == Qt::NoBrush) return;
  QRectF box(0, 0, rect.width() * 0.67, rect.height() * 0.67);  // QCPBars has this share.
  box.moveCenter(rect.center());
  painter->fillRect(box, hatch_brush(*painter, hatch_.color(), hatch_.style()));
}

QCPScatterStyle scatter_style(Marker marker, const QColor& colour, double size) {
  constexpr EnumArray<Marker, QCPScatterStyle::ScatterShape> kShapes{
      {QCPScatterStyle::ssCircle, QCPScatterStyle::ssSquare, QCPScatterStyle::ssDiamond,
       QCPScatterStyle::ssTriangle, QCPScatterStyle::ssTriangleInverted, QCPScatterStyle::ssCross,
       QCPScatterStyle::ssPlus, QCPScatterStyle::ssStar}};
  const auto shape = kShapes[marker];
  const bool is_line = marker >= Marker::Cross;
  QPen pen(is_line ? colour : colour.darker(130));
  pen.setWidthF(is_line ? 1.8 : 0.8);
  return {shape, pen, QBrush(colour), size};
}

QColor scale_colour(int step, int steps, bool dark) {
  constexpr std::array<QRgb, 5> kCividis = {0xff00306f, 0xff46537b, 0xff7c7b78, 0xffb9a866,
                                            0xffe8c91c};
  constexpr std::array<QRgb, 5> kCividisNight = {0xff4f7fd6, 0xff6d8bb5, 0xff9a9a96, 0xffc7b66b,
                                                 0xfffde737};
  const int last = static_cast<int>(kCividis.size()) - 1;
  const auto place = static_cast<std::size_t>(steps < 2 ? last : step * last / (steps - 1));
  return QColor(dark ? kCividisNight[place] : kCividis[place]);
}

}  // namespace shardwright::gui
