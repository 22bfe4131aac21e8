#include "calibration/traces/layer_structure.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
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
// ones that of the shortest period. Its period has `part`, if that is stated.
Stretch longest_stretch(const std::vector<std::size_t>& names,
                        const std::optional<std::size_t>& part) {
  Stretch best;
  std::vector<std::size_t> parts_before(names.size() + 1);
  for (std::size_t i = 0; i < names.size(); ++i)
    parts_before[i + 1] = parts_before[i] + std::size_t{names[i] == part};
  for (std::size_t period = kLeastAnchors; period * kLeastLayers <= names.size(); ++period) {
    std::size_t run = 0;
    for (std::size_t i = 0; i + period < names.size(); ++i) {
      run = names[i] == names[i + period] ? run + 1 : 0;
      const std::size_t length = run + period, first = i + 1 - run;
      if (run < period * (kLeastLayers - 1) || length <= best.length) continue;
      if (!part || parts_before[first + period] > parts_before[first])
        best = {first, period, length};
    }
  }
  return best;
}

// A layer by the names that it has of the pattern, in its order.
using NamesOfLayer = std::vector<std::size_t>;

// Splits the names between two whole layers into layers that have a part of the pattern in its
// order. Other names belong to none. `least`: the number of names that makes a layer.
void add_incomplete(std::vector<NamesOfLayer>& layers, const NamesOfLayer& names,
                    const NamesOfLayer& pattern, std::size_t least) {
  NamesOfLayer layer;
  auto next = pattern.begin();
  const auto end_layer = [&] {
    if (layer.size() >= least) layers.push_back(layer);
    layer.clear();
    next = pattern.begin();
  };
  for (const std::size_t name : names) {
    if (std::find(pattern.begin(), pattern.end(), name) == pattern.end()) continue;
    if (std::find(next, pattern.end(), name) == pattern.end()) end_layer();
    next = std::find(next, pattern.end(), name) + 1;
    layer.push_back(name);
  }
  end_layer();
}

// All layers of a pass whose whole ones have the given pattern. At the ends of the pass other parts
// of a model may have a product of the same shape: there a layer has half of the pattern at least.
std::vector<NamesOfLayer> layers_of(const std::vector<std::size_t>& names,
                                    const NamesOfLayer& pattern) {
  std::vector<NamesOfLayer> layers;
  NamesOfLayer between;
  const std::size_t at_ends = std::max(kLeastAnchors, (pattern.size() + 1) / 2);
  for (std::size_t i = 0; i < names.size();) {
    const bool is_whole =
        i + pattern.size() <= names.size() &&
        std::equal(pattern.begin(), pattern.end(), names.begin() + static_cast<std::ptrdiff_t>(i));
    if (!is_whole) {
      between.push_back(names[i++]);
      continue;
    }
    add_incomplete(layers, between, pattern, layers.empty() ? at_ends : kLeastAnchors);
    between.clear();
    layers.push_back(pattern);
    i += pattern.size();
  }
  add_incomplete(layers, between, pattern, at_ends);
  return layers;
}

NamesOfLayer pattern_of(const Stretch& stretch, const std::vector<std::size_t>& names) {
  const auto begin = names.begin() + static_cast<std::ptrdiff_t>(stretch.first);
  return {begin, begin + static_cast<std::ptrdiff_t>(stretch.period)};
}

