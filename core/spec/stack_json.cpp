#include "core/spec/stack_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/plan_names.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kDefault = "the default";

const EnumNames<GradientBuckets>& bucket_names() {
  static const EnumNames<GradientBuckets> kNames = {{"single", GradientBuckets::Single},
                                                    {"fixed-size", GradientBuckets::FixedSize},
                                                    {"per-layer", GradientBuckets::PerLayer}};
  return kNames;
}

// Each section reads over the defaults that `spec` holds.
void read_fusion(ObjectReader object, FillIn& fill, StackSpec& spec) {
  const auto read = [&](const char* key, bool& flag) { flag = fill.boolean(object, key, flag); };
  read("flash_attention", spec.flash_attention);
  const auto ratio = [&](const char* key, double& value) {
    value = object.number_or(key, value, {0.0, 2.0, true});
  };
  ratio("attention_kernel_ratio", spec.attention_kernel_ratio);
  ratio("hopper_attention_kernel_ratio", spec.hopper_attention_kernel_ratio);
  read("norm", spec.fused_norm);
  read("rope", spec.fused_rope);
  read("activation", spec.fused_activation);
  read("dropout_add", spec.fused_dropout_add);
  read("loss", spec.fused_loss);
  spec.parallel_loss = object.boolean_or("parallel_loss", spec.parallel_loss);
  spec.library_loss = object.boolean_or("library_loss", spec.library_loss);
  read("softmax", spec.fused_softmax);
  read("optimizer", spec.fused_optimizer);
  spec.fused_grouped_gemm = object.boolean_or("grouped_gemm", spec.fused_grouped_gemm);
  spec.fused_expert_bias = object.boolean_or("expert_bias", spec.fused_expert_bias);
  read("wgrad_accumulation", spec.fused_wgrad_accumulation);
  object.refuse_unknown_keys();
}

void read_overlap(ObjectReader object, FillIn& fill, StackSpec& spec) {
  const auto read = [&](const char* key, bool& flag) { flag = fill.boolean(object, key, flag); };
  read("grad_reduce", spec.overlap_grad_reduce);
  read("param_gather", spec.overlap_param_gather);
  read("tensor_parallel", spec.overlap_tp);
  spec.overlap_input_gradient = object.boolean_or("input_gradient", spec.overlap_input_gradient);
  read("p2p", spec.overlap_p2p);
  read("expert_parallel", spec.overlap_ep);
  spec.tp_overlap_share = fill.number(object, "tensor_parallel_share_ratio", spec.tp_overlap_share,
                                      kRatioOrZero, kDefault);
  spec.ep_overlap_share =
      object.number_or("expert_parallel_share_ratio", spec.ep_overlap_share, kRatioOrZero);
  spec.overlap_slowdown =
      fill.number(object, "slowdown_ratio", spec.overlap_slowdown, {0.0, 10.0, false}, kDefault);
  spec.collective_slowdown = fill.number(object, "collective_slowdown_ratio",
                                         spec.collective_slowdown, {0.0, 10.0, false}, kDefault);
  object.refuse_unknown_keys();
}

void read_communication(ObjectReader object, FillIn& fill, StackSpec& spec) {
  spec.collective_ratio =
      fill.number(object, "collective_ratio", spec.collective_ratio, kRatio, kDefault);
  spec.all_to_all_ratio =
      fill.number(object, "all_to_all_ratio", spec.all_to_all_ratio, kRatio, kDefault);
  spec.scatters_messages = object.boolean_or("scatters_messages", spec.scatters_messages);
  spec.sends_tokens_once_per_node =
      object.boolean_or("sends_tokens_once_per_node", spec.sends_tokens_once_per_node);
  object.refuse_unknown_keys();
}

