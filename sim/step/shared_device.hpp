// Kernels and collectives that run at the same time on one accelerator and take from each other.
//
// A collective's own kernels occupy streaming multiprocessors and memory bandwidth, and so do those
// that they run beside. Each is given the time that it takes alone, and progresses at a rate of at
// most one:
//
//   a kernel       1 / (1 + s)   while at least one collective runs
//   a collective   1 / (1 + c)   while a kernel runs, and no more than its max-min fair share of
//                                the accelerator's ports, to the scale-up network and to its part
//                                of the node's NICs, of which it fills shares alone
//                                (sim/cost/port_share.hpp)
//
// s and c are figures of the stack (`slowdown_ratio`, `collective_slowdown_ratio`). Kernels beside
// collectives were measured to take 19 % longer on average over models, batches and accelerators
// (A100, H100, MI210, MI250), up to 40 % ("Characterizing Compute-Communication Overlap in
// GPU-Accelerated Distributed Deep Learning", arXiv 2507.03114); a kernel of exactly one wave can
// lose half of its rate. Collectives beside kernels take longer too, up to twice as long
// (github.com/NVIDIA/nccl, issue 1433).
//
// Pipeline messages and copies to the host do not count: they use copy engines or few
// multiprocessors. Two collectives at once slow kernels no more than one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/op/op.hpp"
#include "core/program/op_start.hpp"
#include "sim/cost/port_share.hpp"

namespace shardwright::sim {

struct Contention {
  // The figure s above.
  double kernels = 0.0;
  // The figure c above.
  double collectives = 0.0;
};

// One accelerator, from the start of the step on. Times in seconds.
//
// The caller passes the ops in the order in which the host issues them. A kernel runs at once. A
// collective is queued, and its time is settled only when something needs it, because kernels and
// collectives that are issued later run beside it too. An op that is issued after the settled time,
// but would have begun before it, finds the collectives of that time where they are and does not
// slow them down.
class SharedDevice {
 public:
  struct Collective {
    // The number of the op.
    std::uint32_t op = kNoOp;
    OpStart start;
    // A queued collective that has to end before this one starts.
    std::uint32_t after = kNoOp;
    // Seconds that it takes alone.
    double duration = 0.0;
    // The shares of the ports that it fills alone.
    PortShare port;
  };

  struct Ended {
    std::uint32_t op = kNoOp;
    Stream stream = Stream::Compute;
    double finish = 0.0;
    // Seconds by which it took longer than its duration.
    double delay = 0.0;
    // The op whose finish decided when it started.
    std::uint32_t cause = kNoOp;
  };

  explicit SharedDevice(Contention contention) : contention_(contention) {}

  // Queues a collective behind those of the stream; the numbers of a stream's ops grow.
  void queue(Stream stream, const Collective& collective);
  bool is_queued(std::uint32_t op) const;
  bool has_queued(Stream stream) const;

  // Returns the end of a kernel that begins at `start` and takes `duration` alone. The one before
  // it has ended by then.
  double run_kernel(double start, double duration);

  // Goes on until the collective, the last one of the stream, or all have ended.
  void settle(std::uint32_t op);
  void settle(Stream stream);
  void settle_all();

  // True if nothing is queued and all before `time` is settled.
  bool is_idle(double time) const { return busy_.empty() && now_ <= time; }
  // Goes on, from `start` on, as `other` did from the start of the step on. Op 0 of that one is
  // `first_op` here. The device must be idle.
  void go_on_as(const SharedDevice& other, double start, std::uint32_t first_op);

  // The collectives that have ended since the last call, each once.
  std::vector<Ended>& ended() { return ended_; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr std::array kPorts = {&PortShare::scale_up, &PortShare::nic};
  static constexpr std::size_t kScaleUp = 0, kNic = 1;
  using PortLevels = std::array<double, kPorts.size()>;

  // A collective that ends at `end` at full rate; each moment below that puts `end` off.
  struct Running {
    Collective collective;
    double start = kNever;
    double end = kNever;

    void shift(double later, std::uint32_t first_op);
  };
  struct Queue {
    std::vector<Running> waiting;
    // The place of the first collective that has not ended.
    std::size_t first = 0;
    // The end of the one before it, and its number.
    double free = 0.0;
    std::uint32_t before = kNoOp;

    bool empty() const { return first == waiting.size(); }
    Running& head() { return waiting[first]; }
    const Running& head() const { return waiting[first]; }
  };
  struct Interval {
    double start, finish;
  };

  static bool may_begin(const Queue& queue);
  static void begin(Queue& queue);
  void end_head(std::size_t stream, double finish);
  // Goes on to the next change or the limit; `kernel_end`, if a kernel runs, is put off as a
  // collective's end is.
  void advance(double* kernel_end, double limit);
  double end_at(double rate, double end) const;
  void find_active();
  void find_rates(bool beside_kernel);
  double share_of(std::size_t i, std::size_t port) const;
  bool overfills(std::size_t port) const;
  void limit_rates(double alone, const PortLevels& levels, std::size_t but);
  double fair_level(std::size_t port);
  double past_kernel_end(double start, double duration);
  void remember_activity(double until);
  void release(std::uint32_t op, double finish);

  Contention contention_;
  // Everything before this time is settled.
  double now_ = 0.0;
  std::array<Queue, kStreams> queues_;
  // Queues that are not empty.
  std::vector<std::size_t> busy_;
  // The number of collectives that wait for another one.
  std::size_t held_ = 0;
  // Queues whose first collective runs, and its rate.
  std::vector<std::size_t> active_;
  std::vector<double> rates_;
  // Shares of one port that the running collectives ask for.
  std::vector<double> wanted_;
  // Times in which collectives ran and no kernel beside them has been replayed yet, in order.
  std::vector<Interval> activity_;
  std::vector<Ended> ended_;
};

}  // namespace shardwright::sim
