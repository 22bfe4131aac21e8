// What a profiler recorded of the host, and how it leads from a device's activity to its cause.
#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

// Where an event has no number of its kind.
inline constexpr std::int64_t kNoNumber = std::numeric_limits<std::int64_t>::min();

// An operator of the framework, or a range that the program marked.
struct HostOp {
  std::int64_t start = 0, end = 0;
  std::int32_t thread = 0;
  TraceIndex name = kNoIndex, shapes = kNoIndex, collective = kNoIndex;
  // The number by which launches name their operator, or kNoNumber.
  std::int64_t external_id = kNoNumber;
  // True of a call of PyTorch's autograd engine, within which the backward pass runs.
  bool is_of_autograd = false;
};

// A call that launches kernels, copies or fills.
struct HostLaunch {
  std::int64_t start = 0;
  std::int32_t thread = 0;
  std::int64_t correlation = 0;
  // That of its operator, or kNoNumber.
  std::int64_t external_id = kNoNumber;
};

// The numbers of an activity, or kNoNumber, in the order of Trace::activities.
struct ActivityIds {
  std::int64_t correlation = kNoNumber, external_id = kNoNumber;
};

// What ran on a thread of the host from a time to another.
struct HostRange {
  std::int32_t thread = 0;
  std::int64_t start = 0, end = 0;
};

// A step that a process, or a stream of a device, has marked.
struct StepMark {
  TraceStep step;
  std::int64_t process = 0;
};

struct HostRecord {
  std::vector<HostOp> ops;
  std::vector<HostLaunch> launches;
  std::vector<ActivityIds> activities;
  // Annotations named ProfilerStep#N on the host, and on a stream of a device. Where there are
  // none, those count that people named "iteration N" and the like.
  std::vector<StepMark> steps, device_steps, named_steps;
  // Annotations named "Optimizer.step#…", as PyTorch marks the step of each optimizer.
  std::vector<HostRange> optimizers;

  // Numbers threads in the order of their first event.
  std::int32_t thread(std::int64_t process, std::int64_t thread);
  std::int64_t process_of(std::int32_t thread) const {
    return threads_by_number_[static_cast<std::size_t>(thread)].process;
  }

  // Adds what was recorded behind this one, with its threads numbered as here.
  void append(HostRecord next);

 private:
  struct Thread {
    std::int64_t key = 0, process = 0;
  };
  std::int32_t number_of(const Thread& thread);

  // Numbers by key.
  std::unordered_map<std::int64_t, std::int32_t> numbers_;
  std::vector<Thread> threads_by_number_;
};

// Moves the elements of `from` behind those of `to`.
template <class T>
void move_to_end(std::vector<T>& to, std::vector<T>& from) {
  if (to.empty())
    to = std::move(from);
  else
    to.insert(to.end(), std::move_iterator(from.begin()), std::move_iterator(from.end()));
}

// The N of "ProfilerStep#N", "step N", "iteration N"; none of another name.
std::optional<std::int64_t> step_number(std::string_view annotation);

bool is_optimizer_mark(std::string_view annotation);

bool is_autograd_op(std::string_view name);

// Gives each activity its launch, its operator, its collective and its step, says whether the
// optimizer launched it, and brings activities and steps into their order. Each process has steps
// of its own, as it has marked them.
//
// The launch is the call with the same correlation. The operator is the one with the external id of
// the kernel or else of the launch, if it was running at the launch (some versions write the
// correlation there); else the innermost that ran on the launching thread then.
void link_to_host(Trace& trace, HostRecord record);

}  // namespace shardwright::calibration
