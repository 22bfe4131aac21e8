#include "sim/step/server_steps.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "core/program/rank_grid.hpp"

namespace shardwright::sim {
namespace {

enum class ServedEvent : std::uint8_t { Begins, Pushes, Received, Applied };

struct ServedReplica {
  // Steps that are complete.
  std::int64_t steps = 0;
  // The number of the servers' update that its parameters have.
  std::int64_t version = 0;
  // It may not begin its next step yet.
  bool waits = false;
};

// Serves one after another.
struct ServerQueue {
  double free = 0.0;

  double serve(double ready, Seconds time) { return free = std::max(free, ready) + time.value(); }
};

class ServedRun {
 public:
  ServedRun(const ServedReplicas& in, std::int64_t steps)
      : in_(in), steps_(steps), replicas_(static_cast<std::size_t>(in.replicas)) {
    jitter_.op_jitter = in.step_jitter;
    jitter_.seed = in.seed;
  }

  ServedSteps run() {
    for (std::size_t r = 0; r < replicas_.size(); ++r) add(0.0, ServedEvent::Begins, r);
    while (!ended_) {
      const auto [time, order, event, replica] = events_.top();
      events_.pop();
      handle(time, event, replica);
    }
    std::sort(result_.staleness.begin(), result_.staleness.end());
    return std::move(result_);
  }

 private:
  using Event = std::tuple<double, std::int64_t, ServedEvent, std::size_t>;

  void add(double time, ServedEvent event, std::size_t replica) {
    events_.emplace(time, order_++, event, replica);
  }

  void handle(double time, ServedEvent event, std::size_t r) {
    switch (event) {
      case ServedEvent::Begins:
        return begin(time, r);
      case ServedEvent::Pushes:
        return add(std::max(time + in_.push.time.value(), in_link_.serve(time, in_.push.nics)),
                   ServedEvent::Received, r);
      case ServedEvent::Received:
        return add(updated(time), ServedEvent::Applied, r);
      case ServedEvent::Applied:
        return apply(time, r);
    }
  }

  // The memory sums while the push comes in, and is read for the pull while that goes out.
  double updated(double received) {
    const double free = memory_.serve(received - in_.push.memory.value(),
                                      in_.push.memory + in_.update + in_.pull.memory);
    return std::max(received + in_.update.value(), free - in_.pull.memory.value());
  }

  // A replica pulls when it may begin, so that its parameters are the newest.
  void begin(double time, std::size_t r) {
    ServedReplica& replica = replicas_[r];
    const std::int64_t ahead = replica.steps - slowest();
    replica.waits = in_.bound && ahead > *in_.bound;
    if (replica.waits) return;
    result_.most_ahead = std::max(result_.most_ahead, ahead);
    replica.version = version_;
    const double pulled =
        std::max(time + in_.pull.time.value(), out_link_.serve(time, in_.pull.nics));
    add(pulled + compute(r, replica.steps), ServedEvent::Pushes, r);
  }

  double compute(std::size_t r, std::int64_t step) const {
    const double slowdown = in_.slowdown.empty() ? 1.0 : in_.slowdown[r];
    return in_.compute.value() * slowdown *
           op_factor(jitter_, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(step));
  }

  // Counts from when the first replica has made half of its steps until it has made all.
  void apply(double time, std::size_t r) {
    ServedReplica& replica = replicas_[r];
    if (settled_at_) result_.staleness.push_back(version_ - replica.version);
    ++replica.steps;
    ++version_;
    if (!settled_at_ && replica.steps == steps_ / 2) settled_at_ = time;
    ended_ = replica.steps == steps_;
    if (ended_) {
      const auto updates = static_cast<double>(result_.staleness.size());
      result_.step = Seconds((time - *settled_at_) * static_cast<double>(in_.replicas) / updates);
      return;
    }
    add(time, ServedEvent::Begins, r);
    if (!in_.bound) return;
    const std::int64_t furthest = slowest() + *in_.bound;
    for (std::size_t other = 0; other < replicas_.size(); ++other) {
      if (!replicas_[other].waits || replicas_[other].steps > furthest) continue;
      replicas_[other].waits = false;
      add(time, ServedEvent::Begins, other);
    }
  }

  std::int64_t slowest() const {
    if (!in_.bound && in_.slowdown.empty() && in_.step_jitter == 0.0)
      return version_ / in_.replicas;
    return std::ranges::min_element(replicas_, {}, &ServedReplica::steps)->steps;
  }

  const ServedReplicas& in_;
  std::int64_t steps_;
  std::vector<ServedReplica> replicas_;
  RankVariation jitter_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t order_ = 0, version_ = 0;
  ServerQueue in_link_, memory_, out_link_;
  std::optional<double> settled_at_;
  bool ended_ = false;
  ServedSteps result_;
};

// So many updates show their distribution, whatever the number of replicas.
constexpr std::int64_t kServedUpdates = 20'000, kFewestServedSteps = 20;

}  // namespace

double ServedSteps::mean_staleness() const {
  if (staleness.empty()) return 0.0;
  return std::accumulate(staleness.begin(), staleness.end(), 0.0) /
         static_cast<double>(staleness.size());
}

std::int64_t ServedSteps::staleness_quantile(double share) const {
  if (staleness.empty()) return 0;
  return staleness[static_cast<std::size_t>(static_cast<double>(staleness.size() - 1) * share)];
}

ServedSteps serve(const ServedReplicas& replicas, std::int64_t steps) {
  return ServedRun(replicas, steps).run();
}

ServedSteps serve(const Scenario& scenario, const ServerUse& use, Seconds step,
                  const RankVariation& variation, std::int64_t kernels) {
  const Plan& plan = scenario.plan;
  ServedReplicas replicas;
  replicas.replicas = plan.dp;
  if (plan.replicas.server_updates == ServerUpdates::BoundedStaleness)
    replicas.bound = plan.replicas.staleness;
  const double ratio = scenario.stack.communication.collective_ratio;
  replicas.push = use.push;
  replicas.pull = use.pull;
  replicas.push.time = use.push.time / ratio;
  replicas.pull.time = use.pull.time / ratio;
  replicas.update = use.update;
  replicas.compute =
      std::max(Seconds(), step - replicas.push.time - replicas.pull.time - replicas.update);
  // Independent factors of many kernels level out.
  replicas.step_jitter = variation.op_jitter / std::sqrt(static_cast<double>(kernels));
  replicas.seed = variation.seed;
  if (variation.rank_jitter > 0.0 || !variation.rank_slowdown.empty()) {
    replicas.slowdown.assign(static_cast<std::size_t>(plan.dp), 0.0);
    const RankGrid grid(plan);
    for (std::int64_t rank = 0; rank < plan.world_size(); ++rank) {
      double& slowest =
          replicas.slowdown[static_cast<std::size_t>(grid.dense_coordinates(rank)[Axis::Data])];
      slowest = std::max(slowest, rank_factor(variation, static_cast<std::uint32_t>(rank)));
    }
  }
  return serve(replicas, std::max(kFewestServedSteps, kServedUpdates / plan.dp));
}

}  // namespace shardwright::sim
