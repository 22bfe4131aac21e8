// Plans for the scenario whenever it changes, and informs the views.
#pragma once

#include <QObject>
#include <optional>
#include <string>

#include "gui/models/background_job.hpp"
#include "gui/models/plan_search.hpp"
#include "gui/models/scenario_document.hpp"
#include "gui/models/selection.hpp"
#include "gui/models/this_machine.hpp"
#include "planner/sweep.hpp"

class QSettings;

namespace shardwright::gui {

class MessageBar;
class OpenedFiles;
class PlansView;
class ScenarioView;
class StepPresenter;
class WhyView;

class ScenarioPlanner : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    ScenarioDocument* document;
    Selection* selection;
    OpenedFiles* opened;
    MessageBar* messages;
    StepPresenter* step;
    ScenarioView* scenario;
    PlansView* plans;
    WhyView* why;
  };

  ScenarioPlanner(const Parts& parts, QObject* parent);

  // Starts a search at each change of the scenario from now on.
  void follow_document();
  void start();
  // Plans as if the scenario had changed, because a file that it names may have.
  void plan_anew();
  // Replaces the scenario by the one that the shown plans are for, which stay.
  void adopt(const QString& edit, const ScenarioChoice& choice);
  // The shown plans are for a scenario that the fields cannot describe: nothing plans with a change
  // of it.
  void disown() { shown_.reset(); }
  // Drops the search, because other plans take the place of those that it would find.
  void abandon() { search_.abandon(); }
  // Searches for the scenario of a run, on the cluster of a file.
  void plan_on(const Scenario& scenario, const QString& cluster);
  // Probes this machine first if no profile of it is kept. With `tiny` the scenario becomes one
  // that is trained here in seconds.
  void plan_on_this_machine(bool tiny = false);
  void plan_example();
  // Plan with 10 % more of a resource, with changes that make a plan fit, or for a point of a
  // sweep. Each is one step of Undo.
  void plan_with_more(planner::Resource resource);
  void plan_with(const std::vector<planner::Remedy>& remedies);
  void plan_at(planner::SweepAxis axis, const planner::SweepPoint& point);
  // Pins the chosen plan with the fields that it was found for.
  void pin();
  // Shows the pinned plan and its fields again.
  void return_to_baseline();
  void watch_parts();

  // Keep the chosen plan and the baseline in the session. The baseline is simulated in the
  // background when it comes back.
  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

  PlanSearch& search() { return search_; }
  bool is_busy() const {
    return search_.is_running() || probe_.is_running() || baseline_job_.is_running();
  }

 private:
  void compare_as_before();
  void complete_baseline(const PlanSetPointer& set);
  // Returns false, after a message, if the shown plans are not those of the fields.
  bool is_of_fields();
  // Says why no plan of the sweep runs at a point.
  void say_why_none(planner::SweepAxis axis, const planner::SweepPoint& point);
  void show_problems(const std::vector<Problem>& problems);
  void take_this_machine(const QString& problem);
  void restore_baseline(const std::string& plan, const std::string& fields);

  Parts parts_;
  PlanSearch search_;
  MachineProbe probe_;
  // True if the tiny scenario is waited for.
  bool tiny_ = false;
  // True if the probe has stopped a search, which begins anew if the probe finds nothing.
  bool interrupted_ = false;
  // True while the scenario of shown plans is taken over.
  bool adopts_ = false;
  // The fields that the shown plans were found for; none if they come from a file whose scenario no
  // fields can describe.
  std::optional<ScenarioChoice> shown_ = ScenarioChoice();
  // The plan that the last session compared with, until it is found.
  std::optional<Plan> compared_wanted_;
  BackgroundJob<Baseline> baseline_job_;
};

}  // namespace shardwright::gui
