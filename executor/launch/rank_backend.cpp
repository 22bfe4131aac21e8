#include "executor/launch/rank_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "executor/comm/gloo_communicator.hpp"
#include "executor/kernels/cpu/bf16_kernels.hpp"
#include "executor/telemetry/log.hpp"

namespace shardwright::executor {
namespace {

class CpuBackend final : public RankBackend {
 public:
  CpuBackend(TcpStore* store, const BackendOptions& options)
      : store_(store),
        kernels_(options.precision == Precision::Bf16 ? make_bf16_cpu_kernels()
                                                      : make_cpu_kernels()) {
    if (store_ == nullptr) return;
    device_ = std::make_unique<GlooDevice>(store_->own_address(), options.timeout);
  }

  Kernels& kernels() override { return *kernels_; }
  OpenCommunicator opener() override {
    return [this](const std::string& key, int rank, int size) {
      return device_->connect(*store_, key, rank, size);
    };
  }
  MakeQueues queues() override { return make_stream_queues; }

 private:
  TcpStore* store_;
  std::unique_ptr<GlooDevice> device_;
  std::unique_ptr<Kernels> kernels_;
};

std::string claim_key(std::int64_t rank) {
  return fmt::format("gpu/{}", rank);
}

}  // namespace

const char* name_of(Device device) {
  return device == Device::Cuda ? "cuda" : "cpu";
}

OpenCommunicator with_log(OpenCommunicator open) {
  return [open = std::move(open)](const std::string& key, int rank, int size) {
    auto communicator = open(key, rank, size);
    log_debug(fmt::format("connected communicator {} as member {} of {}", key, rank, size));
    return communicator;
  };
}

Device choose_device(const std::string& wanted, Precision precision) {
  if (wanted == "cpu") return Device::Cpu;
  if (wanted == "auto" && precision != Precision::Bf16) return Device::Cpu;
  std::string why;
  if (visible_gpus(why) > 0) return Device::Cuda;
  if (wanted == "auto") return Device::Cpu;
  throw InputError("--device", {{"", "no CUDA device: " + why, "a GPU, or --device cpu"}});
}

std::unique_ptr<RankBackend> open_backend(Device device, TcpStore* store, const LaunchPlace& place,
                                          const BackendOptions& options) {
  if (device == Device::Cuda) return open_cuda(store, place, options);
  return std::make_unique<CpuBackend>(store, options);
}

void check_gpus(std::int64_t ranks_of_host, bool share_gpu) {
  std::string why;
  const std::int64_t gpus = visible_gpus(why);
  if (share_gpu || ranks_of_host <= gpus) return;
  throw InputError("--device",
                   {{"", fmt::format("{} ranks and {} GPUs on this host", ranks_of_host, gpus),
                     "a GPU for each rank, or --share-gpu"}});
}

void claim_gpu(Store& store, const LaunchPlace& place, const std::string& host,
               const std::string& gpu, std::chrono::milliseconds timeout) {
  const std::string own = host + " " + gpu;
  store.set(claim_key(place.rank), own);
  const std::int64_t first = std::max<std::int64_t>(0, place.rank - place.local_rank);
  const std::int64_t end = std::min(place.world, first + place.local_world);
  for (std::int64_t rank = first; rank < end; ++rank) {
    if (rank == place.rank || store.get(claim_key(rank), timeout) != own) continue;
    throw InputError(
        "--device", {{"",
                      fmt::format("ranks {} and {} on the GPU {} of {}", std::min(rank, place.rank),
                                  std::max(rank, place.rank), gpu, host),
                      "a GPU for each rank, or --share-gpu"}});
  }
}

}  // namespace shardwright::executor
