#include "core/spec/stack_spec.hpp"

namespace shardwright {

const char* name_of(GradientBuckets buckets) {
  switch (buckets) {
    case GradientBuckets::Single:
      return "single";
    case GradientBuckets::FixedSize:
      return "fixed-size";
    case GradientBuckets::PerLayer:
      return "per-layer";
  }
  return "";
}

}  // namespace shardwright
