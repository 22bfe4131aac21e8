#include "planner/import/megatron_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <sstream>
#include <utility>

#include "core/base/quantity_text.hpp"
#include "core/program/shard_shape.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/import/known_models.hpp"
#include "planner/import/megatron_layers.hpp"
#include "planner/import/megatron_settings.hpp"
#include "planner/import/megatron_shape.hpp"

namespace shardwright::planner {
namespace {

constexpr std::size_t kMostChunks = 100'000;

// The text with each part in brackets as often as the number behind it says: "(tt|)*29". None where
// brackets have no such number, or the text is too long.
std::optional<std::string> without_brackets(std::string layout) {
  for (std::size_t open = layout.find('('); open != std::string::npos; open = layout.find('(')) {
    const std::size_t close = layout.find(")*", open);
    if (close == std::string::npos) return std::nullopt;
    const std::string part = layout.substr(open + 1, close - open - 1);
    std::size_t times = 0;
    const char* const begin = layout.data();
    const auto [end, error] = std::from_chars(begin + close + 2, begin + layout.size(), times);
    if (error != std::errc() || part.empty() || times > kMostChunks ||
        part.size() * times > kMostChunks)
      return std::nullopt;
    std::string repeated;
    for (std::size_t i = 0; i < times; ++i) repeated += part;
    layout =
        layout.substr(0, open) + repeated + layout.substr(static_cast<std::size_t>(end - begin));
    if (layout.size() > kMostChunks) return std::nullopt;
  }
  return layout;
}

// The layers of each chunk of "Et*7|t*8|t*7L"
// (megatron/core/transformer/pipeline_parallel_layer_layout.py); empty where the text is another
// one.
std::vector<std::int64_t> layout_layers(const std::string& text) {
  const std::optional<std::string> layout = without_brackets(text);
  if (!layout) return {};
  std::vector<std::int64_t> chunks = {0};
  for (std::size_t i = 0; i < layout->size(); ++i) {
    const char c = (*layout)[i];
    std::int64_t times = 1;
    if (i + 1 < layout->size() && (*layout)[i + 1] == '*') {
      std::size_t end = i + 2;
      while (end < layout->size() && (*layout)[end] >= '0' && (*layout)[end] <= '9') ++end;
      if (end == i + 2 || end > i + 8) return {};
      times = std::stoll(layout->substr(i + 2, end - i - 2));
      i = end - 1;
    }
    if (c == '|' && chunks.size() + static_cast<std::size_t>(times) > kMostChunks) return {};
    if (c == '|')
      chunks.resize(chunks.size() + static_cast<std::size_t>(times));
    else if (c == 't')
      chunks.back() += times;
    else if (std::string_view("EmL, ").find(c) == std::string_view::npos)
      return {};
  }
  return chunks;
}

void read_degrees(MegatronSettings& settings, std::optional<std::int64_t> ranks,
                  const std::string& how_to_state_ranks, const LaunchArguments& launch, Plan& plan,
                  ProblemList& problems) {
  plan.tp = settings.count("tensor_model_parallel_size", 1);
  plan.pp = settings.count("pipeline_model_parallel_size", 1);
  // Megatron-DeepSpeed's sequence parallelism is DeepSpeed-Ulysses.
  const std::int64_t ulysses = settings.count("ds_sequence_parallel_size", 1);
  plan.cp = ulysses > 1 ? ulysses : settings.count("context_parallel_size", 1);
  std::int64_t of_model = 1;
  for (const auto& [name, degree] : {std::pair("tensor_model_parallel_size", &plan.tp),
                                     {"pipeline_model_parallel_size", &plan.pp},
                                     {"context_parallel_size", &plan.cp}}) {
    if (*degree < 1) settings.refuse(name, "a number from 1 on");
    *degree = std::max<std::int64_t>(1, *degree);
    if (__builtin_mul_overflow(of_model, *degree, &of_model))
      of_model = std::numeric_limits<std::int64_t>::max();
  }
  if (!ranks) {
    problems.add("the number of processes",
                 launch.found_ranks.empty() ? "nothing" : launch.found_ranks,
                 fmt::format("{}, or {} as numbers", how_to_state_ranks, launch.places_of_ranks));
  } else if (*ranks % of_model != 0) {
    problems.add("the number of processes", format_count(*ranks),
                 fmt::format("a multiple of tp x pp x cp = {}", format_count(of_model)));
  } else {
    plan.dp = *ranks / of_model;
  }
  const std::string sends = settings.text("cp_comm_type");
  plan.context_parallel = sends == "all_gather"           ? ContextParallelKind::AllGather
                          : sends == "a2a" || ulysses > 1 ? ContextParallelKind::Ulysses
                                                          : ContextParallelKind::Ring;
  if (!sends.empty() && sends != "p2p" && sends != "all_gather" && sends != "a2a")
    settings.refuse("cp_comm_type", "p2p, all_gather or a2a");
  if (settings.is_on("use_tp_pp_dp_mapping"))
    plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline, Axis::Data};
}

void read_experts_of_plan(MegatronSettings& settings, const ModelSpec& model, Plan& plan) {
  const std::int64_t ep = settings.count("expert_model_parallel_size", 1);
  const bool splits_experts =
      !settings.is_on("deepspeed") || settings.is_on("enable_expert_tensor_parallelism");
  const std::int64_t expert_tp =
      settings.count("expert_tensor_parallel_size", splits_experts ? plan.tp : 1);
  if (!model.moe) return;
  plan.ep = ep;
  plan.expert_tp = expert_tp;
}

// The pipeline's chunks: their number, and their layers where they are not the even split.
using LayerCounts = std::vector<std::int64_t>;

// The layers of stages whose first or last one has a number of its own; the others share the rest.
LayerCounts layers_of_stages(const ModelSpec& model, std::int64_t stages,
                             std::optional<std::int64_t> first, std::optional<std::int64_t> last) {
  const std::int64_t inner = stages - int{first.has_value()} - int{last.has_value()};
  const std::int64_t left = model.layers - first.value_or(0) - last.value_or(0);
  LayerCounts layers(static_cast<std::size_t>(std::max<std::int64_t>(0, inner)),
                     inner > 0 ? left / inner : 0);
  if (first) layers.insert(layers.begin(), *first);
  if (last) layers.push_back(*last);
  return layers;
}

// Each stage divides its layers among its chunks, of which the pipeline visits the first one of
// each stage, then the second one (get_num_layers_to_build in megatron/core/transformer/
// transformer_block.py). Empty if a stage cannot divide them.
LayerCounts chunks_of_stages(const LayerCounts& stages, std::int64_t vpp) {
  LayerCounts chunks;
  if (stages.size() * static_cast<std::size_t>(vpp) > kMostChunks) return {};
  for (std::int64_t turn = 0; turn < vpp; ++turn) {
    for (const std::int64_t layers : stages) {
      if (layers % vpp != 0) return {};
      chunks.push_back(layers / vpp);
    }
  }
  return chunks;
}

// A split is stated only where the even one differs.
void state_split(const ModelSpec& model, const LayerCounts& chunks, Plan& plan) {
  plan.stage_layers = chunks;
  const auto layers_of = [&](bool ends_count) {
    Plan even = plan;
    even.stage_layers.clear();
    even.embedding_counts_as_layer = even.head_counts_as_layer = ends_count;
    LayerCounts layers;
    for (const LayerRange& range : split_layers(model, even)) layers.push_back(range.count);
    return layers;
  };
  if (layers_of(false) == chunks) {
    plan.stage_layers.clear();
  } else if (layers_of(true) == chunks) {
    plan.stage_layers.clear();
    plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  }
}

// The number of what the chunks divide among them.
std::int64_t units_of_pipeline(const ModelSpec& model, const Plan& plan) {
  return model.layers + int{plan.embedding_counts_as_layer} + int{plan.head_counts_as_layer};
}

// The layers of all chunks where an argument states them; empty otherwise, and where it is wrong.
LayerCounts stated_chunks(MegatronSettings& settings, const ModelSpec& model, Plan& plan) {
  LayerCounts chunks = hybrid_chunks(settings);
  const std::string layout = settings.text("pipeline_model_parallel_layout");
  const auto first = settings.count("decoder_first_pipeline_num_layers");
  const auto last = settings.count("decoder_last_pipeline_num_layers");
  if (chunks.empty() && layout.empty()) {
    if (static_cast<std::size_t>(std::max(plan.pp, plan.vpp)) > kMostChunks) return {};
    if (first || last) {
      chunks = chunks_of_stages(layers_of_stages(model, plan.pp, first, last), plan.vpp);
      if (chunks.empty())
        settings.refuse_value(
            first ? "decoder_first_pipeline_num_layers" : "decoder_last_pipeline_num_layers",
            fmt::format("layers of each stage that its {} chunks divide", format_count(plan.vpp)));
      return chunks;
    }
    // Megatron-LM refuses such launches; Megatron-DeepSpeed divides the layers in its own way.
    if (!settings.is_on("deepspeed") && units_of_pipeline(model, plan) % plan.chunks() != 0)
      settings.refuse_value("pipeline_model_parallel_size",
                            fmt::format("stages and chunks that divide the {} layers",
                                        units_of_pipeline(model, plan)));
    return {};
  }
  if (chunks.empty()) chunks = layout_layers(layout);
  const auto count = static_cast<std::int64_t>(chunks.size());
  const bool has_all =
      std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0}) == model.layers;
  if (chunks.empty() || count % plan.pp != 0 || !has_all) {
    settings.refuse_value(
        layout.empty() ? "hybrid_layer_pattern" : "pipeline_model_parallel_layout",
        layout.empty() ? "a multiple of pp chunks, with a | between them"
                       : "\"Et*7|t*8|t*7L\", for example, with a multiple of pp chunks and "
                         "the model's layers");
    return {};
  }
  plan.vpp = count / plan.pp;
  return chunks;
}

