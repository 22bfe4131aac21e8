#include "core/spec/cluster_spec.hpp"

#include <algorithm>

namespace shardwright {

FlopPerSecond MatrixPeaks::of(Precision precision) const {
  switch (precision) {
    case Precision::Fp32:
      return fp32;
    case Precision::Tf32:
      return tf32;
    case Precision::Fp16:
      return fp16;
    case Precision::Bf16:
      return bf16;
    case Precision::Fp8:
      return fp8;
    case Precision::Nvfp4:
      return fp4;
  }
  return {};
}

std::int64_t FabricSpec::torus_places() const {
  constexpr std::int64_t kMost = 1'000'000'000;
  std::int64_t places = 1;
  for (const std::int64_t axis : torus) places = std::min(kMost, places * axis);
  return places;
}

namespace {

std::optional<std::int64_t> nodes_on(const FabricSpec& fabric, const NodeSpec& node) {
  switch (fabric.kind) {
    case FabricKind::None:
      return std::max<std::int64_t>(
          1, node.scale_up.domain / std::max<std::int64_t>(1, node.accelerators));
    case FabricKind::Torus:
      return fabric.torus_places();
    case FabricKind::LeafSpine:
    case FabricKind::RailOptimised:
      if (!fabric.levels.empty()) return fabric.levels.back().nodes;
  }
  return std::nullopt;
}

// Of so many nodes, or of all that the fabric can join where that is 0.
std::optional<std::int64_t> accelerators_of(std::int64_t nodes, const NodeSpec& node,
                                            const FabricSpec& fabric) {
  const auto most = nodes > 0 ? std::optional(nodes) : nodes_on(fabric, node);
  if (!most) return std::nullopt;
  return *most * node.accelerators;
}

}  // namespace

std::optional<std::int64_t> PoolSpec::most_accelerators() const {
  return accelerators_of(nodes, node, fabric);
}

std::optional<std::int64_t> ClusterSpec::reachable_nodes() const {
  return nodes_on(fabric, node);
}

std::optional<std::int64_t> ClusterSpec::most_accelerators() const {
  return accelerators_of(nodes, node, fabric);
}

}  // namespace shardwright
