#include "gui/painting/clipped_svg.hpp"

#include <QBuffer>
#include <QHash>
#include <QPaintEngine>
#include <QPainter>
#include <QPainterPath>
#include <QRegularExpression>
#include <QSvgGenerator>
#include <limits>
#include <optional>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kDotsPerInch = 96;
constexpr double kMillimetresPerInch = 25.4;

// A document of what is painted under one clip. Its content becomes a group of the whole.
struct Part {
  explicit Part(QSize size) {
    generator.setOutputDevice(&bytes);
    generator.setSize(size);
    generator.setViewBox(QRect(QPoint(0, 0), size));
    generator.setResolution(kDotsPerInch);
    painter.begin(&generator);
  }

  QBuffer bytes;
  QSvgGenerator generator;
  QPainter painter;
};

QByteArray number(double value) {
  return QByteArray::number(value, 'g', 9);
}

QByteArray path_data(const QPainterPath& path) {
  QByteArray data;
  for (int i = 0; i < path.elementCount(); ++i) {
    const QPainterPath::Element element = path.elementAt(i);
    if (element.isMoveTo()) data += 'M';
    if (element.isLineTo()) data += 'L';
    if (element.isCurveTo()) data += 'C';
    data += number(element.x) + ' ' + number(element.y) + ' ';
  }
  return data.trimmed();
}

// Makes the names of gradients and patterns unique, which each part numbers from one. Quotes within
// texts are escaped, so none of them looks like a name.
QByteArray with_own_names(const QByteArray& content, int part) {
  static const QRegularExpression kName(u"(\\bid=\"|=\"url\\(#|xlink:href=\"#)([^\")]+)"_s);
  return QString::fromUtf8(content).replace(kName, u"\\1part%1_\\2"_s.arg(part)).toUtf8();
}

// Returns the definitions and groups between the head of a document and its end.
QByteArray content_of(const QByteArray& document) {
  const auto begin = document.indexOf("<defs");
  return document.mid(begin, document.lastIndexOf("</svg>") - begin).trimmed();
}

}  // namespace

// Passes everything on to the painter of a part, and begins the next part when the clip changes.
class ClippedSvgEngine : public QPaintEngine {
 public:
  explicit ClippedSvgEngine(QSize size)
      : QPaintEngine(AllFeatures & ~(PerspectiveTransform | ConicalGradientFill | PorterDuff)),
        size_(size) {}

  bool begin(QPaintDevice*) override { return true; }
  bool end() override {
    end_part();
    return true;
  }
  Type type() const override { return SVG; }
  void updateState(const QPaintEngineState& changed) override {
    constexpr DirtyFlags kClip = DirtyClipEnabled | DirtyClipRegion | DirtyClipPath;
    if ((changed.state() & kClip) != 0) clip_is_known_ = false;
    state_is_known_ = false;
  }

  using QPaintEngine::drawEllipse;
  using QPaintEngine::drawLines;
  using QPaintEngine::drawPoints;
  using QPaintEngine::drawPolygon;
  using QPaintEngine::drawRects;
  void drawRects(const QRectF* rects, int count) override {
    if (is_seen()) part_->painter.drawRects(rects, count);
  }
  void drawLines(const QLineF* lines, int count) override {
    if (is_seen()) part_->painter.drawLines(lines, count);
  }
  void drawEllipse(const QRectF& around) override {
    if (is_seen()) part_->painter.drawEllipse(around);
  }
  void drawPath(const QPainterPath& path) override {
    if (is_seen()) part_->painter.drawPath(path);
  }
  void drawPoints(const QPointF* points, int count) override {
    if (is_seen()) part_->painter.drawPoints(points, count);
  }
  void drawPolygon(const QPointF* points, int count, PolygonDrawMode mode) override {
    if (!is_seen()) return;
    if (mode == PolylineMode) return part_->painter.drawPolyline(points, count);
    part_->painter.drawPolygon(points, count,
                               mode == OddEvenMode ? Qt::OddEvenFill : Qt::WindingFill);
  }
  void drawPixmap(const QRectF& to, const QPixmap& pixmap, const QRectF& from) override {
    if (is_seen()) part_->painter.drawPixmap(to, pixmap, from);
  }
  void drawTiledPixmap(const QRectF& to, const QPixmap& tile, const QPointF& from) override {
    if (is_seen()) part_->painter.drawTiledPixmap(to, tile, from);
  }
  void drawImage(const QRectF& to, const QImage& image, const QRectF& from,
                 Qt::ImageConversionFlags flags) override {
    if (is_seen()) part_->painter.drawImage(to, image, from, flags);
  }
  void drawTextItem(const QPointF& at, const QTextItem& text) override {
    if (is_seen()) part_->painter.drawTextItem(at, text);
  }

