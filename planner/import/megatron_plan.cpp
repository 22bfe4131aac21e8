#include "planner/import/megatron_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <sstream>
#include <utility>

#include "core/base/quantity_text.hpp"
#include "core/program/shard_shape.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/export/plan_export.hpp"
#include "planner/import/megatron_settings.hpp"
#include "planner/import/megatron_shape.hpp"

namespace shardwright::planner {
namespace {

// The layers of each chunk of "Et*7|t*8|t*7L"
// (megatron/core/transformer/pipeline_parallel_layer_layout.py); empty where the text is another
// one.
std::vector<std::int64_t> layout_layers(const std::string& layout) {
  std::vector<std::int64_t> chunks = {0};
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const char c = layout[i];
    std::int64_t times = 1;
    if (i + 1 < layout.size() && layout[i + 1] == '*') {
      std::size_t end = i + 2;
      while (end < layout.size() && layout[end] >= '0' && layout[end] <= '9') ++end;
      if (end == i + 2 || end > i + 8) return {};
      times = std::stoll(layout.substr(i + 2, end - i - 2));
      i = end - 1;
    }
    if (c == '|')
      chunks.push_back(0);
    else if (c == 't')
      chunks.back() += times;
    else if (std::string_view("EmL, ").find(c) == std::string_view::npos)
      return {};
  }
  return chunks;
}

void read_degrees(MegatronSettings& settings, std::optional<std::int64_t> ranks,
                  const std::string& how_to_state_ranks, Plan& plan, ProblemList& problems) {
  plan.tp = settings.count("tensor_model_parallel_size", 1);
  plan.pp = settings.count("pipeline_model_parallel_size", 1);
  plan.cp = settings.count("context_parallel_size", 1);
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
    problems.add("the number of processes", "nothing",
                 how_to_state_ranks + ", or --nnodes and --nproc-per-node of torchrun as numbers");
  } else if (*ranks % of_model != 0) {
    problems.add("the number of processes", format_count(*ranks),
                 fmt::format("a multiple of tp x pp x cp = {}", format_count(of_model)));
  } else {
    plan.dp = *ranks / of_model;
  }
  const std::string sends = settings.text("cp_comm_type");
  plan.context_parallel = sends == "all_gather" ? ContextParallelKind::AllGather
                          : sends == "a2a"      ? ContextParallelKind::Ulysses
                                                : ContextParallelKind::Ring;
  if (!sends.empty() && sends != "p2p" && sends != "all_gather" && sends != "a2a")
    settings.refuse("cp_comm_type", "p2p, all_gather or a2a");
  if (settings.is_on("use_tp_pp_dp_mapping"))
    plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline, Axis::Data};
}

void read_experts_of_plan(MegatronSettings& settings, const ModelSpec& model, Plan& plan) {
  const std::int64_t ep = settings.count("expert_model_parallel_size", 1);
  const std::int64_t expert_tp = settings.count("expert_tensor_parallel_size", plan.tp);
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

void read_pipeline(MegatronSettings& settings, const ModelSpec& model, Plan& plan) {
  const std::string layout = settings.text("pipeline_model_parallel_layout");
  const std::int64_t each = settings.count("num_layers_per_virtual_pipeline_stage", 0);
  plan.embedding_counts_as_layer = settings.is_on("account_for_embedding_in_pipeline_split");
  plan.head_counts_as_layer = settings.is_on("account_for_loss_in_pipeline_split");
  // Megatron-DeepSpeed's "type:transformer|embedding" counts the tied embedding at both ends.
  if (settings.text("pp_partition_method").find("embedding") != std::string::npos)
    plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  const std::int64_t units =
      model.layers + int{plan.embedding_counts_as_layer} + int{plan.head_counts_as_layer};
  plan.vpp = settings.count("num_virtual_stages_per_pipeline_rank",
                            settings.count("virtual_pipeline_model_parallel_size", 1));
  if (plan.pp <= 1) {
    plan.vpp = 1;
    return;
  }
  if (each > 0) plan.vpp = std::max<std::int64_t>(1, units / (each * plan.pp));
  const auto first = settings.count("decoder_first_pipeline_num_layers");
  const auto last = settings.count("decoder_last_pipeline_num_layers");
  LayerCounts chunks;
  if (!layout.empty()) {
    chunks = layout_layers(layout);
    const auto count = static_cast<std::int64_t>(chunks.size());
    if (chunks.empty() || count % plan.pp != 0 ||
        std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0}) != model.layers)
      return settings.refuse("pipeline_model_parallel_layout",
                             "\"Et*7|t*8|t*7L\", for example, with a multiple of pp chunks and the "
                             "model's layers");
    plan.vpp = count / plan.pp;
  } else if ((first || last) && plan.vpp == 1) {
    chunks = layers_of_stages(model, plan.pp, first, last);
  }
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

