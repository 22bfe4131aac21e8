// Transfers that share links while they are under way.
//
// A transfer that would take D seconds alone progresses at the rate x(t) <= 1 of its slowest rail,
// x = min over its rails of (max-min fair rate / rate alone), and ends at
//
//   T  with  integral from its start to T of x(t) dt = D.
//
// If no link is overbooked, x = 1 throughout and T = start + D exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/network/flow_network.hpp"
#include "sim/step/lane_program.hpp"
#include "sim/step/node_links.hpp"

namespace shardwright::sim {

// The owner of a transfer; its meaning is the caller's.
struct TransferOwner {
  std::uint32_t kind = 0;
  std::uint32_t instance = 0;
  // The number of the job, of several on one network.
  std::uint32_t job = 0;
};

class SharedTransfers {
 public:
  using RouteId = std::uint32_t;

  struct Finished {
    TransferOwner owner;
    double start = 0.0, time = 0.0;
  };

  explicit SharedTransfers(const std::vector<BytesPerSecond>& capacities) : network_(capacities) {}

  // Makes known what a transfer of this shape uses. It has at least one rail. One transfer at a
  // time is on a route.
  RouteId add_route(const TransferShape& shape);

  // Begins a transfer at `start`, which is not before the time of the last finish.
  void begin(TransferOwner owner, RouteId route, double start, double duration);

  // Advances to the next transfer that ends and returns it; nothing if none is in progress.
  std::optional<Finished> next();

  // The bytes that the transfers on a route have moved over each link by now.
  void add_moved(RouteId route, std::vector<double>& bytes_by_link) const;

  // The time that sharing has cost, summed over the transfers that have ended.
  Seconds lost() const { return Seconds(lost_); }

 private:
  enum class EventKind : std::uint32_t { Start, Finish };
  struct Payload {
    EventKind kind;
    std::uint32_t transfer;
  };
  struct Route {
    PathIndex first_path = 0;
    std::uint32_t paths = 0;
    // The transfer that is under way.
    std::uint32_t transfer = UINT32_MAX;
    // The time at full rate of the transfers that have ended.
    double ended = 0.0;
  };
  struct Transfer {
    TransferOwner owner;
    RouteId route = 0;
    double duration = 0.0, start = 0.0;
    // Seconds at full rate that are left at `since`.
    double remaining = 0.0;
    double since = 0.0;
    // The progress per second.
    double progress = 0.0;
    EventId finish;
  };

  void start(std::uint32_t index);
  Finished finish(std::uint32_t index);
  void share_links();
  void update(std::uint32_t index);
  double progress_on(const Route& route) const;

  FlowNetwork network_;
  EventQueue<Payload> events_;
  std::vector<Route> routes_;
  std::vector<RouteId> route_of_path_;
  // The rate alone of each path.
  std::vector<double> rate_alone_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_;
  // Transfers that have started since links were shared out last.
  std::vector<std::uint32_t> fresh_;
  // True if links have to be shared out again.
  bool changed_ = false;
  double lost_ = 0.0;
};

// The links of a job, and the transfers that share them.
struct JobLinks {
  NodeLinks links;
  // Outlives this.
  SharedTransfers* transfers = nullptr;
  std::uint32_t job = 0;
};

class TransferTimes {
 public:
  struct Known {
    // Seconds without contention.
    double duration = 0.0;
    // The route, if it may have to share links.
    std::optional<SharedTransfers::RouteId> route;
  };

  // `kinds` outlives this. `slow_nics`: some NIC is slower than the prices take it to be.
  TransferTimes(const Plan& plan, const ClusterSpec& cluster,
                const std::vector<TransferKind>& kinds, JobLinks links, bool contention,
                bool slow_nics);

  // `instance` numbers the groups, or the channels, of one kind.
  Known of(std::uint32_t kind, std::uint32_t instance, std::span<const std::int32_t> members);

  SharedTransfers& shared() { return *links_.transfers; }
  std::uint32_t job() const { return links_.job; }

  // The bytes that all transfers have moved over each link by now.
  void add_moved(std::vector<double>& bytes_by_link) const;

 private:
  const std::vector<TransferKind>& kinds_;
  JobLinks links_;
  bool contention_ = false;
  // True for kinds whose instances take other times than the price.
  std::vector<bool> differs_;
  // Durations and routes by kind and instance.
  std::unordered_map<std::uint64_t, Known> known_;
};

}  // namespace shardwright::sim
