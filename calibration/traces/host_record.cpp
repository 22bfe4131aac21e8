#include "calibration/traces/host_record.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <tuple>

namespace shardwright::calibration {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Profilers write most of their lists in order already.
template <class T, class IsBefore = std::less<>>
void sort_unless_sorted(std::vector<T>& list, IsBefore is_before = {}) {
  if (!std::is_sorted(list.begin(), list.end(), is_before))
    std::sort(list.begin(), list.end(), is_before);
}

// Finds the operators and launches of activities by their numbers and by time.
class HostLinks {
 public:
  explicit HostLinks(HostRecord& record) : ops_(record.ops), launches_(record.launches) {
    sort_unless_sorted(ops_, [](const HostOp& a, const HostOp& b) {
      return std::tuple(a.thread, a.start, -a.end) < std::tuple(b.thread, b.start, -b.end);
    });
    sort_unless_sorted(launches_, [](const HostLaunch& a, const HostLaunch& b) {
      return std::tie(a.thread, a.start) < std::tie(b.thread, b.start);
    });
    nest();
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].external_id) by_external_id_.emplace_back(*ops_[i].external_id, i);
    sort_unless_sorted(by_external_id_);
    for (std::size_t i = 0; i < launches_.size(); ++i)
      by_correlation_.emplace_back(launches_[i].correlation, i);
    sort_unless_sorted(by_correlation_);
  }

  bool has_launches() const { return !launches_.empty(); }

  const HostLaunch* launch_of(const ActivityIds& ids) const {
    const std::size_t launch = launch_index(ids);
    return launch == kNone ? nullptr : &launches_[launch];
  }

  // The innermost operator of an activity; kNone if it is not known.
  std::size_t op_of(const ActivityIds& ids) const {
    const std::size_t launch = launch_index(ids);
    if (launch == kNone) {
      const bool is_number_of_op = ids.external_id && ids.external_id != ids.correlation;
      return is_number_of_op ? find_first(by_external_id_, *ids.external_id) : kNone;
    }
    const auto external = ids.external_id ? ids.external_id : launches_[launch].external_id;
    if (external) {
      const std::size_t op = find_first(by_external_id_, *external);
      const std::int64_t time = launches_[launch].start;
      if (op != kNone && ops_[op].start <= time && time <= ops_[op].end) return op;
    }
    return op_of_launch_[launch];
  }

  // The collective of an operator or of the nearest one around it that has one.
  TraceIndex collective_of(std::size_t op) const {
    for (; op != kNone; op = parents_[op])
      if (ops_[op].collective != kNoIndex) return ops_[op].collective;
    return kNoIndex;
  }

 private:
  using Numbers = std::vector<std::pair<std::int64_t, std::size_t>>;

  static std::size_t find_first(const Numbers& numbers, std::int64_t number) {
    const auto found =
        std::lower_bound(numbers.begin(), numbers.end(), std::pair(number, std::size_t{0}));
    return found != numbers.end() && found->first == number ? found->second : kNone;
  }

  std::size_t launch_index(const ActivityIds& ids) const {
    return ids.correlation ? find_first(by_correlation_, *ids.correlation) : kNone;
  }

  // Walks through operators and launches in the order of time, with the operators that are running
  // as a chain of parents.
  void nest() {
    parents_.assign(ops_.size(), kNone);
    op_of_launch_.assign(launches_.size(), kNone);
    std::size_t running = kNone, launch = 0;
    for (std::size_t i = 0; i <= ops_.size(); ++i) {
      const auto is_before_op = [&](const HostLaunch& each) {
        return i == ops_.size() ||
               std::tie(each.thread, each.start) < std::tie(ops_[i].thread, ops_[i].start);
      };
      for (; launch < launches_.size() && is_before_op(launches_[launch]); ++launch)
        op_of_launch_[launch] =
            running_at(running, launches_[launch].thread, launches_[launch].start);
      if (i == ops_.size()) break;
      parents_[i] = running_at(running, ops_[i].thread, ops_[i].start);
      running = i;
    }
  }

  std::size_t running_at(std::size_t op, std::int32_t thread, std::int64_t time) const {
    while (op != kNone && (ops_[op].thread != thread || ops_[op].end < time)) op = parents_[op];
    return op;
  }

  std::vector<HostOp>& ops_;
  std::vector<HostLaunch>& launches_;
  Numbers by_external_id_, by_correlation_;
  // The operator around each operator, and the innermost around each launch.
  std::vector<std::size_t> parents_, op_of_launch_;
};

// Several threads may mark the same step: the first mark counts.
std::vector<TraceStep> ordered_steps(const HostRecord& record) {
  std::vector<TraceStep> steps = record.steps.empty() ? record.device_steps : record.steps;
  std::stable_sort(steps.begin(), steps.end(), [](const TraceStep& a, const TraceStep& b) {
    return std::tie(a.number, a.start) < std::tie(b.number, b.start);
  });
  steps.erase(
      std::unique(steps.begin(), steps.end(),
                  [](const TraceStep& a, const TraceStep& b) { return a.number == b.number; }),
      steps.end());
  std::stable_sort(steps.begin(), steps.end(),
                   [](const TraceStep& a, const TraceStep& b) { return a.start < b.start; });
  for (std::size_t i = 0; i + 1 < steps.size(); ++i)
    steps[i].duration = steps[i + 1].start - steps[i].start;
  return steps;
}

