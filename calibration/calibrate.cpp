#include "calibration/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "calibration/part_calibration.hpp"
#include "calibration/run_samples.hpp"
#include "core/base/error.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/matrix_peak.hpp"
#include "sim/step/predicted_timeline.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::calibration {

namespace {

struct Samples {
  std::vector<KernelSample> kernels;
  std::vector<ExchangeTiming> exchanges;
  std::vector<PoolExchange> between_pools;
};

struct ErrorsOfKind {
  double time = 0.0;
  // Logarithms of predicted over measured.
  std::vector<double> before, after;
};

double log_ratio(const KernelSample& sample, const ClusterSpec& cluster, const StackSpec& stack) {
  const Seconds predicted =
      sim::kernel_cost(sample.kind, sample.work, sample.precision, cluster, stack, sample.phase)
          .time;
  return std::log(std::max(predicted.value(), 1e-12) / middle_mean(sample.times).value());
}

// The time as the simulator means it: from the mean arrival of the members.
Seconds time_of(const ExchangeTiming& timing) {
  const Seconds skew = timing.skews.empty() ? Seconds(0) : middle_mean(timing.skews);
  return middle_mean(timing.times) + skew;
}

double log_ratio(const ExchangeTiming& timing, const ClusterSpec& cluster, const StackSpec& stack) {
  const Seconds predicted =
      sim::collective_time(timing.kind, timing.bytes, timing.placement, cluster, stack);
  return std::log(std::max(predicted.value(), 1e-12) / time_of(timing).value());
}

std::vector<OpErrors> op_errors(const Samples& samples, const ClusterSpec& before,
                                const ClusterSpec& after, const StackSpec& stack) {
  std::map<std::string, ErrorsOfKind> kinds;
  const auto add = [&](const auto& sample) {
    ErrorsOfKind& kind = kinds[name_of(sample.kind)];
    kind.time += sample.total.value();
    kind.before.push_back(log_ratio(sample, before, stack_on(before, stack)));
    kind.after.push_back(log_ratio(sample, after, stack_on(after, stack)));
  };
  for (const KernelSample& sample : samples.kernels) add(sample);
  for (const ExchangeTiming& timing : samples.exchanges) add(timing);
  std::vector<OpErrors> errors;
  for (const auto& [name, kind] : kinds) {
    errors.push_back({name, Seconds(kind.time), summarise_logarithms(kind.before),
                      summarise_logarithms(kind.after)});
  }
  std::stable_sort(errors.begin(), errors.end(),
                   [](const OpErrors& a, const OpErrors& b) { return a.share > b.share; });
  return errors;
}

bool has_new_product_rate(const std::vector<CalibratedFigure>& figures) {
  return std::any_of(figures.begin(), figures.end(), [](const CalibratedFigure& figure) {
    return is_determined(figure.fit.verdict) && figure.pointer.ends_with("/flop_per_s") &&
           figure.about.starts_with(name_of(OpKind::Gemm));
  });
}

// Transfers that were measured in a framework's training steps hold what the framework costs them,
// so that a factor for it would count it twice.
void transfers_contain_the_framework(StackSpec& stack, const FigureLog& log) {
  log.add_contained("/stack/communication/collective_ratio", "what the framework costs collectives",
                    stack.communication.collective_ratio);
  stack.communication.collective_ratio = 1.0;
  stack.sources["/communication/collective_ratio"] = {
      "the collectives of this profile were measured in training steps", Confidence::Measured};
}

bool has_new_transfer(const std::vector<CalibratedFigure>& figures) {
  return std::any_of(figures.begin(), figures.end(), [](const CalibratedFigure& figure) {
    return is_determined(figure.fit.verdict) && figure.pointer.ends_with("/beta_bytes_per_s");
  });
}

// Kernels of a few steps ran at the clock of benchmarks, whatever that of training is.
ClusterSpec at_clock_of_samples(ClusterSpec cluster, bool at_training_clock) {
  if (!at_training_clock) cluster.accelerator = sim::at_full_clock(std::move(cluster.accelerator));
  return cluster;
}

// Efficiencies and MFU are shares of this peak: of a device that curves describe, the best rate
// that any product reached.
void set_peak(ClusterSpec& cluster) {
  AcceleratorSpec& device = cluster.accelerator;
  FlopPerSecond best;
  Provenance origin;
  for (std::size_t i = 0; i < device.kernel_curves.size(); ++i) {
    const KernelCurve& curve = device.kernel_curves[i];
    if (curve.kind != OpKind::Gemm || curve.flop_rate < best) continue;
    best = curve.flop_rate;
    const auto known = device.sources.find(fmt::format("/kernel_curves/{}/flop_per_s", i));
    if (known != device.sources.end()) origin = known->second;
  }
  if (best <= FlopPerSecond(0)) return;
  device.matrix.fp32 = device.vector_fp32 = best;
  device.sources["/matrix/fp32_flop_per_s"] = origin;
  device.sources["/vector_fp32_flop_per_s"] = origin;
}

void check_exchanges(const ClusterSpec& cluster, const std::vector<ExchangeSample>& exchanges,
                     ProblemList& problems) {
  std::int64_t ranks = 0, hosts = 0, per_host = 0;
  for (const ExchangeSample& each : exchanges) {
    ranks = std::max(ranks, each.spread ? each.members : (each.members - 1) * each.stride + 1);
    if (!each.spread) continue;
    hosts = std::max(hosts, each.spread->hosts);
    per_host = std::max(per_host, each.members / each.spread->hosts);
  }
  const auto refuse_above = [&](std::int64_t most, std::int64_t found, const char* what) {
    if (found <= most) return;
    problems.add("timed exchanges", fmt::format("among {} {}", found, what),
                 fmt::format("at most {}, which the profile has", most));
  };
  const std::int64_t of_host = std::max<std::int64_t>(1, cluster.node.accelerators);
  refuse_above(of_host, per_host, "ranks of one host");
  const std::optional<std::int64_t> most = cluster.most_accelerators();
  if (!most) return;
  refuse_above(*most, ranks, "ranks");
  refuse_above(std::max<std::int64_t>(1, *most / of_host), hosts, "hosts");
}

// The cluster of a run on several pools, with the profile in place of the pool that has its name;
// the profile where it has all pools that the run's plan names.
ClusterSpec cluster_of_run(const Scenario& scenario, const ClusterSpec& profile) {
  if (!names_pools(scenario.plan)) return profile;
  const std::vector<std::string> known = names_of_pools(profile);
  if (!profile.pools.empty() && std::ranges::all_of(pools_of(scenario.plan), [&](const auto& name) {
        return std::ranges::find(known, name) != known.end();
      }))
    return profile;
  ClusterSpec whole = scenario.cluster;
  const auto pool = std::ranges::find(whole.pools, profile.name, &PoolSpec::name);
  if (pool == whole.pools.end()) {
    whole = profile;
    whole.pools = scenario.cluster.pools;
    whole.between_pools = scenario.cluster.between_pools;
  } else {
    pool->accelerator = profile.accelerator;
    pool->node = profile.node;
    pool->fabric = profile.fabric;
  }
  return whole;
}

// Plans and groups that the profile has no place for cannot be priced on it.
void check_places(const ClusterSpec& cluster, const CalibrationData& data) {
  ProblemList problems(fmt::format("the cluster {}", cluster.name));
  for (const MeasuredRun& run : data.runs) {
    const Plan& plan = run.scenario.plan;
    if (names_pools(plan) && ranks_on_pool(plan, cluster.name) == 0) {
      const bool stages = !plan.stage_pools.empty();
      problems.add(
          fmt::format("run {}, /plan/{}", run.name, stages ? "stage_pools" : "replica_pools"),
          fmt::format("{} on pools: {}", stages ? "stages" : "replicas",
                      fmt::join(pools_of(plan), ", ")),
          "a profile with the name of one of these pools, or a run on one pool");
      continue;
    }
    const ClusterSpec whole = cluster_of_run(run.scenario, cluster);
    for (const BrokenRule& broken : broken_rules(run.scenario.model, &whole, plan, 0, "/plan")) {
      Expected expected = broken.problem.expected;
      if (broken.rule == PlanRule::ClusterSize) {
        expected.text += fmt::format(
            "; or a profile of {} ranks, as shardwright probe measures them", plan.world_size());
      }
      problems.add(fmt::format("run {}, {}", run.name, broken.problem.where), broken.problem.found,
                   expected);
    }
  }
  check_exchanges(cluster, data.exchanges, problems);
  problems.throw_if_any();
}

Timeline prediction(const Scenario& scenario, const ClusterSpec& cluster) {
  const StackSpec stack = stack_on(cluster, scenario.stack);
  return sim::trace_step({scenario.model, cluster_of_run(scenario, cluster), stack, scenario.plan})
      ->timeline;
}

// The later a rank's clock began, the later its spans lie.
Seconds first_clock(const MeasuredStep& step) {
  Seconds first = step.ranks.front().ranks.front().clock;
  for (const Timeline& timeline : step.ranks) first = std::min(first, timeline.ranks.front().clock);
  return first;
}

void add_measured(const Timeline& measured, std::int32_t rank, std::int64_t stage, Seconds shift,
                  Timeline& both) {
  both.ranks.push_back({2 * rank, fmt::format("rank {}, stage {}: measured", rank, stage)});
  for (Span span : measured.spans) {
    span.rank = 2 * rank;
    if (span.peer >= 0) span.peer = 2 * span.peer;
    span.start += shift;
    both.spans.push_back(std::move(span));
  }
}

void add_predicted(const Timeline& predicted, std::int32_t rank, StageRank place,
                   const RankGrid& grid, Timeline& both) {
  both.ranks.push_back(
      {2 * rank + 1, fmt::format("rank {}, stage {}: predicted", rank, place.stage)});
  for (Span span : predicted.spans) {
    if (grid.locate(span.rank).stage != place.stage) continue;
    span.rank = 2 * rank + 1;
    if (span.peer >= 0) {
      const std::int64_t stage = grid.locate(span.peer).stage;
      span.peer = 2 * static_cast<std::int32_t>(grid.rank_at({stage, place.index})) + 1;
    }
    both.spans.push_back(std::move(span));
  }
}

}  // namespace