void read_pipeline(MegatronSettings& settings, const ModelSpec& model, Plan& plan) {
  const std::int64_t each = settings.count("num_layers_per_virtual_pipeline_stage", 0);
  plan.embedding_counts_as_layer = settings.is_on("account_for_embedding_in_pipeline_split");
  plan.head_counts_as_layer = settings.is_on("account_for_loss_in_pipeline_split");
  // Megatron-DeepSpeed's "type:transformer|embedding" counts the tied embedding at both ends.
  if (settings.text("pp_partition_method").find("embedding") != std::string::npos)
    plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  plan.vpp = settings.count("num_virtual_stages_per_pipeline_rank",
                            settings.count("virtual_pipeline_model_parallel_size", 1));
  if (plan.pp <= 1) {
    plan.vpp = 1;
    return;
  }
  if (each > 0) {
    const std::int64_t of_stage = units_of_pipeline(model, plan) / plan.pp;
    plan.vpp = std::max<std::int64_t>(1, of_stage / each);
    if (of_stage % each != 0)
      settings.refuse_value("num_layers_per_virtual_pipeline_stage",
                            "layers of a chunk that divide those of a stage");
  }
  const LayerCounts chunks = stated_chunks(settings, model, plan);
  plan.schedule = plan.vpp > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  if (!chunks.empty()) state_split(model, chunks, plan);
}