  QByteArray document() const {
    const QByteArray width = QByteArray::number(size_.width());
    const QByteArray height = QByteArray::number(size_.height());
    return "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n<svg width=\"" + width +
           "\" height=\"" + height + "\" viewBox=\"0 0 " + width + ' ' + height +
           "\" xmlns=\"http://www.w3.org/2000/svg\" "
           "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\">\n" +
           content_ + "</svg>\n";
  }

 private:
  // Returns the clip of the painter and of the widget that is painted, or none if nothing is cut.
  std::optional<QPainterPath> present_clip() const {
    std::optional<QPainterPath> clip;
    if (painter()->hasClipping()) clip = painter()->deviceTransform().map(painter()->clipPath());
    if (widget_.isEmpty()) return clip;
    QPainterPath area;
    area.addRegion(widget_);
    return clip ? clip->intersected(area) : area.simplified();
  }

  // Returns false if the clip hides everything that comes next; else the part is ready for it.
  bool is_seen() {
    if (const QRegion widget = systemClip(); !clip_is_known_ || widget != widget_) {
      widget_ = widget;
      const std::optional<QPainterPath> clip = present_clip();
      if (clip != clip_) end_part();
      clip_ = clip;
      clip_is_known_ = true;
    }
    if (clip_ && clip_->isEmpty()) return false;
    if (!part_) {
      part_ = std::make_unique<Part>(size_);
      state_is_known_ = false;
    }
    if (!state_is_known_) copy_state();
    state_is_known_ = true;
    return true;
  }

  void copy_state() {
    const QPainter& from = *painter();
    QPainter& to = part_->painter;
    to.setPen(from.pen());
    to.setBrush(from.brush());
    to.setBrushOrigin(from.brushOrigin());
    to.setBackground(from.background());
    to.setBackgroundMode(from.backgroundMode());
    to.setFont(from.font());
    to.setOpacity(from.opacity());
    to.setRenderHints(to.renderHints(), false);
    to.setRenderHints(from.renderHints());
    if (to.transform() != from.deviceTransform()) to.setTransform(from.deviceTransform());
  }

  void end_part() {
    if (!part_) return;
    part_->painter.end();
    const QByteArray content = with_own_names(content_of(part_->bytes.data()), ++parts_);
    part_.reset();
    content_ += clip_ ? "<g clip-path=\"url(#" + name_of_clip() + ")\">\n" : QByteArray("<g>\n");
    content_ += content + "\n</g>\n";
  }

  QByteArray name_of_clip() {
    const QByteArray data = path_data(*clip_);
    if (const auto known = clips_.constFind(data); known != clips_.constEnd()) return *known;
    QByteArray name = "clip" + QByteArray::number(clips_.size() + 1);
    const char* rule = clip_->fillRule() == Qt::OddEvenFill ? "evenodd" : "nonzero";
    content_ += "<clipPath id=\"" + name + "\"><path clip-rule=\"" + rule + "\" d=\"" + data +
                "\"/></clipPath>\n";
    clips_.insert(data, name);
    return name;
  }

  QSize size_;
  std::unique_ptr<Part> part_;
  int parts_ = 0;
  bool clip_is_known_ = false, state_is_known_ = false;
  // The visible part of the widget; empty if it is visible everywhere.
  QRegion widget_;
  std::optional<QPainterPath> clip_;
  QHash<QByteArray, QByteArray> clips_;
  QByteArray content_;
};

ClippedSvg::ClippedSvg(QSize size)
    : size_(size), engine_(std::make_unique<ClippedSvgEngine>(size)) {}

ClippedSvg::~ClippedSvg() = default;

QByteArray ClippedSvg::document() const {
  return engine_->document();
}

QPaintEngine* ClippedSvg::paintEngine() const {
  return engine_.get();
}

int ClippedSvg::metric(PaintDeviceMetric metric) const {
  const auto millimetres = [](int pixels) {
    return qRound(pixels * kMillimetresPerInch / kDotsPerInch);
  };
  switch (metric) {
    case PdmWidth:
      return size_.width();
    case PdmHeight:
      return size_.height();
    case PdmWidthMM:
      return millimetres(size_.width());
    case PdmHeightMM:
      return millimetres(size_.height());
    case PdmDpiX:
    case PdmDpiY:
    case PdmPhysicalDpiX:
    case PdmPhysicalDpiY:
      return kDotsPerInch;
    case PdmDepth:
      return 32;
    case PdmNumColors:
      return std::numeric_limits<int>::max();
    case PdmDevicePixelRatio:
      return 1;
    case PdmDevicePixelRatioScaled:
      return qRound(devicePixelRatioFScale());
    default:
      return QPaintDevice::metric(metric);
  }
}

}  // namespace shardwright::gui
