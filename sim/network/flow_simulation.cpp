#include "sim/network/flow_simulation.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "core/base/error.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/network/bottleneck_clocks.hpp"
#include "sim/network/flow_network.hpp"

namespace shardwright::sim {
namespace {

// Relative distance in time below which events are simultaneous: well above what rounding does to
// sums of equal terms, well below what anybody asks of the result.
constexpr double kSimultaneous = 1e-12;
constexpr std::uint32_t kNoFlow = UINT32_MAX;

// Numbers distinct routes in the order in which they first appear: a hash table over flat arrays.
// The spans that it is given must outlive it.
class RouteTable {
 public:
  // Room for that many distinct routes.
  explicit RouteTable(std::size_t most_routes) : cells_(std::bit_ceil(2 * most_routes + 1), 0) {}

  // The number of the route, and whether it is a new one.
  std::pair<std::uint32_t, bool> find_or_add(std::span<const LinkIndex> route) {
    const std::size_t mask = cells_.size() - 1;
    for (std::size_t cell = hash(route) & mask;; cell = (cell + 1) & mask) {
      if (cells_[cell] == 0) {
        routes_.push_back(route);
        cells_[cell] = static_cast<std::uint32_t>(routes_.size());
        return {cells_[cell] - 1, true};
      }
      const auto known = routes_[cells_[cell] - 1];
      if (std::equal(known.begin(), known.end(), route.begin(), route.end()))
        return {cells_[cell] - 1, false};
    }
  }

 private:
  // Multiply and fold, with the multiplier of a 64-bit linear congruential generator (Knuth, MMIX).
  static std::uint64_t hash(std::span<const LinkIndex> route) {
    std::uint64_t value = route.size();
    for (const LinkIndex link : route) {
      value = (value ^ link) * 6364136223846793005ULL;
      value ^= value >> 32;
    }
    return value;
  }

  // The number of a route + 1; 0 if the cell is free.
  std::vector<std::uint32_t> cells_;
  std::vector<std::span<const LinkIndex>> routes_;
};

enum class Kind : std::uint32_t {
  // The next of the flows starts that have a given time.
  ScheduledStarts,
  // The first bytes of a chain of flows arrive.
  Arrivals,
  // The flow with the least left of those that a link holds back has ended.
  Finish,
};
struct Action {
  Kind kind;
  // The flow at the head of the chain, or the link.
  std::uint32_t target;
};

// A flow on a path, ending when the path has served `target` bytes to each of its flows.
struct Served {
  double target;
  FlowIndex flow;

  bool operator>(const Served& other) const {
    return target != other.target ? target > other.target : flow > other.flow;
  }
};

struct PathState {
  Seconds latency;
  // The begin of its heap of flows in `queues_`.
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
};

class FlowSimulation {
 public:
  explicit FlowSimulation(const FlowScenario& scenario)
      : scenario_(scenario),
        network_(capacities(scenario)),
        clocks_(scenario.links().size()),
        finish_events_(scenario.links().size()),
        times_(scenario.flow_count()),
        path_of_(scenario.flow_count()),
        next_in_chain_(scenario.flow_count(), kNoFlow) {
    find_paths();
    find_dependents();
    find_scheduled_starts();
  }

  FlowResult run() {
    start_independent_flows();
    refresh_rates();
    while (!queue_.empty()) {
      take_simultaneous_events();
      refresh_rates();
    }
    if (finished_ < times_.size()) refuse_cycle();
    FlowResult result{std::move(times_), Seconds(0.0), queue_.executed()};
    for (const FlowTimes& times : result.flows)
      result.makespan = std::max(result.makespan, times.finish);
    return result;
  }

 private:
  static std::vector<BytesPerSecond> capacities(const FlowScenario& scenario) {
    std::vector<BytesPerSecond> values;
    for (const ScenarioLink& link : scenario.links()) values.push_back(link.bandwidth);
    return values;
  }

  // Flows of one route share a path.
  void find_paths() {
    RouteTable table(scenario_.flow_count());
    for (FlowIndex flow = 0; flow < path_of_.size(); ++flow) {
      const auto route = scenario_.route(flow);
      const auto [path, is_new] = table.find_or_add(route);
      path_of_[flow] = path;
      if (is_new) add_path(route);
      ++paths_[path].size;
    }
    std::uint32_t begin = 0;
    for (PathState& path : paths_) {
      path.begin = begin;
      begin += path.size;
      path.size = 0;
    }
    queues_.resize(begin);
  }

  void add_path(std::span<const LinkIndex> route) {
    PathState path;
    for (const LinkIndex link : route) path.latency += scenario_.links()[link].latency;
    paths_.push_back(path);
    clocks_.add_path();
    // A path without links carries no bytes; its flows end on arrival.
    network_.add_path(route, route.empty() ? BytesPerSecond(1.0) : infinite<BytesPerSecond>());
  }

