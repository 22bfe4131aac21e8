// Checks of pipeline messages, and of the collectives of groups that join stages.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/program/group_lattice.hpp"
#include "core/program/groups.hpp"
#include "core/program/program_checks.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

// One end of a message.
struct MessageEnd {
  std::int32_t layer = 0;
  std::int32_t microbatch = 0;
  double bytes = 0.0;
  std::uint32_t op = 0;

  // The key by which a message is known on its channel.
  std::tuple<std::int32_t, std::int32_t> key() const { return {layer, microbatch}; }
};

struct ChannelKey {
  std::int32_t from = 0, to = 0;
  bool gradient = false;

  auto operator<=>(const ChannelKey&) const = default;
};

struct Channel {
  // Sends and receives in order of issue.
  std::vector<MessageEnd> sends, receives;
};

// The number of stages of a replica.
std::size_t stages_of_replica(const Program& program) {
  return program.stages.size() / replica_parts(program.plan);
}

std::map<ChannelKey, Channel> list_messages(const Program& program, FindingList& findings) {
  std::map<ChannelKey, Channel> channels;
  const auto of_replica = static_cast<std::int32_t>(stages_of_replica(program));
  for (const RankProgram& rank : program.stages) {
    for_each_op(program, rank, [&](const PlacedOp& placed) {
      const bool sends = placed.op.kind == OpKind::Send;
      if (!sends && placed.op.kind != OpKind::Receive) return;
      const auto& work = std::get<CommunicationWork>(placed.op.work);
      const std::int32_t peer = rank.stage + work.peer_offset;
      if (peer < 0 || peer / of_replica != rank.stage / of_replica || peer == rank.stage) {
        findings.add(FindingKind::Message, rank.stage, placed.number,
                     fmt::format("{}: there is no stage {} to talk to", describe(placed), peer));
        return;
      }
      const bool gradient =
          placed.op.stream == Stream::SendGradient || placed.op.stream == Stream::ReceiveGradient;
      const MessageEnd end{placed.call.layer, placed.call.microbatch, work.bytes.value(),
                           placed.number};
      if (sends) {
        channels[{rank.stage, peer, gradient}].sends.push_back(end);
      } else {
        channels[{peer, rank.stage, gradient}].receives.push_back(end);
      }
    });
  }
  return channels;
}

// Finds what one end has and the other lacks, in lists sorted by key; true if both have the same.
bool match(const ChannelKey& key, Channel channel, FindingList& findings) {
  const auto by_key = [](const MessageEnd& a, const MessageEnd& b) { return a.key() < b.key(); };
  std::ranges::stable_sort(channel.sends, by_key);
  std::ranges::stable_sort(channel.receives, by_key);
  const auto complain = [&](std::int32_t stage, const MessageEnd& end, const char* text) {
    findings.add(FindingKind::Message, stage, end.op,
                 fmt::format("{} of layer {}, microbatch {} from stage {} to {}: {}",
                             key.gradient ? "gradient" : "activation", end.layer, end.microbatch,
                             key.from, key.to, text));
    return false;
  };
  bool good = true;
  auto send = channel.sends.begin();
  auto receive = channel.receives.begin();
  while (send != channel.sends.end() || receive != channel.receives.end()) {
    if (receive == channel.receives.end() ||
        (send != channel.sends.end() && send->key() < receive->key())) {
      good = complain(key.from, *send++, "sent, but not received");
    } else if (send == channel.sends.end() || receive->key() < send->key()) {
      good = complain(key.to, *receive++, "received, but not sent");
    } else {
      if (send->bytes != receive->bytes)
        good = complain(key.to, *receive, "received with another size than sent");
      ++send;
      ++receive;
    }
  }
  return good;
}

void check_order(const ChannelKey& key, const Channel& channel, FindingList& findings) {
  for (std::size_t i = 0; i < channel.sends.size(); ++i) {
    const MessageEnd& send = channel.sends[i];
    const MessageEnd& receive = channel.receives[i];
    if (send.key() == receive.key()) continue;
    findings.add(
        FindingKind::Order, key.to, receive.op,
        fmt::format("message {} from stage {}: sent for layer {}, microbatch {}, received "
                    "for layer {}, microbatch {}",
                    i, key.from, send.layer, send.microbatch, receive.layer, receive.microbatch));
    return;
  }
}

