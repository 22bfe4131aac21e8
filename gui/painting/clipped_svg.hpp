// An SVG that keeps clips. QSvgGenerator of Qt 6.4 ignores those of the painter and those of a
// widget at its own edge.
#pragma once

#include <QByteArray>
#include <QPaintDevice>
#include <QSize>
#include <memory>

namespace shardwright::gui {

class ClippedSvgEngine;

class ClippedSvg : public QPaintDevice {
 public:
  // The size is in pixels, of which an inch has 96.
  explicit ClippedSvg(QSize size);
  ~ClippedSvg() override;
  ClippedSvg(const ClippedSvg&) = delete;
  ClippedSvg& operator=(const ClippedSvg&) = delete;

  // Returns the picture after the painter has ended.
  QByteArray document() const;
  QPaintEngine* paintEngine() const override;

 protected:
  int metric(PaintDeviceMetric metric) const override;

 private:
  QSize size_;
  std::unique_ptr<ClippedSvgEngine> engine_;
};

}  // namespace shardwright::gui
