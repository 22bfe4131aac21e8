#include "calibration/traces/host_record.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shardwright::calibration {
namespace {

// Positions have four bytes: traces have millions of events, and several lists of positions beside
// them.
using HostPosition = std::uint32_t;
constexpr HostPosition kNone = std::numeric_limits<HostPosition>::max();

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
    by_external_id_ = positions_by(ops_, &HostOp::external_id);
    by_correlation_ = positions_by(launches_, &HostLaunch::correlation);
  }

  bool has_launches() const { return !launches_.empty(); }

  const HostLaunch* launch_of(const ActivityIds& ids) const {
    const HostPosition launch = launch_index(ids);
    return launch == kNone ? nullptr : &launches_[launch];
  }

  // The innermost operator of an activity; kNone if it is not known.
  HostPosition op_of(const ActivityIds& ids) const {
    const HostPosition launch = launch_index(ids);
    if (launch == kNone)
      return ids.external_id == ids.correlation ? kNone : op_numbered(ids.external_id);
    const std::int64_t external =
        ids.external_id != kNoNumber ? ids.external_id : launches_[launch].external_id;
    if (external != kNoNumber) {
      const HostPosition op = op_numbered(external);
      const std::int64_t time = launches_[launch].start;
      if (op != kNone && ops_[op].start <= time && time <= ops_[op].end) return op;
    }
    return op_of_launch_[launch];
  }

  // The collective of an operator or of the nearest one around it that has one.
  TraceIndex collective_of(HostPosition op) const {
    for (; op != kNone; op = parents_[op])
      if (ops_[op].collective != kNoIndex) return ops_[op].collective;
    return kNoIndex;
  }

  bool is_within_autograd(HostPosition op) const {
    while (op != kNone && !ops_[op].is_of_autograd) op = parents_[op];
    return op != kNone;
  }

 private:
  // The positions of those that have a number, by the number and then by position.
  template <class T>
  static std::vector<HostPosition> positions_by(const std::vector<T>& list,
                                                std::int64_t T::*number) {
    std::vector<HostPosition> positions;
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].*number != kNoNumber) positions.push_back(static_cast<HostPosition>(i));
    sort_unless_sorted(positions, [&](HostPosition a, HostPosition b) {
      return std::tie(list[a].*number, a) < std::tie(list[b].*number, b);
    });
    return positions;
  }

  template <class T>
  static HostPosition find_first(const std::vector<HostPosition>& positions,
                                 const std::vector<T>& list, std::int64_t T::*member,
                                 std::int64_t number) {
    const auto found = std::lower_bound(
        positions.begin(), positions.end(), number,
        [&](HostPosition at, std::int64_t wanted) { return list[at].*member < wanted; });
    return found != positions.end() && list[*found].*member == number ? *found : kNone;
  }

  HostPosition op_numbered(std::int64_t number) const {
    return find_first(by_external_id_, ops_, &HostOp::external_id, number);
  }
  HostPosition launch_index(const ActivityIds& ids) const {
    return ids.correlation == kNoNumber
               ? kNone
               : find_first(by_correlation_, launches_, &HostLaunch::correlation, ids.correlation);
  }

  // Walks through operators and launches in the order of time, with the operators that are running
  // as a chain of parents.
  void nest() {
    parents_.assign(ops_.size(), kNone);
    op_of_launch_.assign(launches_.size(), kNone);
    HostPosition running = kNone;
    std::size_t launch = 0;
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
      running = static_cast<HostPosition>(i);
    }
  }

  HostPosition running_at(HostPosition op, std::int32_t thread, std::int64_t time) const {
    while (op != kNone && (ops_[op].thread != thread || ops_[op].end < time)) op = parents_[op];
    return op;
  }

  std::vector<HostOp>& ops_;
  std::vector<HostLaunch>& launches_;
  std::vector<HostPosition> by_external_id_, by_correlation_;
  // The operator around each operator, and the innermost around each launch.
  std::vector<HostPosition> parents_, op_of_launch_;
};

