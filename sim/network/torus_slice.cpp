#include "sim/network/torus_slice.hpp"

#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

using Sides = std::vector<std::int64_t>;

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t small = 1; small * small <= number; ++small) {
    if (number % small != 0) continue;
    divisors.push_back(small);
    if (small * small < number) divisors.push_back(number / small);
  }
  return divisors;
}

// Branch and bound over the boxes of exactly `places` places whose sides are at most `limits`.
class BoxSearch {
 public:
  BoxSearch(const Sides& limits, std::int64_t places)
      : limits_(limits), divisors_(divisors_of(places)), sides_(limits.size()) {
    try_axis(0, places, 0);
  }

  // Returns the box with the smallest sum of its sides; empty if there is none.
  const Sides& best() const { return best_; }

 private:
  void try_axis(std::size_t axis, std::int64_t left, std::int64_t sum) {
    if (static_cast<double>(sum) + least_sum(axis, left) >= best_sum_) return;
    if (axis + 1 == sides_.size()) {
      if (left > limits_[axis]) return;
      sides_[axis] = left;
      best_ = sides_;
      best_sum_ = static_cast<double>(sum + left);
      return;
    }
    for (const std::int64_t side : divisors_) {
      if (side > limits_[axis] || left % side != 0) continue;
      sides_[axis] = side;
      try_axis(axis + 1, left / side, sum + side);
    }
  }

  // A lower bound of the sum of the sides from `axis` on: that of a cube (the inequality of the
  // means), less for rounding.
  double least_sum(std::size_t axis, std::int64_t places) const {
    const auto axes = static_cast<double>(sides_.size() - axis);
    return axes * std::pow(static_cast<double>(places), 1.0 / axes) * (1.0 - 1e-9);
  }

  const Sides& limits_;
  std::vector<std::int64_t> divisors_;
  Sides sides_, best_;
  double best_sum_ = std::numeric_limits<double>::infinity();
};

// The box of the fewest places, at least `places`; all there is if that is less.
Sides smallest_box(const Sides& limits, std::int64_t places) {
  double all = 1.0;
  for (const std::int64_t limit : limits) all *= static_cast<double>(limit);
  for (; static_cast<double>(places) < all; ++places) {
    Sides sides = BoxSearch(limits, places).best();
    if (!sides.empty()) return sides;
  }
  return limits;
}

std::int64_t places_of(const Sides& sides) {
  std::int64_t places = 1;
  for (const std::int64_t side : sides) places *= side;
  return places;
}

TorusSlice find_slice(const FabricSpec& fabric, std::int64_t nodes) {
  TorusSlice slice;
  const bool switched = !fabric.torus_block.empty();
  const Sides block = switched ? fabric.torus_block : Sides(fabric.torus.size(), 1);
  const std::int64_t in_block = places_of(block);
  if (nodes < in_block) {
    for (const std::int64_t side : smallest_box(block, nodes)) slice.push_back({side, false});
    return slice;
  }
  Sides blocks = fabric.torus;
  for (std::size_t axis = 0; axis < blocks.size(); ++axis) blocks[axis] /= block[axis];
  const Sides box = smallest_box(blocks, (nodes + in_block - 1) / in_block);
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    const std::int64_t side = box[axis] * block[axis];
    slice.push_back({side, switched || side == fabric.torus[axis]});
  }
  return slice;
}

}  // namespace

TorusSlice torus_slice(const FabricSpec& fabric, std::int64_t nodes) {
  SHARDWRIGHT_CHECK(!fabric.torus.empty(), "a torus without axes");
  // A search asks for the same slice for each group of each plan.
  struct Known {
    Sides torus, block;
    std::int64_t nodes = 0;
    TorusSlice slice;
  };
  thread_local Known known;
  if (known.nodes != nodes || known.torus != fabric.torus || known.block != fabric.torus_block)
    known = {fabric.torus, fabric.torus_block, nodes, find_slice(fabric, nodes)};
  return known.slice;
}

}  // namespace shardwright::sim