TraceIndex step_at(const std::vector<TraceStep>& steps, std::int64_t time) {
  const auto after =
      std::upper_bound(steps.begin(), steps.end(), time,
                       [](std::int64_t at, const TraceStep& step) { return at < step.start; });
  if (after == steps.begin()) return kNoIndex;
  const auto step = after - 1;
  return time <= step->start + step->duration ? static_cast<TraceIndex>(step - steps.begin())
                                              : kNoIndex;
}

// The marks without those within others, by thread and start.
std::vector<HostRange> outermost(std::vector<HostRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const HostRange& a, const HostRange& b) {
    return std::tuple(a.thread, a.start, -a.end) < std::tuple(b.thread, b.start, -b.end);
  });
  std::vector<HostRange> kept;
  for (const HostRange& each : ranges)
    if (kept.empty() || kept.back().thread != each.thread || kept.back().end < each.end)
      kept.push_back(each);
  return kept;
}

bool lies_in(const HostLaunch& launch, const std::vector<HostRange>& ranges) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), launch, [](const HostLaunch& at, const HostRange& range) {
        return std::tie(at.thread, at.start) < std::tie(range.thread, range.start);
      });
  if (after == ranges.begin()) return false;
  const HostRange& range = *(after - 1);
  return range.thread == launch.thread && launch.start <= range.end;
}

}  // namespace

std::int32_t HostRecord::thread(std::int64_t process, std::int64_t thread) {
  // Threads of two processes that this mixes up would have to run in one trace.
  const std::int64_t key =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(process) << 32U) ^ thread;
  return number_of(key);
}

std::int32_t HostRecord::number_of(std::int64_t key) {
  const auto [known, is_new] =
      threads_.try_emplace(key, static_cast<std::int32_t>(thread_keys_.size()));
  if (is_new) thread_keys_.push_back(key);
  return known->second;
}

void HostRecord::append(HostRecord next) {
  std::vector<std::int32_t> numbers;
  for (const std::int64_t key : next.thread_keys_) numbers.push_back(number_of(key));
  for (HostOp& op : next.ops) op.thread = numbers[static_cast<std::size_t>(op.thread)];
  for (HostLaunch& each : next.launches)
    each.thread = numbers[static_cast<std::size_t>(each.thread)];
  for (HostRange& each : next.optimizers)
    each.thread = numbers[static_cast<std::size_t>(each.thread)];
  move_to_end(optimizers, next.optimizers);
  move_to_end(ops, next.ops);
  move_to_end(launches, next.launches);
  move_to_end(activities, next.activities);
  move_to_end(steps, next.steps);
  move_to_end(device_steps, next.device_steps);
}

std::optional<std::int64_t> step_number(std::string_view annotation) {
  const std::string name = lower_case(annotation);
  for (const std::string_view word : {"profilerstep#", "train_step", "iteration", "step", "iter"}) {
    if (!name.starts_with(word)) continue;
    const std::size_t digits = name.find_first_not_of(" _#:", word.size());
    if (digits == std::string::npos) return std::nullopt;
    std::int64_t number = 0;
    const auto [end, error] =
        std::from_chars(name.data() + digits, name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) return number;
    return std::nullopt;
  }
  return std::nullopt;
}

bool is_optimizer_mark(std::string_view annotation) {
  return annotation.starts_with("Optimizer.step#");
}

void link_to_host(Trace& trace, HostRecord record) {
  trace.steps = ordered_steps(record);
  const std::vector<HostRange> optimizers = outermost(std::move(record.optimizers));
  trace.marks_optimizer = !optimizers.empty();
  const HostLinks links(record);
  for (std::size_t i = 0; i < trace.activities.size(); ++i) {
    DeviceActivity& activity = trace.activities[i];
    const ActivityIds& ids = record.activities[i];
    if (const HostLaunch* launch = links.launch_of(ids)) {
      activity.launched = launch->start;
      activity.optimizes = lies_in(*launch, optimizers);
    }
    const std::size_t op = links.op_of(ids);
    if (op != kNone) {
      activity.op = record.ops[op].name;
      activity.op_call = static_cast<TraceIndex>(op);
      activity.shapes = record.ops[op].shapes;
      if (activity.category == KernelCategory::Other)
        activity.category = category_of_op(trace.names[activity.op]);
      if (activity.category == KernelCategory::Collective && activity.collective == kNoIndex)
        activity.collective = links.collective_of(op);
    }
    if (activity.launched || !links.has_launches())
      activity.step = step_at(trace.steps, activity.launched.value_or(activity.start));
  }
  const auto starts_before = [](const DeviceActivity& a, const DeviceActivity& b) {
    return a.start < b.start;
  };
  if (!std::is_sorted(trace.activities.begin(), trace.activities.end(), starts_before))
    std::stable_sort(trace.activities.begin(), trace.activities.end(), starts_before);
}

}  // namespace shardwright::calibration
