// A library with the names of NVML, for nvml_test.cpp: one GPU, on which four processes compute.
#include <cstring>

namespace {

struct ProcessInfo {
  unsigned process;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

constexpr unsigned kNone = ~0U, kCount = 4;
constexpr ProcessInfo kProcesses[kCount] = {{41, 1000, kNone, kNone},
                                            {42, 7ULL << 32U, kNone, kNone},
                                            {43, 0, kNone, kNone},
                                            {44, ~0ULL, kNone, kNone}};
constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotFound = 6,
              kInsufficientSize = 7;
int begun = 0;
int device = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++begun;
  return kSuccess;
}

int nvmlShutdown() {
  --begun;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** found) {
  if (begun == 0) return kUninitialized;
  if (std::strcmp(bus_id, "0000:1b:00.0") != 0) return kNotFound;
  *found = &device;
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* on, unsigned* count, ProcessInfo* processes) {
  if (on != &device) return kInvalidArgument;
  const unsigned room = *count;
  *count = kCount;
  if (room < kCount) return kInsufficientSize;
  std::memcpy(processes, kProcesses, sizeof kProcesses);
  return kSuccess;
}

}  // extern "C"
