#include "sim/step/shared_device.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace shardwright::sim {

void SharedDevice::queue(Stream stream, const Collective& collective) {
  const auto index = static_cast<std::size_t>(stream);
  Queue& queue = queues_[index];
  if (queue.empty()) {
    queue.waiting.clear();
    queue.first = 0;
    busy_.push_back(index);
  }
  queue.waiting.push_back({collective});
  if (collective.after != kNoOp) ++held_;
  // A collective that began in the settled past and that nothing delays is settled so far, or
  // altogether.
  if (queue.waiting.size() - queue.first > 1 || !may_begin(queue)) return;
  const double start = std::max(collective.start.ready, queue.free);
  if (start >= now_) return;
  begin(queue);
  if (queue.head().end <= now_) end_head(index, queue.head().end);
}

bool SharedDevice::is_queued(std::uint32_t op) const {
  return std::any_of(busy_.begin(), busy_.end(), [this, op](std::size_t stream) {
    const Queue& queue = queues_[stream];
    const auto first = queue.waiting.begin() + static_cast<std::ptrdiff_t>(queue.first);
    const auto found = std::lower_bound(
        first, queue.waiting.end(), op,
        [](const Running& each, std::uint32_t number) { return each.collective.op < number; });
    return found != queue.waiting.end() && found->collective.op == op;
  });
}

bool SharedDevice::has_queued(Stream stream) const {
  return !queues_[static_cast<std::size_t>(stream)].empty();
}

double SharedDevice::run_kernel(double start, double duration) {
  double end = start < now_ ? past_kernel_end(start, duration) : start + duration;
  while (now_ < start && !busy_.empty()) advance(nullptr, start);
  std::erase_if(activity_, [start](const Interval& each) { return each.finish <= start; });
  now_ = std::max(now_, start);
  while (now_ < end && !busy_.empty()) advance(&end, kNever);
  now_ = std::max(now_, end);
  return end;
}

void SharedDevice::settle(std::uint32_t op) {
  while (is_queued(op)) advance(nullptr, kNever);
}

void SharedDevice::settle(Stream stream) {
  while (has_queued(stream)) advance(nullptr, kNever);
}

void SharedDevice::settle_all() {
  while (!busy_.empty()) advance(nullptr, kNever);
}

void SharedDevice::go_on_as(const SharedDevice& other, double start, std::uint32_t first_op) {
  for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
    const Queue& from = other.queues_[stream];
    Queue& queue = queues_[stream];
    if (from.before != kNoOp) {
      queue.free = start + from.free;
      queue.before = first_op + from.before;
    }
    if (from.empty()) continue;
    queue.waiting.assign(from.waiting.begin() + static_cast<std::ptrdiff_t>(from.first),
                         from.waiting.end());
    queue.first = 0;
    for (Running& each : queue.waiting) each.shift(start, first_op);
  }
  busy_ = other.busy_;
  held_ = other.held_;
  activity_.clear();
  for (const auto& [from, to] : other.activity_) activity_.push_back({start + from, start + to});
  if (other.now_ > 0.0) now_ = start + other.now_;
}

void SharedDevice::Running::shift(double later, std::uint32_t first_op) {
  start += later;
  end += later;
  collective.op += first_op;
  collective.start.ready += later;
  if (collective.start.cause != kNoOp) collective.start.cause += first_op;
  if (collective.after != kNoOp) collective.after += first_op;
}

bool SharedDevice::may_begin(const Queue& queue) {
  return queue.head().collective.after == kNoOp;
}

void SharedDevice::begin(Queue& queue) {
  Running& head = queue.head();
  OpStart& start = head.collective.start;
  start = OpStart::issued(start.ready, queue.free, start.cause, queue.before);
  head.start = start.ready;
  head.end = head.start + head.collective.duration;
}

void SharedDevice::end_head(std::size_t stream, double finish) {
  Queue& queue = queues_[stream];
  const Running& head = queue.head();
  const std::uint32_t op = head.collective.op;
  ended_.push_back({op, static_cast<Stream>(stream), finish,
                    std::max(0.0, finish - (head.start + head.collective.duration)),
                    head.collective.start.cause});
  queue.free = finish;
  queue.before = op;
  if (++queue.first == queue.waiting.size()) std::erase(busy_, stream);
  if (held_ > 0) release(op, finish);
}

// Lets those go on that wait for the collective, which has ended.
void SharedDevice::release(std::uint32_t op, double finish) {
  for (const std::size_t stream : busy_) {
    Queue& queue = queues_[stream];
    for (std::size_t i = queue.first; i < queue.waiting.size(); ++i) {
      Collective& each = queue.waiting[i].collective;
      if (each.after != op) continue;
      each.after = kNoOp;
      --held_;
      each.start.wait_for(finish, op);
    }
  }
}

