#include "calibration/traces/program_match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/intervals.hpp"
#include "calibration/traces/kernel_calls.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

// Sizes that differ by less are those of one tensor with other padding.
constexpr double kSameSize = 0.03;

bool is_near(double a, double b) {
  return std::abs(a - b) <= kSameSize * std::max(std::abs(a), std::abs(b));
}

// The sizes of a product. Which operand is called the left one depends on layout, so that m and n
// are interchangeable: m <= n.
struct ProductSizes {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;

  auto operator<=>(const ProductSizes&) const = default;
};

ProductSizes sizes_of(const GemmWork& work) {
  return {std::min(work.m, work.n), std::max(work.m, work.n), work.k, work.batch};
}

bool are_near(const ProductSizes& a, const ProductSizes& b) {
  const auto near = [](std::int64_t x, std::int64_t y) {
    return is_near(static_cast<double>(x), static_cast<double>(y));
  };
  return near(a.m, b.m) && near(a.n, b.n) && near(a.k, b.k) && a.batch == b.batch;
}

// The kinds of communication as traces name them.
std::string kind_in_traces(OpKind kind) {
  if (kind == OpKind::RingShift) return "send_receive";
  return name_of(kind);
}

bool is_product(OpKind kind) {
  return kind == OpKind::Gemm || kind == OpKind::GroupedGemm;
}

bool is_memory_bound(OpKind kind) {
  return !is_product(kind) && kind != OpKind::Attention && !is_communication(kind);
}

// Ops by number and calls by number, both ascending. What finds a partner leaves the lists.
using Numbers = std::deque<std::size_t>;

// The calls of one step that belong to each op.
class Assignment {
 public:
  Assignment(const std::vector<PlannedOp>& ops, std::int64_t repetitions,
             const std::vector<KernelCall>& calls)
      : ops_(ops), repetitions_(repetitions), calls_(calls) {
    const auto attends = [&](bool backward) {
      return std::any_of(calls.begin(), calls.end(), [&](const KernelCall& call) {
        return call.category == KernelCategory::Attention && call.backward == backward;
      });
    };
    is_forward_only_ = attends(false) && !attends(true);
    partners.resize(ops.size());
    is_taken.assign(calls.size(), false);
    match_products();
    match_attention();
    match_communication();
  }

  // The calls that match each op, over all repetitions of the program.
  std::vector<std::vector<std::size_t>> partners;
  std::vector<bool> is_taken;

 private:
  void take(std::size_t op, std::size_t call) {
    partners[op % ops_.size()].push_back(call);
    is_taken[call] = true;
  }

  // Numbers of ops in all repetitions: i + r * ops.
  template <class Choice>
  Numbers ops_that(Choice choice) const {
    Numbers numbers;
    for (std::int64_t r = 0; r < repetitions_; ++r)
      for (std::size_t i = 0; i < ops_.size(); ++i)
        if (!(is_forward_only_ && is_backward(ops_[i])) && choice(ops_[i]))
          numbers.push_back(i + static_cast<std::size_t>(r) * ops_.size());
    return numbers;
  }

  template <class Choice>
  Numbers calls_that(Choice choice) const {
    Numbers numbers;
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (!is_taken[i] && choice(calls_[i])) numbers.push_back(i);
    return numbers;
  }

  void pair_up(Numbers& ops, Numbers& calls) {
    for (; !ops.empty() && !calls.empty(); ops.pop_front(), calls.pop_front())
      take(ops.front(), calls.front());
  }

  const PlannedOp& op(std::size_t number) const { return ops_[number % ops_.size()]; }

  void match_products() {
    std::map<ProductSizes, Numbers> ops, calls;
    for (const std::size_t i : ops_that([](const PlannedOp& each) {
           return is_product(each.kind) && std::holds_alternative<GemmWork>(each.work);
         }))
      ops[sizes_of(std::get<GemmWork>(op(i).work))].push_back(i);
    for (const std::size_t i :
         calls_that([](const KernelCall& call) { return call.product.has_value(); }))
      calls[sizes_of(std::get<GemmWork>(calls_[i].product->work))].push_back(i);
    if (calls.empty()) {
      match_products_by_order();
      return;
    }
    for (auto& [sizes, numbers] : ops) {
      const auto same = calls.find(sizes);
      if (same != calls.end()) pair_up(numbers, same->second);
    }
    for (auto& [sizes, numbers] : ops)
      for (auto& [other, candidates] : calls)
        if (!numbers.empty() && are_near(sizes, other)) pair_up(numbers, candidates);
    for (auto& [sizes, numbers] : ops)
      if (!numbers.empty()) match_parts(sizes, numbers);
  }

