// Random links and routes, and flow scenarios between hosts, for tests and benchmarks.
//
// Only the links at the hosts have a latency, so that every route of a fabric has the same one:
// SimGrid's CM02 model shares by latency, and is max-min fair in our sense where latencies are
// equal.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/flow_scenario.hpp"
#include "tests/sim/network/max_min_rates.hpp"

namespace shardwright::sim::fixtures {

using Random = std::mt19937_64;

inline std::size_t any_below(Random& random, std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

inline std::vector<BytesPerSecond> random_capacities(Random& random, std::size_t links) {
  std::uniform_real_distribution<double> exponent(0.0, 2.0);
  std::vector<BytesPerSecond> capacities;
  // Every third a round number: equal capacities make the ties that random ones never do.
  for (std::size_t i = 0; i < links; ++i) {
    capacities.push_back(i % 3 == 0 ? BytesPerSecond(10.0)
                                    : BytesPerSecond(std::pow(10.0, exponent(random))));
  }
  return capacities;
}

inline std::vector<LinkIndex> random_route(Random& random, std::size_t links, std::size_t longest) {
  std::vector<LinkIndex> all(links);
  std::iota(all.begin(), all.end(), LinkIndex{0});
  std::shuffle(all.begin(), all.end(), random);
  all.resize(1 + any_below(random, std::min(longest, links)));
  return all;
}

inline MaxMinProblem random_problem(Random& random, std::size_t most_links, std::size_t most_flows,
                                    bool weighted) {
  MaxMinProblem problem;
  problem.capacities = random_capacities(random, 1 + any_below(random, most_links));
  const std::size_t flows = 1 + any_below(random, most_flows);
  std::uniform_real_distribution<double> weight(0.5, 2.0), cap(0.1, 20.0);
  for (std::size_t i = 0; i < flows; ++i) {
    MaxMinFlow flow;
    flow.route = random_route(random, problem.capacities.size(), 5);
    if (weighted) {
      for (std::size_t hop = 0; hop < flow.route.size(); ++hop)
        flow.weights.push_back(weight(random));
    }
    if (any_below(random, 4) == 0) flow.rate_cap = BytesPerSecond(cap(random));
    problem.flows.push_back(flow);
  }
  return problem;
}

using Endpoints = std::pair<std::uint32_t, std::uint32_t>;

// A scenario whose flows run between hosts; each ordered pair of hosts has one route.
struct HostScenario {
  std::string name;
  FlowScenario flows;
  std::uint32_t hosts = 0;
  // The hosts of each flow.
  std::vector<Endpoints> endpoints;
};

struct FabricRates {
  BytesPerSecond host = gigabytes_per_second(50.0);
  Seconds host_link_latency = microseconds(1.0);
};

// Hosts on switches: an up and a down link a host, and a fabric between the leaf switches.
class Fabric {
 public:
  // A star: all hosts on one switch.
  static Fabric star(std::uint32_t hosts, FabricRates rates = {}) {
    return leaf_spine(1, hosts, 0, 1.0, rates);
  }

  // Leaf switches with `spines` uplinks each, which carry all of a leaf's hosts divided by
  // `oversubscription`.
  static Fabric leaf_spine(std::uint32_t leaves, std::uint32_t hosts_per_leaf, std::uint32_t spines,
                           double oversubscription, FabricRates rates = {}) {
    Fabric fabric(leaves * hosts_per_leaf, hosts_per_leaf, rates);
    const auto uplink =
        spines == 0 ? rates.host : rates.host * hosts_per_leaf / (spines * oversubscription);
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
      for (std::uint32_t spine = 0; spine < spines; ++spine) {
        fabric.leaf_up_.push_back(fabric.link("leaf", uplink));
        fabric.leaf_down_.push_back(fabric.link("spine", uplink));
      }
    }
    fabric.spines_ = spines;
    return fabric;
  }

  // A k-ary fat tree of k^3/4 hosts at full bisection (Al-Fares et al., SIGCOMM 2008).
  static Fabric fat_tree(std::uint32_t k, FabricRates rates = {}) {
    const std::uint32_t half = k / 2;
    Fabric fabric(k * half * half, half, rates);
    fabric.spines_ = half;
    for (std::uint32_t i = 0; i < k * half * half; ++i) {
      fabric.leaf_up_.push_back(fabric.link("edge", rates.host));
      fabric.leaf_down_.push_back(fabric.link("aggregation", rates.host));
    }
    for (std::uint32_t i = 0; i < k * half * half; ++i) {
      fabric.core_up_.push_back(fabric.link("core-up", rates.host));
      fabric.core_down_.push_back(fabric.link("core-down", rates.host));
    }
    fabric.leaves_per_pod_ = half;
    return fabric;
  }

  std::uint32_t hosts() const { return hosts_; }
  const FlowScenario& links() const { return flows_; }

  // The pair decides which of the equal paths it takes.
  std::vector<LinkIndex> route(Endpoints pair) const {
    const auto [from, to] = pair;
    const std::uint32_t leaf = from / hosts_per_leaf_, other_leaf = to / hosts_per_leaf_;
    std::vector<LinkIndex> links{host_up_[from]};
    if (leaf != other_leaf) {
      const std::uint32_t spine = (from * 7 + to) % spines_;
      links.push_back(leaf_up_[leaf * spines_ + spine]);
      const std::uint32_t pod = leaf / leaves_per_pod_, other_pod = other_leaf / leaves_per_pod_;
      if (!core_up_.empty() && pod != other_pod) {
        const std::uint32_t core = spine * spines_ + (from + to * 5) % spines_;
        links.push_back(core_up_[pod * spines_ * spines_ + core]);
        links.push_back(core_down_[other_pod * spines_ * spines_ + core]);
      }
      links.push_back(leaf_down_[other_leaf * spines_ + spine]);
    }
    links.push_back(host_down_[to]);
    return links;
  }

 private:
  Fabric(std::uint32_t hosts, std::uint32_t hosts_per_leaf, FabricRates rates)
      : hosts_(hosts), hosts_per_leaf_(hosts_per_leaf) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      host_up_.push_back(link("up", rates.host, rates.host_link_latency));
      host_down_.push_back(link("down", rates.host, rates.host_link_latency));
    }
  }
  LinkIndex link(const std::string& kind, BytesPerSecond bandwidth, Seconds latency = {}) {
    return flows_.add_link(fmt::format("{}{}", kind, flows_.links().size()), bandwidth, latency);
  }

  std::uint32_t hosts_, hosts_per_leaf_;
  std::uint32_t spines_ = 0;
  std::uint32_t leaves_per_pod_ = UINT32_MAX;
  // A scenario of the links only.
  FlowScenario flows_;
  std::vector<LinkIndex> host_up_, host_down_, leaf_up_, leaf_down_, core_up_, core_down_;
};

