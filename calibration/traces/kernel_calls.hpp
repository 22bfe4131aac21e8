// The kernels of a device as calls: what the framework asked for in one go.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright::calibration {

// A matrix product with the kernels that finish it, an attention with those that prepare it, a
// collective, or a single kernel, copy or fill.
struct KernelCall {
  KernelCategory category = KernelCategory::Other;
  // The longest of its kernels.
  const DeviceActivity* main = nullptr;
  Activities activities;
  Seconds time{};
  // The product, if the trace tells its shape and its type.
  std::optional<MeasuredKernel> product;
  // True if the name says that the kernel belongs to the backward pass, as attention kernels do.
  bool backward = false;
  // The kind of a collective or message, and its arguments or null. Empty if the kernel computes.
  std::string collective;
  const CollectiveCall* arguments = nullptr;
};

// True if the name of a kernel or of its operator says that it belongs to the backward pass.
bool is_of_backward_pass(const Trace& trace, const DeviceActivity& activity);

class KernelCalls {
 public:
  explicit KernelCalls(const Trace& trace) : trace_(&trace) {}

  // The calls of activities that are in the order of launch.
  std::vector<KernelCall> of(const Activities& activities);

 private:
  std::optional<MeasuredKernel> product(const DeviceActivity& activity);
  bool continues(const KernelCall& call, const DeviceActivity& next) const;

  const Trace* trace_;
  // Shapes are parsed once for each operator and kernel.
  std::map<std::tuple<TraceIndex, TraceIndex, TraceIndex>, std::optional<MeasuredKernel>> products_;
};

// The kind of an op that memory traffic limits, from the words in a kernel's name and in its
// operator's: a fused kernel is of the first kind in the order of the table. None if no word tells.
std::optional<OpKind> memory_bound_kind(std::string_view kernel, std::string_view op);

}  // namespace shardwright::calibration
