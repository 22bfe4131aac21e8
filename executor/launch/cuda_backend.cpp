#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "executor/comm/nccl_communicator.hpp"
#include "executor/comm/socket.hpp"
#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/runtime/op_queues.hpp"
#include "executor/telemetry/log.hpp"

namespace shardwright::executor {
namespace {

// Selects the rank's GPU before the other members of the backend use it.
class ChosenGpu {
 public:
  ChosenGpu(TcpStore* store, const LaunchPlace& place, const BackendOptions& options) {
    std::string why;
    const int count = count_gpus(why);
    if (count == 0) throw InputError("--device", {{"", "no CUDA device: " + why, "a GPU"}});
    const int ordinal = static_cast<int>(place.local_rank % count);
    if (store != nullptr && !options.share_gpu)
      claim_gpu(*store, place, host_name(), gpu_bus_id(ordinal), options.timeout);
    use_gpu(ordinal);
  }
};

// Exits without unwinding, which would wait for the device. The other ranks notice the exit.
[[noreturn]] void end_process(std::int64_t rank, const std::string& why) {
  log_error(fmt::format("rank {} on {}: {}", rank, host_name(), why));
  std::_Exit(EXIT_FAILURE);
}

class CudaBackend final : public RankBackend {
 public:
  CudaBackend(TcpStore* store, const LaunchPlace& place, const BackendOptions& options)
      : store_(store),
        timeout_(options.timeout),
        rank_(place.rank),
        gpu_(store, place, options),
        kernels_(make_cuda_kernels(options.share_gpu)) {
    if (options.share_gpu) share_gpu_among_ranks(place.rank);
  }

  Kernels& kernels() override { return *kernels_; }

  OpenCommunicator opener() override {
    return [this](const std::string& key, int rank, int size) {
      return connect_nccl(*store_, key, rank, size, timeout_);
    };
  }

  MakeQueues queues() override {
    return [this](std::size_t count, QueueHooks hooks) {
      return make_cuda_queues(count, std::move(hooks), timeout_,
                              [rank = rank_](const std::string& why) { end_process(rank, why); });
    };
  }

 private:
  TcpStore* store_;
  std::chrono::milliseconds timeout_;
  std::int64_t rank_;
  ChosenGpu gpu_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace

std::unique_ptr<RankBackend> open_cuda(TcpStore* store, const LaunchPlace& place,
                                       const BackendOptions& options) {
  return std::make_unique<CudaBackend>(store, place, options);
}

std::int64_t visible_gpus(std::string& why_none) {
  // Connections are made when a communicator is created. Otherwise NCCL 2.22 and later make them at
  // the first call of each algorithm, possibly during other collectives (user guide,
  // "NCCL_RUNTIME_CONNECT").
  constexpr int kKeep = 0;
  setenv("NCCL_RUNTIME_CONNECT", "0", kKeep);
  return count_gpus(why_none);
}

}  // namespace shardwright::executor