Plan read_plan_arguments(MegatronSettings& settings, const ModelSpec& model, const StackSpec& stack,
                         std::optional<std::int64_t> ranks, const std::string& how_to_state_ranks,
                         ProblemList& problems) {
  Plan plan;
  read_degrees(settings, ranks, how_to_state_ranks, plan, problems);
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

// The model that a shipped one's export describes.
std::optional<ModelSpec> exported_model(const ModelSpec& shipped, const Scenario& like) {
  Scenario scenario = like;
  scenario.model = shipped;
  scenario.plan.multi_token_prediction = like.model.mtp_layers > 0;
  // The split of the layers is another one's.
  scenario.plan.stage_layers.clear();
  scenario.plan.pp = scenario.plan.vpp = 1;
  const auto launch = find_launch_arguments(megatron_arguments(scenario).text, "export");
  if (!launch) return std::nullopt;
  ProblemList problems("export");
  MegatronSettings settings(*launch, problems);
  ModelSpec model = model_of(settings);
  return problems.empty() ? std::optional(std::move(model)) : std::nullopt;
}

bool has_sizes_of(const ModelSpec& a, const ModelSpec& b) {
  const auto width = [](const ModelSpec& model) {
    return model.moe ? model.moe->expert_ffn * model.moe->experts : model.mlp.ffn_hidden;
  };
  return a.layers == b.layers && a.hidden == b.hidden && a.attention.heads == b.attention.heads &&
         a.attention.kv_heads == b.attention.kv_heads && width(a) == width(b);
}

// The number of further fields in which two models of the same sizes agree.
int likeness(const ModelSpec& a, const ModelSpec& b) {
  return int{a.rope_theta == b.rope_theta} + int{a.position == b.position} +
         int{a.max_seq_len == b.max_seq_len} + int{a.norm == b.norm} +
         int{a.norm_epsilon == b.norm_epsilon} + int{a.tied_embeddings == b.tied_embeddings} +
         int{a.attention.qkv_bias == b.attention.qkv_bias} + int{a.mlp == b.mlp} +
         int{a.moe == b.moe} + int{a.rope_scaling == b.rope_scaling};
}

struct KnownModels {
  // Models that the same arguments describe.
  std::vector<const ModelSpec*> equal;
  // Models of the same sizes, which these are among; the most alike come first.
  std::vector<const ModelSpec*> alike;
};

KnownModels known_models(const Scenario& imported) {
  KnownModels known;
  for (const ModelSpec& shipped : shipped_model_specs()) {
    if (shipped.layers != imported.model.layers || shipped.hidden != imported.model.hidden)
      continue;
    const std::int64_t vocabulary = imported.model.vocab;
    // Logs may state it padded.
    if (vocabulary > 0 && (shipped.vocab > vocabulary || vocabulary > shipped.vocab + 8192))
      continue;
    if (has_sizes_of(shipped, imported.model)) known.alike.push_back(&shipped);
    auto described = exported_model(shipped, imported);
    if (!described) continue;
    described->vocab = imported.model.vocab;
    if (*described == imported.model) known.equal.push_back(&shipped);
  }
  std::stable_sort(known.alike.begin(), known.alike.end(),
                   [&](const ModelSpec* a, const ModelSpec* b) {
                     return likeness(*a, imported.model) > likeness(*b, imported.model);
                   });
  return known;
}

const ModelSpec& preferred(const std::vector<const ModelSpec*>& models, const std::string& name) {
  const auto named = std::find_if(models.begin(), models.end(),
                                  [&](const ModelSpec* each) { return each->name == name; });
  return named == models.end() ? *models.front() : **named;
}

std::string names_of_models(const std::vector<const ModelSpec*>& models) {
  std::vector<std::string> names;
  for (const ModelSpec* each : models) names.push_back(each->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The file's name, or that of the run's folder where all runs have files of one name, as in
// "llama/iter_0000100/mp_rank_00/model_optim_rng.pt".
std::string name_of_source(std::filesystem::path source) {
  const auto says_nothing = [](const std::string& name) {
    return name == "common" || name == "model_optim_rng" || name == "run_config" ||
           name == "release" || name.starts_with("iter_") || name.starts_with("mp_rank_");
  };
  std::string name = source.stem().string();
  while (says_nothing(name) && source.has_parent_path() && source != source.parent_path()) {
    source = source.parent_path();
    name = source.filename().string();
  }
  return name.empty() || says_nothing(name) ? "imported" : name;
}

// Takes the shipped model of the same arguments, or names the model after its file and looks for
// its vocabulary.
void identify_model(const LaunchArguments& launch, ImportedPlan& imported) {
  ModelSpec& model = imported.scenario.model;
  const KnownModels known = known_models(imported.scenario);
  const std::string name = exported_names(launch).model;
  if (!known.equal.empty()) {
    const ModelSpec& shipped = preferred(known.equal, name);
    const bool predicts = model.mtp_layers > 0;
    if (known.equal.size() > 1 && shipped.name != name)
      imported.assumed.push_back(fmt::format("the model is {}: {} have the same arguments",
                                             shipped.name, names_of_models(known.equal)));
    imported.scenario.plan.multi_token_prediction = shipped.mtp_layers == 0 || predicts;
    model = shipped;
    return;
  }
  model.name = name_of_source(launch.source);
  if (model.vocab > 0) return;
  // GPT-2's, padded to a multiple of 128.
  constexpr std::int64_t kUsualVocabulary = 50'304;
  model.vocab = known.alike.empty() ? kUsualVocabulary : preferred(known.alike, name).vocab;
  imported.assumed.push_back(fmt::format(
      "the vocabulary has {} tokens, {}: no argument states it", format_count(model.vocab),
      known.alike.empty() ? "as GPT-2's padded one"
                          : "as that of " + preferred(known.alike, name).name));
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
                                      how_to_state_ranks, problems);
  problems.throw_if_any();
  if (!launch.unknown.empty())
    imported.assumed.push_back(fmt::format("nobody knows what the script finds when it runs: {}",
                                           fmt::join(launch.unknown, ", ")));
  identify_model(launch, imported);
  if (!launch.complete) imported.unread = settings.unread();
  // The rules of models and plans.
  read_scenario(to_json(scenario), launch.source);
  return imported;
}

}  // namespace shardwright::planner