void read_sharding(MegatronSettings& settings, Plan& plan) {
  plan.zero_stage = settings.is_on("use_distributed_optimizer") ? 1 : 0;
  const bool fsdp = settings.is_on("use_megatron_fsdp");
  if (settings.is_on("deepspeed")) {
    const double stage = settings.real("zero_stage", 0.0);
    if (stage != 0.0 && stage != 1.0 && stage != 2.0 && stage != 3.0)
      settings.refuse("zero_stage", "0, 1, 2 or 3");
    // DeepSpeed's optimizer of bf16 shards its states at stage 0, too.
    plan.zero_stage = std::max(static_cast<int>(stage), settings.is_on("bf16") ? 1 : 0);
  }
  const std::string strategy = settings.text("data_parallel_sharding_strategy");
  if (fsdp)
    plan.zero_stage = strategy == "optim_grads_params" ? 3
                      : strategy == "optim_grads"      ? 2
                      : strategy == "optim"            ? 1
                                                       : 0;
  if (settings.is_on("use_torch_fsdp2")) plan.zero_stage = 3;
  const std::int64_t instances = settings.count("num_distributed_optimizer_instances", 1);
  if (instances > 1) plan.shard_group = plan.dp * plan.cp / instances;
}

// Switches that have no effect in the plan are as the stack usually has them.
void read_overlap(MegatronSettings& settings, const ModelSpec& model, const StackSpec& stack,
                  Plan& plan) {
  const OverlapSwitches usual = usual_overlap(stack, model);
  OverlapSwitches& overlap = plan.overlap;
  overlap.grad_reduce = settings.is_on("overlap_grad_reduce");
  const bool gathers = settings.is_on("overlap_param_gather");
  overlap.param_gather = plan.zero_stage > 0 ? gathers : usual.param_gather;
  const bool products = settings.is_on("tp_comm_overlap");
  overlap.tensor_parallel = plan.tp > 1 ? products : usual.tensor_parallel;
  const bool p2p = settings.is_on("overlap_p2p_comm", true);
  overlap.p2p = plan.vpp > 1 ? p2p : usual.p2p;
  const bool experts = settings.is_on("moe_shared_expert_overlap");
  overlap.expert_parallel = model.moe ? experts : usual.expert_parallel;
  overlap.expert_microbatches = settings.is_on("overlap_moe_expert_parallel_comm");
}

