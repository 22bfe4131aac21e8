#include "calibration/traces/step_replay.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

// Nanoseconds: how shortly before a start the cause of a wait has ended, and how much later than
// ready an activity starts that waits for something.
constexpr std::int64_t kNear = 20'000, kReady = 3'000;

// Step, group and number among the group's calls in the step.
using CollectiveTurn = std::tuple<std::size_t, std::string, std::int64_t>;

struct Item {
  const DeviceActivity* activity = nullptr;
  std::size_t step = 0;
  // Positions of items in the same rank.
  std::optional<std::size_t> waits_for;
  std::optional<CollectiveTurn> turn;
  double duration = 0.0;
  bool moved = false, is_done = false;
  double start = 0.0, end = 0.0;
};

bool is_reduction(const std::string& kind) {
  return kind == "reduce_scatter" || kind == "all_reduce" || kind == "reduce";
}

// One rank's steps, in the order of launch.
class RankItems {
 public:
  // `origin` on the trace's clock is zero in the replay.
  RankItems(const Trace& trace, const ReplayOptions& options, std::int64_t origin)
      : trace_(trace), origin_(origin) {
    for (const DeviceStep& step : device_steps(trace)) add(step);
    if (items.empty()) return;
    // What follows the last activity is not replayed.
    marks.back() = time(items.front().activity->end());
    for (const Item& item : items)
      marks.back() = std::max(marks.back(), time(item.activity->end()));
    set_durations(options.times);
    set_waits();
    set_delays();
    if (options.reduce_when_ready) move_reductions();
  }

  std::vector<Item> items;
  // Recorded starts of the steps, and the end of the last activity.
  std::vector<double> marks;
  // The time from a launch to the start on an idle stream, and between two activities of a stream.
  double launch_delay = 0.0, turnaround = 0.0;
  std::size_t moved = 0;
  // When each stream is done with what runs before the first item.
  std::map<std::int32_t, double> stream_free;

  double time(std::int64_t time_of_trace) const {
    return static_cast<double>(time_of_trace - origin_);
  }

 private:
  void add(const DeviceStep& step) {
    if (items.empty())
      for (const DeviceActivity* each : activities_of_busiest(trace_))
        if (each->start < step.begin)
          stream_free[each->stream] = std::max(stream_free[each->stream], time(each->end()));
    if (marks.empty()) marks.push_back(time(step.begin));
    marks.push_back(time(step.end));
    std::map<std::string, std::int64_t> turns;
    for (const DeviceActivity* each : step.activities) {
      Item item;
      item.activity = each;
      item.step = marks.size() - 2;
      item.duration = static_cast<double>(each->duration);
      if (each->category == KernelCategory::Collective) {
        const std::string group = group_of(*each);
        item.turn = {item.step, group, turns[group]++};
      }
      items.push_back(std::move(item));
    }
  }

  std::string group_of(const DeviceActivity& activity) const {
    if (activity.collective == kNoIndex) return "";
    const CollectiveCall& call = trace_.collectives[static_cast<std::size_t>(activity.collective)];
    return call.group + " " + call.members;
  }

  void set_durations(const KernelTimes* times) {
    if (times == nullptr) return;
    Activities activities;
    for (const Item& item : items) activities.push_back(item.activity);
    const auto known = times->of(trace_, activities);
    for (std::size_t i = 0; i < items.size(); ++i)
      if (known[i]) items[i].duration = known[i]->mean.value() * 1e9;
  }