bool StepComparison::got_worse() const {
  constexpr double kRounding = 0.01;
  return std::abs(error_after()) > std::abs(error_before()) + kRounding;
}

bool OpErrors::got_worse() const {
  constexpr double kNoise = 0.02;
  return after.median_abs > before.median_abs + kNoise;
}

StackSpec stack_on(const ClusterSpec& cluster, const StackSpec& stack) {
  return cluster.stack && cluster.stack->name == stack.name ? *cluster.stack : stack;
}

Seconds predicted_step(const Scenario& scenario, const ClusterSpec& cluster) {
  Scenario here = scenario;
  here.cluster = cluster_of_run(scenario, cluster);
  here.stack = stack_on(cluster, scenario.stack);
  return sim::simulate_step(here).step;
}

Calibration calibrate(const ClusterSpec& cluster, const CalibrationData& data,
                      const std::string& source, Confidence confidence) {
  check_places(cluster, data);
  Calibration result;
  result.cluster = cluster;
  Samples samples;
  std::vector<RunSamples> of_runs;
  for (const MeasuredRun& run : data.runs) of_runs.push_back(sample_run(run, cluster));
  if (data.recorded) of_runs.push_back(*data.recorded);
  for (const RunSamples& each : of_runs) {
    samples.kernels.insert(samples.kernels.end(), each.kernels.begin(), each.kernels.end());
    samples.exchanges.insert(samples.exchanges.end(), each.exchanges.begin(), each.exchanges.end());
    samples.between_pools.insert(samples.between_pools.end(), each.between_pools.begin(),
                                 each.between_pools.end());
  }
  for (const ExchangeSample& each : data.exchanges)
    samples.exchanges.push_back(placed(each, cluster));
  const FigureLog log{source, confidence, result.figures};
  if (data.recorded) result.cluster.stack = stack_on(cluster, data.stack.value_or(StackSpec{}));
  if (!data.runs.empty() && !result.cluster.stack)
    result.cluster.stack = data.runs.front().scenario.stack;
  const StackSpec stack = result.cluster.stack.value_or(StackSpec{});
  const bool at_training_clock = std::ranges::all_of(of_runs, &RunSamples::at_training_clock);
  result.without_curve =
      calibrate_kernels(result.cluster, samples.kernels, stack, at_training_clock, log);
  for (std::string& name : calibrate_exchanges(result.cluster, samples.exchanges, log))
    result.without_curve.push_back(std::move(name));
  calibrate_between_pools(result.cluster, samples.between_pools, log);
  calibrate_stack(result.cluster, data.runs, of_runs, log);
  if (data.recorded && has_new_transfer(result.figures))
    transfers_contain_the_framework(*result.cluster.stack, log);
  if (has_new_product_rate(result.figures)) set_peak(result.cluster);
  for (const MeasuredRun& run : data.runs) {
    result.steps.push_back({run.name, run.step_time(), predicted_step(run.scenario, cluster),
                            predicted_step(run.scenario, result.cluster)});
  }
  result.ops = op_errors(samples, at_clock_of_samples(cluster, at_training_clock),
                         at_clock_of_samples(result.cluster, at_training_clock), stack);
  return result;
}

