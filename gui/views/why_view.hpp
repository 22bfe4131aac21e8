// Explains the step time of the chosen plan and its difference from another plan.
#pragma once

#include <optional>
#include <utility>

#include "gui/models/background_job.hpp"
#include "gui/models/selection.hpp"
#include "gui/views/view.hpp"
#include "planner/compare.hpp"
#include "planner/explain.hpp"

class QLabel;
class QTabWidget;
class QTableWidget;

namespace shardwright::gui {

class EmptyState;
class MemoryChart;
class SensitivityChart;
class WaterfallChart;

class WhyView : public View {
  Q_OBJECT

 public:
  explicit WhyView(Selection* selection, QWidget* parent = nullptr);

  TextTable table() const override;
  std::vector<ReportPart> report() const override;
  bool is_busy() const override { return limits_.is_running() || comparison_.is_running(); }
  // Compares the chosen plan with that of another file, until other plans are shown or the user
  // compares with one of them.
  void compare_with(const Scenario& other, const QString& name);
  // Ends the comparison with a plan of the table or of a file.
  void stop_comparing();
  bool is_comparing() const { return both_.has_value(); }
  // Says why there are no plans to choose from; an empty text removes that.
  void show_obstacle(const QString& text);

 Q_SIGNALS:
  // The user has clicked on a resource whose gain is shown.
  void more_wanted(shardwright::planner::Resource resource);
  // Emitted when a comparison begins or ends.
  void comparing(bool compares);
  // Emitted when the view shows everything that it had to compute.
  void settled();

 private:
  QWidget* create_breakdown();
  QWidget* create_comparison();
  QString hint() const;
  void report_problem(const QString& error);
  void show_chosen();
  void show_compared();
  void clear_comparison();
  void begin_comparison(const Scenario& first, const Scenario& second);
  // The words for the two plans that are compared: "plan 1 (A)", and "plan 3 (B)" or the name of a
  // file. The letters are those of the table and the plot.
  std::pair<QString, QString> names_of_compared() const;
  struct Limits {
    planner::Explanation explanation;
    std::optional<planner::PeakMoment> peak;
  };
  void take_limits(const Limits& limits);
  void take_comparison(const planner::Comparison& comparison);
  // Writes the figures of the compared plans, by the numbers that the plans have in Plans now.
  void show_comparison();

  Selection* selection_;
  std::optional<Scenario> explained_;
  // The plan of a file that the chosen plan is compared with.
  std::optional<Scenario> other_;
  QString other_name_;
  // The plans that are compared, or about to be.
  std::optional<std::pair<Scenario, Scenario>> both_;
  // The result, once it is there.
  std::optional<planner::Comparison> compared_;
  QString obstacle_;
  QLabel* title_ = nullptr;
  QLabel* limit_ = nullptr;
  QLabel* warning_ = nullptr;
  QLabel* figures_ = nullptr;
  QLabel* peak_ = nullptr;
  QTabWidget* pages_ = nullptr;
  WaterfallChart* waterfall_ = nullptr;
  MemoryChart* memory_ = nullptr;
  SensitivityChart* sensitivity_ = nullptr;
  QLabel* verdict_ = nullptr;
  QLabel* compared_title_ = nullptr;
  WaterfallChart* both_charts_ = nullptr;
  QTableWidget* differences_ = nullptr;
  EmptyState* empty_ = nullptr;
  EmptyState* no_comparison_ = nullptr;
  BackgroundJob<Limits> limits_;
  BackgroundJob<planner::Comparison> comparison_;
};

}  // namespace shardwright::gui
