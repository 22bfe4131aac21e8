#include "executor/launch/device_choice.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace shardwright::executor {

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
  return device == Device::Cuda ? open_cuda(store, place, options) : open_cpu(store, options);
}

void check_gpus(std::int64_t ranks_of_host, bool share_gpu) {
  std::string why;
  const std::int64_t gpus = visible_gpus(why);
  if (share_gpu || ranks_of_host <= gpus) return;
  throw InputError("--device",
                   {{"", fmt::format("{} ranks and {} GPUs on this host", ranks_of_host, gpus),
                     "a GPU for each rank, or --share-gpu"}});
}

}  // namespace shardwright::executor