  // Without shapes, where there are as many products as ops.
  void match_products_by_order() {
    Numbers ops = ops_that([](const PlannedOp& each) { return is_product(each.kind); });
    Numbers calls =
        calls_that([](const KernelCall& call) { return call.category == KernelCategory::Gemm; });
    if (ops.size() == calls.size()) pair_up(ops, calls);
  }

  // The size in which a call is a part of an op that has the other two; none if it is no part.
  static std::optional<std::int64_t> part_of(const ProductSizes& whole, const ProductSizes& part,
                                             int direction) {
    if (part.batch != whole.batch) return std::nullopt;
    const auto other_of = [&](std::int64_t common) -> std::optional<std::int64_t> {
      if (part.m == common) return part.n;
      if (part.n == common) return part.m;
      return std::nullopt;
    };
    std::optional<std::int64_t> size;
    std::int64_t most = whole.k;
    if (direction == 0) {
      if (part.m == whole.m && part.n == whole.n) size = part.k;
    } else if (part.k == whole.k) {
      size = other_of(direction == 1 ? whole.m : whole.n);
      most = direction == 1 ? whole.n : whole.m;
    }
    return size && *size < most ? size : std::nullopt;
  }

  // Products one after the other that add up to an op: the queries', keys' and values' projections
  // of a framework that does not join them.
  void match_parts(const ProductSizes& whole, Numbers& ops) {
    const std::array<std::int64_t, 3> wholes = {whole.k, whole.n, whole.m};
    for (int direction = 0; direction < 3; ++direction) {
      std::deque<std::pair<std::size_t, std::int64_t>> parts;
      std::int64_t sum = 0;
      for (const std::size_t i :
           calls_that([](const KernelCall& call) { return call.product.has_value(); })) {
        if (ops.empty()) return;
        const auto size =
            part_of(whole, sizes_of(std::get<GemmWork>(calls_[i].product->work)), direction);
        if (!size) continue;
        parts.emplace_back(i, *size);
        sum += *size;
        const std::int64_t wanted = wholes[static_cast<std::size_t>(direction)];
        for (; sum > wanted; parts.pop_front()) sum -= parts.front().second;
        if (sum != wanted) continue;
        for (const auto& [call, part] : parts) take(ops.front(), call);
        ops.pop_front();
        parts.clear();
        sum = 0;
      }
    }
  }

  void match_attention() {
    for (const bool backward : {false, true}) {
      Numbers ops = ops_that([&](const PlannedOp& each) {
        return each.kind == OpKind::Attention && is_backward(each) == backward;
      });
      Numbers calls = calls_that([&](const KernelCall& call) {
        return call.category == KernelCategory::Attention && call.backward == backward;
      });
      pair_up(ops, calls);
    }
  }

  void match_communication() {
    std::set<std::string> kinds;
    for (const PlannedOp& each : ops_)
      if (is_communication(each.kind)) kinds.insert(kind_in_traces(each.kind));
    for (const std::string& kind : kinds) {
      Numbers ops = ops_that([&](const PlannedOp& each) {
        return is_communication(each.kind) && kind_in_traces(each.kind) == kind;
      });
      Numbers calls = calls_that([&](const KernelCall& call) { return call.collective == kind; });
      pair_by_bytes(ops, calls);
      Numbers rest = calls_that([&](const KernelCall& call) {
        return call.collective == kind && (call.arguments == nullptr || !call.arguments->bytes);
      });
      pair_up(ops, rest);
    }
  }

  // Leaves those without a partner in `ops`.
  void pair_by_bytes(Numbers& ops, const Numbers& calls) {
    std::map<double, Numbers> by_size;
    for (const std::size_t i : calls)
      if (calls_[i].arguments != nullptr && calls_[i].arguments->bytes)
        by_size[static_cast<double>(*calls_[i].arguments->bytes)].push_back(i);
    Numbers left;
    for (const std::size_t i : ops) {
      const double bytes = std::get<CommunicationWork>(op(i).work).bytes.value();
      auto found = by_size.lower_bound(bytes * (1.0 - kSameSize));
      while (found != by_size.end() && is_near(found->first, bytes) && found->second.empty())
        ++found;
      if (found == by_size.end() || !is_near(found->first, bytes)) {
        left.push_back(i);
        continue;
      }
      take(i, found->second.front());
      found->second.pop_front();
    }
    ops = std::move(left);
  }

  static bool is_backward(const PlannedOp& op) {
    return op.phase == Phase::BackwardInput || op.phase == Phase::BackwardWeight;
  }

  // True of a recording with attention in the forward direction alone: an evaluation, whose
  // products may have the shapes of a backward pass.
  bool is_forward_only_ = false;
  const std::vector<PlannedOp>& ops_;
  std::int64_t repetitions_;
  const std::vector<KernelCall>& calls_;
};

