// The cluster of a plan, its links coloured by their load in the step, with the mouse and the keys
// that it has beside those of NavigableArea.
//
//   point at a GPU      show its groups; a click keeps them
//   T C E D P           show the groups of this axis alone; again: of all axes
//   left, right, click on a stack of nodes   turn the page of nodes
//   up, down, click on a stack of GPUs       turn the page of GPUs of a large domain
//   B, Home             show the node of the busiest link
#pragma once

#include <memory>
#include <optional>

#include "gui/models/text.hpp"
#include "gui/painting/navigable_view.hpp"
#include "gui/topology/topology_painter.hpp"

namespace shardwright::gui {

class TopologyCanvas : public NavigableView<TopologyScene> {
  Q_OBJECT

 public:
  explicit TopologyCanvas(QWidget* parent = nullptr);

  // The links' load is that of the whole step until a range is selected.
  void show_step(std::shared_ptr<const PlacedStep> step);
  void clear();

  bool is_empty() const override { return step_ == nullptr; }
  const ClusterMap& map() const { return step_->map; }
  const TopologyLayout& layout_shown() const { return layout_; }

  QSize sizeHint() const override { return {1000, 480}; }
  QSize growth_of_picture() const override;

  // The time, in seconds, over which the load of the links is averaged.
  void select_range(double from, double to);
  void clear_range();
  // By the plan's number, as `rank_selected` has it.
  void select_rank(int rank);
  // Shows the domain of this number, with those that follow it.
  void show_domain(std::int64_t first);
  // The length of the step, in seconds; 0 if nothing passes the links.
  double step_length() const { return step_ && step_->traffic.end() > 0.0 ? step_->seconds : 0.0; }
  // "node 5, ranks 40–47, stage 1", for each domain.
  QStringList domain_names() const;
  std::optional<std::int32_t> item_at(const QPointF& position) const override;

 Q_SIGNALS:
  void rank_selected(int rank);
  // The links have another load.
  void loaded();

 protected:
  QRectF plot() const override;
  void paint(QPainter& painter) override;
  QString tool_tip_at(const QPointF& position) const override;
  void lay_out() override;
  void selection_changed() override;
  void click(const QPointF& position) override;
  bool begin_drag(const QPointF& /*position*/) override { return false; }
  bool double_click_fits_at(const QPointF& position) const override;

 private:
  QSizeF map_size() const;
  QPointF layout_place(const QPointF& position) const;
  void load_links(double from, double to, const QString& title);
  void turn_page(int pages);
  void show_bottleneck();
  void show_gpus(std::int64_t first);
  void lay_out_again();
  void add_keys();
  void toggle(Axis axis);
  QString tip_of(const std::vector<sim::LinkIndex>& links) const;
  // Adds the busiest link of a vertex to the lines.
  QString tip_of(const QString& title, sim::VertexIndex vertex,
                 std::vector<TipLine> lines = {}) const;
  QString tip_of(const MapItem& domain) const;
  TipLine line_of(sim::LinkIndex link) const;
  // Computes them anew only where the rank or the shown axis has changed.
  void find_routes();

  std::shared_ptr<const PlacedStep> step_;
  TopologyLayout layout_;
  std::uint32_t first_domain_ = 0, first_gpu_ = 0;
};

}  // namespace shardwright::gui
