#include "gui/style/icons.hpp"

#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPainterPath>
#include <QPalette>
#include <QPixmap>
#include <initializer_list>

namespace shardwright::gui {
namespace {

// The icons are drawn on a square of this side.
constexpr double kSide = 16.0;

void arrow_back(QPainter& painter) {
  QPainterPath path(QPointF(13.0, 12.5));
  path.cubicTo(14.5, 6.0, 9.0, 4.5, 3.0, 6.5);
  painter.drawPath(path);
  painter.drawPolyline(QPolygonF({{6.5, 2.5}, {2.5, 6.7}, {7.0, 9.5}}));
}

void mirrored(QPainter& painter, void (*draw)(QPainter&)) {
  painter.translate(kSide, 0.0);
  painter.scale(-1.0, 1.0);
  draw(painter);
}

void sheet(QPainter& painter) {
  painter.drawPolyline(QPolygonF({{9.0, 2.0}, {3.0, 2.0}, {3.0, 14.0}, {13.0, 14.0}, {13.0, 9.0}}));
}

void arrow_round(QPainter& painter) {
  painter.drawArc(QRectF(2.5, 2.5, 11.0, 11.0), 60 * 16, 290 * 16);
  painter.drawPolyline(QPolygonF({{7.5, 0.8}, {10.8, 3.2}, {8.2, 6.2}}));
}

// Fills each of these rectangles.
void bars(QPainter& painter, const QColor& ink, std::initializer_list<QRectF> places) {
  for (const QRectF& place : places) painter.fillRect(place, ink);
}

void frame_with_lines(QPainter& painter, std::initializer_list<QLineF> lines) {
  painter.drawRect(QRectF(1.5, 2.5, 13.0, 11.0));
  for (const QLineF& line : lines) painter.drawLine(line);
}

void paint_view(Icon icon, QPainter& painter, const QColor& ink) {
  switch (icon) {
    case Icon::Scenario:
      for (const double y : {4.0, 8.0, 12.0}) painter.drawLine(QPointF(2.0, y), QPointF(14.0, y));
      return bars(painter, ink,
                  {{4.0, 2.2, 3.0, 3.6}, {9.5, 6.2, 3.0, 3.6}, {5.5, 10.2, 3.0, 3.6}});
    case Icon::Plans:
      return frame_with_lines(
          painter, {{1.5, 6.0, 14.5, 6.0}, {1.5, 9.7, 14.5, 9.7}, {6.0, 2.5, 6.0, 13.5}});
    case Icon::Why:
      return bars(painter, ink,
                  {{2.0, 2.5, 12.0, 2.8}, {2.0, 6.7, 7.0, 2.8}, {2.0, 10.9, 4.0, 2.8}});
    case Icon::Timeline:
      return bars(painter, ink,
                  {{1.5, 3.0, 6.0, 2.6},
                   {9.0, 3.0, 5.5, 2.6},
                   {4.0, 7.0, 7.0, 2.6},
                   {1.5, 11.0, 4.0, 2.6},
                   {8.0, 11.0, 6.5, 2.6}});
    case Icon::Topology:
      painter.drawLine(QPointF(8.0, 4.0), QPointF(3.5, 12.0));
      painter.drawLine(QPointF(8.0, 4.0), QPointF(12.5, 12.0));
      painter.setBrush(ink);
      for (const QPointF& node : {QPointF(8.0, 3.5), QPointF(3.5, 12.5), QPointF(12.5, 12.5)})
        painter.drawEllipse(node, 1.8, 1.8);
      return;
    case Icon::Schedule:
      return bars(painter, ink,
                  {{1.5, 2.5, 4.5, 3.0},
                   {4.5, 6.5, 4.5, 3.0},
                   {7.5, 10.5, 4.5, 3.0},
                   {12.5, 6.5, 2.0, 3.0}});
    case Icon::Sweeps: {
      QPainterPath curve(QPointF(2.0, 13.0));
      curve.cubicTo(4.0, 5.0, 8.0, 4.0, 14.0, 3.5);
      return painter.drawPath(curve);
    }
    case Icon::Forecast:
      painter.drawPolyline(QPolygonF({{2.0, 2.0}, {2.0, 14.0}, {14.0, 14.0}}));
      return painter.drawPolyline(QPolygonF({{4.0, 11.0}, {7.5, 7.0}, {9.5, 9.0}, {13.5, 3.5}}));
    default:
      return;
  }
}

void paint_command(Icon icon, QPainter& painter, const QColor& ink) {
  switch (icon) {
    case Icon::Folder:
      painter.drawPolyline(
          QPolygonF({{1.5, 13.0}, {1.5, 3.0}, {6.0, 3.0}, {7.5, 5.0}, {13.0, 5.0}, {13.0, 7.0}}));
      return painter.drawPolygon(QPolygonF({{1.5, 13.0}, {4.0, 7.5}, {15.0, 7.5}, {12.5, 13.0}}));
    case Icon::Reload:
      return arrow_round(painter);
    case Icon::Close:
      painter.drawLine(QPointF(3.5, 3.5), QPointF(12.5, 12.5));
      return painter.drawLine(QPointF(12.5, 3.5), QPointF(3.5, 12.5));
    case Icon::Quit:
      painter.drawArc(QRectF(2.5, 3.0, 11.0, 11.0), 120 * 16, 300 * 16);
      return painter.drawLine(QPointF(8.0, 1.5), QPointF(8.0, 7.5));
    case Icon::Copy:
      painter.drawRect(QRectF(5.5, 5.5, 8.5, 8.5));
      return painter.drawPolyline(
          QPolygonF({{10.5, 3.0}, {10.5, 2.0}, {2.0, 2.0}, {2.0, 10.5}, {3.0, 10.5}}));
    case Icon::Picture:
      frame_with_lines(painter, {});
      return painter.drawPolyline(
          QPolygonF({{2.5, 12.0}, {6.5, 7.0}, {9.0, 10.0}, {11.0, 8.0}, {13.5, 12.0}}));
    case Icon::Data:
      return frame_with_lines(painter, {{4.0, 6.0, 12.0, 6.0}, {4.0, 10.0, 9.0, 10.0}});
    case Icon::Filter:
      return painter.drawPolygon(
          QPolygonF({{2.0, 3.0}, {14.0, 3.0}, {9.5, 8.5}, {9.5, 13.5}, {6.5, 12.0}, {6.5, 8.5}}));
    case Icon::Example:
      return painter.drawPolygon(QPolygonF({{8.0, 1.5},
                                            {9.8, 6.0},
                                            {14.5, 6.3},
                                            {10.9, 9.3},
                                            {12.1, 14.0},
                                            {8.0, 11.4},
                                            {3.9, 14.0},
                                            {5.1, 9.3},
                                            {1.5, 6.3},
                                            {6.2, 6.0}}));
    case Icon::Machine:
      painter.drawRect(QRectF(2.0, 2.5, 12.0, 8.5));
      return painter.drawLine(QPointF(5.0, 13.8), QPointF(11.0, 13.8));
    case Icon::Calibrate:
      painter.drawArc(QRectF(2.0, 3.5, 12.0, 12.0), 0, 180 * 16);
      return painter.drawLine(QPointF(8.0, 9.5), QPointF(11.5, 5.5));
    case Icon::GoTo:
      painter.drawLine(QPointF(2.0, 8.0), QPointF(10.0, 8.0));
      painter.drawPolyline(QPolygonF({{7.0, 5.0}, {10.2, 8.0}, {7.0, 11.0}}));
      return painter.drawLine(QPointF(13.5, 3.0), QPointF(13.5, 13.0));
    case Icon::Pin:
    case Icon::Unpin:
      painter.drawLine(QPointF(5.0, 2.0), QPointF(11.0, 2.0));
      painter.drawPolygon(
          QPolygonF({{6.0, 2.0}, {10.0, 2.0}, {10.5, 7.0}, {12.5, 9.0}, {3.5, 9.0}, {5.5, 7.0}}));
      painter.drawLine(QPointF(8.0, 9.0), QPointF(8.0, 14.5));
      if (icon == Icon::Unpin) painter.drawLine(QPointF(2.0, 13.5), QPointF(14.0, 1.5));
      return;
    case Icon::Rows:
      for (const double y : {4.0, 8.0, 12.0}) painter.drawLine(QPointF(2.0, y), QPointF(14.0, y));
      return;
    case Icon::Layout:
      return frame_with_lines(painter, {{6.0, 2.5, 6.0, 13.5}, {6.0, 8.0, 14.5, 8.0}});
    case Icon::Columns:
      return frame_with_lines(painter, {{5.8, 2.5, 5.8, 13.5}, {10.2, 2.5, 10.2, 13.5}});
    case Icon::Light:
      painter.drawEllipse(QPointF(8.0, 8.0), 3.0, 3.0);
      for (int i = 0; i < 8; ++i) {
        painter.save();
        painter.translate(8.0, 8.0);
        painter.rotate(45.0 * i);
        painter.drawLine(QPointF(5.2, 0.0), QPointF(6.8, 0.0));
        painter.restore();
      }
      return;
    case Icon::Dark: {
      QPainterPath moon;
      moon.addEllipse(QPointF(7.5, 8.0), 6.0, 6.0);
      QPainterPath shadow;
      shadow.addEllipse(QPointF(10.5, 6.0), 5.0, 5.0);
      return painter.fillPath(moon.subtracted(shadow), ink);
    }
    case Icon::Keyboard:
      frame_with_lines(painter, {{5.0, 11.0, 11.0, 11.0}});
      for (const double x : {4.0, 8.0, 12.0}) painter.drawPoint(QPointF(x, 6.5));
      return;
    case Icon::Commands:
      painter.drawPolyline(QPolygonF({{2.5, 4.0}, {6.5, 8.0}, {2.5, 12.0}}));
      return painter.drawLine(QPointF(8.0, 12.5), QPointF(13.5, 12.5));
    case Icon::About:
      painter.drawEllipse(QPointF(8.0, 8.0), 6.2, 6.2);
      painter.drawLine(QPointF(8.0, 7.5), QPointF(8.0, 11.5));
      return painter.drawPoint(QPointF(8.0, 4.8));
    default:
      return paint_view(icon, painter, ink);
  }
}

void paint_of(Icon icon, QPainter& painter, const QColor& ink) {
  switch (icon) {
    case Icon::Open:
      return painter.drawPolygon(
          QPolygonF({{1.5, 13.0}, {1.5, 3.0}, {6.0, 3.0}, {7.5, 5.0}, {14.5, 5.0}, {14.5, 13.0}}));
    case Icon::Save:
      painter.drawPolygon(
          QPolygonF({{2.0, 2.0}, {11.5, 2.0}, {14.0, 4.5}, {14.0, 14.0}, {2.0, 14.0}}));
      return painter.drawRect(QRectF(5.0, 9.0, 6.0, 5.0));
    case Icon::Undo:
      return arrow_back(painter);
    case Icon::Redo:
      return mirrored(painter, arrow_back);
    case Icon::Search:
      painter.drawEllipse(QPointF(6.5, 6.5), 4.5, 4.5);
      return painter.drawLine(QPointF(10.0, 10.0), QPointF(14.5, 14.5));
    case Icon::Stop:
      return painter.fillRect(QRectF(3.5, 3.5, 9.0, 9.0), ink);
    case Icon::Run:
      painter.setBrush(ink);
      return painter.drawPolygon(QPolygonF({{4.0, 2.5}, {13.0, 8.0}, {4.0, 13.5}}));
    case Icon::Pause:
      painter.fillRect(QRectF(4.0, 3.0, 3.0, 10.0), ink);
      return painter.fillRect(QRectF(9.0, 3.0, 3.0, 10.0), ink);
    case Icon::Compare:
      painter.fillRect(QRectF(3.0, 3.0, 3.5, 11.0), ink);
      return painter.drawRect(QRectF(9.5, 6.0, 3.5, 8.0));
    case Icon::Export:
      sheet(painter);
      painter.drawLine(QPointF(7.5, 8.5), QPointF(14.0, 2.0));
      return painter.drawPolyline(QPolygonF({{10.5, 2.0}, {14.0, 2.0}, {14.0, 5.5}}));
    case Icon::Maximise:
      painter.drawPolyline(QPolygonF({{6.0, 2.0}, {2.0, 2.0}, {2.0, 6.0}}));
      painter.drawPolyline(QPolygonF({{10.0, 14.0}, {14.0, 14.0}, {14.0, 10.0}}));
      painter.drawLine(QPointF(2.0, 2.0), QPointF(6.5, 6.5));
      return painter.drawLine(QPointF(14.0, 14.0), QPointF(9.5, 9.5));
    case Icon::Theme:
      painter.drawEllipse(QPointF(8.0, 8.0), 6.0, 6.0);
      painter.setBrush(ink);
      return painter.drawChord(QRectF(2.0, 2.0, 12.0, 12.0), 90 * 16, 180 * 16);
    case Icon::Help:
      painter.drawArc(QRectF(4.5, 2.0, 7.0, 6.5), 180 * 16, -230 * 16);
      painter.drawLine(QPointF(8.0, 8.5), QPointF(8.0, 11.0));
      return painter.drawPoint(QPointF(8.0, 13.8));
    default:
      return paint_command(icon, painter, ink);
  }
}

class IconEngine : public QIconEngine {
 public:
  explicit IconEngine(Icon icon) : icon_(icon) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const bool disabled = mode == QIcon::Disabled;
    const QColor ink = QGuiApplication::palette().color(
        disabled ? QPalette::Disabled : QPalette::Active, QPalette::ButtonText);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->translate(rect.topLeft());
    painter->scale(rect.width() / kSide, rect.height() / kSide);
    painter->setPen(QPen(ink, 1.5, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter->setBrush(Qt::NoBrush);
    paint_of(icon_, *painter, ink);
    painter->restore();
  }

  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap picture(size);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    paint(&painter, QRect(QPoint(), size), mode, state);
    return picture;
  }

  QIconEngine* clone() const override { return new IconEngine(icon_); }

 private:
  Icon icon_;
};

}  // namespace

QIcon icon_of(Icon icon) {
  return QIcon(new IconEngine(icon));
}

}  // namespace shardwright::gui
