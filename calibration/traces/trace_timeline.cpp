#include "calibration/traces/trace_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/kernel_calls.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

constexpr std::size_t kLongestName = 60;

// Words in the names of process groups: Megatron's and those of PyTorch's device meshes. The first
// that fits decides.
constexpr std::pair<std::string_view, Group> kGroupWords[] = {
    {"expert_data", Group::ExpertData}, {"expert", Group::Expert},
    {"mesh_ep", Group::Expert},         {"tensor", Group::Tensor},
    {"mesh_tp", Group::Tensor},         {"pipeline", Group::Pipeline},
    {"mesh_pp", Group::Pipeline},       {"data_parallel", Group::Data},
    {"mesh_dp", Group::Data},           {"fsdp", Group::Data},
    {"context", Group::Context},        {"mesh_cp", Group::Context},
};

// A group of all ranks is one of data parallelism where its name does not tell.
std::optional<Group> parallel_group(const Trace& trace, const CollectiveCall& call) {
  const std::string name = lower_case(call.description.empty() ? call.group : call.description);
  for (const auto& [word, group] : kGroupWords)
    if (name.find(word) != std::string::npos) return group;
  const bool of_all = call.group_size && call.group_size == trace.world_size;
  return of_all ? std::optional(Group::Data) : std::nullopt;
}

std::optional<OpKind> kind_named(std::string_view name) {
  for (const OpKind kind : enumerators<OpKind>())
    if (name == name_of(kind)) return kind;
  if (name == "recv") return OpKind::Receive;
  // NCCL has one kernel for sends and receives, and for all-to-all exchanges, which consist of
  // them.
  return name == "send_receive" ? std::optional(OpKind::Send) : std::nullopt;
}

class TimelineWriter {
 public:
  explicit TimelineWriter(const Trace& trace) : trace_(trace) {
    for (const DeviceActivity& each : trace.activities) {
      devices_.insert(each.device);
      note_stream(each);
    }
    timeline_.origin = TimelineOrigin::Measured;
    const auto rank = static_cast<std::int32_t>(trace.rank.value_or(0));
    for (const std::int32_t device : devices_) {
      const std::string own = fmt::format("GPU {}", device);
      std::string label = trace.rank ? fmt::format("rank {}", rank) : own;
      if (trace.rank && devices_.size() > 1) label += ", " + own;
      timeline_.ranks.push_back({rank_of(device), label});
    }
  }

  Timeline write() {
    if (trace_.activities.empty()) return std::move(timeline_);
    timeline_.spans.reserve(trace_.activities.size());
    return write_between(trace_.activities.front().start, std::numeric_limits<std::int64_t>::max());
  }

  // What starts between these times; the first one is the timeline's zero.
  Timeline write_between(std::int64_t begin, std::int64_t end,
                         std::size_t most = std::numeric_limits<std::size_t>::max()) {
    begin_ = begin;
    for (const DeviceActivity& each : trace_.activities)
      if (each.start >= begin && each.start < end && timeline_.spans.size() < most) add(each);
    return std::move(timeline_);
  }

 private:
  std::int32_t rank_of(std::int32_t device) const {
    return devices_.size() == 1 ? static_cast<std::int32_t>(trace_.rank.value_or(0)) : device;
  }

  // A stream on which collectives run is one of communication, one with nothing but copies one of
  // copies.
  void note_stream(const DeviceActivity& activity) {
    const auto known = streams_.try_emplace({activity.device, activity.stream}, Stream::Offload);
    if (activity.category == KernelCategory::Collective)
      known.first->second = Stream::GradientReduce;
    if (activity.kind == ActivityKind::Kernel && known.first->second == Stream::Offload)
      known.first->second = Stream::Compute;
  }

