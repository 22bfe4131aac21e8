// Events a second of the hold model: each event that leaves schedules another one, so that the
// number pending stays as it is. One item is schedule + pop + dispatch.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <random>

#include "sim/engine/event_queue.hpp"

namespace {

using shardwright::Seconds;
using shardwright::sim::EventPriority;

enum class Kind : std::uint32_t { Compute, Transfer, Timer };
struct Payload {
  Kind kind;
  std::uint32_t target;
};
using Queue = shardwright::sim::EventQueue<Payload>;

// Delays are drawn beforehand: the random numbers are not what is measured.
const std::array<double, 4096>& delays() {
  static const auto table = [] {
    std::array<double, 4096> values{};
    std::mt19937_64 random(42);
    std::exponential_distribution<double> exponential(1e6);
    for (double& value : values) value = exponential(random);
    return values;
  }();
  return table;
}

Queue filled(std::int64_t pending) {
  Queue queue;
  for (std::uint32_t i = 0; i < pending; ++i) {
    queue.schedule_at(Seconds(delays()[i % delays().size()]), EventPriority::Start,
                      {static_cast<Kind>(i % 3), i});
  }
  return queue;
}

void hold(benchmark::State& state) {
  Queue queue = filled(state.range(0));
  std::size_t next = 0;
  std::array<std::uint64_t, 3> handled{};
  for ([[maybe_unused]] auto _ : state) {
    const auto event = queue.pop();
    switch (event.payload.kind) {
      case Kind::Compute:
        handled[0] += event.payload.target;
        break;
      case Kind::Transfer:
        handled[1] ^= event.payload.target;
        break;
      case Kind::Timer:
        ++handled[2];
        break;
    }
    queue.schedule_at(event.time + Seconds(delays()[++next % delays().size()]),
                      EventPriority::Start, event.payload);
  }
  benchmark::DoNotOptimize(handled);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hold)->Arg(10)->Arg(1000)->Arg(100000);

void reschedule(benchmark::State& state) {
  Queue queue;
  std::vector<shardwright::sim::EventId> ids;
  for (std::uint32_t i = 0; i < state.range(0); ++i) {
    ids.push_back(queue.schedule_at(Seconds(delays()[i % delays().size()]), EventPriority::Start,
                                    {Kind::Timer, i}));
  }
  std::size_t next = 0;
  for ([[maybe_unused]] auto _ : state) {
    queue.reschedule(ids[next * 7 % ids.size()], Seconds(delays()[next % delays().size()]));
    ++next;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(reschedule)->Arg(1000);

}  // namespace
