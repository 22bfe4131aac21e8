#include "sim/step/shared_transfers.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

namespace {

constexpr std::uint32_t kNoTransfer = UINT32_MAX;

// FlowNetwork's rates are right to 1e-9: a flow that lacks less has all that it wants.
constexpr double kFullRate = 1.0 - 2e-9;

}  // namespace

SharedTransfers::RouteId SharedTransfers::add_route(const TransferShape& shape) {
  SHARDWRIGHT_CHECK(!shape.rails.empty(), "a transfer within one node shares no links");
  const auto id = static_cast<RouteId>(routes_.size());
  Route route;
  route.first_path = static_cast<PathIndex>(network_.path_count());
  route.paths = static_cast<std::uint32_t>(shape.rails.size());
  for (const Rail& rail : shape.rails) {
    network_.add_path(rail.route, rail.rate);
    route_of_path_.push_back(id);
    rate_alone_.push_back(rail.rate.value());
  }
  routes_.push_back(route);
  return id;
}

void SharedTransfers::begin(TransferOwner owner, RouteId route, double start, double duration) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(transfers_.size()));
    transfers_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Transfer& transfer = transfers_[index];
  transfer = Transfer{};
  transfer.owner = owner;
  transfer.route = route;
  transfer.duration = transfer.remaining = duration;
  // Except for rounding they are in order.
  transfer.start = std::max(start, events_.now().value());
  events_.schedule_at(Seconds(transfer.start), EventPriority::Start, {EventKind::Start, index});
}

std::optional<SharedTransfers::Finished> SharedTransfers::next() {
  while (true) {
    const auto time = events_.next_time();
    if (changed_ && (!time || *time > events_.now())) {
      share_links();
      continue;
    }
    if (!time) return std::nullopt;
    const auto event = events_.pop();
    if (event.payload.kind == EventKind::Finish) return finish(event.payload.transfer);
    start(event.payload.transfer);
  }
}

void SharedTransfers::start(std::uint32_t index) {
  Transfer& transfer = transfers_[index];
  Route& route = routes_[transfer.route];
  SHARDWRIGHT_CHECK(route.transfer == kNoTransfer, "two transfers are on one route");
  route.transfer = index;
  transfer.since = transfer.start;
  for (std::uint32_t i = 0; i < route.paths; ++i) network_.add_flows(route.first_path + i);
  fresh_.push_back(index);
  changed_ = true;
}

SharedTransfers::Finished SharedTransfers::finish(std::uint32_t index) {
  const Transfer& transfer = transfers_[index];
  Route& route = routes_[transfer.route];
  route.transfer = kNoTransfer;
  for (std::uint32_t i = 0; i < route.paths; ++i) network_.remove_flows(route.first_path + i);
  changed_ = true;
  route.ended += transfer.duration;
  const double time = events_.now().value();
  lost_ += std::max(0.0, time - transfer.start - transfer.duration);
  free_.push_back(index);
  return {transfer.owner, transfer.start, time};
}

void SharedTransfers::share_links() {
  changed_ = false;
  for (const PathIndex path : network_.resolve()) {
    const std::uint32_t index = routes_[route_of_path_[path]].transfer;
    if (index != kNoTransfer) update(index);
  }
  for (const std::uint32_t index : fresh_) update(index);
  fresh_.clear();
}

void SharedTransfers::update(std::uint32_t index) {
  Transfer& transfer = transfers_[index];
  const double progress = progress_on(routes_[transfer.route]);
  if (progress == transfer.progress) return;
  const double now = events_.now().value();
  transfer.remaining =
      std::max(0.0, transfer.remaining - transfer.progress * (now - transfer.since));
  transfer.progress = progress;
  transfer.since = now;
  const Seconds end(now + transfer.remaining / progress);
  if (!events_.reschedule(transfer.finish, end)) {
    transfer.finish =
        events_.schedule_at(end, EventPriority::Completion, {EventKind::Finish, index});
  }
}

double SharedTransfers::progress_on(const Route& route) const {
  double progress = 1.0;
  for (PathIndex path = route.first_path; path < route.first_path + route.paths; ++path)
    progress = std::min(progress, network_.rate(path).value() / rate_alone_[path]);
  return progress >= kFullRate ? 1.0 : progress;
}

void SharedTransfers::add_moved(RouteId route_id, std::vector<double>& bytes_by_link) const {
  const Route& route = routes_[route_id];
  double time = route.ended;
  if (route.transfer != kNoTransfer) {
    const Transfer& transfer = transfers_[route.transfer];
    const double since = events_.now().value() - transfer.since;
    time += transfer.duration - transfer.remaining + transfer.progress * since;
  }
  for (PathIndex path = route.first_path; path < route.first_path + route.paths; ++path) {
    for (const LinkIndex link : network_.route(path))
      bytes_by_link[link] += time * rate_alone_[path];
  }
}

TransferTimes::TransferTimes(const Plan& plan, const ClusterSpec& cluster,
                             const std::vector<TransferKind>& kinds, JobLinks links,
                             bool contention, bool slow_nics)
    : kinds_(kinds), links_(std::move(links)), contention_(contention) {
  const bool as_priced = !contention && !slow_nics;
  for (const TransferKind& kind : kinds)
    differs_.push_back(!as_priced && place(kind.group, plan, cluster).nodes > 1);
}

void TransferTimes::add_moved(std::vector<double>& bytes_by_link) const {
  for (const auto& [key, known] : known_) {
    if (known.route) links_.transfers->add_moved(*known.route, bytes_by_link);
  }
}

TransferTimes::Known TransferTimes::of(std::uint32_t kind, std::uint32_t instance,
                                       std::span<const std::int32_t> members) {
  if (!differs_[kind]) return {kinds_[kind].duration, std::nullopt};
  const std::uint64_t key = static_cast<std::uint64_t>(kind) << 32 | instance;
  const auto [found, added] = known_.try_emplace(key);
  if (added) {
    const TransferShape shape = links_.links.shape(kinds_[kind], members);
    found->second.duration = kinds_[kind].duration * shape.slowdown;
    if (contention_ && !shape.rails.empty())
      found->second.route = links_.transfers->add_route(shape);
  }
  return found->second;
}

}  // namespace shardwright::sim
