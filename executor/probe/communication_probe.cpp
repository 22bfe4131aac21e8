#include "executor/probe/communication_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
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
constexpr int kCommunicationTries = 5;
// Seconds that a try takes at least, by repetition.
constexpr double kTrySeconds = 0.02;
constexpr std::int64_t kMaxRepetitions = 64;
// The longest head start in seconds.
constexpr double kLongestHeadStart = 0.01;
// Not the queue of a step's kernels: a tool that slows those down (bench/closed_loop) leaves
// communication alone.
constexpr std::size_t kProbeQueue = 1;

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

// Keeps a GPU busy while the host issues a try.
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
        world_(open_("probe/world", static_cast<int>(rank), static_cast<int>(world))),
        number_(zeros(sizeof(double))),
        in_(zeros(transfer_sizes(device).back())),
        out_(zeros(transfer_sizes(device).back())) {
    queues_ = backend.queues()(kProbeQueue + 1, {[this] { abort(); }, [this] { check(); }});
    if (device == Device::Cuda) time_head_start();
  }

  // Selects the group to time; each rank is in one group of the same shape.
  void join(const std::string& key, int rank, int size) {
    group_ = open_("probe/" + key, rank, size);
    sends_forward_ = true;
  }

  // Returns the mean time over all ranks.
  double time(OpKind kind, std::size_t bytes) {
    const auto once = [&](Queue queue) { communicate(kind, bytes, queue); };
    // The first call of an operation makes its connections; that of a transfer, in each direction.
    for (int i = 0; i < 2; ++i) seconds_of_last({once});
    const auto start = std::chrono::steady_clock::now();
    const double own = seconds_of_last({once});
    const double host =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double first = mean_over_world(own);
    const auto repetitions = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(kTrySeconds / std::max(first, 1e-9)), 1, kMaxRepetitions);
    const Work all = [&](Queue queue) {
      for (std::int64_t i = 0; i < repetitions; ++i) once(queue);
    };
    std::array<double, kCommunicationTries> tries{};
    for (double& each : tries) {
      const double taken =
          seconds_of_last({begin_together(host * static_cast<double>(repetitions)), all});
      each = mean_over_world(taken) / static_cast<double>(repetitions);
    }
    // Other load on the machine only adds time, and the very best try may be luck.
    std::sort(tries.begin(), tries.end());
    return tries[1];
  }

 private:
  std::shared_ptr<void> zeros(std::size_t bytes) {
    auto memory = kernels_.allocate(bytes);
    kernels_.zero(memory.get(), bytes, nullptr);
    return memory;
  }

  // Times one fill of the head start's memory.
  void time_head_start() {
    head_start_.emplace(kernels_);
    const Work once = [this](Queue queue) { head_start_->issue(queue, 1); };
    seconds_of_last({once});
    head_start_s_ = seconds_of_last({once});
  }

  // Runs the works one after another on the device; returns the time of the last one.
  double seconds_of_last(const std::vector<Work>& works) {
    double seconds = 0.0;
    queues_->begin(static_cast<std::uint32_t>(works.size()));
    for (std::size_t i = 0; i < works.size(); ++i) {
      QueuedOp op;
      op.number = static_cast<std::uint32_t>(i);
      op.run = works[i];
      op.name = [] { return std::string("a collective of the probe"); };
      // All works are timed: the first timed op waits until the device is idle (CudaQueues), which
      // the last one must not do.
      op.ended = [&seconds](QueuedOp::Clock::time_point start, QueuedOp::Clock::time_point end) {
        seconds = std::chrono::duration<double>(end - start).count();
      };
      queues_->issue(kProbeQueue, std::move(op));
    }
    queues_->drain();
    return seconds;
  }

  // Waits for all ranks; then keeps a GPU busy for `issuing_s`, the time that the host needs to
  // issue a try.
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

  void communicate(OpKind kind, std::size_t bytes, Queue queue) {
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
        return transfer(bytes, queue);
    }
  }

  // Sends from the first member to the second and back in turn, so that a sequence of transfers
  // takes the sum of their times.
  void transfer(std::size_t bytes, Queue queue) {
    const int from = sends_forward_ ? 0 : 1;
    sends_forward_ = !sends_forward_;
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
  bool sends_forward_ = true;
  // Destroyed first: running works use the members above.
  std::unique_ptr<OpQueues> queues_;
};

}  // namespace

std::span<const std::size_t> transfer_sizes(Device device) {
  if (device == Device::Cuda) return kGpuSizes;
  return kCpuSizes;
}

std::vector<ExchangeSample> probe_communication(std::int64_t rank, std::int64_t world,
                                                RankBackend& backend, Device device,
                                                const ReportProgress& report) {
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
      // In larger groups only two members would take part.
      if (kind == OpKind::Send && members > 2) continue;
      if (report)
        report(fmt::format("communication, groups {} of {}: {} of {} ranks", done, shapes.size(),
                           name_of(kind), members));
      for (const std::size_t bytes : transfer_sizes(device)) {
        samples.push_back({kind, members, stride, Bytes(static_cast<double>(bytes)),
                           Seconds(probe.time(kind, bytes))});
      }
    }
  }
  return samples;
}

}  // namespace shardwright::executor