  void add(const DeviceActivity& activity) {
    Span span;
    span.rank = rank_of(activity.device);
    span.stream = streams_.at({activity.device, activity.stream});
    span.queue = activity.stream;
    span.kernel = kernel(activity);
    span.start = from_ns(activity.start - begin_);
    span.duration = from_ns(activity.duration);
    const Shown& shown = shown_[static_cast<std::size_t>(span.kernel)];
    span.name = shown.name;
    set_kind(span, shown.kind, OpKind::Residual);
    if (activity.kind != ActivityKind::Kernel) span.bytes = bytes(activity.size);
    if (activity.category == KernelCategory::Collective) describe_collective(activity, span);
    timeline_.spans.push_back(std::move(span));
  }

  static Bytes bytes(std::int64_t count) { return Bytes(static_cast<double>(count)); }

  static void set_kind(Span& span, std::optional<OpKind> kind, OpKind where_unknown) {
    span.kind = kind.value_or(where_unknown);
    span.kind_is_known = kind.has_value();
  }

  // Depends on the activity's call and name.
  std::optional<OpKind> kind_of_call(const DeviceActivity& activity) {
    if (activity.collective != kNoIndex) return kind_named(kind_of_collective(trace_, activity));
    const auto [known, is_new] = kinds_of_names_.try_emplace(activity.name);
    if (is_new) known->second = kind_named(kind_of_collective(trace_, activity));
    return known->second;
  }

  void describe_collective(const DeviceActivity& activity, Span& span) {
    set_kind(span, kind_of_call(activity), OpKind::AllReduce);
    if (activity.collective == kNoIndex) return;
    const CollectiveCall& call = trace_.collectives[static_cast<std::size_t>(activity.collective)];
    span.group = parallel_group(trace_, call);
    if (call.bytes) span.bytes = bytes(*call.bytes);
  }

  // Kernels of one name and operator share an entry.
  std::int32_t kernel(const DeviceActivity& activity) {
    const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(activity.name))
                                  << 32U |
                              static_cast<std::uint32_t>(activity.op);
    const auto [known, is_new] =
        kernels_.try_emplace(key, static_cast<std::int32_t>(timeline_.kernels.size()));
    if (is_new) {
      const std::string name = trace_.names[activity.name];
      const std::string op = activity.op == kNoIndex ? "" : trace_.names[activity.op];
      timeline_.kernels.push_back({name, op, activity.category});
      shown_.push_back({short_kernel_name(name, kLongestName), kind_of(activity, name, op)});
    }
    return known->second;
  }

  static std::optional<OpKind> kind_of(const DeviceActivity& activity, const std::string& name,
                                       const std::string& op) {
    switch (activity.category) {
      case KernelCategory::Gemm:
        return OpKind::Gemm;
      case KernelCategory::Attention:
        return OpKind::Attention;
      case KernelCategory::MemoryCopy:
        return OpKind::Offload;
      default:
        return memory_bound_kind(name, op);
    }
  }

  // What spans of a kernel have in common.
  struct Shown {
    std::string name;
    std::optional<OpKind> kind;
  };

  const Trace& trace_;
  std::int64_t begin_ = 0;
  Timeline timeline_;
  std::set<std::int32_t> devices_;
  std::map<std::pair<std::int32_t, std::int32_t>, Stream> streams_;
  std::unordered_map<std::uint64_t, std::int32_t> kernels_;
  std::vector<Shown> shown_;
  // Of collectives whose arguments were not recorded.
  std::unordered_map<TraceIndex, std::optional<OpKind>> kinds_of_names_;
};

}  // namespace

Timeline timeline_of(const Trace& trace) {
  return TimelineWriter(trace).write();
}

Timeline timeline_of_one_step(const Trace& trace) {
  const std::vector<DeviceStep> steps = device_steps(trace);
  if (steps.empty()) return {};
  const DeviceStep& step = steps[steps.size() / 2];
  return TimelineWriter(trace).write_between(step.begin, step.end, kMostInAPicture);
}

}  // namespace shardwright::calibration