void check_device(const MeasuredRun& run, const ClusterSpec& cluster, ProblemList& problems) {
  const auto pool = names_pools(run.scenario.plan)
                        ? pool_cluster(run.scenario.cluster, cluster.name)
                        : std::nullopt;
  const AcceleratorSpec& planned = pool ? pool->accelerator : run.scenario.cluster.accelerator;
  const AcceleratorSpec& profile = cluster.accelerator;
  const bool on_cpu = run.device.empty() ? is_cpu(planned) : run.device == kCpuDevice;
  const std::string expected =
      fmt::format("one on {}, which the cluster {} is of", profile.name, cluster.name);
  if (on_cpu != is_cpu(profile)) {
    problems.add("run " + run.name, on_cpu ? "a run on CPUs" : "a run on GPUs", expected);
  } else if (on_cpu == is_cpu(planned) && planned.name != profile.name) {
    problems.add("run " + run.name, "a run planned for " + planned.name, expected);
  }
}

Timeline side_by_side(const MeasuredRun& run, const ClusterSpec& cluster) {
  const RankGrid grid(run.scenario.plan);
  const Timeline predicted = prediction(run.scenario, cluster);
  const MeasuredStep& step = run.steps.back();
  const Seconds origin = first_clock(step);
  Timeline both;
  both.origin = TimelineOrigin::Measured;
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    const StageRank place = grid.locate(rank);
    add_measured(step.ranks[r], rank, place.stage, step.ranks[r].ranks.front().clock - origin,
                 both);
    add_predicted(predicted, rank, place, grid, both);
  }
  return both;
}

}  // namespace shardwright::calibration
