#include "executor/probe/exchange_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace shardwright::executor {
namespace {

constexpr std::array<std::size_t, 7> kCpuSizes = {64,      4'096,     32'768,   131'072,
                                                  524'288, 2'097'152, 4'194'304};
constexpr std::array<std::size_t, 7> kGpuSizes = {1'024,
                                                  16'384,
                                                  131'072,
                                                  std::size_t{1} << 20U,
                                                  std::size_t{8} << 20U,
                                                  std::size_t{64} << 20U,
                                                  std::size_t{256} << 20U};
constexpr std::array kKinds = {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                               OpKind::Broadcast, OpKind::Send};
constexpr int kExchangeTries = 5;
constexpr double kTrySeconds = 0.02;  // that a try takes at least, in repetitions
constexpr std::int64_t kMostRepetitions = 64;
constexpr double kLongestHeadStart = 0.01;  // seconds
// Not the queue of a step's kernels: closed_loop and whoever slows those down leave exchanges
// alone.
constexpr std::size_t kExchangeQueue = 1;

struct GroupShape {
  std::int64_t members, stride;
};

std::vector<GroupShape> shapes_of(std::int64_t world) {
  std::vector<GroupShape> shapes;
  for (std::int64_t members = 2; members <= world; members *= 2) {
    for (std::int64_t stride = 1; members * stride <= world; stride *= 2) {
      if (world % (members * stride) == 0) shapes.push_back({members, stride});
    }
  }
  const bool listed = std::any_of(shapes.begin(), shapes.end(),
                                  [&](const GroupShape& shape) { return shape.members == world; });
  if (!listed && world > 1) shapes.push_back({world, 1});
  return shapes;
}

using Work = std::function<void(Queue)>;

// What keeps a GPU busy while the host issues a try.
class HeadStart {
 public:
  explicit HeadStart(Kernels& kernels) : kernels_(kernels), memory_(kernels.allocate(kBytes)) {}

  void issue(Queue queue, std::int64_t times) const {
    for (std::int64_t i = 0; i < times; ++i) kernels_.zero(memory_.get(), kBytes, queue);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 20U;

  Kernels& kernels_;
  std::shared_ptr<void> memory_;
};

class Probe {
 public:
  Probe(std::int64_t rank, std::int64_t world, RankBackend& backend, Device device)
      : kernels_(backend.kernels()),
        open_(backend.opener()),
        world_(open_("exchanges/world", static_cast<int>(rank), static_cast<int>(world))),
        number_(zeros(sizeof(double))),
        in_(zeros(exchange_sizes(device).back())),
        out_(zeros(exchange_sizes(device).back())) {
    queues_ = backend.queues()(kExchangeQueue + 1, {[this] { abort(); }, [this] { check(); }});
    if (device == Device::Cuda) time_head_start();
  }

  // Exchanges are timed in this group from now on; all ranks have one of such a shape.
  void join(const std::string& key, int rank, int size) {
    group_ = open_("exchanges/" + key, rank, size);
    forth_ = true;
  }

  // The mean over all ranks.
  double time(OpKind kind, std::size_t bytes) {
    const auto once = [&](Queue queue) { exchange(kind, bytes, queue); };
    // What an exchange needs is made at its first use; of messages, at the first of each direction.
    for (int i = 0; i < 2; ++i) seconds_of_last({once});
    const auto start = std::chrono::steady_clock::now();
    const double own = seconds_of_last({once});
    const double host =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double first = mean_over_world(own);
    const auto repetitions = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(kTrySeconds / std::max(first, 1e-9)), 1, kMostRepetitions);
    const Work all = [&](Queue queue) {
      for (std::int64_t i = 0; i < repetitions; ++i) once(queue);
    };
    std::array<double, kExchangeTries> tries{};
    for (double& each : tries) {
      const double taken =
          seconds_of_last({begin_together(host * static_cast<double>(repetitions)), all});
      each = mean_over_world(taken) / static_cast<double>(repetitions);
    }
    // Other work of the machine only ever adds; the very best may be luck.
    std::sort(tries.begin(), tries.end());
    return tries[1];
  }

 private:
  std::shared_ptr<void> zeros(std::size_t bytes) {
    auto memory = kernels_.allocate(bytes);
    kernels_.zero(memory.get(), bytes, nullptr);
    return memory;
  }

  // Of one round over a GPU's memory.
  void time_head_start() {
    head_start_.emplace(kernels_);
    const Work once = [this](Queue queue) { head_start_->issue(queue, 1); };
    seconds_of_last({once});
    head_start_s_ = seconds_of_last({once});
  }

  // Runs the works one after another on the device; how long it took for the last one.
  double seconds_of_last(const std::vector<Work>& works) {
    double seconds = 0.0;
    queues_->begin(static_cast<std::uint32_t>(works.size()));
    for (std::size_t i = 0; i < works.size(); ++i) {
      QueuedOp op;
      op.number = static_cast<std::uint32_t>(i);
      op.run = works[i];
      op.name = [] { return std::string("an exchange of the probe"); };
      // All are timed: the first one that is finds the device idle (CudaQueues), and the last one
      // shall not.
      op.ended = [&seconds](QueuedOp::Clock::time_point start, QueuedOp::Clock::time_point end) {
        seconds = std::chrono::duration<double>(end - start).count();
      };
      queues_->issue(kExchangeQueue, std::move(op));
    }
    queues_->drain();
    return seconds;
  }

  // Waits for all ranks; on a GPU busy afterwards for as long as the host needs for `issuing_s`.
  Work begin_together(double issuing_s) {
    return [this, issuing_s](Queue queue) {
      world_->all_reduce(number_.get(), 1, Element::Float64, Reduction::Sum, queue);
      if (!head_start_) return;
      const double wanted = std::min(issuing_s, kLongestHeadStart) / std::max(head_start_s_, 1e-6);
      head_start_->issue(queue, static_cast<std::int64_t>(wanted) + 1);
    };
  }

  double mean_over_world(double own) {
    kernels_.upload(number_.get(), &own, sizeof own);
    seconds_of_last({[this](Queue queue) {
      world_->all_reduce(number_.get(), 1, Element::Float64, Reduction::Sum, queue);
    }});
    kernels_.download(&own, number_.get(), sizeof own);
    return own / world_->size();
  }

  void exchange(OpKind kind, std::size_t bytes, Queue queue) {
    const std::size_t elements = bytes / sizeof(float);
    const auto members = static_cast<std::size_t>(group_->size());
    const std::size_t each = std::max<std::size_t>(1, elements / members);
    void *in = in_.get(), *out = out_.get();
    switch (kind) {
      case OpKind::AllReduce:
        return group_->all_reduce(in, elements, Element::Float32, Reduction::Sum, queue);
      case OpKind::AllGather:
        return group_->all_gather(in, out, each, Element::Float32, queue);
      case OpKind::ReduceScatter:
        return group_->reduce_scatter(in, out, each, Element::Float32, queue);
      case OpKind::Broadcast:
        return group_->broadcast(in, bytes, 0, queue);
      default:
        return message(bytes, queue);
    }
  }

  // One message from the first member to the second, alternating in direction, so that a row of
  // them takes as long as it says.
  void message(std::size_t bytes, Queue queue) {
    const int from = forth_ ? 0 : 1;
    forth_ = !forth_;
    if (group_->rank() > 1) return;
    if (group_->rank() == from) {
      group_->send(in_.get(), bytes, 1 - from, 0, queue);
    } else {
      group_->receive(out_.get(), bytes, from, 0, queue);
    }
  }

  void abort() {
    world_->abort();
    if (group_) group_->abort();
  }
  void check() {
    world_->check();
    if (group_) group_->check();
  }

  Kernels& kernels_;
  OpenCommunicator open_;
  std::unique_ptr<Communicator> world_, group_;
  std::shared_ptr<void> number_, in_, out_;
  std::optional<HeadStart> head_start_;
  double head_start_s_ = 0.0;
  bool forth_ = true;
  std::unique_ptr<OpQueues> queues_;  // last: works that run use what is above
};

}  // namespace

std::span<const std::size_t> exchange_sizes(Device device) {
  if (device == Device::Cuda) return kGpuSizes;
  return kCpuSizes;
}

std::vector<ExchangeSample> probe_exchanges(std::int64_t rank, std::int64_t world,
                                            RankBackend& backend, Device device,
                                            const SayProgress& say) {
  std::vector<ExchangeSample> samples;
  if (world == 1) return samples;
  Probe probe(rank, world, backend, device);
  const std::vector<GroupShape> shapes = shapes_of(world);
  std::size_t done = 0;
  for (const auto& [members, stride] : shapes) {
    ++done;
    const std::int64_t block = members * stride;
    const std::int64_t group = rank / block * stride + rank % stride;
    probe.join(fmt::format("{}.{}.{}", members, stride, group),
               static_cast<int>(rank / stride % members), static_cast<int>(members));
    for (const OpKind kind : kKinds) {
      // With more members only some of them would send.
      if (kind == OpKind::Send && members > 2) continue;
      if (say)
        say(fmt::format("exchanges, groups {} of {}: {} of {} ranks", done, shapes.size(),
                        name_of(kind), members));
      for (const std::size_t bytes : exchange_sizes(device)) {
        samples.push_back({kind, members, stride, Bytes(static_cast<double>(bytes)),
                           Seconds(probe.time(kind, bytes))});
      }
    }
  }
  return samples;
}

}  // namespace shardwright::executor
