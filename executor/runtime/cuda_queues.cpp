#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/runtime/op_queues.hpp"

namespace shardwright::executor {
namespace {

// The most ops by which the host may be ahead of the device. A stream takes about a thousand
// kernels before it blocks the host, which would bypass the timeout.
constexpr std::size_t kMaxPending = 256;
constexpr std::chrono::microseconds kPollInterval{20};
constexpr std::chrono::milliseconds kBetweenChecks{10};
// The time that a device may take for running work after the collectives were aborted.
constexpr std::chrono::seconds kToEnd{5};

class CudaQueues final : public OpQueues {
 public:
  using Clock = QueuedOp::Clock;

  CudaQueues(std::size_t queues, QueueHooks hooks, std::chrono::milliseconds timeout,
             std::function<void(const std::string&)> on_hang)
      : hooks_(std::move(hooks)), timeout_(timeout), on_hang_(std::move(on_hang)), lanes_(queues) {}

  ~CudaQueues() override {
    if (!streams_end()) on_hang_("the GPU does not finish its work");
  }
  CudaQueues(const CudaQueues&) = delete;
  CudaQueues& operator=(const CudaQueues&) = delete;

  void begin(std::uint32_t ops) override {
    if (ends_.size() < ops) ends_.resize(ops);
    measured_.clear();
    origin_.reset();
    waited_ = {};
    failed_ = false;
  }

  void issue(std::size_t queue, QueuedOp op) override {
    Lane& lane = lanes_.at(queue);
    const bool aligns = op.ended && !origin_;
    if (aligns || pending_ > kMaxPending) {
      const auto before = Clock::now();
      wait_until(aligns ? 0 : kMaxPending);
      waited_ += Clock::now() - before;
    }
    try {
      if (!lane.stream) lane.stream.emplace();
      if (aligns) align_clocks(lane.stream->get());
      for (const std::uint32_t on : op.waits) {
        check_cuda(cudaStreamWaitEvent(lane.stream->get(), end_of(on).get(), 0),
                   "cudaStreamWaitEvent");
      }
      start(lane, op);
    } catch (const std::exception& error) {
      fail(op.name(), error.what());
    }
  }

  void drain() override {
    wait_until(0);
    try {
      report_measured();
    } catch (const std::exception& error) {
      fail("the times of the ops", error.what());
    }
  }

  Clock::duration waited() const override { return waited_; }

  bool times_at_no_cost() const override { return false; }

 private:
  // An op whose kernels were launched and that is not known to have ended.
  struct Pending {
    std::uint32_t number = 0;
    std::function<std::string()> name;
  };
  struct Lane {
    std::optional<CudaStream> stream;
    std::deque<Pending> pending;
  };
  struct Measured {
    CudaEvent start, end;
    std::function<void(Clock::time_point, Clock::time_point)> ended;
  };

  void start(Lane& lane, QueuedOp& op) {
    if (op.ended) {
      start_measured(lane, op);
    } else {
      op.run(lane.stream->get());
    }
    end_of(op.number).record(lane.stream->get());
    lane.pending.push_back({op.number, std::move(op.name)});
    ++pending_;
  }

  // Aligns the host's clock with that of the device, which is idle.
  void align_clocks(cudaStream_t stream) {
    origin_.emplace(timed_event());
    origin_->record(stream);
    check_cuda(cudaEventSynchronize(origin_->get()), "cudaEventSynchronize");
    origin_time_ = Clock::now();
  }

  void start_measured(Lane& lane, QueuedOp& op) {
    const cudaStream_t stream = lane.stream->get();
    Measured measured{timed_event(), timed_event(), std::move(op.ended)};
    measured.start.record(stream);
    op.run(stream);
    measured.end.record(stream);
    measured_.push_back(std::move(measured));
  }

  CudaEvent& end_of(std::uint32_t op) {
    std::optional<CudaEvent>& end = ends_.at(op);
    if (!end) end.emplace(false);
    return *end;
  }

  CudaEvent timed_event() {
    if (spare_.empty()) return CudaEvent(true);
    CudaEvent event = std::move(spare_.back());
    spare_.pop_back();
    return event;
  }

  // Removes ended ops from the pending ones; returns true if there were any.
  bool collect() {
    bool any = false;
    for (Lane& lane : lanes_) {
      while (!lane.pending.empty() && ends_[lane.pending.front().number]->has_passed()) {
        lane.pending.pop_front();
        --pending_;
        any = true;
      }
    }
    return any;
  }

  // Waits until at most `pending` ops are pending. Throws OpError.
  void wait_until(std::size_t pending) {
    if (pending_ <= pending) return;
    auto last_progress = Clock::now(), last_check = last_progress;
    const auto first_pending = [this] {
      const Pending* first = nullptr;
      for (const Lane& lane : lanes_) {
        if (lane.pending.empty()) continue;
        if (first == nullptr || lane.pending.front().number < first->number)
          first = &lane.pending.front();
      }
      return first->name();
    };
    while (pending_ > pending) {
      try {
        const bool any = collect();
        const auto now = Clock::now();
        if (any) last_progress = now;
        // An error belongs to an op that is pending.
        if (pending_ > 0 && now - last_check > kBetweenChecks) {
          last_check = now;
          hooks_.check();
        }
        if (any) continue;
      } catch (const std::exception& error) {
        fail(first_pending(), error.what());
      }
      if (Clock::now() - last_progress > timeout_) {
        fail(first_pending(), fmt::format("did not end within {} s",
                                          std::chrono::duration<double>(timeout_).count()));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  // Drops the pending ops.
  [[noreturn]] void fail(const std::string& op, const std::string& why) {
    for (Lane& lane : lanes_) lane.pending.clear();
    pending_ = 0;
    if (!std::exchange(failed_, true)) hooks_.on_failure();
    if (!streams_end()) on_hang_(fmt::format("{}: {}; the GPU does not finish its work", op, why));
    throw OpError(op, why);
  }

  // True if the streams finish, or fail, within a few seconds.
  bool streams_end() const {
    const auto deadline = Clock::now() + kToEnd;
    return std::all_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
      while (lane.stream && cudaStreamQuery(lane.stream->get()) == cudaErrorNotReady) {
        if (Clock::now() > deadline) return false;
        std::this_thread::sleep_for(kPollInterval);
      }
      return true;
    });
  }

  void report_measured() {
    const auto time_of = [this](const CudaEvent& event) {
      return origin_time_ + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(event.seconds_since(*origin_)));
    };
    for (Measured& measured : measured_) {
      measured.ended(time_of(measured.start), time_of(measured.end));
      spare_.push_back(std::move(measured.start));
      spare_.push_back(std::move(measured.end));
    }
    measured_.clear();
  }

  QueueHooks hooks_;
  std::chrono::milliseconds timeout_;
  std::function<void(const std::string&)> on_hang_;
  std::vector<Lane> lanes_;
  // Events by op, reused in each step.
  std::vector<std::optional<CudaEvent>> ends_;
  std::vector<Measured> measured_;
  // Timed events of earlier steps, for reuse: creating one takes the host longer.
  std::vector<CudaEvent> spare_;
  // The origin of measured times, and the host's time at it.
  std::optional<CudaEvent> origin_;
  Clock::time_point origin_time_;
  std::size_t pending_ = 0;
  Clock::duration waited_{};
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<OpQueues> make_cuda_queues(std::size_t queues, QueueHooks hooks,
                                           std::chrono::milliseconds timeout,
                                           std::function<void(const std::string&)> on_hang) {
  return std::make_unique<CudaQueues>(queues, std::move(hooks), timeout, std::move(on_hang));
}

}  // namespace shardwright::executor
