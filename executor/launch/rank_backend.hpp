// The device and network of a rank: the CPU with Gloo, or a GPU with NCCL.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "executor/comm/rank_communicators.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/runtime/op_queues.hpp"

namespace shardwright::executor {

enum class Device : std::uint8_t { Cpu, Cuda };

const char* name_of(Device device);

class RankBackend {
 public:
  virtual ~RankBackend() = default;

  // All three use the same device and refer to the backend.
  virtual Kernels& kernels() = 0;
  virtual OpenCommunicator opener() = 0;
  virtual MakeQueues queues() = 0;
};

struct BackendOptions {
  std::chrono::milliseconds timeout{60'000};
  bool share_gpu = false;
};

// `store` is null for a single rank. Throws CommunicationError.
std::unique_ptr<RankBackend> open_cpu(TcpStore* store, const BackendOptions& options);
// Uses the GPU with the rank's number on its host, modulo the number of GPUs. Throws
// CommunicationError and CudaError; InputError if this build has no CUDA, or ranks would share a
// GPU without `share_gpu`.
std::unique_ptr<RankBackend> open_cuda(TcpStore* store, const LaunchPlace& place,
                                       const BackendOptions& options);

// Returns the number of GPUs that this process sees; if it is 0, `why_none` says why.
std::int64_t visible_gpus(std::string& why_none);

}  // namespace shardwright::executor
