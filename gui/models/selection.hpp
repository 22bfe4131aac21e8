// The selection that all views share.
#pragma once

#include <QObject>
#include <optional>
#include <utility>

#include "gui/models/plan_set.hpp"
#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

// The plan that what-ifs are held against.
struct Baseline {
  PlanSetPointer set;
  std::size_t plan = 0;
  // The fields of Scenario that the set was found for; none if they cannot describe it.
  std::optional<ScenarioChoice> choice;
};

// The plans of the current set, the chosen one, the one that it is compared with, and the baseline,
// which stays as other sets are shown.
class Selection : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  // Shows a new set. The chosen plan stays chosen if the set has it, else the best takes its place.
  void show(PlanSetPointer set);
  const PlanSetPointer& set() const { return set_; }

  // Chooses this plan whenever a set that is shown has it, until the user chooses one. None
  // prefers the best of each set.
  void prefer(std::optional<Plan> plan) { preferred_ = std::move(plan); }
  // Returns the chosen plan unless it is the best of its set, which needs no preference.
  std::optional<Plan> preference() const;

  // Chooses a plan, or none if `plan` is out of range.
  void choose(std::optional<std::size_t> plan);
  void choose(const Plan& plan);
  std::optional<std::size_t> chosen() const { return chosen_; }

  void compare_with(std::optional<std::size_t> plan);
  void compare_with(const Plan& plan);
  std::optional<std::size_t> compared() const { return compared_; }

  // Pins the chosen plan, if there is one; `choice` has the fields that the set was found for.
  void pin(const std::optional<ScenarioChoice>& choice);
  void pin(Baseline baseline);
  void unpin();
  const std::optional<Baseline>& baseline() const { return baseline_; }

  std::optional<Scenario> scenario() const;
  std::optional<Scenario> compared_scenario() const;

 Q_SIGNALS:
  void set_changed();
  // Both are also emitted after set_changed.
  void chosen_changed();
  void compared_changed();
  void baseline_changed();

 private:
  PlanSetPointer set_;
  std::optional<std::size_t> chosen_, compared_;
  std::optional<Plan> preferred_;
  std::optional<Baseline> baseline_;
};

}  // namespace shardwright::gui
