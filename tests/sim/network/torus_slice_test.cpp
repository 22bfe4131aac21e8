#include "sim/network/torus_slice.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "core/spec/profile_library.hpp"

namespace shardwright::sim {
namespace {

FabricSpec torus_with(std::vector<std::int64_t> sides, std::vector<std::int64_t> block = {}) {
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

// The best of all boxes of at most so many places along three axes.
struct BestBox {
  std::int64_t places = std::numeric_limits<std::int64_t>::max();
  std::int64_t sum = 0;
};

BestBox best_box(const std::vector<std::int64_t>& limits, std::int64_t places) {
  BestBox best;
  for (std::int64_t a = 1; a <= limits[0]; ++a) {
    for (std::int64_t b = 1; b <= limits[1]; ++b) {
      for (std::int64_t c = 1; c <= limits[2]; ++c) {
        if (a * b * c < places || a * b * c > best.places) continue;
        if (a * b * c < best.places || a + b + c < best.sum) best = {a * b * c, a + b + c};
      }
    }
  }
  return best;
}

RC_GTEST_PROP(TorusSlice, IsTheBestOfAllBoxes, ()) {
  std::vector<std::int64_t> limits, sides, block;
  for (int axis = 0; axis < 3; ++axis) {
    limits.push_back(*rc::gen::inRange<std::int64_t>(1, 13));
    block.push_back(*rc::gen::inRange<std::int64_t>(1, 5));
    sides.push_back(limits.back() * block.back());
  }
  const std::int64_t in_block = block[0] * block[1] * block[2];
  const std::int64_t blocks =
      *rc::gen::inRange<std::int64_t>(1, limits[0] * limits[1] * limits[2] + 1);
  const std::int64_t nodes = blocks * in_block - *rc::gen::inRange<std::int64_t>(0, in_block);
  const BestBox best = nodes < in_block ? best_box(block, nodes) : best_box(limits, blocks);
  const TorusSlice slice = torus_slice(torus_with(sides, block), nodes);
  std::int64_t places = 1, sum = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t unit = nodes < in_block ? 1 : block[axis];
    RC_ASSERT(slice[axis].nodes % unit == 0 && slice[axis].nodes <= sides[axis]);
    RC_ASSERT(slice[axis].wraps == (nodes >= in_block));
    places *= slice[axis].nodes / unit;
    sum += slice[axis].nodes / unit;
  }
  RC_ASSERT(places == best.places);
  RC_ASSERT(sum == best.sum);
}

TEST(TorusSlice, IsOfWholeBlocksThatSwitchesClose) {
  // Sixteen hosts of four TPU v4 are one cube of 4 x 4 x 4 chips.
  const FabricSpec fabric = torus_with({8, 8, 16}, {2, 2, 4});
  const TorusSlice cube = {{2, true}, {2, true}, {4, true}};
  EXPECT_EQ(torus_slice(fabric, 16), cube);
  EXPECT_EQ(nodes_of(torus_slice(fabric, 17)), 32);
  const TorusSlice part = {{2, false}, {2, false}, {2, false}};
  EXPECT_EQ(torus_slice(fabric, 7), part);
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
    std::ranges::sort(sides);
    EXPECT_EQ(sides, shape);
  }
}

TEST(TorusSlice, WithoutSwitchesOnlyWholeAxesAreRings) {
  const FabricSpec fabric = torus_with({4, 4, 4});
  const TorusSlice open = {{2, false}, {2, false}, {2, false}};
  EXPECT_EQ(torus_slice(fabric, 8), open);
  const TorusSlice whole = {{4, true}, {4, true}, {4, true}};
  EXPECT_EQ(torus_slice(fabric, 64), whole);
}

TEST(TorusSlice, OfAPrimeNumberOfNodesIsTheNextBox) {
  EXPECT_EQ(nodes_of(torus_slice(torus_with({8, 8, 16}), 131)), 132);
}

TEST(TorusSlice, OfMoreNodesThanTheTorusHasIsAllOfIt) {
  EXPECT_EQ(sides_of(torus_slice(torus_with({2, 3}), 7)), (std::vector<std::int64_t>{2, 3}));
}

}  // namespace
}  // namespace shardwright::sim
