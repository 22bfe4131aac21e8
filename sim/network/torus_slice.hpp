// The part of a torus fabric that a job gets.
//
// Schedulers give a job a box of nodes that is as near to a cube as its size allows: such a box has
// the shortest ways and the widest cuts. Google's TPU pods are cut so, in cubes that optical
// switches join (Jouppi et al., "TPU v4", arXiv 2304.01433, section 2).
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim {

struct TorusAxis {
  std::int64_t nodes = 1;
  bool wraps = false;  // the last node has a link to the first

  bool operator==(const TorusAxis&) const = default;
};

// In the order of `fabric.torus`. Node i of the job lies at the i-th place in row-major order: the
// last axis varies fastest.
using TorusSlice = std::vector<TorusAxis>;

// The box of the fewest nodes, at least `nodes`, that the torus holds; of several, the one with the
// smallest sum of its sides, counted in blocks (`fabric.torus_block`). An axis wraps if it is whole
// or of whole blocks. All of a torus that has fewer nodes.
TorusSlice torus_slice(const FabricSpec& fabric, std::int64_t nodes);

}  // namespace shardwright::sim
