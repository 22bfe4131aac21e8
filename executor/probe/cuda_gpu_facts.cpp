#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/probe/gpu_machine.hpp"

namespace shardwright::executor {
namespace {

constexpr std::size_t kCopied = std::size_t{256} << 20U;
constexpr int kFactTries = 5;

double attribute(int ordinal, cudaDeviceAttr which) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, ordinal), "cudaDeviceGetAttribute");
  return static_cast<double>(value);
}

GpuFacts facts_of(int ordinal) {
  constexpr double kKilohertz = 1e3, kBits = 8.0, kTransfersPerClock = 2.0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  GpuFacts facts;
  facts.name = properties.name;
  facts.bus_id = gpu_bus_id(ordinal);
  facts.compute_capability = fmt::format("{}.{}", properties.major, properties.minor);
  facts.memory = Bytes(static_cast<double>(properties.totalGlobalMem));
  facts.l2_cache = Bytes(static_cast<double>(properties.l2CacheSize));
  facts.multiprocessors = properties.multiProcessorCount;
  facts.clock = Hertz(attribute(ordinal, cudaDevAttrClockRate) * kKilohertz);
  facts.memory_bandwidth =
      BytesPerSecond(kTransfersPerClock * attribute(ordinal, cudaDevAttrMemoryClockRate) *
                     kKilohertz * attribute(ordinal, cudaDevAttrGlobalMemoryBusWidth) / kBits);
  return facts;
}

// Times copies by the calling thread's GPU.
BytesPerSecond copy_rate(void* to, const void* from) {
  const CudaStream stream;
  CudaEvent start(true), end(true);
  double best = 0.0;
  for (int i = 0; i < kFactTries; ++i) {
    start.record(stream.get());
    check_cuda(cudaMemcpyAsync(to, from, kCopied, cudaMemcpyDefault, stream.get()), "cudaMemcpy");
    end.record(stream.get());
    check_cuda(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    best = std::max(best, static_cast<double>(kCopied) / end.seconds_since(start));
  }
  return BytesPerSecond(best);
}

BytesPerSecond peer_rate(int from, int to) {
  int reaches = 0;
  if (from != to)
    check_cuda(cudaDeviceCanAccessPeer(&reaches, from, to), "cudaDeviceCanAccessPeer");
  if (reaches == 0) return {};
  use_gpu(to);
  const std::shared_ptr<void> there = gpu_memory(kCopied);
  use_gpu(from);
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(to, 0);
  if (enabled != cudaErrorPeerAccessAlreadyEnabled)
    check_cuda(enabled, "cudaDeviceEnablePeerAccess");
  // Clear the error that it was enabled already.
  cudaGetLastError();
  const std::shared_ptr<void> here = gpu_memory(kCopied);
  return copy_rate(there.get(), here.get());
}

}  // namespace

std::vector<GpuFacts> list_gpus(std::string& why_none) {
  std::vector<GpuFacts> gpus;
  const int count = count_gpus(why_none);
  for (int gpu = 0; gpu < count; ++gpu) gpus.push_back(facts_of(gpu));
  return gpus;
}

GpuHost probe_gpus(std::string& why_none) {
  GpuHost host;
  host.gpus = list_gpus(why_none);
  const int count = static_cast<int>(host.gpus.size());
  if (count == 0) return host;
  use_gpu(0);
  void* locked = nullptr;
  check_cuda(cudaMallocHost(&locked, kCopied), "cudaMallocHost");
  const std::unique_ptr<void, decltype(&cudaFreeHost)> memory(locked, &cudaFreeHost);
  const std::shared_ptr<void> on_gpu = gpu_memory(kCopied);
  host.host_to_gpu = copy_rate(on_gpu.get(), locked);
  host.gpu_to_host = copy_rate(locked, on_gpu.get());
  for (int from = 0; from < count; ++from) {
    auto& row = host.peer_copies.emplace_back();
    for (int to = 0; to < count; ++to) row.push_back(peer_rate(from, to));
  }
  return host;
}

}  // namespace shardwright::executor
