#include "executor/launch/launch_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

namespace shardwright::executor {
namespace {

constexpr std::int64_t kMaxRanks = 1'000'000, kMaxPort = 65'534;

// The environment variables of a launcher.
struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
};

constexpr LauncherVariables kLaunchers[] = {
    {kOwnLauncher, "SHARDWRIGHT_RANK", "SHARDWRIGHT_WORLD_SIZE", "SHARDWRIGHT_LOCAL_RANK",
     "SHARDWRIGHT_LOCAL_WORLD_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

class EnvironmentReader {
 public:
  explicit EnvironmentReader(const Environment& environment)
      : environment_(environment), problems_("the environment") {}

  std::int64_t number(const std::string& name, std::int64_t least, std::int64_t most) {
    const std::optional<std::string> text = environment_(name);
    std::int64_t value = 0;
    if (text) {
      const char* end = text->data() + text->size();
      const auto [stop, error] = std::from_chars(text->data(), end, value);
      const bool is_number = error == std::errc() && stop == end;
      if (is_number && value >= least && value <= most) return value;
    }
    bad_.insert(name);
    problems_.add(name, text ? "\"" + *text + "\"" : "nothing",
                  fmt::format("an integer from {} to {}", least, most));
    return least;
  }

  std::int64_t number_or(const std::string& name, std::int64_t fallback, std::int64_t least,
                         std::int64_t most) {
    return environment_(name) ? number(name, least, most) : fallback;
  }

  void require(bool holds, const std::string& name, const std::string& found,
               const std::string& expected) {
    if (holds) return;
    bad_.insert(name);
    problems_.add(name, found, expected);
  }

  bool is_bad(const std::string& name) const { return bad_.contains(name); }
  void finish() const { problems_.throw_if_any(); }

 private:
  const Environment& environment_;
  ProblemList problems_;
  std::set<std::string> bad_;
};

// The ranks' hosts; a step may use only some of the job's.
constexpr const char* kSlurmHosts[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"};

std::string first_host_of_slurm(const Environment& environment, EnvironmentReader& reader) {
  for (const char* name : kSlurmHosts) {
    const std::string nodes = environment(name).value_or("");
    if (nodes.empty()) continue;
    reader.require(
        std::count(nodes.begin(), nodes.end(), '[') == std::count(nodes.begin(), nodes.end(), ']'),
        name, nodes, "a list of hosts whose brackets are closed");
    return first_slurm_host(nodes);
  }
  return "";
}

// Reads the address of the rendezvous: that of MASTER_ADDR and MASTER_PORT, or rank 0's host.
void read_master(const Environment& environment, EnvironmentReader& reader, LaunchPlace& place) {
  place.master_address = environment("MASTER_ADDR").value_or("");
  if (place.master_address.empty() && place.launcher == "Slurm")
    place.master_address = first_host_of_slurm(environment, reader);
  if (place.master_address.empty() && place.local_world == place.world)
    place.master_address = "127.0.0.1";
  reader.require(!place.master_address.empty(), "MASTER_ADDR", "nothing",
                 "the address of the host of rank 0");
  const auto port = reader.number_or("MASTER_PORT", kDefaultPort, 1, kMaxPort);
  const bool taken = place.launcher == "torchrun";
  place.master_port = static_cast<std::uint16_t>(port + (taken ? 1 : 0));
}

// Checks the rank number and throws all problems of the environment.
void check_number(EnvironmentReader& reader, const LauncherVariables& names,
                  const LaunchPlace& place) {
  const bool knows_hosts = std::none_of(std::begin(kSlurmHosts), std::end(kSlurmHosts),
                                        [&](const char* name) { return reader.is_bad(name); });
  const bool is_known = !reader.is_bad(names.rank) && !reader.is_bad("MASTER_ADDR") &&
                        !reader.is_bad("MASTER_PORT") && knows_hosts;
  const bool is_within = place.rank < place.world || reader.is_bad(names.world);
  reader.require(is_within, names.rank, std::to_string(place.rank),
                 fmt::format("less than {}, which {} says", place.world, names.world));
  try {
    reader.finish();
  } catch (const InputError& error) {
    if (!is_known) throw;
    LaunchPlace among_others = place;
    among_others.world = std::max(place.world, place.rank + 1);
    throw RefusedRank(error, among_others);
  }
}

}  // namespace

std::optional<LaunchPlace> read_launch_place(const Environment& environment, bool only_own) {
  for (const LauncherVariables& names : kLaunchers) {
    if (only_own && names.launcher != kOwnLauncher) break;
    if (!environment(names.rank)) continue;
    EnvironmentReader reader(environment);
    LaunchPlace place;
    place.launcher = names.launcher;
    place.world = reader.number(names.world, 1, kMaxRanks);
    place.rank = reader.number(names.rank, 0, kMaxRanks);
    place.local_rank = reader.number_or(names.local_rank, 0, 0, kMaxRanks);
    place.local_world = reader.number_or(names.local_world, 1, 1, kMaxRanks);
    read_master(environment, reader, place);
    // Our own launcher serves the rendezvous itself.
    place.serves_rendezvous = place.rank == 0 && place.launcher != kOwnLauncher;
    check_number(reader, names, place);
    return place;
  }
  return std::nullopt;
}

std::string first_slurm_host(const std::string& node_list) {
  const std::size_t end = node_list.find_first_of(",[");
  std::string host = node_list.substr(0, end);
  if (end == std::string::npos || node_list[end] == ',') return host;
  const std::size_t number_end = node_list.find_first_of("-,]", end + 1);
  host += node_list.substr(end + 1, number_end - end - 1);
  const std::size_t close = node_list.find(']', end);
  if (close == std::string::npos) return host;
  const std::size_t next = node_list.find(',', close);
  const std::size_t length = next == std::string::npos ? next : next - close - 1;
  return host + node_list.substr(close + 1, length);
}

}  // namespace shardwright::executor
