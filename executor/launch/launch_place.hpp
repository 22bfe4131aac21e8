// A process's rank, the world size and the rendezvous, read from the environment that a launcher
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
  std::int64_t local_rank = 0, local_world = 1;
  std::string master_address;
  std::uint16_t master_port = 0;
  // This process serves the store to the others.
  bool serves_rendezvous = false;
  // "torchrun", "Open MPI", "Slurm" or "shardwright".
  std::string launcher;

  bool operator==(const LaunchPlace&) const = default;
};

inline constexpr const char* kOwnLauncher = "shardwright";

// Thrown by a rank that contradicts its world size but knows its number and the rendezvous. Since
// the other ranks may wait for it, `place` describes it as they may see it.
struct RefusedRank : InputError {
  RefusedRank(InputError error, LaunchPlace where)
      : InputError(std::move(error)), place(std::move(where)) {}
  LaunchPlace place;
};

// Returns the value of an environment variable.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The port of the rendezvous if the launcher sets none.
inline constexpr std::uint16_t kDefaultPort = 29400;

// Reads the variables of our own launcher (SHARDWRIGHT_RANK …), torchrun (RANK, WORLD_SIZE …), Open
// MPI (OMPI_COMM_WORLD_RANK …) or Slurm (SLURM_PROCID …), in this order; returns nothing if none is
// set. MASTER_ADDR and MASTER_PORT apply under each launcher; since torchrun's own store uses
// MASTER_PORT, the rendezvous takes the next port. Throws InputError with every variable that is
// missing or wrong, and RefusedRank (with a world that contains this rank) if rank and rendezvous
// are none of them.
//
// `only_own` ignores other launchers, for a command that starts ranks on this machine even inside
// of a batch job.
std::optional<LaunchPlace> read_launch_place(const Environment& environment, bool only_own = false);

// Returns the first host of Slurm's node list: "gpu07" of "gpu[07-09,12],cpu3".
std::string first_slurm_host(const std::string& node_list);

}  // namespace shardwright::executor
