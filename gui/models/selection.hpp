// The selection that all views share.
#pragma once

#include <QObject>
#include <optional>

#include "gui/models/plan_set.hpp"

namespace shardwright::gui {

// The plans of the current set, the chosen one, and the one that it is compared with.
class Selection : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  // Shows a new set. The chosen plan stays chosen if the set has it, else the best takes its place.
  void show(PlanSetPointer set);
  const PlanSetPointer& set() const { return set_; }

  // Chooses a plan, or none if `plan` is out of range.
  void choose(std::optional<std::size_t> plan);
  std::optional<std::size_t> chosen() const { return chosen_; }

  void compare_with(std::optional<std::size_t> plan);
  void compare_with(const Plan& plan);
  std::optional<std::size_t> compared() const { return compared_; }

  std::optional<Scenario> scenario() const;
  std::optional<Scenario> compared_scenario() const;

 Q_SIGNALS:
  void set_changed();
  // Both are also emitted after set_changed.
  void chosen_changed();
  void compared_changed();

 private:
  PlanSetPointer set_;
  std::optional<std::size_t> chosen_, compared_;
};

}  // namespace shardwright::gui
