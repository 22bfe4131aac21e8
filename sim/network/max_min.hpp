// Max-min fair rates of flows that share directed links.
//
// Given are links l with capacity C_l > 0 and flows i, each with a route, a weight w_il > 0 on
// every link of its route (what a unit of its rate takes from the link, 1 by default) and a cap c_i
// on its rate (infinite by default). The rates x solve
//
//   sum over the flows i through l of  w_il x_i  <=  C_l     for every link l
//   x_i <= c_i                                               for every flow i
//
// and are max-min fair: no rate can grow but at the cost of one that is smaller or equal. Such
// rates exist, are unique, and are just those for which every flow has a bottleneck: it runs at its
// cap, or some link of its route is used up and no flow on that link is faster (Bertsekas and
// Gallager, Data Networks, 2nd ed., section 6.5.2).
//
// Progressive filling finds them: all rates grow together from zero; when a link is used up or a
// cap is reached, the flows concerned stay at the level reached and the others grow on. The level
// at which link l is used up, were nothing else to stop its growing flows, is its share
//
//   s_l = (C_l - sum over the stopped flows of w_il x_i) / (sum over the growing flows of w_il),
//
// and the smallest share (or cap) is the next level. Shares never shrink on the way.
//
// This is the plain reference, O(rounds x (links + flows)); FlowNetwork gives the same rates
// incrementally. Assumes fluid flows that share at once and fairly: no start-up, no losses, no
// dependence on the round-trip time, ideal congestion control.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"

namespace shardwright::sim {

// Links are numbered from zero.
using LinkIndex = std::uint32_t;

struct MaxMinFlow {
  // The links of the route; a link may occur once.
  std::vector<LinkIndex> route;
  // A weight for each link of the route; empty: 1 each.
  std::vector<double> weights;
  BytesPerSecond rate_cap = infinite<BytesPerSecond>();
};

struct MaxMinProblem {
  // Capacities by link.
  std::vector<BytesPerSecond> capacities;
  std::vector<MaxMinFlow> flows;
};

// The rate of each flow; infinite for a flow with neither route nor cap.
std::vector<BytesPerSecond> max_min_rates(const MaxMinProblem& problem);

}  // namespace shardwright::sim
