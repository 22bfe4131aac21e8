#include "sim/network/bottleneck_clocks.hpp"

#include <algorithm>

namespace shardwright::sim {
namespace {

// A relative difference above the rounding of a sum of two.
constexpr double kRounding = 1e-15;

}  // namespace

void BottleneckClocks::set_level(LinkIndex link, double level, double now) {
  Clock& clock = clocks_[link];
  clock.served = served_at(clock, now);
  clock.updated = now;
  clock.level = level;
  note_change(link);
}

void BottleneckClocks::join(PathIndex path, LinkIndex link, double served, double target,
                            double now) {
  Clock& clock = clocks_[link];
  if (clock.waiting.empty()) {
    clock.served = 0.0;
    clock.updated = now;
  }
  const double joined = served_at(clock, now) - served;
  const auto position = static_cast<std::uint32_t>(clock.waiting.size());
  paths_[path] = {link, position, joined};
  clock.waiting.emplace_back();
  place(clock, position, {joined + target, path});
  if (paths_[path].position == 0) note_change(link);
}

void BottleneckClocks::leave(PathIndex path) {
  PathPlace& left = paths_[path];
  Clock& clock = clocks_[left.link];
  if (left.position == 0) note_change(left.link);
  const Waiting last = clock.waiting.back();
  clock.waiting.pop_back();
  if (last.path != path) place(clock, left.position, last);
  left.link = FlowNetwork::kNone;
}

double BottleneckClocks::served(PathIndex path, double now) const {
  return served_at(clocks_[paths_[path].link], now) - paths_[path].joined;
}

void BottleneckClocks::set_target(PathIndex path, double target) {
  const PathPlace& at = paths_[path];
  Clock& clock = clocks_[at.link];
  const bool was_first = at.position == 0;
  place(clock, at.position, {at.joined + target, path});
  if (was_first || at.position == 0) note_change(at.link);
}

double BottleneckClocks::first_time(LinkIndex link) const {
  const Clock& clock = clocks_[link];
  const double left = std::max(0.0, clock.waiting.front().target - clock.served);
  return clock.updated + left / clock.level;
}

void BottleneckClocks::go_to_first(LinkIndex link, double now) {
  Clock& clock = clocks_[link];
  clock.served = clock.waiting.front().target;
  clock.updated = now;
  note_change(link);
}

bool BottleneckClocks::has_reached_first(LinkIndex link, double tolerance) const {
  const Clock& clock = clocks_[link];
  return clock.waiting.front().target <= clock.served * (1.0 + kRounding) + clock.level * tolerance;
}

bool BottleneckClocks::has_served(PathIndex path, double bytes, double tolerance) const {
  const PathPlace& at = paths_[path];
  const Clock& clock = clocks_[at.link];
  return at.joined + bytes <= clock.served * (1.0 + kRounding) + clock.level * tolerance;
}

const std::vector<LinkIndex>& BottleneckClocks::take_changed() {
  taken_.swap(changed_);
  changed_.clear();
  for (const LinkIndex link : taken_) clocks_[link].changed = false;
  return taken_;
}

void BottleneckClocks::note_change(LinkIndex link) {
  if (clocks_[link].changed) return;
  clocks_[link].changed = true;
  changed_.push_back(link);
}

void BottleneckClocks::put(Clock& clock, std::size_t position, const Waiting& waiting) {
  clock.waiting[position] = waiting;
  paths_[waiting.path].position = static_cast<std::uint32_t>(position);
}

// Fills a hole at a position of the heap, or whatever is there, and lets the newcomer rise or sink.
void BottleneckClocks::place(Clock& clock, std::size_t position, const Waiting& waiting) {
  auto& heap = clock.waiting;
  while (position > 0 && waiting.target < heap[(position - 1) / 2].target) {
    put(clock, position, heap[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  for (std::size_t child = 2 * position + 1; child < heap.size(); child = 2 * position + 1) {
    if (child + 1 < heap.size() && heap[child + 1].target < heap[child].target) ++child;
    if (waiting.target <= heap[child].target) break;
    put(clock, position, heap[child]);
    position = child;
  }
  put(clock, position, waiting);
}

}  // namespace shardwright::sim
