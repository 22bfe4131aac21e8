// The communicators of one rank: one for each kind of group with several members, and one for all
// ranks.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/program/program.hpp"
#include "executor/comm/communicator.hpp"

namespace shardwright::executor {

// Opens the communicator that `key` names, with `size` members of which this is member `rank`.
using OpenCommunicator =
    std::function<std::unique_ptr<Communicator>(const std::string& key, int rank, int size)>;

// Returns the channel of a stream: activations and gradients use separate channels.
int channel_of(Stream stream);

class RankCommunicators {
 public:
  // Opens the communicators that the program uses, in the same order on every rank.
  RankCommunicators(const Program& program, std::int64_t rank, const OpenCommunicator& open);

  // Runs one small collective or transfer in each group and channel, and one over all ranks, so
  // that connections are made now. All ranks call it while nothing else runs. `number` is a finite
  // fp64 value in the kernels' device memory and is changed.
  void warm_up(double* number, Queue queue);

  // Returns the communicator of a group with several members.
  Communicator& of(Group group) const;
  // The same, or null for a group of this rank alone.
  Communicator* find(Group group) const { return groups_[group].get(); }
  // Returns the communicator of all ranks, or null for a single rank.
  Communicator* world() const { return world_.get(); }
  // Visits the communicators of the groups, then that of all ranks.
  void for_each(const std::function<void(Communicator&)>& visit) const;

 private:
  // A channel of the rank's stage; `sender` and `receiver` are ranks in the group.
  struct Channel {
    int sender = 0, receiver = 0, number = 0;
    Group group = Group::Pipeline;

    auto operator<=>(const Channel&) const = default;
  };
  static std::vector<Channel> channels_of(const Program& program, int stage);

  EnumArray<Group, std::unique_ptr<Communicator>> groups_;
  std::vector<Channel> channels_;
  std::unique_ptr<Communicator> world_;
};

}  // namespace shardwright::executor
