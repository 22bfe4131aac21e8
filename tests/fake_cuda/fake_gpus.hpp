// GPUs behind the names of CUDA's runtime and NCCL, whose streams take any order that CUDA allows:
// a stream does its work in the order of issue, and waits for events alone. So a missing wait gives
// other results than those of the order of issue.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace shardwright::fake {

enum class Order : std::uint8_t {
  // The host's queries do the work, in an order that the seed chooses: one thread sees the same
  // each time.
  Seeded,
  // Each stream is a thread. Nothing but CUDA's own order comes between two streams, so
  // ThreadSanitizer reports a missing wait even if the results are right.
  Threads
};

enum class Kernel : std::uint8_t {
  Ends,
  // Ends with an error that all later calls on its GPU return.
  Faults,
  // Runs until `Gpus::release_hanging`.
  Hangs
};

// What the host asks of one GPU. One thread at a time uses it.
struct Gpu {
  // An error that work on the GPU has caused.
  std::atomic<cudaError_t> error{cudaSuccess};
  std::mt19937_64 random;
  // The number of calls after which one of CUDA's, or of NCCL's, fails; negative for never.
  std::int64_t cuda_calls_left = -1, nccl_calls_left = -1;

  std::uint64_t draw(std::uint64_t below) { return random() % below; }
};

// The GPUs of the process; at most one object at a time.
class Gpus {
 public:
  Gpus(int count, Order order, std::uint64_t seed);
  ~Gpus();
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  // Chooses another order from here on.
  void reseed(std::uint64_t seed);
  // Members learn of a communicator that another one has aborted; without it they wait.
  void report_aborts(bool report) { reports_aborts_ = report; }
  bool reports_aborts() const { return reports_aborts_; }
  void release_hanging() { released_ = true; }
  bool released() const { return released_; }

  Gpu& gpu(int ordinal) { return *gpus_.at(static_cast<std::size_t>(ordinal)); }
  int count() const { return static_cast<int>(gpus_.size()); }
  Order order() const { return order_; }

  // Notes a call that CUDA or NCCL forbids.
  void forbid(const std::string& what);
  // Returns forbidden calls and what was made and not released; empty if all is well.
  std::vector<std::string> complaints() const;

  // Only the functions of the fake runtime call these.
  void* allocate(std::size_t bytes);
  void free(void* memory);
  void add(CUstream_st* stream);
  void remove(CUstream_st* stream);
  void count_objects(const char* kind, int change);
  // Does some work if the host has to do it.
  void poll();
  // Waits until the streams of the GPU have done their work; a failed GPU drops it.
  void finish(const Gpu& gpu);

 private:
  bool step();

  Order order_;
  std::atomic<bool> reports_aborts_{true}, released_{false};
  std::vector<std::unique_ptr<Gpu>> gpus_;
  // Guards the order of the streams.
  std::mutex order_mutex_;
  std::vector<CUstream_st*> streams_;
  std::mt19937_64 random_;
  // How the streams take turns: any that can goes on, or the first one that can, which then may
  // become the last one.
  enum class Turns : std::uint8_t { Any, First, FirstForSomeTime };
  Turns turns_ = Turns::Any;
  // Guards what follows.
  mutable std::mutex mutex_;
  std::map<void*, std::vector<std::byte>> memory_, freed_;
  std::map<std::string, int> objects_;
  std::vector<std::string> forbidden_;
};

Gpus& gpus();
// The GPU that the calling thread has selected.
Gpu& current_gpu();

enum class Progress : std::uint8_t { Blocked, Begun, Ended };

// Puts work into a stream, which calls it until it has ended.
void enqueue(cudaStream_t stream, std::function<Progress()> work);
// Launches a kernel, which the stream calls once.
cudaError_t launch(cudaStream_t stream, std::function<void()> work, Kernel kernel = Kernel::Ends);

}  // namespace shardwright::fake
