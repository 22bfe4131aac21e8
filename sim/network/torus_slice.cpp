#include "sim/network/torus_slice.hpp"

#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

double block_side(const FabricSpec& fabric, std::size_t axis) {
  return fabric.torus_block.empty() ? 1.0 : static_cast<double>(fabric.torus_block[axis]);
}

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t small = 1; small * small <= number; ++small) {
    if (number % small != 0) continue;
    divisors.push_back(small);
    if (small * small < number) divisors.push_back(number / small);
  }
  return divisors;
}

// Branch and bound over the sides of boxes of exactly `nodes` nodes.
class BoxSearch {
 public:
  BoxSearch(const FabricSpec& fabric, std::int64_t nodes)
      : fabric_(fabric), divisors_(divisors_of(nodes)), sides_(fabric.torus.size()) {
    try_axis(0, nodes, 0.0);
  }

  // Empty if there is none.
  const std::vector<std::int64_t>& best() const { return best_; }

 private:
  void try_axis(std::size_t axis, std::int64_t left, double sum) {
    if (sum + least_sum(axis, left) >= best_sum_) return;
    const std::int64_t most = fabric_.torus[axis];
    if (axis + 1 == sides_.size()) {
      if (left > most) return;
      sides_[axis] = left;
      best_ = sides_;
      best_sum_ = sum + static_cast<double>(left) / block_side(fabric_, axis);
      return;
    }
    for (const std::int64_t side : divisors_) {
      if (side > most || left % side != 0) continue;
      sides_[axis] = side;
      try_axis(axis + 1, left / side, sum + static_cast<double>(side) / block_side(fabric_, axis));
    }
  }

  // Of the sides from `axis` on: that of a cube (the inequality of the means), less for rounding.
  double least_sum(std::size_t axis, std::int64_t nodes) const {
    double blocks = static_cast<double>(nodes);
    for (std::size_t i = axis; i < sides_.size(); ++i) blocks /= block_side(fabric_, i);
    const auto axes = static_cast<double>(sides_.size() - axis);
    return axes * std::pow(blocks, 1.0 / axes) * (1.0 - 1e-9);
  }

  const FabricSpec& fabric_;
  std::vector<std::int64_t> divisors_, sides_, best_;
  double best_sum_ = std::numeric_limits<double>::infinity();
};

}  // namespace

TorusSlice torus_slice(const FabricSpec& fabric, std::int64_t nodes) {
  SHARDWRIGHT_CHECK(!fabric.torus.empty(), "a torus without axes");
  std::vector<std::int64_t> sides;
  for (std::int64_t box = nodes; sides.empty() && box <= fabric.torus_places(); ++box)
    sides = BoxSearch(fabric, box).best();
  if (sides.empty()) sides = fabric.torus;
  TorusSlice slice;
  for (std::size_t axis = 0; axis < sides.size(); ++axis) {
    const bool whole = sides[axis] == fabric.torus[axis];
    const bool of_blocks =
        !fabric.torus_block.empty() && sides[axis] % fabric.torus_block[axis] == 0;
    slice.push_back({sides[axis], whole || of_blocks});
  }
  return slice;
}

}  // namespace shardwright::sim