void read_host(ObjectReader object, FillIn& fill, StackSpec& spec) {
  spec.launch_time = Seconds(
      fill.number(object, "launch_s", spec.launch_time.value(), {0.0, 1.0, false}, kDefault));
  spec.module_launch_time =
      Seconds(object.number_or("module_s", spec.module_launch_time.value(), {0.0, 1.0, false}));
  spec.graphs_to_dispatch = object.boolean_or("graphs_to_dispatch", spec.graphs_to_dispatch);
  spec.waits_for_messages = object.boolean_or("waits_for_messages", spec.waits_for_messages);
  spec.reads_token_counts = object.boolean_or("reads_token_counts", spec.reads_token_counts);
  spec.router_launches = object.integer_or("router_launches", spec.router_launches, {0, 10'000});
  spec.cuda_graphs = fill.boolean(object, "cuda_graphs", spec.cuda_graphs);
  spec.prefetch_layers =
      fill.integer(object, "prefetch_layers", spec.prefetch_layers, {0, 10'000}, kDefault);
  object.refuse_unknown_keys();
}

// Earlier profiles say the bytes of a bucket's gradients where they are reduced, and had
// half-precision parameters in mind.
void read_bucket_bytes(ObjectReader& object, StackSpec& spec) {
  const double element = reduced_gradient_bytes(spec, Precision::Bf16).value();
  const auto read = [&](const std::string& ending, double& elements, NumberRange range) {
    const std::string earlier = "bucket_bytes" + ending, now = "bucket_elements" + ending;
    if (!object.has(earlier)) return;
    elements = object.number(earlier, range) / element;
    auto source = spec.sources.extract("/gradients/" + earlier);
    if (source.empty()) return;
    source.key() = "/gradients/" + now;
    spec.sources.insert(std::move(source));
  };
  read("", spec.bucket_elements, kPositive);
  read("_per_replica", spec.bucket_elements_per_replica, kNonNegative);
}

void read_gradients(ObjectReader object, FillIn& fill, StackSpec& spec) {
  spec.buckets = object.choice_or("buckets", spec.buckets, bucket_names());
  spec.fp32_gradient_reduction =
      fill.boolean(object, "fp32_reduction", spec.fp32_gradient_reduction);
  if (!object.has("bucket_elements") && object.has("bucket_bytes")) {
    read_bucket_bytes(object, spec);
  } else {
    spec.bucket_elements =
        fill.number(object, "bucket_elements", spec.bucket_elements, kPositive, kDefault);
    spec.bucket_elements_per_replica = object.number_or(
        "bucket_elements_per_replica", spec.bucket_elements_per_replica, kNonNegative);
  }
  spec.fp32_main_gradients = fill.boolean(object, "fp32_accumulation", spec.fp32_main_gradients);
  object.refuse_unknown_keys();
}

void read_memory(ObjectReader object, FillIn& fill, StackSpec& spec) {
  const NumberRange per_parameter{0.0, 64.0, false};
  const auto bytes = [&](const char* key, Bytes fallback, NumberRange range) {
    return Bytes(fill.number(object, key, fallback.value(), range, kDefault));
  };
  spec.master_weight_bytes = bytes("master_weight_bytes", spec.master_weight_bytes, per_parameter);
  spec.optimizer_state_bytes =
      bytes("optimizer_state_bytes", spec.optimizer_state_bytes, per_parameter);
  spec.context_memory = bytes("context_bytes", spec.context_memory, kNonNegative);
  spec.communicator_memory = bytes("communicator_bytes", spec.communicator_memory, kNonNegative);
  spec.fragmentation =
      fill.number(object, "fragmentation_ratio", spec.fragmentation, {0.0, 0.9, false}, kDefault);
  spec.step_gradient_bytes = Bytes(object.number_or(
      "step_gradient_bytes", spec.step_gradient_bytes.value(), {0.0, 16.0, false}));
  spec.keeps_half_gradients = object.boolean_or("keeps_half_gradients", spec.keeps_half_gradients);
  spec.reduction_buffer = object.boolean_or("reduction_buffer", spec.reduction_buffer);
  spec.gradient_placeholders =
      object.boolean_or("gradient_placeholders", spec.gradient_placeholders);
  spec.fp8_weight_bytes =
      Bytes(object.number_or("fp8_weight_bytes", spec.fp8_weight_bytes.value(), {1.0, 4.0, false}));
  spec.fp8_saved_inputs = object.boolean_or("fp8_saved_inputs", spec.fp8_saved_inputs);
  spec.dropout_mask_saved = fill.boolean(object, "dropout_mask_saved", spec.dropout_mask_saved);
  object.refuse_unknown_keys();
}

// A figure that says no more than its absence is written where it was stated with its source.
bool has_source(const StackSpec& spec, const std::string& pointer) {
  return spec.sources.contains(pointer);
}

ordered_json fusion_json(const StackSpec& spec) {
  ordered_json section = {{"flash_attention", spec.flash_attention},
                          {"norm", spec.fused_norm},
                          {"rope", spec.fused_rope},
                          {"activation", spec.fused_activation},
                          {"dropout_add", spec.fused_dropout_add},
                          {"loss", spec.fused_loss},
                          {"parallel_loss", spec.parallel_loss},
                          {"library_loss", spec.library_loss},
                          {"softmax", spec.fused_softmax},
                          {"optimizer", spec.fused_optimizer},
                          {"wgrad_accumulation", spec.fused_wgrad_accumulation}};
  // What a profile may leave out without a word.
  if (spec.fused_grouped_gemm) section["grouped_gemm"] = true;
  if (!spec.fused_expert_bias) section["expert_bias"] = false;
  const auto write_ratio = [&](const std::string& key, double value) {
    if (value != 1.0 || has_source(spec, "/fusion/" + key)) section[key] = value;
  };
  write_ratio("attention_kernel_ratio", spec.attention_kernel_ratio);
  write_ratio("hopper_attention_kernel_ratio", spec.hopper_attention_kernel_ratio);
  return section;
}

ordered_json host_json(const StackSpec& spec) {
  ordered_json section = {{"launch_s", spec.launch_time.value()},
                          {"waits_for_messages", spec.waits_for_messages},
                          {"reads_token_counts", spec.reads_token_counts},
                          {"cuda_graphs", spec.cuda_graphs},
                          {"prefetch_layers", spec.prefetch_layers}};
  if (spec.router_launches != 0 || has_source(spec, "/host/router_launches"))
    section["router_launches"] = spec.router_launches;
  if (spec.module_launch_time > Seconds(0) || has_source(spec, "/host/module_s"))
    section["module_s"] = spec.module_launch_time.value();
  if (spec.graphs_to_dispatch) section["graphs_to_dispatch"] = true;
  return section;
}

ordered_json overlap_json(const StackSpec& spec) {
  ordered_json section = {{"grad_reduce", spec.overlap_grad_reduce},
                          {"param_gather", spec.overlap_param_gather},
                          {"tensor_parallel", spec.overlap_tp},
                          {"input_gradient", spec.overlap_input_gradient},
                          {"p2p", spec.overlap_p2p},
                          {"expert_parallel", spec.overlap_ep},
                          {"tensor_parallel_share_ratio", spec.tp_overlap_share},
                          {"slowdown_ratio", spec.overlap_slowdown},
                          {"collective_slowdown_ratio", spec.collective_slowdown}};
  // What a profile may leave out without a word.
  if (spec.ep_overlap_share != 0.0 || has_source(spec, "/overlap/expert_parallel_share_ratio"))
    section["expert_parallel_share_ratio"] = spec.ep_overlap_share;
  return section;
}

void read_schedules(ObjectReader& object, StackSpec& spec) {
  if (!object.has("schedules")) return;
  const std::vector<std::string> names = object.texts("schedules");
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> known;
    for (const auto& [name, kind] : schedule_names()) {
      known.push_back(name);
      if (name == names[i]) spec.schedules.push_back(kind);
    }
    if (std::find(known.begin(), known.end(), names[i]) == known.end()) {
      object.problem("schedules/" + std::to_string(i), "\"" + names[i] + "\"",
                     one_of(names[i], known));
    }
  }
}

std::vector<std::string> schedules_json(const StackSpec& spec) {
  std::vector<std::string> names;
  for (const ScheduleKind kind : spec.schedules) names.emplace_back(name_of(kind));
  return names;
}

ordered_json memory_json(const StackSpec& spec) {
  ordered_json section = {{"master_weight_bytes", spec.master_weight_bytes.value()},
                          {"optimizer_state_bytes", spec.optimizer_state_bytes.value()},
                          {"context_bytes", spec.context_memory.value()},
                          {"communicator_bytes", spec.communicator_memory.value()},
                          {"fragmentation_ratio", spec.fragmentation},
                          {"keeps_half_gradients", spec.keeps_half_gradients},
                          {"reduction_buffer", spec.reduction_buffer},
                          {"gradient_placeholders", spec.gradient_placeholders},
                          {"fp8_saved_inputs", spec.fp8_saved_inputs},
                          {"dropout_mask_saved", spec.dropout_mask_saved}};
  if (spec.fp8_weight_bytes != StackSpec().fp8_weight_bytes ||
      has_source(spec, "/memory/fp8_weight_bytes"))
    section["fp8_weight_bytes"] = spec.fp8_weight_bytes.value();
  if (spec.step_gradient_bytes > Bytes() || has_source(spec, "/memory/step_gradient_bytes"))
    section["step_gradient_bytes"] = spec.step_gradient_bytes.value();
  return section;
}

ordered_json gradients_json(const StackSpec& spec) {
  ordered_json section = {{"buckets", name_of(spec.buckets)},
                          {"bucket_elements", spec.bucket_elements},
                          {"fp32_reduction", spec.fp32_gradient_reduction},
                          {"fp32_accumulation", spec.fp32_main_gradients}};
  if (spec.bucket_elements_per_replica > 0.0 ||
      has_source(spec, "/gradients/bucket_elements_per_replica"))
    section["bucket_elements_per_replica"] = spec.bucket_elements_per_replica;
  return section;
}

}  // namespace

StackSpec read_stack(const json& document, const std::string& source) {
  ProblemList problems(source);
  StackSpec spec;
  const json plain = separate_figures(document, "", problems, spec.sources);
  ObjectReader object(plain, "", problems);
  object.allow("sources");
  check_schema(object, "shardwright/stack");
  spec.name = object.name("name");
  spec.family = object.text_or("family", "");
  if (object.has("aliases")) spec.aliases = object.texts("aliases");
  if (object.has("filled_in")) spec.filled_in = object.texts("filled_in");
  read_schedules(object, spec);
  if (object.has("zero_stages")) {
    for (const std::int64_t stage : object.integers("zero_stages", {0, 3})) {
      spec.zero_stages.push_back(static_cast<int>(stage));
    }
  }
  FillIn fill("", spec.sources, spec.filled_in);
  read_fusion(section(object, "fusion"), fill, spec);
  read_overlap(section(object, "overlap"), fill, spec);
  read_communication(section(object, "communication"), fill, spec);
  read_host(section(object, "host"), fill, spec);
  read_gradients(section(object, "gradients"), fill, spec);
  read_memory(section(object, "memory"), fill, spec);
  spec.notes = object.text_or("notes", "");
  object.refuse_unknown_keys();
  problems.throw_if_any();
  return spec;
}

ordered_json to_json(const StackSpec& spec) {
  ordered_json document = {{"schema", "shardwright/stack"},
                           {"version", 1},
                           {"name", spec.name},
                           {"family", spec.family},
                           {"aliases", spec.aliases},
                           {"schedules", schedules_json(spec)},
                           {"zero_stages", spec.zero_stages},
                           {"fusion", fusion_json(spec)},
                           {"overlap", overlap_json(spec)},
                           {"communication",
                            {{"collective_ratio", spec.collective_ratio},
                             {"all_to_all_ratio", spec.all_to_all_ratio},
                             {"scatters_messages", spec.scatters_messages},
                             {"sends_tokens_once_per_node", spec.sends_tokens_once_per_node}}},
                           {"host", host_json(spec)},
                           {"gradients", gradients_json(spec)},
                           {"memory", memory_json(spec)}};
  if (!spec.filled_in.empty()) document["filled_in"] = spec.filled_in;
  if (!spec.notes.empty()) document["notes"] = spec.notes;
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