template <NamedEnum Module>
EnumSet<Module> read_modules(MegatronSettings& settings, const std::string& name) {
  EnumSet<Module> modules;
  std::istringstream words(settings.text(name));
  for (std::string word; words >> word;) {
    bool known = false;
    for (const Module module : enumerators<Module>()) {
      if (word != name_of(module)) continue;
      modules.insert(module);
      known = true;
    }
    if (!known) settings.refuse(name, "names of modules that are known here");
  }
  return modules;
}

void read_recomputation(MegatronSettings& settings, const StackSpec& stack, Plan& plan) {
  std::string granularity = settings.text("recompute_granularity");
  if (granularity.empty() && settings.is_on("recompute_activations")) granularity = "selective";
  // Megatron-LM 2 and Megatron-DeepSpeed recompute all of a layer, by the one or the other
  // argument.
  std::string method = settings.text("activations_checkpoint_method");
  if (granularity.empty() && (settings.is_on("checkpoint_activations") || !method.empty()))
    granularity = "full";
  if (method.empty()) method = settings.text("recompute_method");
  // It says who recomputes, not what.
  settings.text("deepspeed_activation_checkpointing");
  const auto modules = read_modules<RecomputeModule>(settings, "recompute_modules");
  const std::int64_t layers = settings.count("recompute_num_layers", 1);
  if (granularity == "selective") {
    plan.recompute = RecomputePolicy::Selective;
    if (!modules.empty() && modules != stack.capabilities.selective_recompute)
      plan.recompute_modules = modules;
  } else if (granularity == "full") {
    plan.recompute = RecomputePolicy::Full;
    if (method == "block")
      plan.recompute_layers = layers;
    else
      plan.recompute_group = layers;
  } else if (!granularity.empty()) {
    settings.refuse("recompute_granularity", "selective or full");
  }
}

void read_states(MegatronSettings& settings, Plan& plan) {
  const std::string moments = settings.text("exp_avg_dtype");
  settings.text("exp_avg_sq_dtype");
  if (!settings.is_on("use_precision_aware_optimizer")) return;
  if (moments == "bf16" || moments == "torch.bfloat16")
    plan.optimizer_states = OptimizerStates::Bf16;
  if (moments == "fp8" || moments == "torch.uint8")
    plan.optimizer_states = OptimizerStates::EightBit;
}

void read_offload(MegatronSettings& settings, const ModelSpec& model, Plan& plan) {
  if (settings.is_on("optimizer_cpu_offload")) plan.offload_optimizer = OptimizerOffload::Host;
  const std::int64_t layers = settings.count("cpu_offloading_num_layers", 0);
  if (layers > 0) {
    plan.offload_activations = true;
    plan.offload_layers = layers == model.layers - 1 ? 0 : layers;
  }
  const auto modules = read_modules<OffloadModule>(settings, "offload_modules");
  if (!settings.is_on("fine_grained_activation_offloading")) return;
  plan.offload_activations = true;
  plan.offload_modules = modules;
}

