// Which rank of how many a process is: from its flags, or from the environment that a launcher
// sets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace shardwright::executor {

struct LaunchPlace {
  std::int64_t rank = 0, world = 1;
  std::int64_t local_rank = 0, local_world = 1;  // among those of this host
  std::string master_address;
  std::uint16_t master_port = 0;
  bool serves_rendezvous = false;  // this process is the one that the others find
  std::string launcher;            // "torchrun", "Open MPI", "Slurm", "shardwright"

  bool operator==(const LaunchPlace&) const = default;
};

inline constexpr const char* kOwnLauncher = "shardwright";

// A rank that cannot be one of as many as it was told of, where it is known which one it is and
// where the ranks meet. The others, told otherwise, may wait for it: `place` is as they may see it.
struct RefusedRank : InputError {
  RefusedRank(InputError error, LaunchPlace where)
      : InputError(std::move(error)), place(std::move(where)) {}
  LaunchPlace place;
};

// The value of an environment variable.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The port of the rendezvous where the launcher names none.
inline constexpr std::uint16_t kDefaultPort = 29400;

// Nothing if no launcher is seen. Reads, in this order: what our own launcher sets
// (SHARDWRIGHT_RANK …), torchrun (RANK, WORLD_SIZE …), Open MPI (OMPI_COMM_WORLD_RANK …), Slurm
// (SLURM_PROCID …). Throws InputError with every variable that is missing or wrong, RefusedRank (of
// a world that this rank is in) where the rank and where to meet are none of them. torchrun's own
// store has MASTER_PORT, so the rendezvous has the port after it; MASTER_ADDR and MASTER_PORT are
// heeded under each launcher.
//
// `only_own`: no launcher but ours counts, for a command that starts ranks on this machine wherever
// it runs itself (in a batch job, say).
std::optional<LaunchPlace> read_launch_place(const Environment& environment, bool only_own = false);

// The first host of Slurm's list of nodes: "gpu[07-09,12],cpu3" is "gpu07".
std::string first_slurm_host(const std::string& node_list);

}  // namespace shardwright::executor
