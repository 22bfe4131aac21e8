#include "executor/probe/exchange_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

namespace shardwright::executor {
namespace {

constexpr std::array<std::size_t, 7> kSizes = {64,      4'096,     32'768,   131'072,
                                               524'288, 2'097'152, 4'194'304};
constexpr std::array kKinds = {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                               OpKind::Broadcast, OpKind::Send};
constexpr int kTries = 5;
constexpr double kTrySeconds = 0.02;  // that a try takes at least, in repetitions
constexpr std::int64_t kMostRepetitions = 64;

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

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Probe {
 public:
  Probe(std::int64_t rank, std::int64_t world, const OpenCommunicator& open)
      : world_(open("world", static_cast<int>(rank), static_cast<int>(world))),
        in_(kSizes.back() / sizeof(float)),
        out_(in_.size()) {}

  // The mean over all ranks.
  double time(Communicator& group, OpKind kind, std::size_t bytes) {
    const auto once = [&] { exchange(group, kind, bytes); };
    once();
    const double first = mean_over_world(seconds_of(once));
    const auto repetitions = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(kTrySeconds / std::max(first, 1e-9)), 1, kMostRepetitions);
    std::array<double, kTries> tries{};
    for (double& each : tries) {
      mean_over_world(0.0);  // all begin together
      each = mean_over_world(seconds_of([&] {
               for (std::int64_t i = 0; i < repetitions; ++i) once();
             })) /
             static_cast<double>(repetitions);
    }
    // Other work of the machine only ever adds; the very best may be luck.
    std::sort(tries.begin(), tries.end());
    return tries[1];
  }

 private:
  double mean_over_world(double own) {
    world_->all_reduce(&own, 1, Element::Float64, Reduction::Sum, nullptr);
    return own / world_->size();
  }

  void exchange(Communicator& group, OpKind kind, std::size_t bytes) {
    const std::size_t elements = bytes / sizeof(float);
    const auto members = static_cast<std::size_t>(group.size());
    const std::size_t each = std::max<std::size_t>(1, elements / members);
    switch (kind) {
      case OpKind::AllReduce:
        return group.all_reduce(in_.data(), elements, Element::Float32, Reduction::Sum, nullptr);
      case OpKind::AllGather:
        return group.all_gather(in_.data(), out_.data(), each, Element::Float32, nullptr);
      case OpKind::ReduceScatter:
        return group.reduce_scatter(in_.data(), out_.data(), each, Element::Float32, nullptr);
      case OpKind::Broadcast:
        return group.broadcast(in_.data(), bytes, 0, nullptr);
      default:
        return message(group, bytes);
    }
  }

  // One message from the first member to the second, alternating in direction, so that a row of
  // them takes as long as it says.
  void message(Communicator& group, std::size_t bytes) {
    const int from = forth_ ? 0 : 1;
    forth_ = !forth_;
    if (group.rank() > 1) return;
    if (group.rank() == from) {
      group.send(in_.data(), bytes, 1 - from, 0, nullptr);
    } else {
      group.receive(out_.data(), bytes, from, 0, nullptr);
    }
  }

  std::unique_ptr<Communicator> world_;
  std::vector<float> in_, out_;
  bool forth_ = true;
};

}  // namespace

std::vector<ExchangeSample> probe_exchanges(std::int64_t rank, std::int64_t world,
                                            const OpenCommunicator& open, const SayProgress& say) {
  std::vector<ExchangeSample> samples;
  if (world == 1) return samples;
  Probe probe(rank, world, open);
  const std::vector<GroupShape> shapes = shapes_of(world);
  std::size_t done = 0;
  for (const auto& [members, stride] : shapes) {
    ++done;
    const std::int64_t block = members * stride;
    const std::int64_t group = rank / block * stride + rank % stride;
    const auto communicator =
        open(fmt::format("{}.{}.{}", members, stride, group),
             static_cast<int>(rank / stride % members), static_cast<int>(members));
    for (const OpKind kind : kKinds) {
      // With more members only some of them would send.
      if (kind == OpKind::Send && members > 2) continue;
      if (say)
        say(fmt::format("exchanges, groups {} of {}: {} of {} ranks", done, shapes.size(),
                        name_of(kind), members));
      for (const std::size_t bytes : kSizes) {
        const double time = probe.time(*communicator, kind, bytes);
        samples.push_back(
            {kind, members, stride, Bytes(static_cast<double>(bytes)), Seconds(time)});
      }
    }
  }
  return samples;
}

}  // namespace shardwright::executor
