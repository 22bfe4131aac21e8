#include "calibration/traces/gemm_timings.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "calibration/traces/roofline.hpp"

namespace shardwright::calibration {
namespace {

// The most that a table of measured kernels takes.
constexpr std::int64_t kLargestSize = 1'000'000'000;

// The position of the left operand among the inputs of an operator, which the right one follows.
std::optional<std::size_t> left_operand(const std::string& op) {
  if (op == "aten::mm" || op == "aten::bmm" || op == "aten::_scaled_mm") return 0;
  if (op == "aten::addmm" || op == "aten::baddbmm" || op == "aten::_addmm_activation") return 1;
  return std::nullopt;
}

// Parts of the names of cuBLAS' and CUTLASS' kernels. The first one that is found counts: results
// may have other formats than operands.
constexpr std::pair<std::string_view, Precision> kFormats[] = {
    {"nvjet_qq", Precision::Fp8},  {"e4m3", Precision::Fp8},      {"e5m2", Precision::Fp8},
    {"fp8", Precision::Fp8},       {"nvjet_ts", Precision::Bf16}, {"bf16", Precision::Bf16},
    {"nvjet_hs", Precision::Fp16}, {"f16f16", Precision::Fp16},   {"_f16_", Precision::Fp16},
    {"fp16", Precision::Fp16},     {"hgemm", Precision::Fp16},    {"h16816", Precision::Fp16},
    {"h1688", Precision::Fp16},    {"h884", Precision::Fp16},     {"tf32", Precision::Tf32},
    {"s1688", Precision::Tf32},    {"f32f32", Precision::Fp32},   {"sgemm", Precision::Fp32}};

// The format of a product's operands; `type` is empty where the trace does not state it.
std::optional<Precision> precision_of(const std::string& type, const std::string& kernel) {
  if (type == "c10::BFloat16") return Precision::Bf16;
  if (type == "c10::Half") return Precision::Fp16;
  if (type.starts_with("c10::Float8")) return Precision::Fp8;
  std::string name = lower_case(kernel);
  // The names of Blackwell's have their architecture in front of the format: "nvjet_sm100_tst_…".
  constexpr std::string_view kLibrary = "nvjet_";
  if (const std::size_t at = name.find("nvjet_sm"); at != std::string::npos) {
    const std::size_t begin = at + kLibrary.size();
    name.erase(begin, std::min(name.find('_', begin), name.size() - 1) + 1 - begin);
  }
  if (type.empty()) {
    for (const auto& [part, precision] : kFormats)
      if (name.find(part) != std::string::npos) return precision;
  }
  const bool is_tf32 =
      name.find("tf32") != std::string::npos || name.find("s1688") != std::string::npos;
  if (type == "float") return is_tf32 ? Precision::Tf32 : Precision::Fp32;
  return std::nullopt;
}

// The sizes of an input; empty if the text does not have them.
std::vector<std::int64_t> sizes_of(const nlohmann::json& inputs, std::size_t position) {
  std::vector<std::int64_t> sizes;
  if (!inputs.is_array() || position >= inputs.size() || !inputs[position].is_array()) return sizes;
  for (const nlohmann::json& size : inputs[position]) {
    if (!size.is_number_integer() || size < 1 || size > kLargestSize) return {};
    sizes.push_back(size);
  }
  return sizes;
}

// `shapes` is [sizes of the inputs, types of the inputs]; a recording of Nsight has no types.
std::optional<GemmWork> work_of(const nlohmann::json& shapes, std::size_t left) {
  const std::vector<std::int64_t> a = sizes_of(shapes[0], left), b = sizes_of(shapes[0], left + 1);
  if (a.size() != b.size() || (a.size() != 2 && a.size() != 3)) return std::nullopt;
  const std::size_t rows = a.size() - 2;
  GemmWork work;
  work.m = a[rows];
  work.k = a[rows + 1];
  work.n = b[rows + 1];
  if (rows == 1) work.batch = a[0];
  const bool fits = b[rows] == work.k && (rows == 0 || b[0] == a[0]);
  return fits ? std::optional(work) : std::nullopt;
}

}  // namespace

std::optional<MeasuredKernel> product_of(const Trace& trace, const DeviceActivity& activity) {
  if (activity.category != KernelCategory::Gemm || activity.shapes == kNoIndex) return std::nullopt;
  const std::optional<std::size_t> left = left_operand(trace.names[activity.op]);
  const auto shapes = nlohmann::json::parse(trace.names[activity.shapes], nullptr, false);
  if (!left || !shapes.is_array() || shapes.size() != 2) return std::nullopt;
  const nlohmann::json& types = shapes[1];
  const bool has_type = types.is_array() && *left < types.size() && types[*left].is_string();
  if (!has_type && types != nlohmann::json::array()) return std::nullopt;
  const auto precision =
      precision_of(has_type ? types[*left].get<std::string>() : "", trace.names[activity.name]);
  const std::optional<GemmWork> work = work_of(shapes, *left);
  if (!precision || !work) return std::nullopt;
  return MeasuredKernel{OpKind::Gemm, *precision, *work, {}};
}

std::vector<MeasuredKernel> gemm_timings(const std::vector<Trace>& traces) {
  std::vector<MeasuredKernel> kernels;
  for (TimedProduct& product : timed_products(traces)) kernels.push_back(std::move(product.kernel));
  return kernels;
}

std::vector<TimedProduct> timed_products(std::span<const Trace> traces) {
  using Key = std::tuple<Precision, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  struct Timings {
    MeasuredKernel kernel;
    std::vector<Seconds> times;
  };
  std::map<Key, Timings> shapes;
  for (const Trace& trace : traces) {
    std::map<TraceIndex, MeasuredKernel> calls;
    for (const DeviceActivity& each : trace.activities) {
      const std::optional<MeasuredKernel> product = product_of(trace, each);
      if (!product) continue;
      MeasuredKernel& call = calls.try_emplace(each.op_call, *product).first->second;
      call.time += Seconds(static_cast<double>(each.duration) * 1e-9);
    }
    for (const auto& [call, product] : calls) {
      const auto& work = std::get<GemmWork>(product.work);
      Timings& timings = shapes[{product.precision, work.m, work.n, work.k, work.batch}];
      timings.kernel = product;
      timings.times.push_back(product.time);
    }
  }
  std::vector<TimedProduct> products;
  for (auto& [key, timings] : shapes) {
    const Seconds total = std::accumulate(timings.times.begin(), timings.times.end(), Seconds());
    const auto middle =
        timings.times.begin() + static_cast<std::ptrdiff_t>(timings.times.size() / 2);
    std::nth_element(timings.times.begin(), middle, timings.times.end());
    timings.kernel.time = *middle;
    if (timings.kernel.time > Seconds(0.0))
      products.push_back(
          {std::move(timings.kernel), static_cast<std::int64_t>(timings.times.size()), total});
  }
  return products;
}

void order_by_time(std::vector<TimedProduct>& products) {
  std::stable_sort(products.begin(), products.end(),
                   [](const TimedProduct& a, const TimedProduct& b) { return a.total > b.total; });
}

nlohmann::ordered_json to_json(std::vector<TimedProduct> products, const AcceleratorSpec* device) {
  order_by_time(products);
  auto array = nlohmann::ordered_json::array();
  for (const TimedProduct& each : products) {
    const auto& work = std::get<GemmWork>(each.kernel.work);
    std::optional<Roofline> roofline;
    if (device != nullptr)
      roofline = roofline_of(work, each.kernel.precision, each.kernel.time, *device);
    array.push_back({{"m", work.m},
                     {"n", work.n},
                     {"k", work.k},
                     {"batch", work.batch},
                     {"precision", name_of(each.kernel.precision)},
                     {"count", each.calls},
                     {"median_s", each.kernel.time.value()},
                     {"total_s", each.total.value()},
                     {"roofline", roofline ? to_json(*roofline) : nullptr}});
  }
  return array;
}

}  // namespace shardwright::calibration
