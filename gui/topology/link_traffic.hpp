// The traffic of a step's collectives and messages on the links of the cluster. Times are in
// seconds.
//
// A member of a collective sends the bytes of the ring algorithm (sent_bytes in
// core/program/groups.hpp) to the next member of its node. If the group has p members on the node,
// each sends 1/p of its bytes to its counterpart on the next node, as NCCL's rings leave a node
// once through each of its NICs. An all-to-all sends the same to all other members, a message goes
// from one stage to another. All take the routes of the topology.
//
// Known simplifications: reductions in switches (NVLS, SHARP) move fewer bytes than this, and a
// transfer is spread evenly over its time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/table_text.hpp"
#include "gui/topology/cluster_map.hpp"
#include "gui/topology/plan_groups.hpp"
#include "gui/topology/topology_layout.hpp"

namespace shardwright::gui {

class LinkTraffic {
 public:
  LinkTraffic() = default;
  // Counts all ranks of the plan; each does what the first rank of its stage does in the timeline.
  LinkTraffic(const ClusterMap& map, const Plan& plan, const Timeline& timeline);

  double end() const { return end_; }
  // Returns by link the bytes that pass it from one time to another, in time linear in the
  // transfers and links.
  std::vector<Bytes> bytes(double from, double to) const;
  Bytes sent(double from, double to) const;

 private:
  // The bytes on each link for one byte that each rank of a stage sends.
  struct Pattern {
    std::int64_t stage = 0;
    Group group = Group::Tensor;
    // AllToAll, RingShift or Send; AllReduce stands for all collectives in rings.
    OpKind shape = OpKind::AllReduce;
    std::int64_t peer_stage = -1;
    double senders = 0.0;
    std::vector<std::pair<sim::LinkIndex, float>> loads;
  };
  struct Transfer {
    double start = 0.0, end = 0.0;
    std::uint32_t pattern = 0;
    double bytes = 0.0;
  };
  class Builder;

  // Returns by pattern the bytes that a rank sends within the time.
  std::vector<double> sums(double from, double to) const;

  std::size_t links_ = 0;
  std::vector<Pattern> patterns_;
  std::vector<Transfer> transfers_;
  double end_ = 0.0;
};

// The stages of a plan that lie on one of several pools.
struct PoolStages {
  // Empty where the plan names no pool, so that all stages lie on the cluster.
  std::string pool;
  std::int64_t first = 0, count = 0;
  // The plan's number of their first rank.
  std::int64_t first_rank = 0;
};

// A plan's step in its places on the cluster, or the part of it on one pool. Its construction takes
// up to a second for large clusters.
struct PlacedStep {
  // `plan` and `timeline` have the stages of the pool alone, with numbers from 0. Without a
  // timeline all links are idle. Throws InputError where the plan's ranks cannot be laid on the
  // cluster.
  PlacedStep(const ClusterSpec& cluster, const Plan& plan, const Timeline* timeline,
             PoolStages stages = {});

  PoolStages stages;
  ClusterMap map;
  PlanGroups groups;
  LinkTraffic traffic;
  // Zero where the cluster has no two halves that reach each other.
  BytesPerSecond bisection;
  // The length of the step in seconds; 0 without a timeline.
  double seconds = 0.0;
  // The highest share of its capacity that a link has in one of the kStepParts parts of the step.
  double busiest = 0.0;
};

// The number of equal parts of a step over which the slider of the view averages the load.
inline constexpr int kStepParts = 100;

// Returns by link the share of its capacity over a time.
std::vector<double> utilisation(const ClusterMap& map, const std::vector<Bytes>& bytes,
                                double seconds);

// Returns the first link with the highest utilisation, or none if nothing moves.
std::optional<sim::LinkIndex> busiest_link(const std::vector<double>& utilisation);

// Returns the number of links whose utilisation is within 2 % of the highest.
std::size_t links_as_busy(const std::vector<double>& utilisation);

// Returns the line of the busiest link, or the first one that is drawn of a link as busy; none if
// no such link is drawn.
const MapLine* busiest_line(const TopologyLayout& layout, const std::vector<double>& utilisation);

TextTable link_table(const ClusterMap& map, const std::vector<Bytes>& bytes,
                     const std::vector<double>& utilisation);

}  // namespace shardwright::gui
