#include "gui/topology/link_traffic.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/program/groups.hpp"
#include "core/program/rank_grid.hpp"
#include "gui/models/shown_ranks.hpp"
#include "gui/models/text.hpp"
#include "gui/topology/group_routes.hpp"

namespace shardwright::gui {

using sim::LinkIndex;

namespace {

// Links with this share of the highest utilisation count as equally busy.
constexpr double kAsBusy = 0.98;

}  // namespace

class LinkTraffic::Builder {
 public:
  Builder(const ClusterMap& map, const Plan& plan, LinkTraffic& traffic)
      : map_(map), plan_(plan), grid_(plan), traffic_(traffic) {
    load_of_link_.assign(map.topology().links().size(), 0.0);
  }

  void add(const Timeline& timeline) {
    const std::map<std::int64_t, std::int32_t> first = first_ranks(timeline, grid_);
    for (const Span& span : timeline.spans) {
      if (!is_communication(span.kind) || span.bytes.value() <= 0.0) continue;
      const std::int64_t stage = stage_of(grid_, span.rank);
      if (stage < 0 || first.at(stage) != span.rank) continue;
      add_span(span, stage, stage_of(grid_, span.peer));
    }
  }

 private:
  void add_span(const Span& span, std::int64_t stage, std::int64_t peer_stage) {
    const bool message = span.kind == OpKind::Send;
    if (span.kind == OpKind::Receive) return;
    if (message ? peer_stage < 0 || peer_stage >= plan_.pp : !span.group.has_value()) return;
    const Group group = message ? Group::Pipeline : *span.group;
    const std::int64_t members = message ? 2 : group_size(group, plan_);
    if (members < 2) return;
    // Servers on the nodes of all workers get, and hand out, a part of what each rank has. The map
    // has no further nodes.
    const bool serves = is_server_transfer(span.kind);
    if (serves && plan_.replicas.server_place == ServerPlace::Dedicated) return;
    const bool as_it_is =
        message || span.kind == OpKind::AllToAll || span.kind == OpKind::RingShift;
    const OpKind shape = serves ? OpKind::AllToAll : as_it_is ? span.kind : OpKind::AllReduce;
    const Bytes sent = serves ? span.bytes : sent_bytes(span.kind, span.bytes, members);
    traffic_.transfers_.push_back({span.start.value(), span.end().value(),
                                   pattern(stage, group, shape, message ? peer_stage : -1),
                                   sent.value()});
    traffic_.end_ = std::max(traffic_.end_, span.end().value());
  }

  std::uint32_t pattern(std::int64_t stage, Group group, OpKind shape, std::int64_t peer_stage) {
    for (std::uint32_t i = 0; i < traffic_.patterns_.size(); ++i) {
      const Pattern& known = traffic_.patterns_[i];
      if (known.stage == stage && known.group == group && known.shape == shape &&
          known.peer_stage == peer_stage)
        return i;
    }
    Pattern made{stage, group, shape, peer_stage, 0.0, {}};
    if (shape == OpKind::Send) {
      load_messages(made);
    } else {
      load_groups(made);
    }
    for (LinkIndex link = 0; link < load_of_link_.size(); ++link) {
      if (load_of_link_[link] == 0.0) continue;
      made.loads.emplace_back(link, static_cast<float>(load_of_link_[link]));
      load_of_link_[link] = 0.0;
    }
    traffic_.patterns_.push_back(std::move(made));
    return static_cast<std::uint32_t>(traffic_.patterns_.size() - 1);
  }

  void load_messages(Pattern& pattern) {
    for (std::int64_t i = 0; i < grid_.stage_size(pattern.stage); ++i) {
      send(grid_.rank_at({pattern.stage, i}), grid_.rank_at({pattern.peer_stage, i}), 1.0);
      pattern.senders += 1.0;
    }
  }

  // Counts the sends of ranks of this stage only: other stages have spans of their own.
  void load_groups(Pattern& pattern) {
    const GroupTable& table = table_of(pattern.group);
    for (std::uint32_t group = 0; group < table.groups(); ++group) {
      const auto members = table.members_of(group);
      if (members.size() < 2) continue;
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (grid_.locate(members[i]).stage != pattern.stage) continue;
        pattern.senders += 1.0;
        if (pattern.shape == OpKind::AllToAll) {
          send_to_all(members, i);
        } else if (pattern.shape == OpKind::RingShift) {
          send(members[i], members[(i + 1) % members.size()], 1.0);
        } else {
          for (const Hop& hop : ring_hops(members, i, map_.domain_size()))
            send(members[i], hop.to, hop.share);
        }
      }
    }
  }

  void send_to_all(std::span<const std::int32_t> members, std::size_t i) {
    const double share = 1.0 / static_cast<double>(members.size() - 1);
    for (std::size_t other = 0; other < members.size(); ++other) {
      if (other != i) send(members[i], members[other], share);
    }
  }

