#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "calibration/error_statistics.hpp"
#include "calibration/figure_fit.hpp"
#include "calibration/part_calibration.hpp"
#include "core/spec/pools.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/curve_cost.hpp"
#include "sim/cost/socket_cost.hpp"
#include "sim/step/pool_links.hpp"

namespace shardwright::calibration {

namespace {

std::int64_t ceiling(std::int64_t all, std::int64_t each) {
  return (all + each - 1) / each;
}

bool crosses_nodes(const ExchangeTiming& timing) {
  return timing.placement.nodes > 1;
}

// Residuals of the formulas of a path, without the curves.
std::vector<double> path_residuals(const ClusterSpec& cluster,
                                   const std::vector<ExchangeTiming>& timings) {
  std::vector<double> residuals;
  for (const ExchangeTiming& timing : timings) {
    const Seconds predicted =
        sim::collective_cost(timing.kind, timing.bytes, timing.placement, cluster, StackSpec{})
            .time;
    for (const Seconds time : timing.times) residuals.push_back(std::log(predicted / time));
  }
  return residuals;
}

constexpr double kLeastBandwidth = 1e3, kMostBandwidth = 1e13;
constexpr double kLeastLatency = 1e-8, kMostLatency = 1.0;

Figures<ClusterSpec> link_figures() {
  return {
      figure_at<ClusterSpec>(
          "/node/scale_up/bandwidth_bytes_per_s", kLeastBandwidth, kMostBandwidth,
          [](ClusterSpec& c) -> BytesPerSecond& { return c.node.scale_up.bandwidth; }),
      figure_at<ClusterSpec>(
          "/node/scale_up/pair_efficiency_ratio", 0.05, 1.0,
          [](ClusterSpec& c) -> double& { return c.node.scale_up.pair_efficiency; }),
      figure_at<ClusterSpec>(
          "/node/scale_up/collective_overhead_s", kLeastLatency, kMostLatency,
          [](ClusterSpec& c) -> Seconds& { return c.node.scale_up.collective_overhead; }),
      figure_at<ClusterSpec>("/node/scale_up/latency_s", kLeastLatency, kMostLatency,
                             [](ClusterSpec& c) -> Seconds& { return c.node.scale_up.latency; })};
}

Figures<ClusterSpec> network_figures(const ClusterSpec& cluster, bool alone) {
  Figures<ClusterSpec> figures = {figure_at<ClusterSpec>(
      "/node/nic/bandwidth_bytes_per_s", kLeastBandwidth, kMostBandwidth,
      [](ClusterSpec& c) -> BytesPerSecond& { return c.node.nic.bandwidth; })};
  for (std::size_t i = 0; i + 1 < cluster.fabric.levels.size(); ++i) {
    figures.push_back(figure_at<ClusterSpec>(
        fmt::format("/fabric/levels/{}/oversubscription_ratio", i), 1.0, 1e4,
        [i](ClusterSpec& c) -> double& { return c.fabric.levels[i].oversubscription; }));
  }
  // The network's timings speak for the overhead, too, where nothing stays within a node.
  if (alone) {
    figures.push_back(figure_at<ClusterSpec>(
        "/node/scale_up/collective_overhead_s", kLeastLatency, kMostLatency,
        [](ClusterSpec& c) -> Seconds& { return c.node.scale_up.collective_overhead; }));
  }
  figures.push_back(
      figure_at<ClusterSpec>("/fabric/base_latency_s", kLeastLatency, kMostLatency,
                             [](ClusterSpec& c) -> Seconds& { return c.fabric.base_latency; }));
  return figures;
}

// A figure's place within its part.
void note(const FigureLog& log, const std::string& part, const std::string& about,
          const FitResult& result, Sources& sources) {
  FitResult own = result;
  std::erase_if(own.parameters,
                [&](const FittedParameter& each) { return each.name.rfind(part, 0) != 0; });
  for (FittedParameter& each : own.parameters) each.name.erase(0, part.size());
  log.add(part, about, own, sources);
}

void fit_paths(ClusterSpec& cluster, const std::vector<ExchangeTiming>& timings,
               const Figures<ClusterSpec>& figures, const char* about, const FigureLog& log) {
  if (timings.empty()) return;
  const std::vector<ExchangeCurve> curves = std::exchange(cluster.exchange_curves, {});
  const FitResult result = fit_first_figure_first<ClusterSpec>(
      cluster, figures,
      [&](const ClusterSpec& changed) { return path_residuals(changed, timings); });
  cluster.exchange_curves = curves;
  note(log, "/node", about, result, cluster.node.sources);
  note(log, "/fabric", about, result, cluster.fabric.sources);
}

// The formula's line through the two ends of the sizes.
ExchangeCurve line_of_formula(const ClusterSpec& cluster, const ExchangeTiming& timing) {
  ExchangeCurve curve;
  curve.kind = timing.kind;
  curve.members = timing.placement.size;
  curve.nodes = timing.placement.nodes;
  curve.span = sim::extent_of(timing.placement);
  const auto formula = [&](double bytes) {
    return sim::collective_cost(timing.kind, Bytes(bytes), timing.placement, cluster, StackSpec{})
        .time;
  };
  constexpr double kSmall = 1.0, kLarge = 1e8;
  curve.alpha = formula(kSmall);
  curve.beta = Bytes(kLarge - kSmall) / (formula(kLarge) - curve.alpha);
  return curve;
}

// Adds the formula's line where there is no curve.
std::size_t curve_index(ClusterSpec& cluster, const ExchangeTiming& timing) {
  std::vector<ExchangeCurve>& curves = cluster.exchange_curves;
  const ExchangeCurve* known = sim::curve_of(cluster, timing.kind, timing.placement);
  if (known != nullptr) return static_cast<std::size_t>(known - curves.data());
  curves.push_back(line_of_formula(cluster, timing));
  return curves.size() - 1;
}

// Notes figures that hold until timings determine them.
void note_guess(std::size_t index, Sources& sources) {
  const std::string pointer = fmt::format("/exchange_curves/{}/", index);
  for (const char* figure : {"alpha_s", "beta_bytes_per_s"}) {
    sources[pointer + figure] = {"by the formula of the links, which no timing determined",
                                 Confidence::Assumed};
  }
  sources[pointer + "skew_s"] = {"none, which no timing determined", Confidence::Assumed};
}

// Small messages determine the latency, large ones the bandwidth. If the sizes do not separate the
// two, the fit changes the one that makes up most of the time.
Figures<ExchangeCurve> transfer_figures(const ExchangeCurve& curve,
                                        const std::vector<const ExchangeTiming*>& timings) {
  constexpr double kLarge = 16.0;
  Bytes sizes;
  for (const ExchangeTiming* timing : timings) sizes += timing->bytes;
  const Seconds moving = sizes / static_cast<double>(timings.size()) / curve.beta;
  auto beta = figure_at<ExchangeCurve>("beta_bytes_per_s", kLeastBandwidth, kMostBandwidth,
                                       [](ExchangeCurve& c) -> BytesPerSecond& { return c.beta; });
  auto alpha = figure_at<ExchangeCurve>("alpha_s", kLeastLatency, kMostLatency,
                                        [](ExchangeCurve& c) -> Seconds& { return c.alpha; });
  // It is a guess of the formula.
  const bool is_guess = curve.most <= Bytes(0);
  if (is_guess) alpha.widest = beta.widest = kWidestForGuess;
  // Messages of a busy machine vary by more than a factor: a poor estimate is still better than
  // what it contradicts.
  alpha.widest_against = beta.widest_against = kWidestForGuess;
  if (moving > curve.alpha * kLarge) return {beta, alpha};
  return {alpha, beta};
}

// The weight of an exchange relative to the largest one. A line does not describe all exchanges,
// since small ones pass through buffers, and its error should lie where a step spends little time:
// squares weigh by bytes. Small exchanges keep some weight for alpha.
double weight_of(Bytes bytes, Bytes largest) {
  constexpr double kLeastWeight = 0.25;
  return std::max(kLeastWeight, std::sqrt(bytes / largest));
}

FitResult fit_transfer(ExchangeCurve& curve, const std::vector<const ExchangeTiming*>& timings) {
  Bytes largest;
  for (const ExchangeTiming* timing : timings) largest = std::max(largest, timing->bytes);
  return fit_first_figure_first<ExchangeCurve>(
      curve, transfer_figures(curve, timings), [&](const ExchangeCurve& changed) {
        std::vector<double> residuals;
        for (const ExchangeTiming* timing : timings) {
          const Seconds predicted = sim::transfer_time(changed, timing->bytes);
          const double weight = weight_of(timing->bytes, largest);
          for (const Seconds time : timing->times)
            residuals.push_back(weight * std::log(predicted / time));
        }
        return residuals;
      });
}

FitResult fit_skew(ExchangeCurve& curve, const std::vector<const ExchangeTiming*>& timings) {
  return fit_figures<ExchangeCurve>(
      curve,
      {figure_at<ExchangeCurve>("skew_s", kLeastLatency, kMostLatency,
                                [](ExchangeCurve& c) -> Seconds& { return c.skew; })},
      [&](const ExchangeCurve& changed) {
        std::vector<double> residuals;
        for (const ExchangeTiming* timing : timings)
          for (const Seconds skew : timing->skews)
            residuals.push_back(std::log(changed.skew / skew));
        return residuals;
      });
}

// The sizes behind alpha and beta: of these timings, and of earlier ones that still speak for one.
void note_sizes(ExchangeCurve& curve, const FitResult& transfer,
                const std::vector<const ExchangeTiming*>& timings) {
  const auto moved =
      std::count_if(transfer.parameters.begin(), transfer.parameters.end(),
                    [](const FittedParameter& each) { return is_determined(each.verdict); });
  if (moved == 0) return;
  const bool keeps_one = curve.most > Bytes(0) && moved == 1;
  if (!keeps_one) curve.least = curve.most = timings.front()->bytes;
  for (const ExchangeTiming* timing : timings) {
    curve.least = std::min(curve.least, timing->bytes);
    curve.most = std::max(curve.most, timing->bytes);
  }
}

std::string describe(const ExchangeCurve& curve) {
  return fmt::format("{} of {} on {} {}", name_of(curve.kind), curve.members, curve.nodes,
                     curve.nodes == 1 ? "node" : "nodes");
}

// The place of the curve among those of the profile, present or to come.
struct CurvePlace {
  std::size_t index = 0;
  bool is_new = false;
};

// False where the curve would be a new one of which nothing is determined: the formula is better
// than a line through it.
bool fit_curve(ClusterSpec& cluster, ExchangeCurve curve, const CurvePlace& place,
               const std::vector<const ExchangeTiming*>& timings, const FigureLog& log) {
  const FitResult transfer = fit_transfer(curve, timings);
  if (place.is_new && !determines_any(transfer)) return false;
  if (place.is_new) note_guess(place.index, cluster.sources);
  const auto note_curve = [&](FitResult result) {
    for (FittedParameter& each : result.parameters)
      each.name = fmt::format("/exchange_curves/{}/{}", place.index, each.name);
    log.add("", describe(curve), result, cluster.sources);
  };
  note_curve(transfer);
  if (!timings.front()->skews.empty()) note_curve(fit_skew(curve, timings));
  note_sizes(curve, transfer, timings);
  if (place.is_new) cluster.exchange_curves.emplace_back();
  cluster.exchange_curves[place.index] = curve;
  return true;
}

// Returns the exchanges that stay without a curve.
std::vector<std::string> fit_curves(ClusterSpec& cluster,
                                    const std::vector<ExchangeTiming>& timings,
                                    const FigureLog& log) {
  ClusterSpec with_guesses = cluster;
  const std::vector<ExchangeCurve>& curves = with_guesses.exchange_curves;
  const std::size_t known = curves.size();
  std::vector<std::vector<const ExchangeTiming*>> of_curve(known);
  for (const ExchangeTiming& timing : timings) {
    const std::size_t index = curve_index(with_guesses, timing);
    if (of_curve.size() <= index) of_curve.resize(index + 1);
    of_curve[index].push_back(&timing);
  }
  std::vector<std::string> without_curve;
  for (std::size_t i = 0; i < of_curve.size(); ++i) {
    if (of_curve[i].empty()) continue;
    const CurvePlace place{i < known ? i : cluster.exchange_curves.size(), i >= known};
    if (!fit_curve(cluster, curves[i], place, of_curve[i], log))
      without_curve.push_back(describe(curves[i]));
  }
  return without_curve;
}

// The groups of such members are taken to fill the job.
sim::GroupPlacement place_by_stride(const ExchangeSample& sample, std::int64_t domain) {
  GroupLattice lattice;
  lattice.append(sample.members, sample.stride);
  return sim::place_on_domains(lattice, domain, sample.members * sample.stride);
}

// A node is a scale-up domain, which several hosts may make up: these are taken to fill one after
// another.
sim::GroupPlacement place_on_hosts(const ExchangeSample& sample, const ClusterSpec& cluster) {
  const std::int64_t hosts_per_node =
      sim::domain_size(cluster) / std::max<std::int64_t>(1, cluster.node.accelerators);
  sim::GroupPlacement placement;
  placement.size = sample.members;
  placement.nodes = std::min(sample.members, ceiling(sample.spread->hosts, hosts_per_node));
  placement.per_node = ceiling(sample.members, placement.nodes);
  placement.span = placement.nodes;
  if (placement.nodes > 1) {
    placement.groups_per_node = sample.spread->groups_per_host;
    placement.grid.append(placement.nodes, 1);
  }
  return placement;
}

}  // namespace

std::vector<ExchangeSample> bounded_by_larger(std::vector<ExchangeSample> samples) {
  std::vector<ExchangeSample*> by_size;
  for (ExchangeSample& sample : samples) by_size.push_back(&sample);
  std::sort(by_size.begin(), by_size.end(), [](const auto* a, const auto* b) {
    return std::tuple(a->kind, a->members, a->stride, b->bytes) <
           std::tuple(b->kind, b->members, b->stride, a->bytes);
  });
  for (std::size_t i = 1; i < by_size.size(); ++i) {
    const ExchangeSample& larger = *by_size[i - 1];
    ExchangeSample& sample = *by_size[i];
    if (std::tie(larger.kind, larger.members, larger.stride) ==
        std::tie(sample.kind, sample.members, sample.stride))
      sample.time = std::min(sample.time, larger.time);
  }
  return samples;
}

ExchangeTiming placed(const ExchangeSample& sample, const ClusterSpec& cluster) {
  ExchangeTiming timing;
  timing.name = "probe";
  timing.kind = sample.kind;
  timing.bytes = sample.bytes;
  timing.times = {sample.time};
  timing.placement = sample.spread ? place_on_hosts(sample, cluster)
                                   : place_by_stride(sample, sim::domain_size(cluster));
  return timing;
}

namespace {

// The network between pools, where each figure that the cluster does not state is that of the
// slowest pool: no message between pools is faster.
PoolNetwork stated_network(const ClusterSpec& cluster) {
  PoolNetwork network = cluster.between_pools;
  const bool bandwidth = network.bandwidth > BytesPerSecond(),
             latency = network.latency > Seconds();
  for (const std::string& name : names_of_pools(cluster)) {
    const ClusterSpec pool = *pool_cluster(cluster, name);
    const NicSpec& nic = pool.node.nic;
    const BytesPerSecond own = nic.bandwidth * (nic.efficiency * static_cast<double>(nic.per_node));
    if (!bandwidth && (network.bandwidth <= BytesPerSecond() || own < network.bandwidth))
      network.bandwidth = own;
    if (!latency) network.latency = std::max(network.latency, pool.fabric.base_latency);
  }
  return network;
}

// An exchange between pools takes as long as it would between nodes of the slowest one.
Seconds time_between_pools(const ClusterSpec& cluster, const PoolExchange& exchange) {
  Seconds slowest;
  for (const PoolEnd& end : exchange.ends) {
    const ClusterSpec pool =
        sim::seen_from_outside(*pool_cluster(cluster, end.pool), cluster.between_pools);
    slowest = std::max(slowest, sim::collective_cost(exchange.timing.kind, exchange.timing.bytes,
                                                     end.placement, pool, StackSpec{})
                                    .time);
  }
  return slowest;
}

}  // namespace

void calibrate_between_pools(ClusterSpec& cluster, const std::vector<PoolExchange>& exchanges,
                             const FigureLog& log) {
  if (exchanges.empty()) return;
  const PoolNetwork before = cluster.between_pools;
  cluster.between_pools = stated_network(cluster);
  auto bandwidth = figure_at<ClusterSpec>(
      "/between_pools/bandwidth_bytes_per_s", kLeastBandwidth, kMostBandwidth,
      [](ClusterSpec& c) -> BytesPerSecond& { return c.between_pools.bandwidth; });
  auto latency =
      figure_at<ClusterSpec>("/between_pools/latency_s", kLeastLatency, kMostLatency,
                             [](ClusterSpec& c) -> Seconds& { return c.between_pools.latency; });
  if (before.bandwidth <= BytesPerSecond()) bandwidth.widest = kWidestForGuess;
  if (before.latency <= Seconds()) latency.widest = kWidestForGuess;
  const FitResult result = fit_first_figure_first<ClusterSpec>(
      cluster, {bandwidth, latency}, [&](const ClusterSpec& changed) {
        std::vector<double> residuals;
        for (const PoolExchange& exchange : exchanges) {
          const Seconds predicted = time_between_pools(changed, exchange);
          for (const Seconds time : exchange.timing.times)
            residuals.push_back(std::log(predicted / time));
        }
        return residuals;
      });
  log.add("", "network between pools", result, cluster.sources);
  const auto is_found = [&](std::size_t i) { return is_determined(result.parameters[i].verdict); };
  if (!is_found(0)) cluster.between_pools.bandwidth = before.bandwidth;
  if (!is_found(1)) cluster.between_pools.latency = before.latency;
}

std::vector<std::string> calibrate_exchanges(ClusterSpec& cluster,
                                             const std::vector<ExchangeTiming>& timings,
                                             const FigureLog& log) {
  std::vector<ExchangeTiming> inside, across;
  for (const ExchangeTiming& timing : timings) {
    if (timing.placement.size < 2) continue;
    (crosses_nodes(timing) ? across : inside).push_back(timing);
  }
  fit_paths(cluster, inside, link_figures(), "links of a node", log);
  fit_paths(cluster, across, network_figures(cluster, inside.empty()), "network", log);
  inside.insert(inside.end(), across.begin(), across.end());
  return fit_curves(cluster, inside, log);
}

void FigureLog::add(const std::string& part, const std::string& about, const FitResult& result,
                    Sources& sources) const {
  const double residual = summarise_logarithms(result.residuals_after).median_abs;
  for (const FittedParameter& each : result.parameters) {
    figures_->push_back({part + each.name, about, each, result.residuals_after.size(), residual});
    if (!is_determined(each.verdict)) continue;
    Provenance& provenance = sources[each.name];
    provenance = {source_, confidence_};
    provenance.residual = residual;
    provenance.low = each.low;
    provenance.high = each.high;
  }
}

void FigureLog::add_contained(const std::string& pointer, const std::string& about,
                              double before) const {
  if (before != 1.0)
    figures_->push_back({pointer, about, {pointer, before, 1.0, 0.0, 0.0, FitVerdict::Contained}});
}

}  // namespace shardwright::calibration
