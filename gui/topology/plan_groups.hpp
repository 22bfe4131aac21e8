// The groups of a rank by axis of parallelism.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "core/program/rank_grid.hpp"
#include "core/spec/plan.hpp"
#include "gui/style/palette.hpp"
#include "gui/topology/topology_layout.hpp"

namespace shardwright::gui {

// The ranks that one rank works with along an axis, itself included.
struct AxisGroup {
  Axis axis = Axis::Tensor;
  std::vector<std::int32_t> ranks;
};

class PlanGroups {
 public:
  // `first_stage`: the number of the first stage of `plan`, if it is the part of another plan that
  // lies on one pool.
  explicit PlanGroups(const Plan& plan, std::int64_t first_stage = 0);

  // The axes of more than one rank, in the order tp, cp, ep, pp, dp.
  const std::vector<Axis>& axes() const { return axes_; }
  // Returns a group for each of these axes; none for a number that is no rank.
  std::vector<AxisGroup> of(std::int64_t rank) const;
  std::int64_t stage_of(std::int64_t rank) const { return first_stage_ + grid_.locate(rank).stage; }
  std::int64_t world_size() const { return grid_.world_size(); }

 private:
  RankGrid grid_;
  std::int64_t first_stage_;
  std::vector<Axis> axes_;
  std::vector<GroupTable> tables_;
};

Role role_of(Axis axis);
// Returns a letter: 'T', 'C', 'E', 'D', 'P'.
QChar letter_of(Axis axis);

// Returns a short list: "0–7", "0, 8, 16, 24, … 504". `first_rank` is added to each number.
QString ranks_text(const std::vector<std::int32_t>& ranks, std::int64_t first_rank = 0);

// "node 3 · 24–31 · stage 1": the ranks and stages of a domain.
QString domain_text(const ClusterMap& map, const PlanGroups& groups, const MapItem& item);

}  // namespace shardwright::gui
