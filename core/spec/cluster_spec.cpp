#include "core/spec/cluster_spec.hpp"

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

const char* name_of(ScaleUpKind kind) {
  switch (kind) {
    case ScaleUpKind::Switched:
      return "switched";
    case ScaleUpKind::Mesh:
      return "mesh";
    case ScaleUpKind::Torus:
      return "torus";
    case ScaleUpKind::Pcie:
      return "pcie";
  }
  return "";
}

const char* name_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::LeafSpine:
      return "leaf-spine";
    case FabricKind::RailOptimised:
      return "rail-optimised";
    case FabricKind::Torus:
      return "torus";
    case FabricKind::None:
      return "none";
  }
  return "";
}

const char* name_of(FabricProtocol protocol) {
  switch (protocol) {
    case FabricProtocol::InfiniBand:
      return "infiniband";
    case FabricProtocol::RoCE:
      return "roce";
    case FabricProtocol::Efa:
      return "efa";
    case FabricProtocol::Ethernet:
      return "ethernet";
    case FabricProtocol::Optical:
      return "optical";
  }
  return "";
}

}  // namespace shardwright
