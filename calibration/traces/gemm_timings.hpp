// Times of matrix products by shape, from traces with the shapes of operators (record_shapes=True).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "calibration/traces/trace.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright::calibration {

// The product of aten::mm, addmm, bmm, baddbmm or _scaled_mm that the kernel is of, without a time;
// none where the trace does not tell its shapes and type.
std::optional<MeasuredKernel> product_of(const Trace& trace, const DeviceActivity& activity);

// The calls of aten::mm, addmm, bmm, baddbmm and _scaled_mm whose shapes and type the traces tell,
// each shape and precision once with the median over its calls. The time of a call is that of all
// its kernels that multiply: a product that is split along k has two. Single precision counts as
// TF32 where the name of the kernel says so.
std::vector<MeasuredKernel> gemm_timings(const std::vector<Trace>& traces);

// The same, each with the number and the time of all of its calls.
struct TimedProduct {
  MeasuredKernel kernel;
  std::int64_t calls = 0;
  Seconds total;
};
std::vector<TimedProduct> timed_products(std::span<const Trace> traces);

// Brings those with the longest time in all first.
void order_by_time(std::vector<TimedProduct>& products);

// In that order, each with what it achieves of `device`, or null without one.
nlohmann::ordered_json to_json(std::vector<TimedProduct> products, const AcceleratorSpec* device);

}  // namespace shardwright::calibration
