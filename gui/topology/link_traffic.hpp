// What the collectives and messages of a step put on the links of the cluster.
//
// A member of a collective sends the bytes that the ring algorithm has it send (sent_bytes in
// core/program/groups.hpp): to the next member of its node, and for each of the p members that the
// group has on the node 1/p of it to its opposite number on the next node, as NCCL's rings leave a
// node once through each of its NICs. An all-to-all sends the same to all others, a message goes
// from its stage to the other. Each takes the route that the topology gives it.
//
// Known simplifications: reductions in switches (NVLS, SHARP) move fewer bytes than this; a
// transfer is spread evenly over its time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/table_text.hpp"
#include "gui/topology/cluster_map.hpp"

namespace shardwright::gui {

class LinkTraffic {
 public:
  LinkTraffic() = default;
  // Of all ranks of the plan, as the first rank of each stage in the timeline goes.
  LinkTraffic(const ClusterMap& map, const Plan& plan, const Timeline& timeline);

  double end() const { return end_; }  // of the last transfer, in seconds
  // By link, what passes it from one time to another. Takes time linear in the transfers and links.
  std::vector<Bytes> bytes(double from, double to) const;
  // All that ranks send within that time.
  Bytes sent(double from, double to) const;

 private:
  // What one byte sent by each rank of a stage puts on links.
  struct Pattern {
    std::int64_t stage = 0;
    Group group = Group::Tensor;
    OpKind shape = OpKind::AllReduce;  // AllReduce stands for rings, then AllToAll, RingShift, Send
    std::int64_t peer_stage = -1;
    double senders = 0.0;
    std::vector<std::pair<sim::LinkIndex, float>> loads;
  };
  struct Transfer {
    double start = 0.0, end = 0.0;
    std::uint32_t pattern = 0;
    double bytes = 0.0;  // that a rank sends
  };
  class Builder;

  // By pattern, what a rank sends within the time.
  std::vector<double> sums(double from, double to) const;

  std::size_t links_ = 0;
  std::vector<Pattern> patterns_;
  std::vector<Transfer> transfers_;
  double end_ = 0.0;
};

// Of each link's capacity over a time; in the order of the links.
std::vector<double> utilisation(const ClusterMap& map, const std::vector<Bytes>& bytes,
                                double seconds);

// A row for each link, in base units.
TextTable link_table(const ClusterMap& map, const std::vector<Bytes>& bytes,
                     const std::vector<double>& utilisation);

}  // namespace shardwright::gui