// Adds flows over a fabric to a scenario.
class Traffic {
 public:
  Traffic(std::string name, Fabric fabric)
      : fabric_(std::move(fabric)),
        scenario_{std::move(name), fabric_.links(), fabric_.hosts(), {}} {}

  FlowIndex at(Seconds start, Endpoints pair, Bytes bytes) {
    scenario_.endpoints.push_back(pair);
    return scenario_.flows.add_flow(next_id(), bytes, fabric_.route(pair), start);
  }
  FlowIndex after(const std::vector<FlowIndex>& others, Endpoints pair, Bytes bytes) {
    scenario_.endpoints.push_back(pair);
    return scenario_.flows.add_flow_after(next_id(), bytes, fabric_.route(pair), others);
  }
  Endpoints any_pair(Random& random) const {
    const auto from = static_cast<std::uint32_t>(any_below(random, fabric_.hosts()));
    const auto hop = static_cast<std::uint32_t>(1 + any_below(random, fabric_.hosts() - 1));
    return {from, (from + hop) % fabric_.hosts()};
  }
  std::uint32_t hosts() const { return fabric_.hosts(); }
  HostScenario take() { return std::move(scenario_); }

 private:
  std::string next_id() const { return fmt::format("f{}", scenario_.endpoints.size()); }