// How often the program's products occur in calls of an unmarked recording: the median over sizes.
std::int64_t repetitions_in(const std::vector<KernelCall>& calls,
                            const std::vector<PlannedOp>& ops) {
  std::map<ProductSizes, std::pair<double, double>> counts;
  for (const PlannedOp& each : ops)
    if (const auto* work = std::get_if<GemmWork>(&each.work)) ++counts[sizes_of(*work)].first;
  for (const KernelCall& call : calls)
    if (call.product) ++counts[sizes_of(std::get<GemmWork>(call.product->work))].second;
  std::vector<double> ratios;
  for (const auto& [sizes, count] : counts)
    if (count.first > 0 && count.second > 0) ratios.push_back(count.second / count.first);
  if (ratios.empty()) return 1;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2),
                   ratios.end());
  return std::max<std::int64_t>(1, std::llround(ratios[ratios.size() / 2]));
}

IntervalUnion kernels_of(const Activities& activities, bool collectives) {
  std::vector<Interval> intervals;
  for (const DeviceActivity* each : activities)
    if (each->kind == ActivityKind::Kernel &&
        (each->category == KernelCategory::Collective) == collectives)
      intervals.push_back({each->start, each->end()});
  return union_of(std::move(intervals));
}

Interval interval_of(const PlannedOp& op) {
  return {std::llround(op.start.value() * 1e9),
          std::llround((op.start + op.duration).value() * 1e9)};
}

// Gathers the steps of a trace.
class Comparison {
 public:
  Comparison(const Trace& trace, const PlannedStep& plan) : trace_(trace), plan_(plan) {
    std::vector<Interval> kernels;
    for (const PlannedOp& each : plan.ops)
      if (!is_communication(each.kind)) kernels.push_back(interval_of(each));
    planned_kernels_ = union_of(std::move(kernels));
    for (const PlannedOp& each : plan.ops) {
      row_of_op_.push_back(row_of(each));
      if (const auto* work = std::get_if<MemoryWork>(&each.work))
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
    const std::int64_t repetitions = trace_.steps.empty() ? repetitions_in(calls, plan_.ops) : 1;
    result_.steps += repetitions;
    Assignment assignment(plan_.ops, repetitions, calls);
    const IntervalUnion compute = kernels_of(step.activities, false);
    for (std::size_t i = 0; i < plan_.ops.size(); ++i)
      add_op(i, repetitions, assignment.partners[i], calls, compute);
    add_memory_bound(calls, repetitions);
    add_strays(calls, assignment.is_taken);
    add_times(step, compute);
  }

  void add_op(std::size_t number, std::int64_t repetitions,
              const std::vector<std::size_t>& partners, const std::vector<KernelCall>& calls,
              const IntervalUnion& compute) {
    const PlannedOp& op = plan_.ops[number];
    if (is_memory_bound(op.kind)) return;
    MatchedOp& row = result_.ops[row_of_op_[number]];
    row.ops += static_cast<double>(repetitions);
    row.planned += op.duration * static_cast<double>(repetitions);
    // An op of which the framework made several calls counts once.
    const double matched =
        std::min<double>(static_cast<double>(repetitions), static_cast<double>(partners.size()));
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
    if (matched > 0.0)
      row.times.insert(row.times.end(), static_cast<std::size_t>(matched), time / matched);
  }

  // By kind: what the plan has of it beside what the trace has of it.
  void add_memory_bound(const std::vector<KernelCall>& calls, std::int64_t repetitions) {
    std::map<OpKind, std::size_t> rows;
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const PlannedOp& op = plan_.ops[i];
      if (!is_memory_bound(op.kind)) continue;
      rows[op.kind] = row_of_op_[i];
      MatchedOp& row = result_.ops[row_of_op_[i]];
      row.ops += static_cast<double>(repetitions);
      row.matched += static_cast<double>(repetitions);
      row.planned += op.duration * static_cast<double>(repetitions);
      row.predicted = row.planned;
    }
    memory_rows_.assign(calls.size(), std::nullopt);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const KernelCall& call = calls[i];
      if (call.category != KernelCategory::Elementwise && call.category != KernelCategory::Other)
        continue;
      const auto kind = memory_bound_kind(
          trace_.names[call.main->name],
          call.main->op == kNoIndex ? std::string() : trace_.names[call.main->op]);
      const auto found = kind ? rows.find(*kind) : rows.end();
      if (found == rows.end()) continue;
      memory_rows_[i] = found->second;
      MatchedOp& row = result_.ops[found->second];
      row.kernels += 1.0;
      row.measured += call.time;
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
      for (double* count : {&row.ops, &row.matched, &row.kernels}) *count /= steps;
      for (Seconds* time : {&row.planned, &row.predicted, &row.measured, &row.predicted_exposed,
                            &row.measured_exposed})
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
