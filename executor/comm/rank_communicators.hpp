// The communicators that one rank of a plan opens: one for each kind of group that joins it with
// others, and one that joins all ranks.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "core/program/program.hpp"
#include "executor/comm/communicator.hpp"

namespace shardwright::executor {

// Opens the communicator of `size` members that `key` names, in which this rank has the number
// `rank`.
using OpenCommunicator =
    std::function<std::unique_ptr<Communicator>(const std::string& key, int rank, int size)>;

class RankCommunicators {
 public:
  // Opens, in the same order on every rank, what the ops of the program use.
  RankCommunicators(const Program& program, std::int64_t rank, const OpenCommunicator& open);

  // Of a group with several members.
  Communicator& of(Group group) const;
  // All ranks; null in a world of one.
  Communicator* world() const { return world_.get(); }
  // Of all of them.
  void check();
  void abort();

 private:
  std::array<std::unique_ptr<Communicator>, kGroups> groups_;
  std::unique_ptr<Communicator> world_;
};

}  // namespace shardwright::executor
