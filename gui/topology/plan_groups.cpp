#include "gui/topology/plan_groups.hpp"

#include <QStringList>
#include <algorithm>
#include <array>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

struct AxisTraits {
  Axis axis;
  Group group;
  char16_t letter;
  std::int64_t (*degree)(const Plan&);
};

constexpr std::array<AxisTraits, 5> kAxes = {{
    {Axis::Tensor, Group::Tensor, u'T', [](const Plan& plan) { return plan.tp; }},
    {Axis::Context, Group::Context, u'C', [](const Plan& plan) { return plan.cp; }},
    {Axis::Expert, Group::Expert, u'E', [](const Plan& plan) { return plan.ep; }},
    {Axis::Pipeline, Group::Pipeline, u'P', [](const Plan& plan) { return plan.pp; }},
    {Axis::Data, Group::Data, u'D', [](const Plan& plan) { return plan.dp * plan.cp; }},
}};

const AxisTraits& traits_of(Axis axis) {
  return *std::find_if(kAxes.begin(), kAxes.end(),
                       [axis](const AxisTraits& traits) { return traits.axis == axis; });
}

}  // namespace

PlanGroups::PlanGroups(const Plan& plan, std::int64_t first_stage)
    : grid_(plan), first_stage_(first_stage) {
  for (const AxisTraits& traits : kAxes) {
    if (traits.degree(plan) < 2) continue;
    axes_.push_back(traits.axis);
    tables_.push_back(grid_.table(traits.group));
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
  return role_of(traits_of(axis).group);
}

QChar letter_of(Axis axis) {
  return traits_of(axis).letter;
}

QString ranks_text(const std::vector<std::int32_t>& ranks, std::int64_t first_rank) {
  const auto number = [&](std::int32_t rank) { return QString::number(first_rank + rank); };
  constexpr std::size_t kFew = 8;
  if (ranks.empty()) return {};
  const bool in_a_row = ranks.back() - ranks.front() == static_cast<std::int32_t>(ranks.size()) - 1;
  if (in_a_row && ranks.size() > 2)
    return u"%1–%2"_s.arg(number(ranks.front()), number(ranks.back()));
  QStringList parts;
  const std::size_t shown = ranks.size() <= kFew ? ranks.size() : 4;
  for (std::size_t i = 0; i < shown; ++i) parts.append(number(ranks[i]));
  if (shown < ranks.size()) parts.append(u"… "_s + number(ranks.back()));
  return parts.join(u", "_s);
}

QString domain_text(const ClusterMap& map, const PlanGroups& groups, const MapItem& item) {
  const std::int64_t first = std::int64_t{item.first} * map.domain_size();
  const std::int64_t last = std::min<std::int64_t>(first + map.domain_size(), map.ranks()) - 1;
  if (last < first) return item.label + u" · not used"_s;
  QString text =
      item.label + u" · %1–%2"_s.arg(map.first_rank() + first).arg(map.first_rank() + last);
  std::int64_t lowest = groups.stage_of(first), highest = lowest;
  for (std::int64_t rank = first; rank <= last; ++rank) {
    lowest = std::min(lowest, groups.stage_of(rank));
    highest = std::max(highest, groups.stage_of(rank));
  }
  return text + (lowest == highest ? u" · stage %1"_s.arg(lowest)
                                   : u" · stages %1–%2"_s.arg(lowest).arg(highest));
}

}  // namespace shardwright::gui
