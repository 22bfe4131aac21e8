// Replaces cuda_gpu_facts.cpp in builds without CUDA.
#include "executor/probe/gpu_facts.hpp"

namespace shardwright::executor {

std::vector<GpuFacts> list_gpus(std::string& why_none) {
  why_none = "this build is without CUDA";
  return {};
}

GpuHost probe_gpus(std::string& why_none) {
  return {list_gpus(why_none), {}, {}, {}};
}

}  // namespace shardwright::executor
