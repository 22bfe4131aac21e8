// What a rank computes on and talks through: the CPU with Gloo, or a GPU with NCCL.
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

  // All three belong to one device and refer to the backend.
  virtual Kernels& kernels() = 0;
  virtual OpenCommunicator opener() = 0;
  virtual MakeQueues queues() = 0;
};

struct BackendOptions {
  std::chrono::milliseconds timeout{60'000};
  bool share_gpu = false;  // several ranks may use one GPU
};

// `store` is null in a world of one rank. Throws CommunicationError.
std::unique_ptr<RankBackend> open_cpu(TcpStore* store, const BackendOptions& options);
// The GPU with the number of the rank on its host; where there is but one, or ranks share GPUs,
// they take turns. Throws CommunicationError, CudaError; and InputError where this build has no
// CUDA, or ranks would share a GPU without being told to.
std::unique_ptr<RankBackend> open_cuda(TcpStore* store, const LaunchPlace& place,
                                       const BackendOptions& options);

// GPUs that this process sees; 0 with the reason in `why_none` if there are none.
std::int64_t visible_gpus(std::string& why_none);

}  // namespace shardwright::executor
