// One quantity against another, with the interval that measurements fall into.
#pragma once

#include <optional>

#include "gui/models/background_job.hpp"
#include "gui/models/selection.hpp"
#include "gui/models/sweep.hpp"
#include "gui/views/view.hpp"

class QComboBox;
class QLabel;
class QProgressBar;
class QToolButton;

namespace shardwright::gui {

class Chart;
class EmptyState;

class SweepView : public View {
  Q_OBJECT

 public:
  explicit SweepView(Selection* selection, QWidget* parent = nullptr);

  TextTable table() const override;
  bool is_busy() const { return job_.is_running(); }
  void set_axis(SweepAxis axis);
  void set_plan(SweepPlan plan);

 Q_SIGNALS:
  void settled();

 protected:
  // Sweeps only while somebody looks.
  void showEvent(QShowEvent* event) override;

 private:
  QWidget* create_controls();
  void follow_selection();
  void begin();
  void forget_points();
  // Keeps the points that are shown.
  void stop();
  void end();
  void take(const Sweep& sweep);
  void show_nothing();
  void show_obstacle();
  void tell_knee();
  QString preliminary_text() const;
  void rebuild();
  void add_line(SweepFigure shown);
  void add_preliminary();
  void add_missing();
  void add_knee();

  void sweep_anew();
  void update_plan_choice();
  SweepAxis axis() const;
  SweepPlan plan() const;
  SweepFigure figure() const;

  Selection* selection_;
  QComboBox* axis_ = nullptr;
  QComboBox* figure_ = nullptr;
  QComboBox* plan_ = nullptr;
  std::optional<SweepPlan> plan_wanted_;  // while the axis leaves no choice
  QProgressBar* progress_ = nullptr;
  QToolButton* stop_ = nullptr;
  QLabel* reason_ = nullptr;
  Chart* chart_ = nullptr;
  EmptyState* empty_ = nullptr;
  Sweep sweep_;
  bool stopped_ = false;                // before its points were final
  std::optional<Scenario> stopped_at_;  // chosen when it was stopped before there was a point
  // Whose sweep is shown or under way, and what was asked of its best plans.
  struct Asked {
    Scenario scenario;  // along GPUs without its plan, which has no part in the answer
    std::int64_t gpus = 0, global_batch = 0, seq_len = 0;
    Precision precision = Precision::Bf16;
    planner::Constraints constraints;
    planner::Objective objective = planner::Objective::Time;
    Bytes max_memory;
    planner::SearchLimits limits;

    bool operator==(const Asked&) const = default;
  };
  std::optional<Asked> asked() const;
  std::optional<Asked> swept_;
  bool outdated_ = true;
  BackgroundJob<Sweep> job_;
};

}  // namespace shardwright::gui
