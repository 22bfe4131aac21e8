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
  // True if the last node has a link to the first.
  bool wraps = false;

  bool operator==(const TorusAxis&) const = default;
};

// Axes in the order of `fabric.torus`. Node i of the job lies at the i-th place in row-major order:
// the last axis varies fastest.
using TorusSlice = std::vector<TorusAxis>;

// The box of the fewest places, at least `nodes`; of several, the one with the smallest sum of its
// sides. A torus of blocks (`fabric.torus_block`) gives whole ones, with all axes closed to rings,
// or to a job that is smaller a part of one, open at its ends; one without, any box, in which whole
// axes are rings. All of a torus that has fewer places.
TorusSlice torus_slice(const FabricSpec& fabric, std::int64_t nodes);

}  // namespace shardwright::sim
