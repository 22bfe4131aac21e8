#include "calibration/traces/layer_structure.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/kernel_calls.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

// The search compares each pair of places: longer steps are looked at in part.
constexpr std::size_t kMostAnchors = 8192, kMostActivities = 65'536;
constexpr std::size_t kLeastLayers = 3, kLeastAnchors = 2;

// A product by its shape, or else by its kernel; an attention by its direction.
std::string name_of_anchor(const Trace& trace, const KernelCall& call) {
  if (call.category == KernelCategory::Attention)
    return call.backward ? "attention backward" : "attention forward";
  if (!call.product) return trace.names[call.main->name];
  const auto& work = std::get<GemmWork>(call.product->work);
  return std::to_string(work.m) + ' ' + std::to_string(work.n) + ' ' + std::to_string(work.k) +
         ' ' + std::to_string(work.batch);
}

struct Stretch {
  std::size_t first = 0, period = 0, length = 0;
};

// Within a stretch each place equals the one a period later. The longest one wins, of equally long
// ones that of the shortest period.
Stretch longest_stretch(const std::vector<std::size_t>& names) {
  Stretch best;
  for (std::size_t period = kLeastAnchors; period * kLeastLayers <= names.size(); ++period) {
    std::size_t run = 0;
    for (std::size_t i = 0; i + period < names.size(); ++i) {
      run = names[i] == names[i + period] ? run + 1 : 0;
      const std::size_t length = run + period;
      if (run >= period * (kLeastLayers - 1) && length > best.length)
        best = {i + 1 - run, period, length};
    }
  }
  return best;
}

const GemmWork* product_of_call(const KernelCall& call) {
  return call.product ? std::get_if<GemmWork>(&call.product->work) : nullptr;
}

void set_shape(LayerStructure& structure, const std::vector<KernelCall>& anchors,
               const Stretch& stretch) {
  std::map<std::int64_t, int> sizes, rows;
  for (std::size_t i = stretch.first; i < stretch.first + stretch.period; ++i) {
    const GemmWork* work = product_of_call(anchors[i]);
    if (work == nullptr || work->batch != 1) continue;
    structure.products.emplace_back(work->n, work->k);
    ++rows[work->m];
    ++sizes[work->n];
    ++sizes[work->k];
  }
  if (rows.size() == 1) structure.tokens = rows.begin()->first;
  const auto usual = std::max_element(
      sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (usual == sizes.end() || usual->second < 2 || !structure.tokens) return;
  structure.hidden = usual->first;
  for (const KernelCall& each : anchors) {
    const GemmWork* work = product_of_call(each);
    if (work == nullptr) continue;
    std::int64_t other = 0;
    if (work->k == *structure.hidden) other = std::max(work->m, work->n);
    if (other > std::max(structure.vocabulary.value_or(0), sizes.rbegin()->first) &&
        other != *structure.tokens)
      structure.vocabulary = other;
  }
}

}  // namespace

std::optional<LayerStructure> layer_structure(const Trace& trace) {
  const std::vector<DeviceStep> steps = device_steps(trace);
  if (steps.empty()) return std::nullopt;
  Activities activities = steps.front().activities;
  activities.resize(std::min(activities.size(), kMostActivities));
  std::vector<KernelCall> anchors;
  std::map<std::string, std::size_t> numbers;
  std::vector<std::size_t> names;
  KernelCalls calls(trace);
  for (KernelCall& call : calls.of(activities)) {
    if (call.category != KernelCategory::Gemm && call.category != KernelCategory::Attention)
      continue;
    // The forward pass tells most: its products have the tokens as rows.
    const bool ends_forward = call.category == KernelCategory::Attention && call.backward &&
                              anchors.size() >= kLeastLayers * kLeastAnchors;
    if (anchors.size() == kMostAnchors || ends_forward) break;
    names.push_back(numbers.try_emplace(name_of_anchor(trace, call), numbers.size()).first->second);
    anchors.push_back(std::move(call));
  }
  const Stretch stretch = longest_stretch(names);
  if (stretch.period == 0) return std::nullopt;
  LayerStructure structure;
  const std::size_t layers = stretch.length / stretch.period;
  structure.layers = static_cast<std::int64_t>(layers);
  structure.anchors = static_cast<std::int64_t>(stretch.period);
  // The last layer has no next one: the distance of its first product from that of the first layer.
  const std::int64_t begin = anchors[stretch.first].main->start;
  const std::int64_t end = anchors[stretch.first + (layers - 1) * stretch.period].main->start;
  const auto between = static_cast<double>(layers - 1);
  for (const DeviceActivity* each : activities)
    if (each->kind == ActivityKind::Kernel && begin <= each->start && each->start < end)
      structure.kernels += 1.0 / between;
  structure.time = from_ns(end - begin) / between;
  set_shape(structure, anchors, stretch);
  return structure;
}

nlohmann::ordered_json to_json(const LayerStructure& structure) {
  auto products = nlohmann::ordered_json::array();
  for (const auto& [n, k] : structure.products) products.push_back({{"n", n}, {"k", k}});
  const auto or_null = [](const std::optional<std::int64_t>& size) {
    return size ? nlohmann::ordered_json(*size) : nlohmann::ordered_json(nullptr);
  };
  return {{"layers", structure.layers},
          {"kernels_per_layer", structure.kernels},
          {"layer_s", structure.time.value()},
          {"products", std::move(products)},
          {"tokens", or_null(structure.tokens)},
          {"hidden", or_null(structure.hidden)},
          {"vocabulary", or_null(structure.vocabulary)}};
}

}  // namespace shardwright::calibration
