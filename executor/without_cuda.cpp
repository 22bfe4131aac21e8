// Replaces launch/cuda_backend.cpp and probe/cuda_gpu_facts.cpp in builds without CUDA.
#include "core/base/error.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/probe/gpu_machine.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kWithout = "this build is without CUDA";

}  // namespace

std::unique_ptr<RankBackend> open_cuda(TcpStore* /*store*/, const LaunchPlace& /*place*/,
                                       const BackendOptions& /*options*/) {
  throw InputError("--device", {{"", std::string("no CUDA device: ") + kWithout, "cpu"}});
}

std::int64_t visible_gpus(std::string& why_none) {
  why_none = kWithout;
  return 0;
}

std::vector<GpuFacts> list_gpus(std::string& why_none) {
  why_none = kWithout;
  return {};
}

GpuHost probe_gpus(std::string& why_none) {
  return {list_gpus(why_none), {}, {}, {}};
}

}  // namespace shardwright::executor
