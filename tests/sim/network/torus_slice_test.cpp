#include "sim/network/torus_slice.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/spec/profile_library.hpp"

namespace shardwright::sim {
namespace {

FabricSpec torus(std::vector<std::int64_t> sides, std::vector<std::int64_t> block = {}) {
  FabricSpec fabric;
  fabric.kind = FabricKind::Torus;
  fabric.torus = std::move(sides);
  fabric.torus_block = std::move(block);
  return fabric;
}

std::vector<std::int64_t> sides_of(const TorusSlice& slice) {
  std::vector<std::int64_t> sides;
  for (const TorusAxis& axis : slice) sides.push_back(axis.nodes);
  return sides;
}

std::int64_t nodes_of(const TorusSlice& slice) {
  std::int64_t nodes = 1;
  for (const TorusAxis& axis : slice) nodes *= axis.nodes;
  return nodes;
}

double blocks_of(const std::vector<std::int64_t>& sides, const FabricSpec& fabric) {
  double sum = 0.0;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    sum += static_cast<double>(sides[i]) /
           (fabric.torus_block.empty() ? 1.0 : static_cast<double>(fabric.torus_block[i]));
  }
  return sum;
}

// The best of all boxes of a torus of three axes.
struct BestBox {
  std::int64_t nodes = std::numeric_limits<std::int64_t>::max();
  double sum = 0.0;
};

BestBox best_box(const FabricSpec& fabric, std::int64_t nodes) {
  BestBox best;
  for (std::int64_t a = 1; a <= fabric.torus[0]; ++a) {
    for (std::int64_t b = 1; b <= fabric.torus[1]; ++b) {
      for (std::int64_t c = 1; c <= fabric.torus[2]; ++c) {
        if (a * b * c < nodes || a * b * c > best.nodes) continue;
        const double sum = blocks_of({a, b, c}, fabric);
        if (a * b * c < best.nodes || sum < best.sum) best = {a * b * c, sum};
      }
    }
  }
  return best;
}

TEST(TorusSlice, IsTheBestOfAllBoxes) {
  EXPECT_TRUE(rc::check([] {
    std::vector<std::int64_t> sides, block;
    for (int axis = 0; axis < 3; ++axis) {
      sides.push_back(*rc::gen::inRange<std::int64_t>(1, 13));
      block.push_back(*rc::gen::inRange<std::int64_t>(1, 5));
    }
    if (*rc::gen::arbitrary<bool>()) block.clear();
    const FabricSpec fabric = torus(sides, block);
    const std::int64_t nodes = *rc::gen::inRange<std::int64_t>(1, fabric.torus_places() + 1);
    const TorusSlice slice = torus_slice(fabric, nodes);
    const BestBox best = best_box(fabric, nodes);
    RC_ASSERT(nodes_of(slice) == best.nodes);
    RC_ASSERT(std::abs(blocks_of(sides_of(slice), fabric) - best.sum) < 1e-9);
    for (std::size_t axis = 0; axis < 3; ++axis) RC_ASSERT(slice[axis].nodes <= sides[axis]);
  }));
}

TEST(TorusSlice, IsACubeOfBlocksThatSwitchesClose) {
  // Sixteen hosts of four TPU v4 are one cube of 4 x 4 x 4 chips.
  const FabricSpec fabric = torus({8, 8, 16}, {2, 2, 4});
  const TorusSlice cube = {{2, true}, {2, true}, {4, true}};
  EXPECT_EQ(torus_slice(fabric, 16), cube);
  const TorusSlice half = {{2, true}, {2, true}, {2, false}};
  EXPECT_EQ(torus_slice(fabric, 8), half);
}

// The slices of TPU v5p, in chips: docs.cloud.google.com/tpu/docs/v5p.
TEST(TorusSlice, HasThePublishedShapes) {
  const FabricSpec fabric = load_cluster("tpu-v5p-torus").fabric;
  const std::vector<std::vector<std::int64_t>> published = {
      {2, 4, 4}, {4, 4, 4}, {4, 4, 8}, {4, 8, 8}, {8, 8, 8}, {8, 8, 16}, {8, 16, 16}, {16, 16, 16}};
  constexpr std::int64_t kChipsPerHost = 4;
  for (const std::vector<std::int64_t>& shape : published) {
    const std::int64_t chips = shape[0] * shape[1] * shape[2];
    std::vector<std::int64_t> sides = sides_of(torus_slice(fabric, chips / kChipsPerHost));
    for (const std::size_t axis : {0U, 1U}) sides[axis] *= 2;  // a host is 2 x 2 x 1 chips
    std::sort(sides.begin(), sides.end());
    EXPECT_EQ(sides, shape);
  }
}

TEST(TorusSlice, WithoutSwitchesOnlyWholeAxesAreRings) {
  const FabricSpec fabric = torus({4, 4, 4});
  const TorusSlice open = {{2, false}, {2, false}, {2, false}};
  EXPECT_EQ(torus_slice(fabric, 8), open);
  const TorusSlice whole = {{4, true}, {4, true}, {4, true}};
  EXPECT_EQ(torus_slice(fabric, 64), whole);
}

TEST(TorusSlice, OfAPrimeNumberOfNodesIsTheNextBox) {
  EXPECT_EQ(nodes_of(torus_slice(torus({8, 8, 16}), 131)), 132);
}

TEST(TorusSlice, OfMoreNodesThanTheTorusHasIsAllOfIt) {
  EXPECT_EQ(sides_of(torus_slice(torus({2, 3}), 7)), (std::vector<std::int64_t>{2, 3}));
}

}  // namespace
}  // namespace shardwright::sim
