// All scale-up domains of a cluster on one screen: a cell for each, in the order of their ranks, in
// the colour of its busiest link. A click asks for a domain; so does Enter where the arrow keys
// have gone.
#pragma once

#include <QPainter>
#include <QWidget>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gui/topology/cluster_map.hpp"

namespace shardwright::gui {

struct Colours;

// The share of its capacity that the busiest link of a domain has, among the links of its
// accelerators and its NICs; `utilisation` is by link.
double domain_load(const ClusterMap& map, const std::vector<double>& utilisation,
                   std::uint32_t domain);
// The same of each domain.
std::vector<double> domain_loads(const ClusterMap& map, const std::vector<double>& utilisation);

class NodeMap : public QWidget {
  Q_OBJECT

 public:
  explicit NodeMap(QWidget* parent = nullptr);

  // `names` are what the cells say: "node 5, ranks 40–47, stage 1".
  void show_loads(std::vector<double> loads, double scale_end, QStringList names);
  // The cell of a domain, in pixels.
  QRectF cell(std::size_t domain) const;

  QSize sizeHint() const override { return {900, 320}; }

 Q_SIGNALS:
  void clicked(std::uint32_t domain);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  std::optional<std::size_t> domain_at(const QPointF& position) const;
  // What the tool tip of a domain says.
  QString tip_of(std::size_t domain) const;
  // The number of cells in a full line, and the side of a cell in pixels.
  std::pair<std::size_t, double> grid() const;
  void go_to(std::size_t domain);
  void place_title();
  double top_of_cells() const;
  void paint_scale(QPainter& painter, const Colours& colours) const;

  std::vector<double> loads_;
  double scale_end_ = 1.0;
  QStringList names_;
  QRectF title_;
  // The cell in which the left button went down.
  std::optional<std::size_t> pressed_;
  // The domain that the arrow keys have gone to.
  std::size_t current_ = 0;
};

}  // namespace shardwright::gui