  Fabric fabric_;
  HostScenario scenario_;
};

// `chains` flows in the air at any time: each that ends is followed by one between other hosts.
inline HostScenario random_chains(std::string name, Fabric fabric, std::uint32_t chains,
                                  std::uint32_t flows_per_chain, std::uint64_t seed) {
  Random random(seed);
  std::exponential_distribution<double> megabytes(0.1);
  Traffic traffic(std::move(name), std::move(fabric));
  const auto bytes = [&] { return Bytes(std::floor(1e3 + 1e6 * megabytes(random))); };
  std::vector<FlowIndex> last;
  for (std::uint32_t i = 0; i < chains; ++i)
    last.push_back(traffic.at(Seconds(0.0), traffic.any_pair(random), bytes()));
  for (std::uint32_t step = 1; step < flows_per_chain; ++step) {
    for (FlowIndex& flow : last) flow = traffic.after({flow}, traffic.any_pair(random), bytes());
  }
  return traffic.take();
}

// Random pairs, sizes and starts within `span`.
inline HostScenario random_starts(std::string name, Fabric fabric, std::uint32_t flows,
                                  Seconds span, std::uint64_t seed) {
  Random random(seed);
  std::uniform_real_distribution<double> start(0.0, span.value()), exponent(3.0, 8.0);
  Traffic traffic(std::move(name), std::move(fabric));
  for (std::uint32_t i = 0; i < flows; ++i) {
    traffic.at(Seconds(start(random)), traffic.any_pair(random),
               Bytes(std::floor(std::pow(10.0, exponent(random)))));
  }
  return traffic.take();
}

// Ring all-reduce of `bytes` on each host: 2(n-1) steps in which every host sends bytes/n to the
// next one, once it has received the piece of the step before. Unequal pieces: between bytes/n and
// twice that.
inline HostScenario ring_all_reduce(std::string name, Fabric fabric, Bytes bytes,
                                    bool equal_sizes = true, std::uint64_t seed = 1) {
  Random random(seed);
  std::uniform_real_distribution<double> factor(1.0, 2.0);
  Traffic traffic(std::move(name), std::move(fabric));
  const std::uint32_t n = traffic.hosts();
  const auto piece = [&] {
    return equal_sizes ? bytes / n : Bytes(std::floor(bytes.value() / n * factor(random)));
  };
  std::vector<FlowIndex> previous(n), current(n);
  for (std::uint32_t step = 0; step < 2 * (n - 1); ++step) {
    for (std::uint32_t host = 0; host < n; ++host) {
      const Endpoints pair{host, (host + 1) % n};
      current[host] = step == 0 ? traffic.at(Seconds(0.0), pair, piece())
                                : traffic.after({previous[(host + n - 1) % n]}, pair, piece());
    }
    previous = current;
  }
  return traffic.take();
}

// Every host sends to every other at once; sizes between `bytes` and twice that, or all equal.
inline HostScenario all_to_all(std::string name, Fabric fabric, Bytes bytes, bool equal_sizes,
                               std::uint64_t seed = 1) {
  Random random(seed);
  std::uniform_real_distribution<double> factor(1.0, 2.0);
  Traffic traffic(std::move(name), std::move(fabric));
  for (std::uint32_t from = 0; from < traffic.hosts(); ++from) {
    for (std::uint32_t to = 0; to < traffic.hosts(); ++to) {
      if (from == to) continue;
      const double scale = equal_sizes ? 1.0 : factor(random);
      traffic.at(Seconds(0.0), {from, to}, Bytes(std::floor(bytes.value() * scale)));
    }
  }
  return traffic.take();
}

}  // namespace shardwright::sim::fixtures