// In the order of their starts. Several threads may mark the same step: the first mark counts.
std::vector<TraceStep> ordered_steps(std::vector<TraceStep> steps) {
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

// Leaves marks out that lie within others of their process, as those of microbatches do in a
// step's. Numbers that begin anew, as in each epoch, go on.
std::vector<StepMark> outermost_marks(std::vector<StepMark> marks) {
  const auto end_of = [](const StepMark& mark) { return mark.step.start + mark.step.duration; };
  std::ranges::stable_sort(marks, {}, [](const StepMark& mark) {
    return std::tuple(mark.process, mark.step.start, -mark.step.duration);
  });
  std::vector<StepMark> kept;
  std::int64_t offset = 0;
  for (StepMark& mark : marks) {
    const bool is_first = kept.empty() || kept.back().process != mark.process;
    if (!is_first && end_of(mark) <= end_of(kept.back())) continue;
    if (is_first) {
      offset = 0;
    } else if (mark.step.number + offset <= kept.back().step.number &&
               mark.step.start >= end_of(kept.back())) {
      offset = kept.back().step.number + 1 - mark.step.number;
    }
    mark.step.number += offset;
    kept.push_back(mark);
  }
  return kept;
}

// The steps of a recording, and those of each of its processes.
class MarkedSteps {
 public:
  explicit MarkedSteps(const HostRecord& record) {
    std::vector<TraceStep> all;
    std::map<std::int64_t, std::vector<TraceStep>> by_process;
    for (const StepMark& mark :
         outermost_marks(!record.steps.empty()          ? record.steps
                         : !record.device_steps.empty() ? record.device_steps
                                                        : record.named_steps)) {
      all.push_back(mark.step);
      by_process[mark.process].push_back(mark.step);
    }
    all_ = ordered_steps(std::move(all));
    for (std::size_t i = 0; i < all_.size(); ++i)
      index_[all_[i].number] = static_cast<TraceIndex>(i);
    if (by_process.size() < 2) return;
    for (auto& [process, steps] : by_process)
      by_process_[process] = ordered_steps(std::move(steps));
  }

  const std::vector<TraceStep>& all() const { return all_; }

  // The index of a process' step among all. Of a process without marks those of all count.
  TraceIndex step_at(std::optional<std::int64_t> process, std::int64_t time) const {
    const auto own = process ? by_process_.find(*process) : by_process_.end();
    const std::vector<TraceStep>& steps = own == by_process_.end() ? all_ : own->second;
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), time,
                         [](std::int64_t at, const TraceStep& step) { return at < step.start; });
    if (after == steps.begin()) return kNoIndex;
    const auto step = after - 1;
    return time <= step->start + step->duration ? index_.at(step->number) : kNoIndex;
  }

 private:
  std::vector<TraceStep> all_;
  std::unordered_map<std::int64_t, TraceIndex> index_;
  std::map<std::int64_t, std::vector<TraceStep>> by_process_;
};

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
  return number_of({key, process});
}

std::int32_t HostRecord::number_of(const Thread& thread) {
  const auto [known, is_new] =
      numbers_.try_emplace(thread.key, static_cast<std::int32_t>(threads_by_number_.size()));
  if (is_new) threads_by_number_.push_back(thread);
  return known->second;
}

void HostRecord::append(HostRecord next) {
  std::vector<std::int32_t> numbers;
  for (const Thread& thread : next.threads_by_number_) numbers.push_back(number_of(thread));
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
  move_to_end(named_steps, next.named_steps);
}

std::optional<std::int64_t> step_number(std::string_view annotation) {
  const std::string name = lower_case(annotation);
  for (const std::string_view word : {"profilerstep#", "training_step", "train_step", "global_step",
                                      "iteration", "step", "iter"}) {
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

bool is_autograd_op(std::string_view name) {
  return name.starts_with("autograd::engine::evaluate_function");
}

bool is_optimizer_mark(std::string_view annotation) {
  return annotation.starts_with("Optimizer.step#");
}

void link_to_host(Trace& trace, HostRecord record) {
  const MarkedSteps steps(record);
  trace.steps = steps.all();
  const std::vector<HostRange> optimizers = outermost(std::move(record.optimizers));
  trace.marks_optimizer = !optimizers.empty();
  const HostLinks links(record);
  for (std::size_t i = 0; i < trace.activities.size(); ++i) {
    DeviceActivity& activity = trace.activities[i];
    const ActivityIds& ids = record.activities[i];
    std::optional<std::int64_t> process;
    if (const HostLaunch* launch = links.launch_of(ids)) {
      activity.launched = launch->start;
      process = record.process_of(launch->thread);
      activity.optimizes = lies_in(*launch, optimizers);
    }
    const HostPosition op = links.op_of(ids);
    if (op != kNone) {
      activity.op = record.ops[op].name;
      activity.backward = links.is_within_autograd(op);
      activity.op_call = static_cast<TraceIndex>(op);
      activity.shapes = record.ops[op].shapes;
      if (activity.category == KernelCategory::Other)
        activity.category = category_of_op(trace.names[activity.op]);
      if (activity.category == KernelCategory::Collective && activity.collective == kNoIndex)
        activity.collective = links.collective_of(op);
    }
    if (activity.launched || !links.has_launches())
      activity.step = steps.step_at(process, activity.launched.value_or(activity.start));
  }
  const auto starts_before = [](const DeviceActivity& a, const DeviceActivity& b) {
    return a.start < b.start;
  };
  if (!std::is_sorted(trace.activities.begin(), trace.activities.end(), starts_before))
    std::stable_sort(trace.activities.begin(), trace.activities.end(), starts_before);
}

}  // namespace shardwright::calibration