  void find_dependents() {
    const auto flows = static_cast<FlowIndex>(times_.size());
    waits_for_.resize(flows);
    dependents_begin_.assign(flows + 1, 0);
    for (FlowIndex flow = 0; flow < flows; ++flow) {
      waits_for_[flow] = static_cast<std::uint32_t>(scenario_.after(flow).size());
      for (const FlowIndex other : scenario_.after(flow)) {
        SHARDWRIGHT_CHECK(other < flows, "a flow waits for one that is not there");
        ++dependents_begin_[other + 1];
      }
    }
    std::partial_sum(dependents_begin_.begin(), dependents_begin_.end(), dependents_begin_.begin());
    dependents_.resize(dependents_begin_.back());
    std::vector<std::uint32_t> next(dependents_begin_.begin(), dependents_begin_.end() - 1);
    for (FlowIndex flow = 0; flow < flows; ++flow) {
      for (const FlowIndex other : scenario_.after(flow)) dependents_[next[other]++] = flow;
    }
  }

  // Keeps only the next scheduled start in the event queue, which stays small so.
  void find_scheduled_starts() {
    for (FlowIndex flow = 0; flow < times_.size(); ++flow) {
      if (waits_for_[flow] == 0 && scenario_.start(flow) > Seconds(0.0)) scheduled_.push_back(flow);
    }
    std::stable_sort(scheduled_.begin(), scheduled_.end(), [&](FlowIndex a, FlowIndex b) {
      return scenario_.start(a) < scenario_.start(b);
    });
  }

  void start_independent_flows() {
    for (FlowIndex flow = 0; flow < times_.size(); ++flow) {
      if (waits_for_[flow] == 0 && scenario_.start(flow) == Seconds(0.0)) ready_.push_back(flow);
    }
    start_ready_flows();
    schedule_next_start();
  }

  void schedule_next_start() {
    if (next_scheduled_ == scheduled_.size()) return;
    const Seconds time = scenario_.start(scheduled_[next_scheduled_]);
    queue_.schedule_at(std::max(time, queue_.now()), EventPriority::Start,
                       {Kind::ScheduledStarts, 0});
  }

  void take_simultaneous_events() {
    now_ = *queue_.next_time();
    const Seconds last = now_ * (1.0 + kSimultaneous);
    while (!queue_.empty() && *queue_.next_time() <= last) {
      const Action action = queue_.pop().payload;
      switch (action.kind) {
        case Kind::ScheduledStarts:
          take_scheduled_starts();
          break;
        case Kind::Arrivals:
          take_arrivals(action.target);
          break;
        case Kind::Finish:
          finish_served_flows(action.target);
          break;
      }
      start_ready_flows();
    }
  }

  void take_scheduled_starts() {
    const Seconds last = now_ * (1.0 + kSimultaneous);
    while (next_scheduled_ < scheduled_.size() &&
           scenario_.start(scheduled_[next_scheduled_]) <= last) {
      const FlowIndex flow = scheduled_[next_scheduled_++];
      start(flow, scenario_.start(flow));
    }
    schedule_next_start();
  }

  // Flows that end at once make others ready, so the list may grow while it is walked.
  void start_ready_flows() {
    for (std::size_t i = 0; i < ready_.size(); ++i) start(ready_[i], now_);
    ready_.clear();
  }

  void start(FlowIndex flow, Seconds time) {
    times_[flow].start = time;
    const Seconds latency = paths_[path_of_[flow]].latency;
    if (latency == Seconds(0.0)) {
      arrive(flow);
    } else {
      join_arrivals(flow, time + latency);
    }
  }

  // Flows that start together over equal latencies arrive together: one event for all of them.
  void join_arrivals(FlowIndex flow, Seconds time) {
    if (chain_time_ == time && queue_.is_pending(chain_event_)) {
      next_in_chain_[chain_tail_] = flow;
    } else {
      chain_time_ = time;
      chain_event_ = queue_.schedule_at(std::max(time, queue_.now()), EventPriority::Start,
                                        {Kind::Arrivals, flow});
    }
    chain_tail_ = flow;
  }

  void take_arrivals(FlowIndex head) {
    for (FlowIndex flow = head; flow != kNoFlow; flow = next_in_chain_[flow]) arrive(flow);
  }

  void arrive(FlowIndex flow) {
    const PathIndex index = path_of_[flow];
    const Bytes bytes = scenario_.bytes(flow);
    if (bytes == Bytes(0.0) || scenario_.route(flow).empty()) {
      finish(flow);
      return;
    }
    PathState& path = paths_[index];
    const bool is_served = clocks_.is_on_any(index);
    const double served = is_served ? clocks_.served(index, now_.value()) : 0.0;
    queues_[path.begin + path.size++] = {served + bytes.value(), flow};
    std::push_heap(first(path), first(path) + path.size, std::greater<>());
    network_.add_flows(index);
    if (is_served) {
      clocks_.set_target(index, first(path)->target);
    } else {
      unplaced_.push_back(index);
    }
  }

