#include "calibration/trace_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "calibration/error_statistics.hpp"
#include "calibration/part_calibration.hpp"
#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/intervals.hpp"
#include "calibration/traces/trace_report.hpp"
#include "core/base/quantity_text.hpp"
#include "core/program/group_lattice.hpp"
#include "core/program/program_checks.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/cost/matrix_peak.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::calibration {
namespace {

// Kernels per op beyond which the framework fuses otherwise than the plan's stack.
constexpr double kSameFusion = 1.25;

std::optional<OpKind> kind_of_exchange(const std::string& kind) {
  if (kind == "send" || kind == "receive" || kind == "send_receive") return OpKind::Send;
  for (const OpKind each : {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                            OpKind::AllToAll, OpKind::Broadcast})
    if (kind == name_of(each)) return each;
  return std::nullopt;
}

// Where groups of this shape lie, taken to fill the job; where the shape is not known, neighbours.
sim::GroupPlacement placement_of(GroupShape shape, std::int64_t members,
                                 const ClusterSpec& cluster) {
  if (shape.empty()) shape = {{members, 1}};
  GroupLattice lattice;
  for (const auto& [count, stride] : shape) lattice.append(count, stride);
  return sim::place_on_domains(lattice, sim::domain_size(cluster),
                               shape.back().first * shape.back().second);
}

// True if some members of the group are not traced, and the shortest of the traced times is longer
// than smaller collectives with as many bytes together: no transfer is, so that all of them waited
// for another member.
bool waits_for_untraced_ranks(const MatchedCollectives& one, const RankMatching& matching) {
  constexpr double kClearly = 1.5;
  if (one.ranks >= one.group_size.value_or(0)) return false;
  return std::ranges::any_of(matching.collectives, [&](const MatchedCollectives& smaller) {
    if (smaller.kind != one.kind || smaller.group != one.group || smaller.shape != one.shape ||
        smaller.group_size != one.group_size || smaller.bytes.value_or(0) <= 0 ||
        *smaller.bytes >= one.bytes.value_or(0) || smaller.transfer <= Seconds(0.0))
      return false;
    const double pieces =
        std::ceil(static_cast<double>(*one.bytes) / static_cast<double>(*smaller.bytes));
    return one.transfer > smaller.transfer * pieces * kClearly;
  });
}

// What one rank recorded contains its wait for the others, so that only matched collectives count.
// Groups whose place is not known, and collectives that wait for ranks without a trace, are named
// in `left_out`.
std::vector<ExchangeTiming> exchanges_of(const std::optional<RankMatching>& matching,
                                         const ClusterSpec& cluster,
                                         std::vector<std::string>& left_out) {
  std::vector<ExchangeTiming> exchanges;
  if (!matching) return exchanges;
  const std::int64_t most = cluster.most_accelerators().value_or(kMaxWorld);
  std::set<std::string> irregular;
  for (const MatchedCollectives& each : matching->collectives) {
    const std::optional<OpKind> kind = kind_of_exchange(each.kind);
    if (!kind || each.bytes.value_or(0) <= 0 || each.transfer <= Seconds(0.0)) continue;
    const std::int64_t members = kind == OpKind::Send ? 2 : each.group_size.value_or(0);
    // A message goes to the next member.
    const GroupShape shape = kind == OpKind::Send && !each.shape.empty()
                                 ? GroupShape{{2, each.shape.front().second}}
                                 : each.shape;
    if (members < 2 || std::max(members - 1, extent_of(shape)) >= most) continue;
    if (each.is_irregular) {
      irregular.insert(fmt::format("{} of group {}", each.kind, each.group));
      continue;
    }
    const Bytes timed_bytes(static_cast<double>(*each.bytes));
    if (waits_for_untraced_ranks(each, *matching)) {
      left_out.push_back(fmt::format(
          "The time of {} with {} is not refitted: it is longer than that of smaller ones with as "
          "many bytes together, so that it holds a wait for members of group {} without a trace.",
          each.kind, format_bytes(timed_bytes), each.group));
      continue;
    }
    ExchangeTiming timing;
    timing.name = each.kind;
    timing.kind = *kind;
    timing.placement = placement_of(shape, members, cluster);
    timing.bytes = timed_bytes;
    timing.times = {each.transfer};
    timing.total = each.transfer * static_cast<double>(each.count * each.ranks);
    exchanges.push_back(std::move(timing));
  }
  for (const std::string& group : irregular)
    left_out.push_back(
        fmt::format("The time of {} is not refitted: its members are listed in no pattern that "
                    "tells their nodes.",
                    group));
  return exchanges;
}

KernelSample sample_of(const MatchedOp& op) {
  KernelSample sample;
  sample.name = op.name;
  sample.kind = op.kind;
  sample.phase = op.phase;
  sample.precision = op.precision;
  sample.work = op.work;
  sample.times = op.times;
  sample.total = op.measured;
  return sample;
}

bool is_usable(const MatchedOp& op) {
  if (op.measured <= Seconds(0.0) || op.matched <= 0.0) return false;
  if (op.kind == OpKind::Attention) return !op.times.empty();
  const auto* work = std::get_if<MemoryWork>(&op.work);
  if (work == nullptr || op.kind == OpKind::Offload) return false;
  const double ratio = op.kernels / std::max(1.0, static_cast<double>(work->kernels));
  return ratio < kSameFusion && ratio > 1.0 / kSameFusion;
}

// Why the time of such ops says nothing of the memory's bandwidth; empty if it does.
std::string reason_against_bandwidth(const MatchedOp& op, const AcceleratorSpec& device) {
  const auto* work = std::get_if<MemoryWork>(&op.work);
  if (work == nullptr) return "";
  const Bytes traffic = work->read + work->written;
  const Bytes of_op = traffic / std::max(1.0, op.ops);
  if (of_op <= device.l2_cache)
    return fmt::format("what one reads and writes, {}, fits in the device's cache",
                       format_bytes(of_op));
  const BytesPerSecond rate = traffic / op.measured;
  if (rate > device.memory_bandwidth)
    return fmt::format("they would move {}, and the device's memory {} at most",
                       format_bandwidth(rate), format_bandwidth(device.memory_bandwidth));
  return "";
}

void add_products(const std::vector<Trace>& traces, std::vector<KernelSample>& samples) {
  for (const auto& [each, calls, total] : timed_products(traces)) {
    KernelSample sample;
    sample.name = name_of(each.kind);
    sample.kind = each.kind;
    sample.precision = each.precision;
    sample.work = each.work;
    sample.times = {each.time};
    sample.total = total;
    samples.push_back(std::move(sample));
  }
}

void add_kernels(const std::vector<Trace>& traces, const std::vector<ProgramMatch>& matches,
                 const AcceleratorSpec& device, RunSamples& samples) {
  add_products(traces, samples.kernels);
  std::map<OpKind, std::string> left_out;
  for (const ProgramMatch& match : matches)
    for (const MatchedOp& op : match.ops) {
      if (!is_usable(op)) continue;
      if (const std::string reason = reason_against_bandwidth(op, device); !reason.empty()) {
        left_out.try_emplace(op.kind, reason);
        continue;
      }
      KernelSample& sample = samples.kernels.emplace_back(sample_of(op));
      sample.total = static_cast<double>(match.steps) * op.measured;
      if (std::holds_alternative<MemoryWork>(op.work)) sample.times = {op.measured};
    }
  for (const auto& [kind, reason] : left_out)
    samples.left_out.push_back(
        fmt::format("The bandwidth of {} kernels is not refitted: {}.", name_of(kind), reason));
}

// The relative time by which kernels of one name and shape took longer beside a collective. Short
// ones lose more than those that make up a step, and tell little.
std::vector<double> slowdowns_of(const Trace& trace) {
  constexpr double kLeastShare = 0.3, kAlone = 0.02, kShort = 20.0;
  struct Times {
    std::vector<Seconds> alone;
    std::vector<std::pair<double, Seconds>> beside;
  };
  std::map<std::tuple<std::int32_t, TraceIndex, TraceIndex>, Times> kernels;
  std::map<std::int32_t, IntervalUnion> collectives;
  std::map<std::int32_t, std::vector<Interval>> intervals;
  for (const DeviceActivity& each : trace.activities)
    if (each.category == KernelCategory::Collective)
      intervals[each.device].push_back({each.start, each.end()});
  for (auto& [device, list] : intervals) collectives[device] = union_of(std::move(list));
  for (const DeviceActivity& each : trace.activities) {
    if (each.kind != ActivityKind::Kernel || each.category == KernelCategory::Collective ||
        each.duration <= 0 || each.shapes == kNoIndex)
      continue;
    const double alone =
        seconds_of(difference({{each.start, each.end()}}, collectives[each.device]));
    const Seconds time = from_ns(each.duration);
    const double share = 1.0 - alone / time.value();
    Times& times = kernels[{each.device, each.name, each.shapes}];
    if (share < kAlone)
      times.alone.push_back(time);
    else if (share > kLeastShare)
      times.beside.emplace_back(share, time);
  }
  std::vector<double> slowdowns;
  for (const auto& [key, times] : kernels) {
    if (times.alone.empty()) continue;
    const Seconds alone = median_of(times.alone);
    if (alone < microseconds(kShort)) continue;
    for (const auto& [share, time] : times.beside)
      slowdowns.push_back((time / alone - 1.0) / share);
  }
  return slowdowns;
}

// The time of all kernels that are no collectives, added up over streams.
double computing_ns(const DeviceStep& step) {
  double sum = 0.0;
  for (const DeviceActivity* each : step.activities)
    if (each->kind == ActivityKind::Kernel && each->category != KernelCategory::Collective)
      sum += static_cast<double>(each->duration);
  return sum;
}

// The relative standard deviation among ranks of the time that kernels take in a step.
std::optional<double> variation_of(const std::vector<Trace>& traces) {
  std::vector<double> times;
  for (const Trace& trace : traces) {
    double sum = 0.0;
    const std::vector<DeviceStep> steps = device_steps(trace);
    for (const DeviceStep& step : steps) sum += computing_ns(step);
    if (sum > 0.0) times.push_back(sum / static_cast<double>(steps.size()));
  }
  if (times.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(times.size());
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / n;
  double squares = 0.0;
  for (const double time : times) squares += (time / mean - 1.0) * (time / mean - 1.0);
  return std::sqrt(squares / (n - 1.0));
}

// The share of the steps that kernels, of one stream or of several, fill.
double filled_share(std::span<const Trace> traces) {
  double busy = 0.0, all = 0.0;
  for (const Trace& trace : traces) {
    for (const DeviceStep& step : device_steps(trace)) {
      all += static_cast<double>(step.end - step.begin);
      busy += computing_ns(step);
    }
  }
  return all > 0.0 ? busy / all : 0.0;
}

// Above this share, power and temperature hold the clock where training has it.
constexpr double kNearlyAll = 0.9;

std::string clock_text(double filled, double sustained) {
  return fmt::format(
      "Kernels fill {} % of these steps, so that the device kept a higher clock than where they "
      "fill all of a step. Times are compared at that clock. Plans are predicted at the clock of "
      "steps that kernels fill, {} of the peak's; for a job that pauses like this one add `--set "
      "cluster.accelerator.efficiency.sustained_clock_ratio=1`.",
      format_percent(filled), format_number(sustained, 2));
}

}  // namespace

std::int64_t stage_of(const Trace& trace, const Plan& plan) {
  const RankGrid grid(plan);
  const std::int64_t rank = trace.rank.value_or(0);
  return 0 <= rank && rank < grid.world_size() ? grid.locate(rank).stage : 0;
}

Scenario at_clock_of(std::span<const Trace> traces, Scenario scenario) {
  if (filled_share(traces) < kNearlyAll)
    scenario.cluster.accelerator = sim::at_full_clock(std::move(scenario.cluster.accelerator));
  return scenario;
}

PlannedStep planned_step(const sim::TracedStep& step, std::int64_t stage) {
  const auto index = static_cast<std::size_t>(stage);
  PlannedStep planned;
  planned.stage = stage;
  planned.step = step.result.step;
  const sim::TimeBreakdown& time = step.result.stages[index].time;
  planned.exposed = time.exposed_total();
  planned.host = time.host;
  planned.bubble = time.bubble + time.stall;
  const std::int32_t rank = step.timeline.ranks[index].rank;
  auto span = std::find_if(step.timeline.spans.begin(), step.timeline.spans.end(),
                           [&](const Span& each) { return each.rank == rank; });
  for_each_op(step.program, step.program.stages[index], [&](const PlacedOp& placed) {
    const Op& op = placed.op;
    planned.ops.push_back(
        {op.name, op.kind, op.phase, op.precision, op.work, span->start, span->duration});
    ++span;
  });
  return planned;
}

RunSamples samples_of(const std::vector<Trace>& traces, const std::vector<ProgramMatch>& matches,
                      const std::optional<RankMatching>& matching, const ClusterSpec& cluster) {
  RunSamples samples;
  add_kernels(traces, matches, cluster.accelerator, samples);
  samples.exchanges = exchanges_of(matching, cluster, samples.left_out);
  for (const Trace& trace : traces) {
    const std::vector<double> slowdowns = slowdowns_of(trace);
    samples.slowdowns.insert(samples.slowdowns.end(), slowdowns.begin(), slowdowns.end());
  }
  if (const auto variation = variation_of(traces)) samples.variations.push_back(*variation);
  const double filled = filled_share(traces);
  samples.at_training_clock = filled >= kNearlyAll;
  const double sustained = cluster.accelerator.sustained_clock_ratio;
  const bool has_products = std::ranges::any_of(samples.kernels, [](const KernelSample& each) {
    return std::holds_alternative<GemmWork>(each.work);
  });
  if (!samples.at_training_clock && has_products && sustained < 1.0)
    samples.left_out.push_back(clock_text(filled, sustained));
  return samples;
}

}  // namespace shardwright::calibration
