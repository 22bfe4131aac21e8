#include "calibration/traces/program_match.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/intervals.hpp"
#include "calibration/traces/kernel_calls.hpp"
#include "calibration/traces/op_assignment.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

IntervalUnion kernels_of(const Activities& activities, bool collectives) {
  std::vector<Interval> intervals;
  for (const DeviceActivity* each : activities)
    if (each->kind == ActivityKind::Kernel &&
        (each->category == KernelCategory::Collective) == collectives)
      intervals.push_back({each->start, each->end()});
  return union_of(std::move(intervals));
}

// True of a recording with attention in the forward direction alone: an evaluation, whose products
// may have the shapes of a backward pass.
bool is_forward_only(const Trace& trace) {
  bool attends = false;
  for (const DeviceActivity& each : trace.activities) {
    if (each.category != KernelCategory::Attention) continue;
    if (is_of_backward_pass(trace, each)) return false;
    attends = true;
  }
  return attends;
}

Interval interval_of(const PlannedOp& op) {
  return {std::llround(op.start.value() * 1e9),
          std::llround((op.start + op.duration).value() * 1e9)};
}

// Gathers the steps of a trace.
class Comparison {
 public:
  Comparison(const Trace& trace, const PlannedStep& plan) : trace_(trace), plan_(plan) {
    result_.forward_only = is_forward_only(trace);
    result_.steps_inferred = trace.steps.empty();
    std::vector<Interval> kernels;
    for (const PlannedOp& each : plan.ops)
      if (!is_communication(each.kind)) kernels.push_back(interval_of(each));
    planned_kernels_ = union_of(std::move(kernels));
    for (const PlannedOp& each : plan.ops) {
      row_of_op_.push_back(row_of(each));
      const auto* work = std::get_if<MemoryWork>(&each.work);
      if (work != nullptr && is_recorded(each, result_.forward_only))
        add_work(result_.ops[row_of_op_.back()].work, *work);
    }
  }

  ProgramMatch take(const std::vector<DeviceStep>& steps) {
    result_.file = trace_.file;
    result_.rank = trace_.rank;
    result_.stage = plan_.stage;
    result_.predicted_step = plan_.step;
    result_.predicted_exposed = plan_.exposed;
    result_.predicted_host_gaps = plan_.host;
    result_.predicted_other_gaps = plan_.bubble;
    KernelCalls calls(trace_);
    for (const DeviceStep& step : steps) add(step, calls.of(step.activities));
    divide_by_steps();
    return std::move(result_);
  }

 private:
  // Ops that memory traffic limits make up a row of their kind and phase.
  std::size_t row_of(const PlannedOp& op) {
    const bool by_kind = is_memory_bound(op.kind);
    const Phase phase = op.phase == Phase::Recompute ? Phase::Forward : op.phase;
    const std::string name = by_kind ? name_of(op.kind) : op.name;
    std::vector<std::size_t>& known = rows_[{name, by_kind ? Phase::Forward : phase}];
    for (const std::size_t row : known)
      if (by_kind || result_.ops[row].work == op.work) return row;
    MatchedOp& row = result_.ops.emplace_back();
    row.name = name;
    row.kind = op.kind;
    row.phase = by_kind ? Phase::Forward : phase;
    row.precision = op.precision;
    row.work = by_kind ? Work(MemoryWork{Bytes(0), Bytes(0), Flop(0), 0}) : op.work;
    known.push_back(result_.ops.size() - 1);
    return known.back();
  }

  static void add_work(Work& sum, const MemoryWork& work) {
    auto& all = std::get<MemoryWork>(sum);
    all.read += work.read;
    all.written += work.written;
    all.flop += work.flop;
    all.kernels += work.kernels;
  }

  void add(const DeviceStep& step, const std::vector<KernelCall>& calls) {
    const std::int64_t repetitions =
        trace_.steps.empty() ? repetitions_in(calls, plan_.ops, result_.forward_only) : 1;
    result_.steps += repetitions;
    const OpAssignment assignment =
        assign_ops(plan_.ops, repetitions, calls, trace_.names, result_.forward_only);
    const IntervalUnion compute = kernels_of(step.activities, false);
    for (std::size_t i = 0; i < assignment.calls_of.size(); ++i)
      add_op(i % plan_.ops.size(), assignment.calls_of[i], calls, compute);
    add_memory_bound(calls, assignment, repetitions);
    add_strays(calls, assignment.is_taken);
    add_times(step, compute);
  }

  void add_op(std::size_t number, const std::vector<std::size_t>& partners,
              const std::vector<KernelCall>& calls, const IntervalUnion& compute) {
    const PlannedOp& op = plan_.ops[number];
    if (is_memory_bound(op.kind)) return;
    MatchedOp& row = result_.ops[row_of_op_[number]];
    row.ops += 1.0;
    row.planned += op.duration;
    if (!is_recorded(op, result_.forward_only)) row.unrecorded += op.duration;
    // An op of which the framework made several calls counts once.
    const double matched = partners.empty() ? 0.0 : 1.0;
    row.matched += matched;
    row.predicted += op.duration * matched;
    const bool communicates = is_communication(op.kind);
    if (communicates)
      row.predicted_exposed +=
          Seconds(seconds_of(difference({interval_of(op)}, planned_kernels_))) * matched;
    Seconds time;
    for (const std::size_t partner : partners) {
      const KernelCall& call = calls[partner];
      if (call.product) ++formats_[row_of_op_[number]][call.product->precision];
      row.kernels += static_cast<double>(call.activities.size());
      time += call.time;
      if (communicates)
        row.measured_exposed +=
            Seconds(seconds_of(difference({{call.main->start, call.main->end()}}, compute)));
    }
    row.measured += time;
    row.calls += static_cast<double>(partners.size());
    if (!partners.empty()) row.times.push_back(time);
  }