  void send(std::int64_t from, std::int64_t to, double share) {
    map_.topology().route(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), route_);
    for (const sim::RouteLink& hop : route_) load_of_link_[hop.link] += share * hop.share;
  }

  const GroupTable& table_of(Group group) {
    auto& table = tables_[group];
    if (!table) table = grid_.table(group);
    return *table;
  }

  const ClusterMap& map_;
  const Plan& plan_;
  RankGrid grid_;
  LinkTraffic& traffic_;
  EnumArray<Group, std::optional<GroupTable>> tables_;
  std::vector<double> load_of_link_;
  std::vector<sim::RouteLink> route_;
};

LinkTraffic::LinkTraffic(const ClusterMap& map, const Plan& plan, const Timeline& timeline)
    : links_(map.topology().links().size()) {
  Builder(map, plan, *this).add(timeline);
}

std::vector<double> LinkTraffic::sums(double from, double to) const {
  std::vector<double> sums(patterns_.size(), 0.0);
  for (const Transfer& transfer : transfers_) {
    const double first = std::max(from, transfer.start), last = std::min(to, transfer.end);
    if (last < first) continue;
    const double length = transfer.end - transfer.start;
    sums[transfer.pattern] += transfer.bytes * (length > 0.0 ? (last - first) / length : 1.0);
  }
  return sums;
}

std::vector<Bytes> LinkTraffic::bytes(double from, double to) const {
  std::vector<Bytes> bytes(links_);
  const std::vector<double> sums = this->sums(from, to);
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    for (const auto& [link, share] : patterns_[i].loads)
      bytes[link] += Bytes(sums[i] * static_cast<double>(share));
  }
  return bytes;
}

Bytes LinkTraffic::sent(double from, double to) const {
  const std::vector<double> sums = this->sums(from, to);
  Bytes total;
  for (std::size_t i = 0; i < patterns_.size(); ++i) total += Bytes(sums[i] * patterns_[i].senders);
  return total;
}

PlacedStep::PlacedStep(const ClusterSpec& cluster, const Plan& plan, const Timeline* timeline,
                       PoolStages stages_of_it)
    : stages(std::move(stages_of_it)),
      map(cluster, plan.world_size(), stages.first_rank),
      groups(plan, stages.first),
      traffic(map, plan, timeline == nullptr ? Timeline() : *timeline),
      bisection(map.topology().bisection_bandwidth()) {
  if (timeline == nullptr) return;
  for (const Span& span : timeline->spans) seconds = std::max(seconds, span.end().value());
  if (traffic.end() <= 0.0) return;
  const double part = seconds / kStepParts;
  for (int i = 0; i < kStepParts; ++i) {
    for (const double share : utilisation(map, traffic.bytes(i * part, (i + 1) * part), part))
      busiest = std::max(busiest, share);
  }
}

std::vector<double> utilisation(const ClusterMap& map, const std::vector<Bytes>& bytes,
                                double seconds) {
  std::vector<double> shares(bytes.size(), 0.0);
  if (seconds <= 0.0) return shares;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const BytesPerSecond capacity = map.topology().links()[i].capacity;
    if (capacity.value() > 0.0) shares[i] = bytes[i] / (capacity * Seconds(seconds));
  }
  return shares;
}

std::optional<LinkIndex> busiest_link(const std::vector<double>& utilisation) {
  const auto most = std::max_element(utilisation.begin(), utilisation.end());
  if (most == utilisation.end() || *most <= 0.0) return std::nullopt;
  return static_cast<LinkIndex>(most - utilisation.begin());
}

std::size_t links_as_busy(const std::vector<double>& utilisation) {
  const auto busiest = busiest_link(utilisation);
  if (!busiest) return 0;
  const double least = kAsBusy * utilisation[*busiest];
  return static_cast<std::size_t>(std::count_if(utilisation.begin(), utilisation.end(),
                                                [least](double share) { return share >= least; }));
}

const MapLine* busiest_line(const TopologyLayout& layout, const std::vector<double>& utilisation) {
  const auto busiest = busiest_link(utilisation);
  if (!busiest) return nullptr;
  const double least = kAsBusy * utilisation[*busiest];
  const MapLine* as_busy = nullptr;
  for (const MapLine& line : layout.lines) {
    for (const LinkIndex link : line.links) {
      if (link == *busiest) return &line;
      if (as_busy == nullptr && utilisation[link] >= least) as_busy = &line;
    }
  }
  return as_busy;
}

TextTable link_table(const ClusterMap& map, const std::vector<Bytes>& bytes,
                     const std::vector<double>& utilisation) {
  TextTable table;
  table.header = {u"From"_s,  u"To"_s,
                  u"Level"_s, u"Capacity (bytes/s)"_s,
                  u"Bytes"_s, u"Share of the capacity"_s};
  for (LinkIndex link = 0; link < bytes.size(); ++link) {
    const sim::TopologyLink& ends = map.topology().links()[link];
    table.rows.push_back({map.vertex_name(ends.from), map.vertex_name(ends.to),
                          QString::fromUtf8(name_of(map.level(link))),
                          exact_text(ends.capacity.value()), exact_text(bytes[link].value()),
                          exact_text(utilisation[link])});
  }
  return table;
}

}  // namespace shardwright::gui
