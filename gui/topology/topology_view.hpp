// The cluster of a plan and the load of its links, as a view of the window.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gui/topology/topology_canvas.hpp"
#include "gui/views/view.hpp"

class QComboBox;
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
  void show_step(std::shared_ptr<const PlacedStep> step) { show_steps({std::move(step)}); }
  // On several pools the step has a part for each, of which one is shown at a time.
  void show_steps(std::vector<std::shared_ptr<const PlacedStep>> steps);
  // Shows nothing and reports why the cluster cannot hold the ranks of the plan.
  void show_problem(const QString& text);
  // `hint` says why there is nothing, as rich text; without one the view says how to get something.
  void clear(const QString& hint = {});

  // Shows the pool of the rank and lets the rank stand out.
  void select_rank(int rank);

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
  void offer_pools();
  void show_pool(int pool);
  // Averages over a part of the step, or over all of it at 0.
  void take_moment(int position);
  // Moves the slider without a new average, and says which part of the step is shown.
  void show_moment(int position, const QString& part);

  std::vector<std::shared_ptr<const PlacedStep>> steps_;
  // The time that the load is averaged over; none for the whole step.
  std::optional<std::pair<double, double>> range_;
  TopologyCanvas* canvas_;
  QComboBox* pool_ = nullptr;
  QLabel* pool_note_ = nullptr;
  NodeMap* nodes_ = nullptr;
  ToggleButton* all_nodes_ = nullptr;
  QSlider* moment_ = nullptr;
  QLabel* moment_label_ = nullptr;
  EmptyState* empty_ = nullptr;
  bool reported_problem_ = false;
};

}  // namespace shardwright::gui
