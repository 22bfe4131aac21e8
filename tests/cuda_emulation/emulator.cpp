#include <ucontext.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "executor/kernels/cuda/launch.cuh"

namespace shardwright::executor {

EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr unsigned kLanes = 32;

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(kStackBytes);
  bool ended = false;
  // The barrier at which the thread waits; 0 stands for none.
  std::uint64_t waits_for = 0;
};

// The running block.
struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  unsigned threads = 0, running = 0;
  ucontext_t scheduler;
  const std::function<void()>* thread = nullptr;
  // Values that threads exchange.
  std::vector<double> values;
};

Block block;

void start_fiber() {
  (*block.thread)();
  block.fibers[block.running]->ended = true;
}

// Barrier 1 belongs to the block, 2 + w to warp w.
void stand_at(std::uint64_t barrier) {
  Fiber& fiber = *block.fibers[block.running];
  fiber.waits_for = barrier;
  swapcontext(&fiber.context, &block.scheduler);
}

void stand_at_warp() {
  stand_at(2 + block.running / kLanes);
}

// A barrier opens when all live threads wait at it.
bool open_barrier(unsigned first, unsigned last, std::uint64_t barrier) {
  bool any = false;
  for (unsigned t = first; t < last; ++t) {
    const Fiber& fiber = *block.fibers[t];
    if (fiber.ended) continue;
    if (fiber.waits_for != barrier) return false;
    any = true;
  }
  for (unsigned t = first; t < last; ++t) block.fibers[t]->waits_for = 0;
  return any;
}

bool open_barriers() {
  bool any = open_barrier(0, block.threads, 1);
  for (unsigned warp = 0; warp * kLanes < block.threads; ++warp) {
    const unsigned last = std::min(block.threads, (warp + 1) * kLanes);
    any = open_barrier(warp * kLanes, last, 2 + warp) || any;
  }
  return any;
}

bool run_all_once() {
  bool all_ended = true;
  for (unsigned t = 0; t < block.threads; ++t) {
    Fiber& fiber = *block.fibers[t];
    if (fiber.ended || fiber.waits_for != 0) {
      all_ended = all_ended && fiber.ended;
      continue;
    }
    all_ended = false;
    block.running = t;
    threadIdx = {t, 0, 0};
    swapcontext(&block.scheduler, &fiber.context);
  }
  return all_ended;
}

void run_block() {
  for (unsigned t = 0; t < block.threads; ++t) {
    Fiber& fiber = *block.fibers[t];
    fiber.ended = false;
    fiber.waits_for = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = &block.scheduler;
    makecontext(&fiber.context, start_fiber, 0);
  }
  while (!run_all_once()) {
    bool can_run = open_barriers();
    for (unsigned t = 0; t < block.threads && !can_run; ++t)
      can_run = block.fibers[t]->ended || block.fibers[t]->waits_for == 0;
    if (!can_run) throw std::runtime_error("threads of a block wait at different barriers");
  }
}

double shown_by(double value, unsigned thread) {
  block.values[block.running] = value;
  stand_at_warp();
  const double other = block.values[thread];
  // All threads must have read the value before the next one is written.
  stand_at_warp();
  return other;
}

}  // namespace

void emulate(dim3 grid, unsigned threads, const std::function<void()>& thread) {
  while (block.fibers.size() < threads) block.fibers.push_back(std::make_unique<Fiber>());
  block.threads = threads;
  block.thread = &thread;
  block.values.assign(threads, 0.0);
  blockDim = {threads, 1, 1};
  gridDim = {grid.x, grid.y, grid.z};
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = {x, y, 0};
      run_block();
    }
  }
}

void __syncthreads() {
  stand_at(1);
}

int __syncthreads_or(int value) {
  block.values[block.running] = value;
  stand_at(1);
  bool any = false;
  for (unsigned t = 0; t < block.threads; ++t)
    any = any || (!block.fibers[t]->ended && block.values[t] != 0.0);
  stand_at(1);
  return any ? 1 : 0;
}

float emulated_shuffle(float value, unsigned lane) {
  return static_cast<float>(shown_by(value, block.running / kLanes * kLanes + lane));
}

double emulated_shuffle(double value, unsigned lane) {
  return shown_by(value, block.running / kLanes * kLanes + lane);
}

unsigned __ballot_sync(unsigned /*mask*/, int value) {
  block.values[block.running] = value;
  stand_at_warp();
  unsigned lanes = 0;
  const unsigned first = block.running / kLanes * kLanes;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    lanes |= block.values[first + lane] != 0.0 ? 1U << lane : 0U;
  stand_at_warp();
  return lanes;
}

}  // namespace shardwright::executor
