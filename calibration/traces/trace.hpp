// What a profiler recorded of one process: what ran on its devices when, and which host call
// launched it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "calibration/traces/kernel_category.hpp"

namespace shardwright::calibration {

// An index into a table of the trace; -1: none.
using TraceIndex = std::int32_t;
inline constexpr TraceIndex kNoIndex = -1;

// Texts that occur many times, each stored once.
class NameTable {
 public:
  TraceIndex index_of(std::string_view name);
  const std::string& operator[](TraceIndex index) const {
    return names_[static_cast<std::size_t>(index)];
  }
  std::size_t size() const { return names_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    // Lets a view be looked up without a copy.
    using is_transparent = void;
  };

  std::vector<std::string> names_;
  std::unordered_map<std::string, TraceIndex, Hash, std::equal_to<>> indices_;
};

enum class ActivityKind : std::uint8_t { Kernel, Copy, Fill };

// A kernel, a copy or a fill on a stream. All times are nanoseconds on the clock of the trace.
struct DeviceActivity {
  std::int64_t start = 0, duration = 0;
  std::int32_t device = 0, stream = 0;
  ActivityKind kind = ActivityKind::Kernel;
  KernelCategory category = KernelCategory::Other;
  // Launched within the optimizer's step.
  bool optimizes = false;
  // Launched by PyTorch's autograd engine: in the backward pass, recomputed ops included.
  bool backward = false;
  TraceIndex name = kNoIndex;
  // Blocks of a kernel's grid, bytes of a copy or fill; 0 if the trace does not tell.
  std::int64_t size = 0;
  // The innermost operator of the framework that launched it; none where it was launched before
  // the recording began, or where the trace does not tell.
  TraceIndex op = kNoIndex;
  // Its number among the operators' calls: kernels with the same one are of one call.
  TraceIndex op_call = kNoIndex;
  // The sizes and types of its inputs as JSON: [[[64, 32], [32, 16]], ["c10::Half", "c10::Half"]].
  // Of matrix products alone.
  TraceIndex shapes = kNoIndex;
  TraceIndex collective = kNoIndex;
  // The step in which it was launched.
  TraceIndex step = kNoIndex;
  // When the host called for it; none if that is not known.
  std::optional<std::int64_t> launched;

  std::int64_t end() const { return start + duration; }
};

using Activities = std::vector<const DeviceActivity*>;

// The arguments of a collective; what the trace does not tell is none or empty.
struct CollectiveCall {
  // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send", …
  std::string kind;
  // The size as nccl-tests counts it: of an all-gather the output, else the input of a rank.
  std::optional<std::int64_t> bytes;
  std::optional<std::int64_t> group_size;
  // The name of the process group, its description, and its members as the trace writes them.
  std::string group, description, members;
  // The number of the call within the group.
  std::optional<std::int64_t> sequence;
  // The number of elements of a rank's input.
  std::optional<std::int64_t> elements{};
};

// The moment at which the host had handed a parameter's gradient over: all kernels that compute it
// are launched.
struct GradientMark {
  std::int64_t time = 0;
  std::int64_t elements = 0;
};

// From one ProfilerStep to the next; the last one ends with its annotation.
struct TraceStep {
  std::int64_t number = 0;
  std::int64_t start = 0, duration = 0;
};

struct Trace {
  std::string file;
  // "NVIDIA H100 80GB HBM3"; empty if it is not known.
  std::string gpu;
  std::optional<std::int64_t> rank, world_size;
  NameTable names;
  // By start.
  std::vector<DeviceActivity> activities;
  std::vector<CollectiveCall> collectives;
  // By start.
  std::vector<TraceStep> steps;
  // By time.
  std::vector<GradientMark> gradients;
  // True if the trace says when the optimizer's step ran.
  bool marks_optimizer = false;
  // Everything that was recorded, on host and devices, lies between these times.
  std::int64_t begin = 0, end = 0;
  // What to add for nanoseconds since 1970; none if the trace does not tell.
  std::optional<std::int64_t> clock_offset;
  // Events on devices that have no usable time, which are left out.
  std::int64_t unusable_events = 0;
  // What a whole recording has and this one lacks, and what does not show therefore; as sentences.
  std::vector<std::string> gaps{};
};

}  // namespace shardwright::calibration
