// The communicators that one rank of a plan opens: one for each kind of group that joins it with
// others, and one that joins all ranks.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/program/program.hpp"
#include "executor/comm/communicator.hpp"

namespace shardwright::executor {

// Opens the communicator of `size` members that `key` names, in which this rank has the number
// `rank`.
using OpenCommunicator =
    std::function<std::unique_ptr<Communicator>(const std::string& key, int rank, int size)>;

// Activations and their gradients pass each other in channels of their own.
int channel_of(Stream stream);

class RankCommunicators {
 public:
  // Opens, in the same order on every rank, what the ops of the program use.
  RankCommunicators(const Program& program, std::int64_t rank, const OpenCommunicator& open);

  // One small exchange in each group and channel that the program uses, and at last among all
  // ranks: what they make when they are first used is made then. All ranks call it while nothing
  // else runs. `number`: an fp64 of the kernels' device, finite; changed.
  void exchange_once(double* number, Queue queue);

  // Of a group with several members.
  Communicator& of(Group group) const;
  // All ranks; null in a world of one.
  Communicator* world() const { return world_.get(); }
  // Of all of them.
  void check();
  void abort();

 private:
  // Messages of the rank's stage, by the members' numbers.
  struct Channel {
    int sender = 0, receiver = 0, number = 0;
    Group group = Group::Pipeline;

    auto operator<=>(const Channel&) const = default;
  };
  static std::vector<Channel> channels_of(const Program& program, int stage);

  std::array<std::unique_ptr<Communicator>, kGroups> groups_;
  std::vector<Channel> channels_;  // ascending
  std::unique_ptr<Communicator> world_;
};

}  // namespace shardwright::executor
