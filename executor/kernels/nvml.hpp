// The NVIDIA Management Library (NVML), which comes with the driver: GPU memory by process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shardwright::executor {

// Loads the library at run time, so that it is optional.
class Nvml {
 public:
  explicit Nvml(const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns the memory of the GPU at this bus address ("0000:1b:00.0") that the process holds now:
  // context, kernels, its own data and that of libraries. Returns nothing if NVML is absent or does
  // not tell: the process has no context there, or runs in a container with other process numbers
  // (older drivers list it by its other number or with 0 bytes:
  // github.com/NVIDIA/open-gpu-kernel-modules, pull request 614).
  std::optional<std::size_t> memory_of(const std::string& bus_id, std::int64_t process) const;

 private:
  struct Library;
  // Null if the library is absent.
  std::unique_ptr<Library> library_;
};

}  // namespace shardwright::executor
