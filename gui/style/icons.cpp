#include "gui/style/icons.hpp"

#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPainterPath>
#include <QPalette>
#include <QPixmap>

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
