#include "gui/topology/plan_groups.hpp"

#include <QStringList>

namespace shardwright::gui {
namespace {

Group group_of(Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return Group::Tensor;
    case Axis::Context:
      return Group::Context;
    case Axis::Expert:
      return Group::Expert;
    case Axis::Data:
      return Group::Data;
    case Axis::Pipeline:
      return Group::Pipeline;
  }
  return Group::Tensor;
}

std::int64_t degree(Axis axis, const Plan& plan) {
  switch (axis) {
    case Axis::Tensor:
      return plan.tp;
    case Axis::Context:
      return plan.cp;
    case Axis::Expert:
      return plan.ep;
    case Axis::Data:
      return plan.dp * plan.cp;
    case Axis::Pipeline:
      return plan.pp;
  }
  return 1;
}

}  // namespace

PlanGroups::PlanGroups(const Plan& plan) : grid_(plan) {
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline, Axis::Data}) {
    if (degree(axis, plan) < 2) continue;
    axes_.push_back(axis);
    tables_.push_back(grid_.table(group_of(axis)));
  }
}

std::vector<AxisGroup> PlanGroups::of(std::int64_t rank) const {
  std::vector<AxisGroup> groups;
  if (rank < 0 || rank >= grid_.world_size()) return groups;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto members = tables_[i].members_of(tables_[i].group_of[static_cast<std::size_t>(rank)]);
    groups.push_back({axes_[i], {members.begin(), members.end()}});
  }
  return groups;
}

Role role_of(Axis axis) {
  return role_of(group_of(axis));
}

QChar letter_of(Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return u'T';
    case Axis::Context:
      return u'C';
    case Axis::Expert:
      return u'E';
    case Axis::Data:
      return u'D';
    case Axis::Pipeline:
      return u'P';
  }
  return u'?';
}

QString ranks_text(const std::vector<std::int32_t>& ranks) {
  constexpr std::size_t kFew = 8;
  if (ranks.empty()) return {};
  const bool in_a_row = ranks.back() - ranks.front() == static_cast<std::int32_t>(ranks.size()) - 1;
  if (in_a_row && ranks.size() > 2)
    return QStringLiteral("%1–%2").arg(ranks.front()).arg(ranks.back());
  QStringList parts;
  const std::size_t shown = ranks.size() <= kFew ? ranks.size() : 4;
  for (std::size_t i = 0; i < shown; ++i) parts.append(QString::number(ranks[i]));
  if (shown < ranks.size()) parts.append(QStringLiteral("… %1").arg(ranks.back()));
  return parts.join(QStringLiteral(", "));
}

}  // namespace shardwright::gui
