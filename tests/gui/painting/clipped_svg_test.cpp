#include "gui/painting/clipped_svg.hpp"

#include <gtest/gtest.h>

#include <QImage>
#include <QLabel>
#include <QLinearGradient>
#include <QPainter>
#include <QSvgRenderer>
#include <QXmlStreamReader>
#include <functional>
#include <set>

#include "tests/gui/clipped_parts.hpp"

namespace shardwright::gui {
namespace {

constexpr QSize kSize(120, 80);

QImage blank() {
  QImage image(kSize, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::white);
  return image;
}

QByteArray document_of(const std::function<void(QPainter&)>& paint) {
  ClippedSvg svg(kSize);
  QPainter painter(&svg);
  paint(painter);
  painter.end();
  return svg.document();
}

QImage picture_of(const std::function<void(QPainter&)>& paint) {
  QImage image = blank();
  QPainter painter(&image);
  paint(painter);
  return image;
}

// Renders group after group, each with its clip, because Qt's reader of SVG ignores clips.
QImage drawn(const QByteArray& document) {
  QImage image = blank();
  QPainter painter(&image);
  for (const ClippedPart& part : clipped_parts(document)) {
    QSvgRenderer content(
        u"<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
        "viewBox=\"0 0 120 80\">%1</svg>"_s.arg(part.content)
            .toUtf8());
    EXPECT_TRUE(content.isValid());
    painter.save();
    if (part.is_clipped) painter.setClipPath(part.clip);
    content.render(&painter, QRectF(QPointF(0, 0), QSizeF(kSize)));
    painter.restore();
  }
  return image;
}

void fill(QPainter& painter, const QRect& area, Qt::GlobalColor colour) {
  painter.fillRect(area, colour);
}

// Paints under clips of all kinds, which are restored, moved and scaled.
void paint_clipped(QPainter& painter) {
  fill(painter, {0, 0, 120, 80}, Qt::lightGray);
  painter.save();
  painter.setClipRect(QRect(10, 10, 50, 30));
  fill(painter, {0, 0, 40, 80}, Qt::red);
  painter.translate(20, 20);
  painter.setClipRect(QRect(0, 0, 60, 10), Qt::IntersectClip);
  fill(painter, {-100, -100, 300, 300}, Qt::blue);
  painter.restore();
  fill(painter, {100, 0, 20, 20}, Qt::green);
  painter.save();
  painter.scale(2.0, 2.0);
  painter.setClipRegion(QRegion(30, 20, 10, 10) + QRegion(45, 30, 10, 10));
  fill(painter, {0, 0, 100, 100}, Qt::yellow);
  painter.setClipping(false);
  fill(painter, {0, 38, 5, 2}, Qt::black);
  painter.setClipping(true);
  fill(painter, {30, 20, 3, 30}, Qt::cyan);
  painter.restore();
  painter.setClipRect(QRect(200, 0, 10, 10));
  fill(painter, {0, 0, 120, 80}, Qt::black);
}

TEST(ClippedSvg, LooksAsThePictureDoes) {
  const QByteArray document = document_of(paint_clipped);
  EXPECT_EQ(drawn(document), picture_of(paint_clipped)) << document.toStdString();
}

// The inner widget is scrolled below the edge of the outer one.
TEST(ClippedSvg, WidgetsEndAtTheirEdges) {
  QWidget outer;
  outer.resize(kSize);
  auto* window = new QWidget(&outer);
  window->setGeometry(20, 10, 60, 40);
  auto* scrolled = new QWidget(window);
  scrolled->setGeometry(-30, -5, 200, 200);
  scrolled->setAutoFillBackground(true);
  scrolled->setPalette(QPalette(Qt::darkRed));
  const auto paint = [&](QPainter& painter) { outer.render(&painter); };
  const QImage picture = picture_of(paint);
  ASSERT_NE(picture.pixel(30, 20), picture.pixel(100, 70));
  EXPECT_EQ(drawn(document_of(paint)), picture);
}

// Each part numbers its gradients from one on.
TEST(ClippedSvg, EveryNameIsGivenOnceAndEveryReferenceHasOne) {
  const QByteArray document = document_of([](QPainter& painter) {
    for (int i = 0; i < 3; ++i) {
      painter.setClipRect(QRect(0, 20 * i, 120, 10));
      QLinearGradient colours(0, 0, 120, 0);
      colours.setColorAt(0, i == 0 ? Qt::red : Qt::blue);
      colours.setColorAt(1, Qt::white);
      painter.fillRect(QRect(0, 0, 120, 80), colours);
      painter.setPen(Qt::black);
      painter.drawText(QPointF(10, 20 * i + 8), u"id=\"a\" url(#b) & <c>"_s);
    }
  });
  std::set<QString> names, references;
  QString text;
  QXmlStreamReader reader(document);
  static const QRegularExpression kReference(u"^url\\(#(.*)\\)$"_s);
  while (!reader.atEnd()) {
    reader.readNext();
    if (reader.isCharacters()) text += reader.text();
    if (!reader.isStartElement()) continue;
    for (const QXmlStreamAttribute& attribute : reader.attributes()) {
      const QString value = attribute.value().toString();
      if (attribute.qualifiedName() == u"id"_s) {
        EXPECT_TRUE(names.insert(value).second) << qPrintable(value);
      }
      if (const auto match = kReference.match(value); match.hasMatch())
        references.insert(match.captured(1));
    }
  }
  EXPECT_FALSE(reader.hasError()) << qPrintable(reader.errorString());
  EXPECT_EQ(references.size(), 6U);
  for (const QString& reference : references)
    EXPECT_EQ(names.count(reference), 1U) << qPrintable(reference);
  EXPECT_EQ(text.count(u"id=\"a\" url(#b) & <c>"_s), 3);
}

}  // namespace
}  // namespace shardwright::gui
