#include "gui/views/picture_export.hpp"

#include <QBuffer>
#include <QFileInfo>
#include <QPainter>
#include <QPdfWriter>
#include <QScrollArea>
#include <vector>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/painting/clipped_svg.hpp"
#include "gui/painting/navigable_view.hpp"

namespace shardwright::gui {
namespace {

constexpr int kDotsPerInch = 96;

[[noreturn]] void fail(const QString& file, const QString& why) {
  throw RuntimeFailure((file + u": "_s + why).toStdString());
}

// Shows a view without scroll bars for as long as this lives, so that a picture has everything that
// the user could scroll to.
class Unrolled {
 public:
  explicit Unrolled(QWidget& widget) : widget_(widget), before_(widget.size()) {
    if (widget.isWindow()) return;
    for (QScrollArea* area : widget.findChildren<QScrollArea*>()) {
      if (area->widget() == nullptr || !area->isVisibleTo(&widget)) continue;
      areas_.push_back(area);
      hide_bars(*area);
    }
    if (auto* itself = qobject_cast<NavigableArea*>(&widget)) hide_bars(*itself);
    for (NavigableArea* area : widget.findChildren<NavigableArea*>()) hide_bars(*area);
    const QSize hidden = hidden_size();
    if (!hidden.isNull()) widget.resize(before_ + hidden);
  }
  ~Unrolled() {
    for (const HiddenBars& bars : hidden_) {
      bars.area->setVerticalScrollBarPolicy(bars.vertical);
      bars.area->setHorizontalScrollBarPolicy(bars.horizontal);
    }
    widget_.resize(before_);
  }
  Unrolled(const Unrolled&) = delete;
  Unrolled& operator=(const Unrolled&) = delete;

 private:
  struct HiddenBars {
    QAbstractScrollArea* area;
    Qt::ScrollBarPolicy vertical;
    Qt::ScrollBarPolicy horizontal;
  };

  void hide_bars(QAbstractScrollArea& area) {
    hidden_.push_back({&area, area.verticalScrollBarPolicy(), area.horizontalScrollBarPolicy()});
    area.setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    area.setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  }

  QSize hidden_size() const {
    QSize hidden(0, 0);
    for (const QScrollArea* area : areas_)
      hidden = hidden.expandedTo(area->widget()->size() - area->viewport()->size());
    for (const NavigableArea* area : widget_.findChildren<NavigableArea*>())
      hidden = hidden.expandedTo(area->isVisibleTo(&widget_) ? area->growth_of_picture() : QSize());
    return hidden;
  }

  QWidget& widget_;
  QSize before_;
  std::vector<QScrollArea*> areas_;
  std::vector<HiddenBars> hidden_;
};

void render(QWidget& widget, QPaintDevice& device, const QString& file) {
  QPainter painter;
  if (!painter.begin(&device)) fail(file, u"cannot be written"_s);
  widget.render(&painter);
}

// Makes the picture in memory, because none of the three writers reports a full disk.
QByteArray pdf_of(QWidget& widget, const QString& file) {
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  QPdfWriter writer(&bytes);
  writer.setResolution(kDotsPerInch);
  writer.setPageSize(
      QPageSize(QSizeF(widget.size()) / kDotsPerInch, QPageSize::Inch, {}, QPageSize::ExactMatch));
  writer.setPageMargins(QMarginsF());
  render(widget, writer, file);
  return bytes.data();
}

}  // namespace

QImage picture_of(QWidget& widget, double scale) {
  const Unrolled unrolled(widget);
  QImage image(widget.size() * scale, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(scale);
  image.fill(widget.palette().color(QPalette::Window));
  QPainter painter(&image);
  widget.render(&painter);
  return image;
}

QByteArray vectors_of(QWidget& widget, const QString& file) {
  ClippedSvg svg(widget.size());
  render(widget, svg, file);
  return svg.document();
}

void write_png(const QImage& picture, const QString& file) {
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  if (!picture.save(&bytes, "PNG")) fail(file, u"cannot be written"_s);
  write_file(file, bytes.data());
}

void export_picture(QWidget& widget, const QString& file) {
  const QString suffix = QFileInfo(file).suffix().toLower();
  const Unrolled unrolled(widget);
  if (suffix == u"svg"_s) return write_file(file, vectors_of(widget, file));
  if (suffix == u"pdf"_s) return write_file(file, pdf_of(widget, file));
  if (suffix == u"png"_s) return write_png(picture_of(widget, kExportScale), file);
  fail(file, u"is no .png, .svg or .pdf"_s);
}

}  // namespace shardwright::gui
