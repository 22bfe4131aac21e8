// The cluster of a plan and the load of its links, as a view of the window.
#pragma once

#include "gui/topology/topology_canvas.hpp"
#include "gui/views/view.hpp"

namespace shardwright::gui {

class EmptyState;

class TopologyView : public View {
  Q_OBJECT

 public:
  explicit TopologyView(QWidget* parent = nullptr);

  // The links' load is that of the whole timeline until a range is selected; without a timeline
  // they are idle. A plan whose ranks cannot be laid on the cluster is told by `problem`.
  void set_plan(const ClusterSpec& cluster, const Plan& plan, const Timeline* timeline);
  // `files`, if any, whose step is shown instead of a plan's.
  void clear(const QString& files = {});

  TopologyCanvas& canvas() { return *canvas_; }
  const TopologyCanvas& canvas() const { return *canvas_; }

  // A row for each link.
  TextTable table() const override;

  // The time that the load is of, in seconds.
  void select_range(double from, double to) { canvas_->select_range(from, to); }
  void clear_range() { canvas_->clear_range(); }

 private:
  TopologyCanvas* canvas_;
  EmptyState* empty_ = nullptr;
  bool told_problem_ = false;
};

}  // namespace shardwright::gui