// A collective as all members must issue it.
struct IssuedCollective {
  OpKind kind = OpKind::AllReduce;
  double bytes = 0.0;
  std::uint32_t op = 0;

  bool matches(const IssuedCollective& other) const {
    return kind == other.kind && bytes == other.bytes;
  }
};

using CollectiveList = std::vector<IssuedCollective>;

void compare(Group group, std::int32_t stage, const CollectiveList& expected,
             const CollectiveList& found, FindingList& findings) {
  const auto alike = [](const IssuedCollective& a, const IssuedCollective& b) {
    return a.matches(b);
  };
  const auto [a, b] =
      std::mismatch(expected.begin(), expected.end(), found.begin(), found.end(), alike);
  if (a == expected.end() && b == found.end()) return;
  findings.add(FindingKind::Collective, stage, b == found.end() ? 0 : b->op,
               fmt::format("collective {} of group {} differs from that of its first member",
                           a - expected.begin(), name_of(group)));
}

// Lists collectives by stage, in order of issue.
std::vector<CollectiveList> list_collectives(const Program& program, Group group) {
  std::vector<CollectiveList> issued(program.stages.size());
  for (const RankProgram& rank : program.stages) {
    for_each_op(program, rank, [&](const PlacedOp& placed) {
      const auto* work = std::get_if<CommunicationWork>(&placed.op.work);
      if (work == nullptr || work->group != group) return;
      issued[static_cast<std::size_t>(rank.stage)].push_back(
          {placed.op.kind, work->bytes.value(), placed.number});
    });
  }
  return issued;
}

// Each stage and its mirror image along the pipeline.
void check_mirrors(const Program& program, FindingList& findings) {
  const std::vector<CollectiveList> issued = list_collectives(program, Group::Mirror);
  const std::size_t of_replica = stages_of_replica(program);
  for (std::size_t s = 0; s < issued.size(); ++s) {
    const std::size_t mirror = s - s % of_replica + of_replica - 1 - s % of_replica;
    compare(Group::Mirror, static_cast<std::int32_t>(s), issued[mirror], issued[s], findings);
  }
}

// Each stage of replicas on further pools, and the same stage of those on the first one.
void check_replicas(const Program& program, FindingList& findings) {
  const std::size_t of_replica = stages_of_replica(program);
  for (const Group group : enumerators<Group>()) {
    if (!joins_pools_of_replicas(group, program.plan)) continue;
    const std::vector<CollectiveList> issued = list_collectives(program, group);
    for (std::size_t s = of_replica; s < issued.size(); ++s)
      compare(group, static_cast<std::int32_t>(s), issued[s % of_replica], issued[s], findings);
  }
}

// `group` joins stages: all of a replica, or those two that share an embedding. `issued`: the
// collectives of all stages, those of the replica beginning with stage `first`.
void check_collectives(const Program& program, Group group, std::size_t first,
                       const std::vector<CollectiveList>& issued, FindingList& findings) {
  std::vector<std::size_t> members;
  for (std::size_t s = first; s < first + stages_of_replica(program); ++s) {
    if (group == Group::ModelParallel || !issued[s].empty()) members.push_back(s);
  }
  if (members.empty()) return;
  const auto size = static_cast<std::size_t>(group_size(Group::EmbeddingTie, program.plan));
  if (group == Group::EmbeddingTie && members.size() != size) {
    findings.add(FindingKind::Collective, static_cast<std::int32_t>(members.front()), 0,
                 fmt::format("{} stages tie their embeddings", members.size()));
    return;
  }
  for (const std::size_t s : members) {
    compare(group, static_cast<std::int32_t>(s), issued[members.front()], issued[s], findings);
  }
}

}  // namespace

void check_exchanges(const Program& program, FindingList& findings) {
  for (const auto& [key, channel] : list_messages(program, findings)) {
    if (match(key, channel, findings)) check_order(key, channel, findings);
  }
  for (const Group group : {Group::EmbeddingTie, Group::ModelParallel}) {
    const std::vector<CollectiveList> issued = list_collectives(program, group);
    for (std::size_t s = 0; s < issued.size(); s += stages_of_replica(program))
      check_collectives(program, group, s, issued, findings);
  }
  check_mirrors(program, findings);
  check_replicas(program, findings);
}

}  // namespace shardwright
