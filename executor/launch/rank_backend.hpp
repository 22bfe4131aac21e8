// The device and network of a rank: the CPU with Gloo, or a GPU with NCCL.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/spec/precision.hpp"
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

// Logs each communicator that it opens.
OpenCommunicator with_log(OpenCommunicator open);

struct BackendOptions {
  std::chrono::milliseconds timeout{60'000};
  bool share_gpu = false;
  // That of the plan: fp32 or bf16 on CPUs, bf16 on GPUs.
  Precision precision = Precision::Fp32;
};

// `wanted` is "cpu", "cuda" or "auto": a GPU if the plan is in bf16 and there is one, otherwise the
// CPU. Throws InputError if a GPU is requested and there is none.
Device choose_device(const std::string& wanted, Precision precision);

// `store` is null for a single rank. Throws CommunicationError.
std::unique_ptr<RankBackend> open_backend(Device device, TcpStore* store, const LaunchPlace& place,
                                          const BackendOptions& options);
// Uses the GPU with the rank's number on its host, modulo the number of GPUs. Throws
// CommunicationError and CudaError; InputError if this build has no CUDA, or ranks would share a
// GPU without `share_gpu`.
std::unique_ptr<RankBackend> open_cuda(TcpStore* store, const LaunchPlace& place,
                                       const BackendOptions& options);

// Returns the number of GPUs that this process sees; if it is 0, `why_none` says why.
std::int64_t visible_gpus(std::string& why_none);

// Throws InputError if this host has fewer GPUs than ranks and `share_gpu` is false.
void check_gpus(std::int64_t ranks_of_host, bool share_gpu);

// Checks that the ranks of a host use different GPUs: another launcher may show each process only
// one GPU, which then has the number 0 in each of them. Writes the rank's GPU to the store and
// compares it with those of the other ranks of its host; all of them call it. `gpu` identifies a
// GPU of the host. Consecutive ranks form a host, as launchers number them by default; others are
// not compared. Throws InputError if two ranks use the same GPU, CommunicationError if a rank does
// not report within `timeout`.
void claim_gpu(Store& store, const LaunchPlace& place, const std::string& host,
               const std::string& gpu, std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
