#include "sim/network/flow_simulation.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/base/error.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/network/flow_network.hpp"
#include "sim/network/route_table.hpp"

namespace shardwright::sim {
namespace {

// Relative distance in time below which events are simultaneous: well above what rounding does to
// sums of equal terms, well below what anybody asks of the result.
constexpr double kSimultaneous = 1e-12;
constexpr std::uint32_t kNone = UINT32_MAX;

enum class Kind : std::uint32_t {
  ScheduledStarts,  // the next of the flows that start at a given time
  Arrivals,         // the first bytes of a chain of flows arrive
  PathFinish,       // the flow of a path with the least left to serve has ended
};
struct Action {
  Kind kind;
  std::uint32_t target;  // flow at the head of the chain, or path
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
  double served = 0.0;  // bytes to each of its flows since the path was last idle, at `updated`
  double updated = 0.0;
  double rate = 0.0;
  std::uint32_t begin = 0;  // of its heap of flows in `queues_`
  std::uint32_t size = 0;
  EventId finish;
  bool dirty = false;  // its predicted finish no longer holds
};

class FlowSimulation {
 public:
  explicit FlowSimulation(const FlowScenario& scenario)
      : scenario_(scenario),
        network_(capacities(scenario)),
        times_(scenario.flow_count()),
        path_of_(scenario.flow_count()),
        next_in_chain_(scenario.flow_count(), kNone) {
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

  // Only the next scheduled start is in the event queue, which keeps it small.
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
        case Kind::PathFinish:
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
    for (FlowIndex flow = head; flow != kNone; flow = next_in_chain_[flow]) arrive(flow);
  }

  void arrive(FlowIndex flow) {
    const PathIndex index = path_of_[flow];
    const Bytes bytes = scenario_.bytes(flow);
    if (bytes == Bytes(0.0) || scenario_.route(flow).empty()) {
      finish(flow);
      return;
    }
    PathState& path = paths_[index];
    advance(path);
    queues_[path.begin + path.size++] = {path.served + bytes.value(), flow};
    std::push_heap(first(path), first(path) + path.size, std::greater<>());
    network_.add_flows(index);
    mark_dirty(index);
  }

  void finish(FlowIndex flow) {
    times_[flow].finish = std::max(now_, times_[flow].start);
    ++finished_;
    for (auto i = dependents_begin_[flow]; i < dependents_begin_[flow + 1]; ++i) {
      if (--waits_for_[dependents_[i]] == 0) ready_.push_back(dependents_[i]);
    }
  }

  void finish_served_flows(PathIndex index) {
    PathState& path = paths_[index];
    path.served = first(path)->target;
    path.updated = now_.value();
    const double last = path.served * (1.0 + 1e-15) + path.rate * path.updated * kSimultaneous;
    std::uint32_t ended = 0;
    while (path.size > 0 && first(path)->target <= last) {
      const FlowIndex flow = first(path)->flow;
      std::pop_heap(first(path), first(path) + path.size, std::greater<>());
      --path.size;
      ++ended;
      finish(flow);
    }
    network_.remove_flows(index, ended);
    mark_dirty(index);
  }

  std::vector<Served>::iterator first(const PathState& path) {
    return queues_.begin() + path.begin;
  }

  // Counts what was served at the present rate up to now.
  void advance(PathState& path) {
    path.served = path.size == 0 ? 0.0 : path.served + path.rate * (now_.value() - path.updated);
    path.updated = now_.value();
  }

  void mark_dirty(PathIndex index) {
    if (paths_[index].dirty) return;
    paths_[index].dirty = true;
    dirty_.push_back(index);
  }

  void refresh_rates() {
    for (const PathIndex index : network_.resolve()) {
      advance(paths_[index]);
      paths_[index].rate = network_.rate(index).value();
      mark_dirty(index);
    }
    for (const PathIndex index : dirty_) predict_finish(index);
    dirty_.clear();
  }

  void predict_finish(PathIndex index) {
    PathState& path = paths_[index];
    path.dirty = false;
    if (path.size == 0) {
      path.rate = 0.0;
      queue_.cancel(path.finish);
      return;
    }
    const double left = std::max(0.0, first(path)->target - path.served);
    const Seconds time = std::max(queue_.now(), Seconds(path.updated + left / path.rate));
    if (!queue_.reschedule(path.finish, time))
      path.finish = queue_.schedule_at(time, EventPriority::Completion, {Kind::PathFinish, index});
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
  EventQueue<Action> queue_;
  Seconds now_;

  std::vector<FlowTimes> times_;
  std::vector<PathIndex> path_of_;
  std::vector<PathState> paths_;
  std::vector<Served> queues_;  // of all paths, one heap a path: least left on top
  std::size_t finished_ = 0;

  std::vector<std::uint32_t> waits_for_;  // flows that have not finished yet, by flow
  std::vector<std::uint32_t> dependents_begin_;
  std::vector<FlowIndex> dependents_;
  std::vector<FlowIndex> ready_;  // all that they waited for has finished

  std::vector<FlowIndex> scheduled_;  // flows that start at a time above zero, in order of time
  std::size_t next_scheduled_ = 0;

  std::vector<FlowIndex> next_in_chain_;  // flows of one arrival event
  Seconds chain_time_;
  EventId chain_event_;
  FlowIndex chain_tail_ = kNone;

  std::vector<PathIndex> dirty_;
};

}  // namespace

FlowResult simulate_flows(const FlowScenario& scenario) {
  return FlowSimulation(scenario).run();
}

}  // namespace shardwright::sim