// The first collectives of their queues that have come to their turn by now.
void SharedDevice::find_active() {
  active_.clear();
  for (const std::size_t stream : busy_) {
    Queue& queue = queues_[stream];
    if (!may_begin(queue)) continue;
    if (queue.head().start == kNever &&
        std::max(queue.head().collective.start.ready, queue.free) <= now_)
      begin(queue);
    if (queue.head().start <= now_) active_.push_back(stream);
  }
}

double SharedDevice::share_of(std::size_t i, std::size_t port) const {
  return queues_[active_[i]].head().collective.port.*kPorts[port];
}

bool SharedDevice::overfills(std::size_t port) const {
  double sum = 0.0;
  for (std::size_t i = 0; i < active_.size(); ++i) sum += rates_[i] * share_of(i, port);
  return sum > 1.0;
}

// The rates that the ports but `but` leave, at the given levels.
void SharedDevice::limit_rates(double alone, const PortLevels& levels, std::size_t but) {
  for (std::size_t i = 0; i < active_.size(); ++i) {
    rates_[i] = alone;
    for (std::size_t port = 0; port < kPorts.size(); ++port) {
      if (port != but && rates_[i] * share_of(i, port) > levels[port])
        rates_[i] = levels[port] / share_of(i, port);
    }
  }
}

// The share of a port that each collective gets which would fill more of it, if the others have
// what their rates let them fill; infinite, if there is enough for all.
double SharedDevice::fair_level(std::size_t port) {
  wanted_.clear();
  for (std::size_t i = 0; i < active_.size(); ++i) wanted_.push_back(rates_[i] * share_of(i, port));
  std::sort(wanted_.begin(), wanted_.end());
  double left = 1.0;
  auto open = static_cast<double>(wanted_.size());
  for (const double wanted : wanted_) {
    if (wanted > left / open) return left / open;
    left -= wanted;
    open -= 1.0;
  }
  return kNever;
}

// Max-min fair: what slows a collective down is a full port, of which no other one has more.
void SharedDevice::find_rates(bool beside_kernel) {
  const double alone = beside_kernel ? 1.0 / (1.0 + contention_.collectives) : 1.0;
  rates_.assign(active_.size(), alone);
  if (active_.size() < 2 || (!overfills(kScaleUp) && !overfills(kNic))) return;
  // A collective that is slowed down at one port takes less of the other: the level of the one that
  // is looked at first rises from round to round, the other one's falls.
  constexpr int kMostRounds = 40;
  PortLevels levels, before{};
  levels.fill(kNever);
  for (int round = 0; round < kMostRounds && levels != before; ++round) {
    before = levels;
    for (std::size_t port = 0; port < kPorts.size(); ++port) {
      limit_rates(alone, levels, port);
      levels[port] = fair_level(port);
    }
  }
  limit_rates(alone, levels, kPorts.size());
}

// The end at this rate of a collective that ends at `end` at full rate.
double SharedDevice::end_at(double rate, double end) const {
  return rate == 1.0 ? std::max(now_, end) : now_ + std::max(0.0, end - now_) / rate;
}

void SharedDevice::advance(double* kernel_end, double limit) {
  find_active();
  find_rates(kernel_end != nullptr);
  const double kernel_rate =
      kernel_end == nullptr || active_.empty() ? 1.0 : 1.0 / (1.0 + contention_.kernels);
  double next = kernel_end == nullptr ? limit : end_at(kernel_rate, *kernel_end);
  const double kernel_through = next;
  for (const std::size_t stream : busy_) {
    const Queue& queue = queues_[stream];
    if (may_begin(queue) && queue.head().start == kNever)
      next = std::min(next, std::max(queue.head().collective.start.ready, queue.free));
  }
  std::size_t first = active_.size();
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const double finish = end_at(rates_[i], queues_[active_[i]].head().end);
    if (finish > next) continue;
    next = finish;
    first = i;
  }
  SHARDWRIGHT_CHECK(next < kNever, "collectives of one device wait for each other");
  const double passed = next - now_;
  if (kernel_end != nullptr)
    *kernel_end = next == kernel_through ? next : *kernel_end + passed * (1.0 - kernel_rate);
  for (std::size_t i = 0; i < active_.size(); ++i)
    queues_[active_[i]].head().end += passed * (1.0 - rates_[i]);
  if (kernel_end == nullptr && !active_.empty()) remember_activity(next);
  now_ = next;
  if (first < active_.size()) end_head(active_[first], next);
}

void SharedDevice::remember_activity(double until) {
  if (!activity_.empty() && activity_.back().finish == now_) {
    activity_.back().finish = until;
  } else {
    activity_.push_back({now_, until});
  }
}

// The end of a kernel that begins in the settled past, as far as that reaches.
double SharedDevice::past_kernel_end(double start, double duration) {
  const double stretch = 1.0 + contention_.kernels;
  double end = start + duration;
  for (const auto& [from, to] : activity_) {
    const double begin = std::max(from, start);
    if (to <= begin) continue;
    if (end <= begin) break;
    const double beside = std::min(to - begin, (end - begin) * stretch);
    end += beside * (1.0 - 1.0 / stretch);
  }
  return end;
}

}  // namespace shardwright::sim
