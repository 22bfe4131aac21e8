#include "executor/kernels/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

namespace shardwright::executor {
namespace {

// Declarations of nvml.h ("NVML API Reference Guide"), which a build then does not need.
using Device = void*;
// nvmlProcessInfo_t
struct ProcessInfo {
  unsigned process;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr int kSuccess = 0, kInsufficientSize = 7;
constexpr unsigned long long kNotAvailable = ~0ULL;

using Call = int (*)();
using GetDevice = int (*)(const char* bus_id, Device* device);
using GetProcesses = int (*)(Device device, unsigned* count, ProcessInfo* processes);

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Call shut_down = nullptr;
  GetDevice device_at = nullptr;
  GetProcesses processes_on = nullptr;

  ~Library() {
    if (shut_down != nullptr) shut_down();
    if (handle != nullptr) dlclose(handle);
  }

  template <class Function>
  bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }

  // Returns false if the library cannot be used.
  bool open(const char* name) {
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    Call begin = nullptr, end = nullptr;
    if (handle == nullptr || !find("nvmlInit_v2", begin) || !find("nvmlShutdown", end) ||
        !find("nvmlDeviceGetHandleByPciBusId_v2", device_at) ||
        !find("nvmlDeviceGetComputeRunningProcesses_v3", processes_on) || begin() != kSuccess)
      return false;
    shut_down = end;
    return true;
  }

  // Returns the processes that compute on the device; none if NVML does not know.
  std::vector<ProcessInfo> processes_of(Device device) const {
    std::vector<ProcessInfo> processes;
    unsigned count = 0;
    int status = processes_on(device, &count, nullptr);
    // More processes may start between two calls.
    for (int tries = 0; status == kInsufficientSize && tries < 3; ++tries) {
      processes.resize(2 * std::size_t{count} + 1);
      count = static_cast<unsigned>(processes.size());
      status = processes_on(device, &count, processes.data());
    }
    processes.resize(status == kSuccess ? std::min<std::size_t>(count, processes.size()) : 0);
    return processes;
  }
};

Nvml::Nvml(const char* library) : library_(std::make_unique<Library>()) {
  if (!library_->open(library)) library_.reset();
}

Nvml::~Nvml() = default;

std::optional<std::size_t> Nvml::memory_of(const std::string& bus_id, std::int64_t process) const {
  Device device = nullptr;
  if (!library_ || library_->device_at(bus_id.c_str(), &device) != kSuccess) return std::nullopt;
  for (const ProcessInfo& each : library_->processes_of(device)) {
    const bool is_reported = each.bytes > 0 && each.bytes != kNotAvailable;
    if (static_cast<std::int64_t>(each.process) == process && is_reported)
      return static_cast<std::size_t>(each.bytes);
  }
  return std::nullopt;
}

}  // namespace shardwright::executor
