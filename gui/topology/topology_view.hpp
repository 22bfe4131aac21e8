// The cluster of a plan and the load of its links, as a view of the window.
#pragma once

#include "gui/topology/topology_canvas.hpp"
#include "gui/views/view.hpp"

class QLabel;
class QSlider;

namespace shardwright::gui {

class EmptyState;
class NodeMap;
class ToggleButton;

class TopologyView : public View {
  Q_OBJECT

 public:
  explicit TopologyView(QWidget* parent = nullptr);

  // The load of the links is that of the whole step until a range is selected.
  void show_step(std::shared_ptr<const PlacedStep> step);
  // Shows nothing and reports why the cluster cannot hold the ranks of the plan.
  void show_problem(const QString& text);
  // `hint` says why there is nothing, as rich text; without one the view says how to get something.
  void clear(const QString& hint = {});

  TopologyCanvas& canvas() const { return *canvas_; }

  std::vector<ReportPart> report() const override {
    if (canvas_->is_empty()) return {};
    return {{{}, {}, canvas_, {}}};
  }
  TextTable table() const override;

  // Averages the load of the links over this time, in seconds.
  void select_range(double from, double to);
  void clear_range();

 private:
  QWidget* create_bar();
  void update_nodes();
  // Averages over a part of the step, or over all of it at 0.
  void take_moment(int position);
  // Moves the slider without a new average, and says which part of the step is shown.
  void show_moment(int position, const QString& part);

  TopologyCanvas* canvas_;
  NodeMap* nodes_ = nullptr;
  ToggleButton* all_nodes_ = nullptr;
  QSlider* moment_ = nullptr;
  QLabel* moment_label_ = nullptr;
  EmptyState* empty_ = nullptr;
  bool reported_problem_ = false;
};

}  // namespace shardwright::gui
