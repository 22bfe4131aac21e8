#include "tests/fake_cuda/fake_gpus.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

using shardwright::fake::current_gpu;
using shardwright::fake::Gpu;
using shardwright::fake::gpus;
using shardwright::fake::Progress;

// Times of events are those of the host's clock.
struct Passing {
  std::atomic<bool> passed{false};
  std::chrono::steady_clock::time_point at;
};

struct CUevent_st {
  Gpu* gpu = nullptr;
  bool timed = false;
  // The last record, or null.
  std::shared_ptr<Passing> last;
};

struct CUstream_st {
  Gpu* gpu = nullptr;
  std::mutex mutex;
  std::condition_variable issued;
  std::deque<std::function<Progress()>> work;
  bool closing = false;
  std::thread thread;

  bool is_idle() {
    const std::lock_guard lock(mutex);
    return work.empty();
  }

  // Goes on with the first piece of work. One thread at a time calls it.
  Progress step() {
    std::unique_lock lock(mutex);
    if (work.empty()) return Progress::Blocked;
    std::function<Progress()>& first = work.front();
    lock.unlock();
    // A failed GPU drops its work.
    const Progress progress = gpu->error == cudaSuccess ? first() : Progress::Ended;
    lock.lock();
    if (progress == Progress::Ended) work.pop_front();
    return progress;
  }

  void run() {
    while (true) {
      {
        std::unique_lock lock(mutex);
        issued.wait(lock, [this] { return closing || !work.empty(); });
        if (closing) return;
      }
      for (int tries = 0; step() != Progress::Ended; ++tries) {
        constexpr int kSpins = 20;
        constexpr std::chrono::microseconds kPause{20};
        if (tries < kSpins) {
          std::this_thread::yield();
        } else {
          std::this_thread::sleep_for(kPause);
        }
        const std::lock_guard lock(mutex);
        if (closing) return;
      }
    }
  }
};

namespace shardwright::fake {
namespace {

constexpr int kFresh = 0xA5, kFreed = 0xDD;

Gpus* all_gpus = nullptr;
thread_local int selected = 0;

// Counts a call of the selected GPU, which may have to fail.
cudaError_t called() {
  Gpu& gpu = current_gpu();
  if (gpu.error != cudaSuccess) return gpu.error;
  if (gpu.cuda_calls_left >= 0 && gpu.cuda_calls_left-- == 0) return cudaErrorLaunchFailure;
  return cudaSuccess;
}

}  // namespace

Gpus& gpus() {
  return *all_gpus;
}

Gpu& current_gpu() {
  return gpus().gpu(selected);
}

Gpus::Gpus(int count, Order order, std::uint64_t seed) : order_(order) {
  for (int i = 0; i < count; ++i) gpus_.push_back(std::make_unique<Gpu>());
  reseed(seed);
  all_gpus = this;
}

Gpus::~Gpus() {
  all_gpus = nullptr;
}

void Gpus::reseed(std::uint64_t seed) {
  const std::lock_guard lock(order_mutex_);
  random_.seed(seed);
  turns_ = static_cast<Turns>(random_() % 3);
  std::shuffle(streams_.begin(), streams_.end(), random_);
  for (const auto& gpu : gpus_) gpu->random.seed(random_());
}

void Gpus::forbid(const std::string& what) {
  const std::lock_guard lock(mutex_);
  forbidden_.push_back(what);
}

std::vector<std::string> Gpus::complaints() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all = forbidden_;
  for (const auto& [kind, count] : objects_) {
    if (count != 0) all.push_back(std::to_string(count) + " not released: " + kind);
  }
  if (!memory_.empty()) all.push_back(std::to_string(memory_.size()) + " not released: memory");
  return all;
}

void* Gpus::allocate(std::size_t bytes) {
  std::vector<std::byte> memory(bytes, std::byte{kFresh});
  const std::lock_guard lock(mutex_);
  void* place = memory.data();
  memory_.emplace(place, std::move(memory));
  return place;
}

// Freed memory is kept, so that work that still reads it finds other values.
void Gpus::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_.find(memory);
  if (found == memory_.end()) {
    forbidden_.emplace_back("cudaFree of what is not allocated");
    return;
  }
  std::memset(memory, kFreed, found->second.size());
  freed_.insert(memory_.extract(found));
}

void Gpus::add(CUstream_st* stream) {
  const std::lock_guard lock(order_mutex_);
  const auto place = static_cast<std::ptrdiff_t>(random_() % (streams_.size() + 1));
  streams_.insert(streams_.begin() + place, stream);
}

void Gpus::remove(CUstream_st* stream) {
  const std::lock_guard lock(order_mutex_);
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
}

void Gpus::count_objects(const char* kind, int change) {
  const std::lock_guard lock(mutex_);
  objects_[kind] += change;
}

