// What is chosen, shared by all views.
#pragma once

#include <QObject>
#include <optional>
#include <set>

#include "gui/models/plan_set.hpp"

namespace shardwright::gui {

// The plans of the current set, the one that is looked at, and the one that it is compared with.
class Selection : public QObject {
  Q_OBJECT

 public:
  explicit Selection(QObject* parent = nullptr);

  // A new set: the plan that was looked at stays so if it is there again, else the best takes its
  // place.
  void show(PlanSetPointer set);
  const PlanSetPointer& set() const { return set_; }

  // Makes `plan` the one that is looked at; out of range: none.
  void choose(std::optional<std::size_t> plan);
  std::optional<std::size_t> chosen() const { return chosen_; }

  // Compares the chosen plan with this one.
  void compare_with(std::optional<std::size_t> plan);
  void compare_with(const Plan& plan);
  std::optional<std::size_t> compared() const { return compared_; }

  // The scenario of the chosen plan and of that beside it.
  std::optional<Scenario> scenario() const;
  std::optional<Scenario> compared_scenario() const;

 Q_SIGNALS:
  void set_changed();
  // Also emitted after set_changed.
  void chosen_changed();
  // Also emitted after set_changed.
  void compared_changed();

 private:
  PlanSetPointer set_;
  std::optional<std::size_t> chosen_, compared_;
};

}  // namespace shardwright::gui
