// The cluster of a plan, its links coloured by what the step puts on them.
//
//   point at a GPU   its groups stand out           click    keep them, Esc frees
//   T C E D P        only that axis, again: all     Left Right, click on a stack   other nodes
//   B, Home          the busiest link's node        Up Down  other GPUs of a large domain
#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "core/spec/scenario.hpp"
#include "gui/topology/topology_painter.hpp"

namespace shardwright::gui {

class TopologyCanvas : public QWidget {
  Q_OBJECT

 public:
  explicit TopologyCanvas(QWidget* parent = nullptr);

  // The links' load is that of the whole timeline until a range is selected; without a timeline
  // they are idle. Throws InputError where the plan's ranks cannot be laid on the cluster.
  void set_plan(const ClusterSpec& cluster, const Plan& plan, const Timeline* timeline);
  void clear();

  bool is_empty() const { return map_ == nullptr; }
  const ClusterMap& map() const { return *map_; }
  const TopologyScene& scene() const { return scene_; }
  const TopologyLayout& layout_shown() const { return layout_; }

  QSize sizeHint() const override { return {1000, 480}; }

  // The time that the load is of, in seconds.
  void select_range(double from, double to);
  void clear_range();
  void select_rank(int rank);
  void clear_rank();

 Q_SIGNALS:
  void rank_selected(int rank);
  void rank_cleared();

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void load_links(double from, double to, const QString& title);
  void show_domain(std::int64_t first);
  void show_bottleneck();
  void show_gpus(std::int64_t first);
  void lay_out_again();
  QString tool_tip_at(const QPointF& position) const;

  std::unique_ptr<ClusterMap> map_;
  std::optional<PlanGroups> groups_;
  LinkTraffic traffic_;
  TopologyScene scene_;
  TopologyLayout layout_;
  Colours colours_;
  double step_ = 0.0;  // in seconds
  std::uint32_t first_domain_ = 0, first_gpu_ = 0;
};

}  // namespace shardwright::gui