  void set_waits() {
    // Ends of all items, to find the last one before a start.
    std::vector<std::pair<std::int64_t, std::size_t>> ends;
    for (std::size_t i = 0; i < items.size(); ++i) ends.emplace_back(items[i].activity->end(), i);
    std::sort(ends.begin(), ends.end());
    std::map<std::int32_t, std::int64_t> stream_end;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const DeviceActivity& each = *items[i].activity;
      if (items[i].turn) {
        items[i].waits_for = last_kernel_before(i);
      } else {
        const std::int64_t ready =
            std::max(each.launched.value_or(each.start), stream_end[each.stream]);
        if (each.start > ready + kReady) items[i].waits_for = cause_of(i, ends);
      }
      stream_end[each.stream] = std::max(stream_end[each.stream], each.end());
    }
  }

  std::optional<std::size_t> last_kernel_before(std::size_t position) const {
    constexpr std::size_t kFurthest = 64;
    const DeviceActivity& call = *items[position].activity;
    for (std::size_t back = 1; back <= std::min(position, kFurthest); ++back) {
      const DeviceActivity& each = *items[position - back].activity;
      if (each.stream != call.stream && each.end() <= call.start) return position - back;
    }
    return std::nullopt;
  }

  std::optional<std::size_t> cause_of(
      std::size_t position, const std::vector<std::pair<std::int64_t, std::size_t>>& ends) const {
    const DeviceActivity& each = *items[position].activity;
    auto at = std::upper_bound(ends.begin(), ends.end(), std::pair(each.start, items.size()));
    while (at != ends.begin()) {
      --at;
      if (at->first < each.start - kNear) break;
      if (items[at->second].activity->stream != each.stream && at->second < position)
        return at->second;
    }
    return std::nullopt;
  }

  void set_delays() {
    std::vector<double> delays, distances;
    std::map<std::int32_t, std::int64_t> stream_end;
    for (const Item& item : items) {
      const DeviceActivity& each = *item.activity;
      if (each.launched && each.start >= *each.launched)
        delays.push_back(static_cast<double>(each.start - *each.launched));
      const auto before = stream_end.find(each.stream);
      if (before != stream_end.end() && each.launched && *each.launched < before->second - kNear &&
          each.start >= before->second && each.start < before->second + kReady)
        distances.push_back(static_cast<double>(each.start - before->second));
      stream_end[each.stream] = each.end();
    }
    const auto share_of = [](std::vector<double>& values, double share) {
      if (values.empty()) return 0.0;
      const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
      std::nth_element(values.begin(), values.begin() + at, values.end());
      return values[static_cast<std::size_t>(at)];
    };
    constexpr double kUsual = 0.5;
    launch_delay = std::min(share_of(delays, 0.0), static_cast<double>(kNear));
    turnaround = share_of(distances, kUsual);
  }

  // Each reduction whose input has the size of a gradient goes behind the last kernel that was
  // launched before the gradient was handed over.
  void move_reductions() {
    std::vector<bool> is_used(trace_.gradients.size(), false);
    std::vector<std::pair<std::size_t, std::size_t>> moves;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const DeviceActivity& each = *items[i].activity;
      if (!items[i].turn || !each.launched || each.collective == kNoIndex) continue;
      const CollectiveCall& call = trace_.collectives[static_cast<std::size_t>(each.collective)];
      if (!is_reduction(kind_of_collective(trace_, each)) || !call.elements) continue;
      const auto gradient = gradient_of(*call.elements, *each.launched, items[i].step, is_used);
      if (!gradient) continue;
      std::size_t to = i;
      while (to > 0 && launch_of(items[to - 1]) > trace_.gradients[*gradient].time) --to;
      if (to < i) moves.emplace_back(i, to);
    }
    apply(moves);
  }

  static std::int64_t launch_of(const Item& item) {
    return item.activity->launched.value_or(item.activity->start);
  }

  // The first unused gradient of this size in the step that was handed over before the launch.
  std::optional<std::size_t> gradient_of(std::int64_t elements, std::int64_t launched,
                                         std::size_t step, std::vector<bool>& is_used) const {
    const auto first = std::find_if(items.begin(), items.end(),
                                    [&](const Item& item) { return item.step == step; });
    for (std::size_t g = 0; g < trace_.gradients.size(); ++g) {
      const GradientMark& mark = trace_.gradients[g];
      if (is_used[g] || mark.elements != elements || mark.time > launched ||
          mark.time < launch_of(*first))
        continue;
      is_used[g] = true;
      return g;
    }
    return std::nullopt;
  }

  // Positions are those before all moves; moves go towards the front, in order.
  void apply(const std::vector<std::pair<std::size_t, std::size_t>>& moves) {
    moved = moves.size();
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < items.size(); ++i) order.emplace_back(static_cast<double>(i), i);
    double later = 0.0;
    for (const auto& [from, to] : moves) {
      later += 1e-6;
      order[from].first = static_cast<double>(to) - 0.5 + later;
      items[from].moved = true;
      items[from].waits_for = to > 0 ? std::optional(to - 1) : std::nullopt;
    }
    std::stable_sort(order.begin(), order.end());
    std::vector<std::size_t> place(items.size());
    std::vector<Item> ordered;
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[order[i].second] = i;
      ordered.push_back(std::move(items[order[i].second]));
    }
    for (Item& item : ordered)
      if (item.waits_for) item.waits_for = place[*item.waits_for];
    items = std::move(ordered);
  }

  const Trace& trace_;
  std::int64_t origin_;
};

class Replay {
 public:
  Replay(std::vector<RankItems>& ranks, double slowdown)
      : ranks_(ranks), slowdown_(slowdown), next_(ranks.size(), 0), moved_(ranks.size()) {
    for (RankItems& rank : ranks)
      for (const Item& item : rank.items)
        if (item.turn) ++members_[*item.turn];
  }

  void run() {
    while (advance_all()) {
    }
  }

 private:
  struct Arrival {
    std::size_t rank, item;
    double time;
  };