// The stretch from the place on that begins a layer: fewest layers lack something then. A stretch
// may begin within a layer, behind one that lacks its first part.
Stretch from_first_layer(const Stretch& stretch, const std::vector<std::size_t>& names) {
  Stretch best = stretch;
  std::size_t fewest = names.size();
  for (std::size_t skipped = 0; skipped < stretch.period; ++skipped) {
    const Stretch shifted{stretch.first + skipped, stretch.period, stretch.length - skipped};
    const NamesOfLayer pattern = pattern_of(shifted, names);
    const std::vector<NamesOfLayer> layers = layers_of(names, pattern);
    const auto lacking = static_cast<std::size_t>(std::count_if(
        layers.begin(), layers.end(), [&](const NamesOfLayer& layer) { return layer != pattern; }));
    if (lacking < fewest) {
      fewest = lacking;
      best = shifted;
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

// The products and attentions of a step's first forward pass, in which products have the tokens as
// rows.
struct Pass {
  std::vector<KernelCall> anchors;
  // Equal ones have the same number.
  std::vector<std::size_t> names;
  std::optional<std::size_t> attention;
  bool by_shape = false;
  // Nothing but its first backward attention tells where the backward pass begins, which is after
  // what may be recomputed of the last layers.
  bool may_recompute = false;
};

bool is_message(const KernelCall& call) {
  return call.collective == "send" || call.collective == "receive" ||
         call.collective == "send_receive";
}

Pass first_pass(const Trace& trace, const Activities& activities) {
  constexpr std::size_t kLeastPass = kLeastLayers * kLeastAnchors;
  Pass pass;
  std::map<std::string, std::size_t> numbers;
  bool layers_send = false;
  KernelCalls calls(trace);
  for (KernelCall& call : calls.of(activities)) {
    const bool is_attention = call.category == KernelCategory::Attention;
    if (is_message(call)) {
      // Rings of attention and exchanges of tokens send within the first layer already, stages
      // behind their last one.
      if (pass.names.size() >= kLeastPass && !layers_send) break;
      layers_send = layers_send || !pass.names.empty();
    }
    if (call.category != KernelCategory::Gemm && !is_attention) continue;
    const bool is_backward = call.main->backward || (is_attention && call.backward);
    const bool ends_forward = is_backward && pass.names.size() >= kLeastPass;
    if (pass.names.size() == kMostAnchors || ends_forward) {
      pass.may_recompute = ends_forward && is_attention;
      break;
    }
    const std::size_t name =
        numbers.try_emplace(name_of_anchor(trace, call), numbers.size()).first->second;
    pass.names.push_back(name);
    if (is_attention && !call.backward) pass.attention = name;
    pass.by_shape = pass.by_shape || call.product;
    pass.anchors.push_back(std::move(call));
  }
  return pass;
}

// True of what may be a layer within a longer pattern, and not the experts of one, which have no
// attention and few products.
bool is_layer(const NamesOfLayer& pattern, const std::optional<std::size_t>& attention) {
  constexpr std::size_t kMostOfExpert = 4;
  if (!attention) return pattern.size() > kMostOfExpert;
  return std::find(pattern.begin(), pattern.end(), *attention) != pattern.end();
}

// A trace that does not show where the backward pass begins has as many layers of other products in
// it, and more of these. The pass then ends before them.
Stretch forward_stretch(Pass& pass, Stretch stretch) {
  while (stretch.period > 0) {
    const std::vector<std::size_t> before(
        pass.names.begin(), pass.names.begin() + static_cast<std::ptrdiff_t>(stretch.first));
    const Stretch earlier = longest_stretch(before, pass.attention);
    if (earlier.period == 0) break;
    const std::size_t layers = stretch.length / stretch.period;
    const std::size_t earlier_layers = earlier.length / earlier.period;
    NamesOfLayer pattern = pattern_of(stretch, pass.names), other = pattern_of(earlier, before);
    std::ranges::sort(pattern);
    std::ranges::sort(other);
    if (earlier_layers + 1 < layers || earlier_layers > layers + 1 || pattern == other) break;
    pass.anchors.resize(stretch.first);
    pass.names = before;
    stretch = earlier;
  }
  return stretch;
}

// Passes that repeat each other make a longer stretch than the layers within one. While most of a
// period is a stretch of layers, the pass becomes this period.
Stretch stretch_of_layers(Pass& pass) {
  // A loss that is computed in chunks repeats its products more often than the model its layers.
  Stretch stretch = longest_stretch(pass.names, pass.attention);
  if (stretch.period == 0) stretch = longest_stretch(pass.names, std::nullopt);
  while (stretch.period > 0) {
    const NamesOfLayer period = pattern_of(stretch, pass.names);
    const Stretch inner = longest_stretch(period, pass.attention);
    if (2 * inner.length < stretch.period || !is_layer(pattern_of(inner, period), pass.attention))
      break;
    const auto begin = pass.anchors.begin() + static_cast<std::ptrdiff_t>(stretch.first);
    pass.anchors =
        std::vector<KernelCall>(begin, begin + static_cast<std::ptrdiff_t>(stretch.period));
    pass.names = period;
    stretch = inner;
  }
  return forward_stretch(pass, stretch);
}

// True if names between layers are the head's, whose product comes in the forward pass and twice in
// the backward one, and not those of a layer that lacks a part. Kernels of layers and of the head
// may have one name.
bool are_of_head(const NamesOfLayer& names, const NamesOfLayer& pattern, bool by_shape) {
  constexpr std::ptrdiff_t kLeastOthers = 2;
  constexpr std::size_t kProductsOfHead = 3;
  const auto others = std::ranges::count_if(
      names, [&](std::size_t name) { return std::ranges::find(pattern, name) == pattern.end(); });
  return others >= kLeastOthers || (!by_shape && names.size() == kProductsOfHead);
}

// Ends a pass before layers that follow all others and the products of the head: the backward pass
// recomputes them.
void leave_out_recomputed(Pass& pass, const Stretch& stretch) {
  if (!pass.may_recompute) return;
  const NamesOfLayer pattern = pattern_of(stretch, pass.names);
  const auto end = pass.names.end();
  const auto behind_layers = [&](std::vector<std::size_t>::iterator at) {
    while (end - at >= std::ssize(pattern) && std::equal(pattern.begin(), pattern.end(), at))
      at += std::ssize(pattern);
    return at;
  };
  const auto next_layer = [&](std::vector<std::size_t>::iterator at) {
    return std::search(at, end, pattern.begin(), pattern.end());
  };
  const auto head = behind_layers(pass.names.begin() + static_cast<std::ptrdiff_t>(stretch.first));
  const auto again = next_layer(head);
  if (again == end || !are_of_head({head, again}, pattern, pass.by_shape) ||
      next_layer(behind_layers(again)) != end)
    return;
  pass.names.erase(again, pass.names.end());
  pass.anchors.resize(pass.names.size());
}

void set_layers(LayerStructure& structure, const Pass& pass, const Stretch& stretch) {
  const NamesOfLayer pattern = pattern_of(stretch, pass.names);
  const auto has_attention = [&](const NamesOfLayer& names) {
    return pass.attention && std::find(names.begin(), names.end(), *pass.attention) != names.end();
  };
  for (const NamesOfLayer& layer : layers_of(pass.names, pattern)) {
    // Kernels of one name compute products of many shapes: a part of the pattern proves no layer.
    if (layer != pattern && !pass.by_shape) continue;
    ++structure.layers;
    const auto size = static_cast<std::int64_t>(layer.size());
    structure.anchors_of_layers += size;
    if (layer != pattern)
      structure.incomplete.push_back(
          {structure.layers, size, has_attention(pattern) && !has_attention(layer)});
  }
  structure.anchors = static_cast<std::int64_t>(stretch.period);
  structure.anchors_of_pass = static_cast<std::int64_t>(pass.names.size());
  structure.by_shape = pass.by_shape;
}

// True if the layers have half of a pass at least: of its attentions, if there are any.
bool are_most_of(const Pass& pass, const Stretch& stretch, const LayerStructure& structure) {
  const NamesOfLayer pattern = pattern_of(stretch, pass.names);
  const auto in_pattern = pass.attention ? std::ranges::count(pattern, *pass.attention) : 0;
  if (in_pattern == 0) return 2 * structure.anchors_of_layers >= structure.anchors_of_pass;
  const auto lacking =
      std::ranges::count(structure.incomplete, true, &IncompleteLayer::lacks_attention);
  return 2 * in_pattern * (structure.layers - lacking) >=
         std::ranges::count(pass.names, *pass.attention);
}

// Sets the means over the layers of the stretch. The last layer is left out because no other one
// follows it.
void set_times(LayerStructure& structure, const Pass& pass, const Stretch& stretch,
               const Activities& activities) {
  const std::size_t last = stretch.length / stretch.period - 1;
  const std::int64_t begin = pass.anchors[stretch.first].main->start;
  const std::int64_t end = pass.anchors[stretch.first + last * stretch.period].main->start;
  for (const DeviceActivity* each : activities)
    if (each->kind == ActivityKind::Kernel && begin <= each->start && each->start < end)
      structure.kernels += 1.0 / static_cast<double>(last);
  structure.time = from_ns(end - begin) / static_cast<double>(last);
}

}  // namespace

std::optional<LayerStructure> layer_structure(const Trace& trace) {
  const std::vector<DeviceStep> steps = device_steps(trace);
  if (steps.empty()) return std::nullopt;
  Activities activities = steps.front().activities;
  activities.resize(std::min(activities.size(), kMostActivities));
  Pass pass = first_pass(trace, activities);
  const Stretch longest = stretch_of_layers(pass);
  if (longest.period == 0) return std::nullopt;
  const Stretch stretch = from_first_layer(longest, pass.names);
  leave_out_recomputed(pass, stretch);
  LayerStructure structure;
  set_layers(structure, pass, stretch);
  if (!are_most_of(pass, stretch, structure)) return std::nullopt;
  set_times(structure, pass, stretch, activities);
  set_shape(structure, pass.anchors, stretch);
  return structure;
}

nlohmann::ordered_json to_json(const LayerStructure& structure) {
  auto products = nlohmann::ordered_json::array();
  for (const auto& [n, k] : structure.products) products.push_back({{"n", n}, {"k", k}});
  const auto or_null = [](const std::optional<std::int64_t>& size) {
    return size ? nlohmann::ordered_json(*size) : nlohmann::ordered_json(nullptr);
  };
  auto incomplete = nlohmann::ordered_json::array();
  for (const IncompleteLayer& layer : structure.incomplete)
    incomplete.push_back({{"layer", layer.number},
                          {"anchors", layer.anchors},
                          {"lacks_attention", layer.lacks_attention}});
  return {{"layers", structure.layers},
          {"incomplete_layers", std::move(incomplete)},
          {"anchors_per_layer", structure.anchors},
          {"anchors_of_layers", structure.anchors_of_layers},
          {"anchors_of_pass", structure.anchors_of_pass},
          {"by_shape", structure.by_shape},
          {"kernels_per_layer", structure.kernels},
          {"layer_s", structure.time.value()},
          {"products", std::move(products)},
          {"tokens", or_null(structure.tokens)},
          {"hidden", or_null(structure.hidden)},
          {"vocabulary", or_null(structure.vocabulary)}};
}

}  // namespace shardwright::calibration
