#include "gui/models/selection.hpp"

#include <algorithm>
#include <utility>

namespace shardwright::gui {
namespace {

std::optional<std::size_t> in_range(const PlanSetPointer& set, std::optional<std::size_t> plan) {
  return set && plan && *plan < set->plans.size() ? plan : std::nullopt;
}

}  // namespace

void Selection::show(PlanSetPointer set) {
  const PlanSetPointer before = std::exchange(set_, std::move(set));
  const auto again = [&](std::optional<std::size_t> plan) -> std::optional<std::size_t> {
    if (!before || !set_ || !plan) return std::nullopt;
    return find_plan(*set_, before->plans[*plan].plan);
  };
  chosen_ = chosen_ == std::optional<std::size_t>(0) ? std::nullopt : again(chosen_);
  compared_ = again(compared_);
  if (!chosen_ && set_ && preferred_) chosen_ = find_plan(*set_, *preferred_);
  if (!chosen_ && set_ && !set_->plans.empty()) chosen_ = 0;
  Q_EMIT set_changed();
  Q_EMIT chosen_changed();
  Q_EMIT compared_changed();
}

std::optional<Plan> Selection::preference() const {
  if (!chosen_ || *chosen_ == 0) return preferred_;
  return set_->plans[*chosen_].plan;
}

void Selection::choose(std::optional<std::size_t> plan) {
  plan = in_range(set_, plan);
  if (plan == chosen_) return;
  preferred_.reset();
  chosen_ = plan;
  Q_EMIT chosen_changed();
}

void Selection::compare_with(std::optional<std::size_t> plan) {
  plan = in_range(set_, plan);
  if (plan == compared_) return;
  compared_ = plan;
  Q_EMIT compared_changed();
}

void Selection::choose(const Plan& plan) {
  if (set_) choose(find_plan(*set_, plan));
}

void Selection::compare_with(const Plan& plan) {
  if (set_) compare_with(find_plan(*set_, plan));
}

void Selection::pin(const std::optional<ScenarioChoice>& choice) {
  if (chosen_) pin(Baseline{set_, *chosen_, choice});
}

void Selection::pin(Baseline baseline) {
  baseline_ = std::move(baseline);
  Q_EMIT baseline_changed();
}

void Selection::unpin() {
  baseline_.reset();
  Q_EMIT baseline_changed();
}

std::optional<Scenario> Selection::scenario() const {
  if (!set_ || !chosen_) return std::nullopt;
  return set_->scenario(*chosen_);
}

std::optional<Scenario> Selection::compared_scenario() const {
  if (!set_ || !compared_) return std::nullopt;
  return set_->scenario(*compared_);
}

}  // namespace shardwright::gui