  // False once nothing moves any more.
  bool advance_all() {
    bool progress = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) progress |= advance(r);
    if (progress) return true;
    if (arrivals_.empty()) return false;
    // Ranks that wait for each other in different orders: the first collective goes ahead.
    finish(arrivals_.begin());
    return true;
  }

  bool advance(std::size_t r) {
    RankItems& rank = ranks_[r];
    bool progress = false;
    for (; next_[r] < rank.items.size(); ++next_[r]) {
      Item& item = rank.items[next_[r]];
      if (!item.turn) {
        item.start = ready_time(rank, item);
        item.end = item.start + beside_moved(r, item.start, item.duration);
        rank.stream_free[item.activity->stream] = item.end;
        progress = true;
        continue;
      }
      if (item.is_done) continue;
      auto [arrived, is_new] = arrivals_.try_emplace(*item.turn);
      std::vector<Arrival>& all = arrived->second;
      const bool is_here = std::any_of(all.begin(), all.end(), [&](const Arrival& each) {
        return each.rank == r && each.item == next_[r];
      });
      if (!is_here) {
        all.push_back({r, next_[r], ready_time(rank, item)});
        progress = true;
      }
      if (all.size() < members_[*item.turn]) return progress;
      finish(arrived);
      progress = true;
    }
    return progress;
  }

  static double ready_time(const RankItems& rank, const Item& item) {
    const DeviceActivity& activity = *item.activity;
    double ready = activity.launched ? rank.time(*activity.launched) + rank.launch_delay
                                     : rank.time(activity.start);
    // A reduction that was moved is launched with what it waits for.
    if (item.moved && item.waits_for) ready = rank.items[*item.waits_for].start;
    const auto free = rank.stream_free.find(item.activity->stream);
    if (free != rank.stream_free.end()) ready = std::max(ready, free->second + rank.turnaround);
    if (item.waits_for) ready = std::max(ready, rank.items[*item.waits_for].end + rank.turnaround);
    return ready;
  }

  // Transfers take the shortest recorded time of all ranks.
  void finish(std::map<CollectiveTurn, std::vector<Arrival>>::iterator arrived) {
    const Arrival& first = arrived->second.front();
    double last = first.time, transfer = ranks_[first.rank].items[first.item].duration;
    for (const Arrival& each : arrived->second) {
      last = std::max(last, each.time);
      transfer = std::min(transfer, ranks_[each.rank].items[each.item].duration);
    }
    for (const Arrival& each : arrived->second) {
      RankItems& rank = ranks_[each.rank];
      Item& item = rank.items[each.item];
      item.is_done = true;
      item.start = each.time;
      item.end = std::max(last + transfer, each.time + 1.0);
      rank.stream_free[item.activity->stream] = item.end;
      if (item.moved) moved_[each.rank].emplace_back(item.start, item.end);
    }
    arrivals_.erase(arrived);
  }

  double beside_moved(std::size_t r, double start, double duration) const {
    double beside = 0.0;
    for (const auto& [begin, end] : moved_[r])
      beside += std::max(0.0, std::min(end, start + duration) - std::max(begin, start));
    return duration + slowdown_ * beside;
  }

  std::vector<RankItems>& ranks_;
  double slowdown_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<std::pair<double, double>>> moved_;
  std::map<CollectiveTurn, std::size_t> members_;
  std::map<CollectiveTurn, std::vector<Arrival>> arrivals_;
};

// The mean distance of the starts of steps; the last one lasts until its end.
double replayed_length(const RankItems& rank) {
  const std::size_t steps = rank.marks.size() - 1;
  double first = rank.items.front().start, last = first;
  for (const Item& item : rank.items) {
    first = std::min(first, item.start);
    last = std::max(last, item.end);
  }
  return (last - first) / static_cast<double>(steps);
}

}  // namespace

std::optional<ReplayedSteps> replay_steps(const std::vector<Trace>& traces,
                                          const ReplayOptions& options) {
  std::vector<RankItems> ranks;
  std::optional<std::int64_t> first_begin, first_offset;
  for (const Trace& trace : traces) {
    const std::vector<DeviceStep> steps = device_steps(trace);
    if (steps.empty()) continue;
    if (!first_begin) {
      first_begin = steps.front().begin;
      first_offset = trace.clock_offset;
    }
    // Ranks without a common clock begin together.
    const std::int64_t origin = first_offset && trace.clock_offset
                                    ? *first_begin + (*first_offset - *trace.clock_offset)
                                    : steps.front().begin;
    RankItems rank(trace, options, origin);
    if (!rank.items.empty()) ranks.push_back(std::move(rank));
  }
  if (ranks.empty()) return std::nullopt;
  Replay(ranks, options.slowdown).run();
  ReplayedSteps result;
  double recorded = 0.0, replayed = 0.0;
  for (const RankItems& rank : ranks) {
    const auto steps = static_cast<double>(rank.marks.size() - 1);
    recorded += (rank.marks.back() - rank.marks.front()) / steps;
    replayed += replayed_length(rank);
    result.moved += static_cast<double>(rank.moved) / steps;
  }
  const auto n = static_cast<double>(ranks.size());
  result.recorded = Seconds(recorded / n * 1e-9);
  result.replayed = Seconds(replayed / n * 1e-9);
  result.moved /= n;
  return result;
}

}  // namespace shardwright::calibration
