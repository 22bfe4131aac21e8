// SVG that is cut where the painter cuts. QSvgGenerator of Qt 6.4 leaves clips out, those of the
// painter and those of a widget at its own edge.
#pragma once

#include <QByteArray>
#include <QPaintDevice>
#include <QSize>
#include <memory>

namespace shardwright::gui {

class ClippedSvgEngine;

class ClippedSvg : public QPaintDevice {
 public:
  // In pixels, 96 of which are an inch.
  explicit ClippedSvg(QSize size);
  ~ClippedSvg() override;
  ClippedSvg(const ClippedSvg&) = delete;
  ClippedSvg& operator=(const ClippedSvg&) = delete;

  // All that was painted, once the painter has ended.
  QByteArray document() const;
  QPaintEngine* paintEngine() const override;

 protected:
  int metric(PaintDeviceMetric metric) const override;

 private:
  QSize size_;
  std::unique_ptr<ClippedSvgEngine> engine_;
};

}  // namespace shardwright::gui