  void finish(FlowIndex flow) {
    times_[flow].finish = std::max(now_, times_[flow].start);
    ++finished_;
    for (auto i = dependents_begin_[flow]; i < dependents_begin_[flow + 1]; ++i) {
      if (--waits_for_[dependents_[i]] == 0) ready_.push_back(dependents_[i]);
    }
  }

  void finish_served_flows(LinkIndex link) {
    clocks_.go_to_first(link, now_.value());
    const double tolerance = now_.value() * kSimultaneous;
    while (!clocks_.empty(link) && clocks_.has_reached_first(link, tolerance))
      finish_first_flows(clocks_.first(link), tolerance);
  }

  // Finishes flows of a path that was served at least what one of its flows asked for.
  void finish_first_flows(PathIndex index, double tolerance) {
    PathState& path = paths_[index];
    std::uint32_t ended = 0;
    do {
      const FlowIndex flow = first(path)->flow;
      std::pop_heap(first(path), first(path) + path.size, std::greater<>());
      --path.size;
      ++ended;
      finish(flow);
    } while (path.size > 0 && clocks_.has_served(index, first(path)->target, tolerance));
    network_.remove_flows(index, ended);
    if (path.size == 0) {
      clocks_.leave(index);
    } else {
      clocks_.set_target(index, first(path)->target);
    }
  }

  std::vector<Served>::iterator first(const PathState& path) {
    return queues_.begin() + path.begin;
  }

  void refresh_rates() {
    network_.resolve();
    for (const LinkIndex link : network_.changed_levels())
      clocks_.set_level(link, network_.level(link).value(), now_.value());
    for (const PathIndex path : network_.moved_paths()) place(path);
    for (const PathIndex path : unplaced_) place(path);
    unplaced_.clear();
    for (const LinkIndex link : clocks_.take_changed()) predict_finish(link);
  }

  // Puts a path with flows on the clock of its bottleneck.
  void place(PathIndex index) {
    const LinkIndex bottleneck = network_.bottleneck(index);
    if (clocks_.is_on(index, bottleneck)) return;
    double served = 0.0;
    if (clocks_.is_on_any(index)) {
      served = clocks_.served(index, now_.value());
      clocks_.leave(index);
    }
    clocks_.join(index, bottleneck, served, first(paths_[index])->target, now_.value());
  }

  void predict_finish(LinkIndex link) {
    if (clocks_.empty(link)) {
      queue_.cancel(finish_events_[link]);
      return;
    }
    const Seconds time = std::max(queue_.now(), Seconds(clocks_.first_time(link)));
    if (!queue_.reschedule(finish_events_[link], time)) {
      finish_events_[link] =
          queue_.schedule_at(time, EventPriority::Completion, {Kind::Finish, link});
    }
  }

  [[noreturn]] void refuse_cycle() const {
    std::string ids;
    for (const FlowIndex flow : find_dependency_cycle(scenario_))
      ids += (ids.empty() ? "" : " after ") + scenario_.id(flow);
    throw InputError("flow scenario", {{"", "flows that wait for each other: " + ids,
                                        "flows of which one can start first"}});
  }

  const FlowScenario& scenario_;
  FlowNetwork network_;
  BottleneckClocks clocks_;
  EventQueue<Action> queue_;
  // Finish events by link.
  std::vector<EventId> finish_events_;
  Seconds now_;

  std::vector<FlowTimes> times_;
  std::vector<PathIndex> path_of_;
  std::vector<PathState> paths_;
  // The heaps of all paths, the least left on top.
  std::vector<Served> queues_;
  std::size_t finished_ = 0;

  // The number of unfinished flows that each flow waits for.
  std::vector<std::uint32_t> waits_for_;
  std::vector<std::uint32_t> dependents_begin_;
  std::vector<FlowIndex> dependents_;
  // Flows for which all has finished that they waited for.
  std::vector<FlowIndex> ready_;

  // Flows that start at a time above zero, in order of time.
  std::vector<FlowIndex> scheduled_;
  std::size_t next_scheduled_ = 0;

  // The next of the flows of one arrival event.
  std::vector<FlowIndex> next_in_chain_;
  Seconds chain_time_;
  EventId chain_event_;
  FlowIndex chain_tail_ = kNoFlow;

  // Paths that were idle and have flows now.
  std::vector<PathIndex> unplaced_;
};

}  // namespace

FlowResult simulate_flows(const FlowScenario& scenario) {
  return FlowSimulation(scenario).run();
}

}  // namespace shardwright::sim
