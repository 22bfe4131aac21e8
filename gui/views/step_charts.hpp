// The charts that explain the time of a step, its memory and the gain of more hardware.
#pragma once

#include <optional>
#include <vector>

#include "gui/models/step_parts.hpp"
#include "gui/models/text.hpp"
#include "gui/views/bar_chart.hpp"
#include "planner/explain.hpp"

namespace shardwright::gui {

// The parts of the step one after the other, as floating bars; a second plan's beside them.
class WaterfallChart : public Chart {
  Q_OBJECT

 public:
  explicit WaterfallChart(QWidget* parent = nullptr);

  void show(const sim::StepResult& result, TipSource source,
            std::optional<sim::StepResult> beside = std::nullopt);

 protected:
  // A row answers over its whole width, its name included.
  QString tool_tip_at(const QPointF& position) const override;

 private:
  struct Row {
    QString title;
    Role role;
    QString meaning;
    Seconds start, time, beside_start, beside_time;
  };

  void rebuild();
  std::vector<Row> rows() const;
  void add_bar(double key, double width, double start, double time, Role role, bool is_beside);
  void place_shares();

  // The label of a bar between two coordinates of the axis.
  struct Share {
    QCPItemText* label;
    double start, end;
    Role role;
  };

  std::optional<sim::StepResult> result_, beside_;
  TipSource source_{QString()};
  std::vector<Share> shares_;
};

// Memory of each stage at its peak, by what it is held for, against the capacity of its
// accelerators.
class MemoryChart : public Chart {
  Q_OBJECT

 public:
  explicit MemoryChart(QWidget* parent = nullptr);

  // `capacities`: of an accelerator of each stage. `accelerator` names one: "GPU", "CPU rank".
  void show(const sim::StepResult& result, TipSource source, std::vector<Bytes> capacities,
            const QString& accelerator);
  QSize minimumSizeHint() const override;
  QSize sizeHint() const override;

 protected:
  QString tool_tip_at(const QPointF& position) const override;

 private:
  void rebuild();
  void add_capacity();
  QString tip_of_part(const QString& title, Bytes part, std::size_t stage) const;
  QString tip_of_category(MemoryCategory category) const;
  QString tip_of_capacity(std::size_t stage) const;
  QString tip_of_legend(const QPointF& position) const;
  QString tip_of_bar(std::size_t stage, double y) const;

  std::optional<sim::StepResult> result_;
  TipSource source_{QString()};
  std::vector<Bytes> capacities_;
  // Those that have an entry in the legend, in its order.
  std::vector<MemoryCategory> categories_;
  QString accelerator_;
};

// Gain of throughput through 10 % more of each resource.
class SensitivityChart : public BarChart {
  Q_OBJECT

 public:
  explicit SensitivityChart(QWidget* parent = nullptr);

  void show(std::vector<planner::Sensitivity> sensitivities, const TipSource& source);
  void show_waiting();
  // The bars that are shown; empty while the view waits for them.
  const std::vector<planner::Sensitivity>& sensitivities() const { return sensitivities_; }

 Q_SIGNALS:
  // The user has clicked on the row of a resource.
  void more_wanted(shardwright::planner::Resource resource);

 protected:
  void click(const QPointF& position) override;

 private:
  std::vector<planner::Sensitivity> sensitivities_;
};

}  // namespace shardwright::gui
