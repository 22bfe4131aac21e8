#include "executor/comm/rank_communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/program/rank_grid.hpp"

namespace shardwright::executor {
namespace {

EnumArray<Group, bool> groups_used(const Program& program) {
  EnumArray<Group, bool> used{};
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      const auto* work = std::get_if<CommunicationWork>(&op.work);
      // Servers are no members of a group.
      if (work != nullptr && !is_server_transfer(op.kind)) used[work->group] = true;
    }
  }
  return used;
}

}  // namespace

int channel_of(Stream stream) {
  return stream == Stream::SendGradient || stream == Stream::ReceiveGradient ? 1 : 0;
}

std::vector<RankCommunicators::Channel> RankCommunicators::channels_of(const Program& program,
                                                                       int stage) {
  std::set<Channel> channels;
  for (const Call& call : program.stages[static_cast<std::size_t>(stage)].calls) {
    for (const Op& op : program.blocks[call.block].ops) {
      const bool sends = op.kind == OpKind::Send;
      if (!sends && op.kind != OpKind::Receive) continue;
      const auto& work = std::get<CommunicationWork>(op.work);
      const int own = stage % static_cast<int>(program.plan.pp), peer = own + work.peer_offset;
      channels.insert({sends ? own : peer, sends ? peer : own, channel_of(op.stream), work.group});
    }
  }
  return {channels.begin(), channels.end()};
}

// All members use the channels in the same order, which rules out a deadlock.
void RankCommunicators::warm_up(double* number, Queue queue) {
  for (const Channel& channel : channels_) {
    Communicator& group = of(channel.group);
    if (channel.sender == group.rank()) {
      group.send(number, sizeof *number, channel.receiver, channel.number, queue);
    } else {
      group.receive(number, sizeof *number, channel.sender, channel.number, queue);
    }
  }
  for_each([&](Communicator& group) {
    group.all_reduce(number, 1, Element::Float64, Reduction::Max, queue);
  });
}

RankCommunicators::RankCommunicators(const Program& program, std::int64_t rank,
                                     const OpenCommunicator& open) {
  const RankGrid grid(program.plan);
  channels_ = channels_of(program, static_cast<int>(grid.locate(rank).stage));
  if (grid.world_size() > 1)
    world_ = open("world", static_cast<int>(rank), static_cast<int>(grid.world_size()));
  const EnumArray<Group, bool> used = groups_used(program);
  for (const Group group : enumerators<Group>()) {
    if (!used[group]) continue;
    const GroupTable table = grid.table(group);
    const std::uint32_t number = table.group_of[static_cast<std::size_t>(rank)];
    const auto members = table.members_of(number);
    if (members.size() == 1) continue;
    const auto own = std::find(members.begin(), members.end(), rank) - members.begin();
    groups_[group] = open(fmt::format("{}.{}", name_of(group), number), static_cast<int>(own),
                          static_cast<int>(members.size()));
  }
}

Communicator& RankCommunicators::of(Group group) const {
  const auto& found = groups_[group];
  SHARDWRIGHT_CHECK(found != nullptr,
                    std::string("no communicator of the group ") + name_of(group));
  return *found;
}

void RankCommunicators::for_each(const std::function<void(Communicator&)>& visit) const {
  for (const auto& group : groups_) {
    if (group) visit(*group);
  }
  if (world_) visit(*world_);
}

}  // namespace shardwright::executor