  // By kind: what the plan has of it beside what the trace has of it.
  void add_memory_bound(const std::vector<KernelCall>& calls, const OpAssignment& assignment,
                        std::int64_t repetitions) {
    std::map<OpKind, std::size_t> rows;
    const auto times = static_cast<double>(repetitions);
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const PlannedOp& op = plan_.ops[i];
      if (!is_memory_bound(op.kind)) continue;
      rows[op.kind] = row_of_op_[i];
      MatchedOp& row = result_.ops[row_of_op_[i]];
      row.ops += times;
      row.planned += op.duration * times;
      if (is_recorded(op, result_.forward_only)) {
        row.matched += times;
        row.predicted += op.duration * times;
      } else {
        row.unrecorded += op.duration * times;
      }
    }
    memory_rows_.assign(calls.size(), std::nullopt);
    std::set<std::pair<std::size_t, TraceIndex>> over_lists;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::optional<OpKind> kind = assignment.memory_bound[i];
      const auto found = kind ? rows.find(*kind) : rows.end();
      if (found == rows.end()) continue;
      memory_rows_[i] = found->second;
      MatchedOp& row = result_.ops[found->second];
      row.kernels += 1.0;
      row.measured += calls[i].time;
      const TraceIndex name = calls[i].main->name;
      if (trace_.names[name].find("multi_tensor_apply") == std::string::npos)
        row.calls += 1.0;
      else if (over_lists.emplace(found->second, name).second)
        row.calls += times;
    }
  }

  void add_strays(const std::vector<KernelCall>& calls, const std::vector<bool>& is_taken) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (is_taken[i] || memory_rows_[i]) continue;
      StrayKernel& stray = strays_[calls[i].main->name];
      stray.count += 1.0;
      stray.time += calls[i].time;
      stray.is_collective = calls[i].category == KernelCategory::Collective;
    }
  }

  void add_times(const DeviceStep& step, const IntervalUnion& compute) {
    const BusyTimes times = busy_times_of(step.activities);
    const Seconds length = from_ns(step.end - step.begin);
    result_.measured_step += length;
    result_.measured_exposed +=
        Seconds(seconds_of(difference(kernels_of(step.activities, true), compute)));
    result_.measured_host_gaps += times.host_bound_gaps;
    result_.measured_other_gaps +=
        std::max(Seconds(0.0), length - times.busy - times.host_bound_gaps);
  }

  void divide_by_steps() {
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, result_.steps));
    for (MatchedOp& row : result_.ops) {
      for (double* count : {&row.ops, &row.matched, &row.kernels, &row.calls}) *count /= steps;
      for (Seconds* time : {&row.planned, &row.predicted, &row.measured, &row.predicted_exposed,
                            &row.measured_exposed, &row.unrecorded})
        *time = *time / steps;
    }
    for (const auto& [row, counts] : formats_)
      result_.ops[row].measured_precision =
          std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
    for (Seconds* time : {&result_.measured_step, &result_.measured_exposed,
                          &result_.measured_host_gaps, &result_.measured_other_gaps})
      *time = *time / steps;
    for (auto& [name, stray] : strays_)
      result_.strays.push_back(
          {trace_.names[name], stray.count / steps, stray.time / steps, stray.is_collective});
    std::stable_sort(result_.strays.begin(), result_.strays.end(),
                     [](const StrayKernel& a, const StrayKernel& b) { return a.time > b.time; });
  }

  const Trace& trace_;
  const PlannedStep& plan_;
  ProgramMatch result_;
  std::map<std::pair<std::string, Phase>, std::vector<std::size_t>> rows_;
  std::vector<std::size_t> row_of_op_;
  // How many calls of products each row has in each format.
  std::map<std::size_t, std::map<Precision, std::int64_t>> formats_;
  IntervalUnion planned_kernels_;
  // The row of each call of the step at hand that memory traffic limits.
  std::vector<std::optional<std::size_t>> memory_rows_;
  std::map<TraceIndex, StrayKernel> strays_;
};

void set_rooflines(ProgramMatch& match, const AcceleratorSpec& device) {
  for (MatchedOp& op : match.ops) {
    if (op.matched <= 0.0 || op.measured <= Seconds(0.0)) continue;
    // Ops that memory traffic limits have the work of all together.
    const double times = is_memory_bound(op.kind) ? 1.0 : op.matched;
    op.roofline = roofline_of(op.work, op.measured_precision.value_or(op.precision),
                              op.measured / times, device);
  }
}

}  // namespace

const MatchedOp* op_above_peak(const ProgramMatch& match) {
  // Some devices run a little above the clock of their stated peak.
  double most = 1.05;
  const MatchedOp* found = nullptr;
  for (const MatchedOp& op : match.ops) {
    if (!op.roofline || op.roofline->of_peak <= most) continue;
    most = op.roofline->of_peak;
    found = &op;
  }
  return found;
}

std::optional<ProgramMatch> match_program(const Trace& trace, const PlannedStep& plan,
                                          const AcceleratorSpec* device) {
  const std::vector<DeviceStep> steps = device_steps(trace);
  if (steps.empty()) return std::nullopt;
  ProgramMatch match = Comparison(trace, plan).take(steps);
  match.differences = differences_of(match);
  if (device != nullptr) set_rooflines(match, *device);
  return match;
}

}  // namespace shardwright::calibration
