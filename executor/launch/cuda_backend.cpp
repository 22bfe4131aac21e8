#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "executor/comm/nccl_communicator.hpp"
#include "executor/kernels/cuda/cuda_kernels.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/runtime/cuda_queues.hpp"

namespace shardwright::executor {
namespace {

// The rank's GPU, for all that comes after it in the backend.
class ChosenGpu {
 public:
  explicit ChosenGpu(const LaunchPlace& place) {
    std::string why;
    const int count = count_gpus(why);
    if (count == 0) throw InputError("--device", {{"", "no CUDA device: " + why, "a GPU"}});
    use_gpu(static_cast<int>(place.local_rank % count));
  }
};

class CudaBackend final : public RankBackend {
 public:
  CudaBackend(TcpStore* store, const LaunchPlace& place, const BackendOptions& options)
      : store_(store), timeout_(options.timeout), gpu_(place) {
    if (options.share_gpu) share_gpu_among_ranks(place.rank);
  }

  Kernels& kernels() override { return kernels_; }

  OpenCommunicator opener() override {
    return [this](const std::string& key, int rank, int size) {
      return connect_nccl(*store_, key, rank, size, timeout_);
    };
  }

  MakeQueues queues() override {
    return [this](std::size_t count, QueueHooks hooks) {
      return std::make_unique<CudaQueues>(count, std::move(hooks), timeout_);
    };
  }

 private:
  TcpStore* store_;
  std::chrono::milliseconds timeout_;
  ChosenGpu gpu_;
  CudaKernels kernels_;
};

}  // namespace

std::unique_ptr<RankBackend> open_cuda(TcpStore* store, const LaunchPlace& place,
                                       const BackendOptions& options) {
  return std::make_unique<CudaBackend>(store, place, options);
}

std::int64_t visible_gpus(std::string& why_none) {
  return count_gpus(why_none);
}

}  // namespace shardwright::executor