void read_precision(MegatronSettings& settings, Plan& plan) {
  plan.precision = settings.is_on("bf16")   ? Precision::Bf16
                   : settings.is_on("fp16") ? Precision::Fp16
                                            : Precision::Fp32;
  const std::string fp8 =
      settings.text("fp8_format").empty() ? settings.text("fp8") : settings.text("fp8_format");
  const std::string fp4 =
      settings.text("fp4_format").empty() ? settings.text("fp4") : settings.text("fp4_format");
  if (!fp8.empty() && fp8 != "False") plan.precision = Precision::Fp8;
  if (!fp4.empty() && fp4 != "False") plan.precision = Precision::Nvfp4;
}

// The stack's gradients, where the arguments have them in 16 bits.
void read_gradients(MegatronSettings& settings, const Plan& plan, StackSpec& stack) {
  const std::string main = settings.text("main_grads_dtype");
  const bool narrow =
      settings.is_on("grad_reduce_in_bf16") || main.ends_with("bf16") || main.ends_with("bfloat16");
  const bool wide = settings.is_on("accumulate_allreduce_grads_in_fp32", true);
  // DeepSpeed's engine, not Megatron-LM's, reduces the gradients.
  if (settings.is_on("deepspeed") || plan.precision == Precision::Fp32 || (wide && !narrow)) return;
  stack.gradients.fp32_reduction = stack.gradients.fp32_accumulation = false;
}

Plan read_plan_arguments(MegatronSettings& settings, const ModelSpec& model, const StackSpec& stack,
                         std::optional<std::int64_t> ranks, const std::string& how_to_state_ranks,
                         const LaunchArguments& launch, ProblemList& problems) {
  Plan plan;
  read_degrees(settings, ranks, how_to_state_ranks, launch, plan, problems);
  plan.micro_batch = settings.count("micro_batch_size", 1);
  plan.global_batch = settings.count("global_batch_size", plan.micro_batch * plan.dp);
  plan.seq_len = settings.required("seq_length");
  const bool sequence = settings.is_on("sequence_parallel");
  if (plan.tp > 1) plan.sequence_parallel = sequence;
  read_experts_of_plan(settings, model, plan);
  read_pipeline(settings, model, plan);
  read_sharding(settings, plan);
  read_overlap(settings, model, stack, plan);
  read_recomputation(settings, stack, plan);
  read_states(settings, plan);
  read_offload(settings, model, plan);
  read_precision(settings, plan);
  return plan;
}

}  // namespace

ExportedNames exported_names(const LaunchArguments& launch) {
  static const std::regex kTitle(R"(\s*(\S+) on \d+ x \S+ \((\S+)\), planned for (\S+)\s*)");
  std::smatch match;
  if (launch.title.size() > 500 || !std::regex_match(launch.title, match, kTitle)) return {};
  return {match[1], match[2], match[3]};
}

ImportedPlan imported_plan(const LaunchArguments& launch, const ClusterSpec& cluster,
                           const StackSpec& stack, std::optional<std::int64_t> ranks,
                           const std::string& how_to_state_ranks) {
  ProblemList problems(launch.source);
  MegatronSettings settings(launch, problems);
  ImportedPlan imported;
  Scenario& scenario = imported.scenario;
  scenario.cluster = cluster;
  scenario.stack = stack;
  scenario.model = model_of(settings);
  scenario.plan = read_plan_arguments(settings, scenario.model, stack, ranks ? ranks : launch.ranks,
                                      how_to_state_ranks, launch, problems);
  read_gradients(settings, scenario.plan, scenario.stack);
  problems.throw_if_any();
  if (!launch.unknown.empty())
    imported.assumed.push_back(fmt::format("nobody knows what the script finds when it runs: {}",
                                           fmt::join(launch.unknown, ", ")));
  identify_model(launch, settings, imported);
  const std::string optimizer = settings.text("optimizer");
  if (!optimizer.empty() && optimizer.find("adam") == std::string::npos &&
      optimizer.find("Adam") == std::string::npos)
    imported.assumed.push_back(
        fmt::format("the optimizer is Adam, as {} is not simulated", optimizer));
  if (scenario.plan.offload_optimizer == OptimizerOffload::Host &&
      settings.real("optimizer_offload_fraction", 1.0) < 1.0)
    imported.assumed.push_back("all of the optimizer is offloaded, not a part of it");
  problems.throw_if_any();
  if (!launch.complete) imported.unread = settings.unread();
  // The rules of models and plans.
  read_scenario(to_json(scenario), launch.source);
  return imported;
}

}  // namespace shardwright::planner
