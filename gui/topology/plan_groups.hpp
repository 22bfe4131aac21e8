// The groups of a plan that a rank is in, by axis.
#pragma once

#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/program/rank_grid.hpp"
#include "core/spec/plan.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {

// The ranks that one rank works with along an axis, itself included.
struct AxisGroup {
  Axis axis = Axis::Tensor;
  std::vector<std::int32_t> ranks;  // ascending
};

class PlanGroups {
 public:
  explicit PlanGroups(const Plan& plan);

  // Axes of more than one rank, in the order tp, cp, ep, pp, dp.
  const std::vector<Axis>& axes() const { return axes_; }
  // A group for each of these axes. A rank that is none has none.
  std::vector<AxisGroup> of(std::int64_t rank) const;
  std::int64_t stage_of(std::int64_t rank) const { return grid_.locate(rank).stage; }
  std::int64_t world_size() const { return grid_.world_size(); }

 private:
  RankGrid grid_;
  std::vector<Axis> axes_;
  std::vector<GroupTable> tables_;  // by place in `axes_`
};

Role role_of(Axis axis);
// One letter: 'T', 'C', 'E', 'D', 'P'.
QChar letter_of(Axis axis);

// Ranges and steps in short: "0–7", "0, 8, 16, … 504 (64 ranks)".
QString ranks_text(const std::vector<std::int32_t>& ranks);

}  // namespace shardwright::gui
