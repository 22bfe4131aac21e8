#include "executor/comm/gloo_communicator.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/runtime/stream_queues.hpp"

namespace shardwright::executor {
namespace {

class CpuBackend final : public RankBackend {
 public:
  CpuBackend(TcpStore* store, const BackendOptions& options) : store_(store) {
    if (store_ == nullptr) return;
    device_ = std::make_unique<GlooDevice>(GlooOptions{store_->own_address(), options.timeout});
  }

  Kernels& kernels() override { return kernels_; }
  OpenCommunicator opener() override {
    return [this](const std::string& key, int rank, int size) {
      return device_->connect(*store_, key, rank, size);
    };
  }
  MakeQueues queues() override { return make_stream_queues; }

 private:
  TcpStore* store_;
  std::unique_ptr<GlooDevice> device_;
  CpuKernels<float> kernels_;
};

}  // namespace

const char* name_of(Device device) {
  return device == Device::Cuda ? "cuda" : "cpu";
}

std::unique_ptr<RankBackend> open_cpu(TcpStore* store, const BackendOptions& options) {
  return std::make_unique<CpuBackend>(store, options);
}

}  // namespace shardwright::executor