bool Gpus::step() {
  const std::lock_guard lock(order_mutex_);
  constexpr std::uint64_t kTurn = 8;
  if (turns_ == Turns::Any) std::shuffle(streams_.begin(), streams_.end(), random_);
  for (auto stream = streams_.begin(); stream != streams_.end(); ++stream) {
    if ((*stream)->step() == Progress::Blocked) continue;
    if (turns_ == Turns::FirstForSomeTime && random_() % kTurn == 0)
      std::rotate(stream, stream + 1, streams_.end());
    return true;
  }
  return false;
}

void Gpus::poll() {
  if (order_ == Order::Threads) return;
  for (std::uint64_t steps = current_gpu().draw(16); steps > 0 && step();) --steps;
}

void Gpus::finish(const Gpu& gpu) {
  const auto works = [&] {
    const std::lock_guard lock(order_mutex_);
    return std::any_of(streams_.begin(), streams_.end(), [&](CUstream_st* stream) {
      return stream->gpu == &gpu && !stream->is_idle();
    });
  };
  while (works()) {
    if (order_ == Order::Threads || !step()) std::this_thread::yield();
  }
}

void enqueue(cudaStream_t stream, std::function<Progress()> work) {
  const std::lock_guard lock(stream->mutex);
  stream->work.push_back(std::move(work));
  stream->issued.notify_one();
}

cudaError_t launch(cudaStream_t stream, std::function<void()> work, Kernel kernel) {
  if (const cudaError_t error = called()) return error;
  enqueue(stream, [gpu = stream->gpu, work = std::move(work), kernel] {
    if (kernel == Kernel::Hangs && !gpus().released()) return Progress::Blocked;
    if (kernel == Kernel::Faults) {
      gpu->error = cudaErrorIllegalAddress;
    } else {
      work();
    }
    return Progress::Ended;
  });
  return cudaSuccess;
}

}  // namespace shardwright::fake

using shardwright::fake::called;

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    default:
      return "another error";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = gpus().count();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0",
                static_cast<unsigned>(device));
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= gpus().count()) return cudaErrorInvalidDevice;
  shardwright::fake::selected = device;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (const cudaError_t error = called()) return error;
  *memory = gpus().allocate(bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  gpus().finish(current_gpu());
  gpus().free(memory);
  return current_gpu().error;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t error = called()) return error;
  if (flags != cudaStreamNonBlocking) gpus().forbid("a stream that waits for the default stream");
  *stream = new CUstream_st;
  (*stream)->gpu = &current_gpu();
  if (gpus().order() == shardwright::fake::Order::Threads)
    (*stream)->thread = std::thread([of = *stream] { of->run(); });
  gpus().add(*stream);
  gpus().count_objects("streams", 1);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream->gpu->error == cudaSuccess && !stream->is_idle())
    gpus().forbid("a stream is destroyed while it works");
  gpus().remove(stream);
  {
    const std::lock_guard lock(stream->mutex);
    stream->closing = true;
    stream->issued.notify_one();
  }
  if (stream->thread.joinable()) stream->thread.join();
  delete stream;
  gpus().count_objects("streams", -1);
  return current_gpu().error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = called()) return error;
  gpus().poll();
  return stream->is_idle() ? stream->gpu->error.load() : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (const cudaError_t error = called()) return error;
  // As CUDA does, waits for nothing if the event was never recorded.
  if (event->last) {
    shardwright::fake::enqueue(stream, [last = event->last] {
      return last->passed ? Progress::Ended : Progress::Blocked;
    });
  }
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t error = called()) return error;
  *event = new CUevent_st{&current_gpu(), flags != cudaEventDisableTiming, nullptr};
  gpus().count_objects("events", 1);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  gpus().count_objects("events", -1);
  return current_gpu().error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = called()) return error;
  if (event->gpu != stream->gpu) return cudaErrorInvalidResourceHandle;
  event->last = std::make_shared<Passing>();
  shardwright::fake::enqueue(stream, [last = event->last] {
    last->at = std::chrono::steady_clock::now();
    last->passed = true;
    return Progress::Ended;
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = called()) return error;
  gpus().poll();
  if (event->gpu->error != cudaSuccess) return event->gpu->error;
  return !event->last || event->last->passed ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cudaError_t state = cudaEventQuery(event);
  while (state == cudaErrorNotReady) {
    std::this_thread::yield();
    state = cudaEventQuery(event);
  }
  return state;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = called()) return error;
  for (const cudaEvent_t event : {start, end}) {
    if (!event->timed || !event->last) return cudaErrorInvalidResourceHandle;
    if (!event->last->passed) return cudaErrorNotReady;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->last->at - start->last->at).count();
  return cudaSuccess;
}
}
