// Components and cuts of a topology, as Boost.Graph finds them.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "sim/network/topology.hpp"

namespace shardwright::sim {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, std::int64_t,
        boost::property<boost::edge_residual_capacity_t, std::int64_t,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// Each edge gets the reverse edge of capacity zero that the algorithm asks for. Capacities are
// whole bytes a second: on integers push-relabel ends exactly.
void add_edge(FlowGraph& graph, std::size_t from, std::size_t to, std::int64_t capacity) {
  const auto edge = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, edge, capacity);
  boost::put(boost::edge_capacity, graph, back, std::int64_t{0});
  boost::put(boost::edge_reverse, graph, edge, back);
  boost::put(boost::edge_reverse, graph, back, edge);
}

}  // namespace

bool Topology::is_connected() const {
  // Every link has a way back, so that undirected components suffice.
  boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> graph(vertices_.size());
  for (LinkIndex link = 0; link < links_.size(); link += 2)
    boost::add_edge(links_[link].from, links_[link].to, graph);
  std::vector<VertexIndex> component(vertices_.size());
  boost::connected_components(graph, component.data());
  return std::all_of(component.begin(), component.begin() + accelerators_,
                     [&](VertexIndex each) { return each == component.front(); });
}

BytesPerSecond Topology::cut_bandwidth(std::span<const std::uint32_t> from,
                                       std::span<const std::uint32_t> to) const {
  const std::size_t source = vertices_.size(), sink = source + 1;
  FlowGraph graph(sink + 1);
  // What all links of an accelerator carry together, away from it and to it: no cut needs more.
  std::vector<std::int64_t> out(accelerators_, 0), in(accelerators_, 0);
  for (const TopologyLink& link : links_) {
    // A ring of one accelerator has such a link.
    if (link.from == link.to) continue;
    const auto capacity = static_cast<std::int64_t>(std::llround(link.capacity.value()));
    add_edge(graph, link.from, link.to, capacity);
    if (link.from < accelerators_) out[link.from] += capacity;
    if (link.to < accelerators_) in[link.to] += capacity;
  }
  std::vector<bool> is_source(accelerators_, false);
  for (const std::uint32_t accelerator : from) {
    is_source[accelerator] = true;
    add_edge(graph, source, accelerator, out[accelerator]);
  }
  for (const std::uint32_t accelerator : to) {
    SHARDWRIGHT_CHECK(!is_source[accelerator], "an accelerator is on both sides of a cut");
    add_edge(graph, accelerator, sink, in[accelerator]);
  }
  return BytesPerSecond(static_cast<double>(boost::push_relabel_max_flow(graph, source, sink)));
}

BytesPerSecond Topology::bisection_bandwidth() const {
  std::vector<std::uint32_t> all(accelerators_);
  std::iota(all.begin(), all.end(), 0U);
  const std::span<const std::uint32_t> span(all);
  const std::size_t half = all.size() / 2;
  return cut_bandwidth(span.first(half), span.subspan(half));
}

}  // namespace shardwright::sim
