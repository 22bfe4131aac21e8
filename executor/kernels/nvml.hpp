// The NVIDIA Management Library, which comes with the driver: what processes take of a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shardwright::executor {

// Loaded while the program runs, so that nothing needs it.
class Nvml {
 public:
  explicit Nvml(const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Bytes that the process holds now of the memory of the GPU at this place ("0000:1b:00.0"): its
  // context, kernels, the libraries' and its own. Nothing where the library does not tell: it is
  // absent, the process has no context there, or is in a container whose process numbers are not
  // those of the host (older drivers list it by its other number, or with 0 bytes:
  // github.com/NVIDIA/open-gpu-kernel-modules, pull request 614).
  std::optional<std::size_t> memory_of(const std::string& bus_id, std::int64_t process) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;  // null: absent
};

}  // namespace shardwright::executor
