// A figure of the step against a swept quantity, with the interval that holds 80 % of measurements.
#pragma once

#include <optional>

#include "gui/models/background_job.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/selection.hpp"
#include "gui/models/sweep_figures.hpp"
#include "gui/views/view.hpp"

class QAbstractSpinBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QSpinBox;
class QToolButton;

namespace shardwright::gui {

class SweepChart;
class EmptyState;
class ShareBar;

class SweepView : public View {
  Q_OBJECT

 public:
  explicit SweepView(Selection* selection, QWidget* parent = nullptr);

  TextTable table() const override;
  std::vector<ReportPart> report() const override;
  bool is_busy() const override { return job_.is_running(); }
  void set_plan(planner::SweepPlan plan);
  void look_again() override;

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 Q_SIGNALS:
  // The user has clicked on a point: its plan is wanted, among those for its value of the axis.
  void point_wanted(shardwright::planner::SweepAxis axis,
                    const shardwright::planner::SweepPoint& point);
  void settled();

 private:
  QWidget* create_controls();
  QWidget* create_range();
  // Shows the range of the axis: the user's, or the usual one of the chosen plan. Leaves a number
  // alone that is being typed.
  void show_range();
  void watch_typing(QAbstractSpinBox& box);
  void take_range();
  std::vector<double> values() const;
  // The chosen plan where it lies; for the best plans of each point on the whole cluster, of which
  // it may lie on one pool alone.
  std::optional<Scenario> scenario() const;
  void open_point(int point);
  bool shows_opened_point() const;
  void follow_selection();
  void begin();
  void forget_points();
  void stop();
  void end();
  void take(const planner::Sweep& sweep);
  void show_nothing();
  void show_obstacle();
  void show_knee();
  void rebuild();

  void sweep_anew();
  void update_plan_choice();
  void name_accelerators();
  // The word for what the chosen plan trains on.
  const char* accelerator() const { return accelerator_word(selection_->set()); }
  planner::SweepAxis axis() const;
  planner::SweepPlan plan() const;
  SweepFigure figure() const;
  std::optional<SweepFigure> second_figure() const;

  Selection* selection_;
  QComboBox* axis_ = nullptr;
  QComboBox* figure_ = nullptr;
  QComboBox* second_ = nullptr;
  QComboBox* plan_ = nullptr;
  QDoubleSpinBox *from_ = nullptr, *to_ = nullptr;
  QSpinBox* points_ = nullptr;
  QToolButton* usual_range_ = nullptr;
  // The field that holds a typed number which is not taken yet.
  const QObject* typed_into_ = nullptr;
  EnumArray<planner::SweepAxis, std::optional<SweepRange>> ranges_;
  // The user's choice while the axis leaves none.
  std::optional<planner::SweepPlan> plan_wanted_;
  ShareBar* progress_ = nullptr;
  QToolButton* stop_ = nullptr;
  QLabel* reason_ = nullptr;
  SweepChart* chart_ = nullptr;
  EmptyState* empty_ = nullptr;
  planner::Sweep sweep_;
  // True if the sweep was stopped before its points were final.
  bool stopped_ = false;
  // The chosen plan when a sweep was stopped before it had a point.
  std::optional<Scenario> stopped_at_;
  struct Asked {
    // Has no plan along GPUs, because the plan has no part in that answer.
    Scenario scenario;
    std::int64_t gpus = 0, global_batch = 0, seq_len = 0;
    Precision precision = Precision::Bf16;
    std::optional<Lora> lora;
    planner::Constraints constraints;
    planner::Objective objective = planner::Objective::Time;
    Bytes max_memory;
    double memory_share = 1.0;
    planner::SearchLimits limits;
    // The whole one; the scenario may lie on one of its pools.
    ClusterSpec cluster;

    // Returns the same with another value of an axis.
    Asked at(planner::SweepAxis axis, std::int64_t value) const {
      Asked other = *this;
      if (axis == planner::SweepAxis::Gpus) other.gpus = value;
      if (axis == planner::SweepAxis::GlobalBatch) other.global_batch = value;
      if (axis == planner::SweepAxis::SeqLen) other.seq_len = value;
      return other;
    }

    bool operator==(const Asked&) const = default;
  };
  std::optional<Asked> asked() const;
  // Returns the question that the shown plans answer, of this scenario.
  Asked asked_of(Scenario scenario) const;
  std::optional<Asked> swept_;
  bool outdated_ = true;
  // The point that the user has clicked on, until another sweep begins.
  std::optional<planner::SweepPoint> opened_;
  BackgroundJob<planner::Sweep> job_;
};

}  // namespace shardwright::gui
