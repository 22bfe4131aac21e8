#include "planner/import/nemo_arguments.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace shardwright::planner {
namespace {

// Fields of the model (megatron/core/transformer/transformer_config.py and
// megatron/bridge/models/gpt_provider.py at commit 067f987df03b of
// https://github.com/NVIDIA-NeMo/Megatron-Bridge) that Megatron-LM's arguments have by the same
// name.
constexpr std::array kFieldsOfModel = {"num_layers",
                                       "hidden_size",
                                       "ffn_hidden_size",
                                       "num_attention_heads",
                                       "num_query_groups",
                                       "kv_channels",
                                       "seq_length",
                                       "max_position_embeddings",
                                       "vocab_size",
                                       "hidden_dropout",
                                       "add_bias_linear",
                                       "add_qkv_bias",
                                       "qk_layernorm",
                                       "attention_output_gate",
                                       "window_size",
                                       "window_attn_skip_freq",
                                       "position_embedding_type",
                                       "rotary_base",
                                       "rotary_percent",
                                       "rotary_scaling_factor",
                                       "rope_scaling_factor",
                                       "mscale",
                                       "mscale_all_dim",
                                       "multi_latent_attention",
                                       "q_lora_rank",
                                       "kv_lora_rank",
                                       "qk_head_dim",
                                       "qk_pos_emb_head_dim",
                                       "v_head_dim",
                                       "mtp_num_layers",
                                       "mtp_hybrid_override_pattern",
                                       "mtp_use_repeated_layer",
                                       "hybrid_layer_pattern",
                                       "hybrid_override_pattern",
                                       "hybrid_attention_ratio",
                                       "hybrid_mlp_ratio",
                                       "is_hybrid_model",
                                       "mamba_num_heads",
                                       "mamba_head_dim",
                                       "mamba_num_groups",
                                       "mamba_state_dim",
                                       "experimental_attention_variant",
                                       "linear_attention_freq",
                                       "linear_num_value_heads",
                                       "linear_value_head_dim",
                                       "linear_num_key_heads",
                                       "linear_key_head_dim",
                                       "linear_conv_kernel_dim",
                                       "heterogeneous_layers_config_path",
                                       "heterogeneous_layers_config_encoded_json",
                                       "enable_mhc_connections",
                                       "moe_latent_size",
                                       "moe_router_topk",
                                       "moe_ffn_hidden_size",
                                       "moe_layer_freq",
                                       "moe_shared_expert_gate",
                                       "moe_shared_expert_intermediate_size",
                                       "moe_router_enable_expert_bias",
                                       "moe_router_force_load_balancing",
                                       "moe_expert_capacity_factor",
                                       "moe_pad_expert_input_to_capacity",
                                       "moe_shared_expert_overlap",
                                       "overlap_moe_expert_parallel_comm",
                                       "tensor_model_parallel_size",
                                       "pipeline_model_parallel_size",
                                       "virtual_pipeline_model_parallel_size",
                                       "context_parallel_size",
                                       "expert_model_parallel_size",
                                       "expert_tensor_parallel_size",
                                       "pipeline_model_parallel_layout",
                                       "account_for_embedding_in_pipeline_split",
                                       "account_for_loss_in_pipeline_split",
                                       "cp_comm_type",
                                       "sequence_parallel",
                                       "recompute_granularity",
                                       "recompute_method",
                                       "recompute_num_layers",
                                       "recompute_modules",
                                       "fine_grained_activation_offloading",
                                       "offload_modules",
                                       "overlap_p2p_comm",
                                       "tp_comm_overlap",
                                       "micro_batch_size",
                                       "global_batch_size",
                                       "bf16",
                                       "fp16",
                                       "fp4"};

// Further places of arguments. Where a place has a value, those after it do not count: the overlap
// that a run asks for, for one, goes before that of the model. "model" stands for wherever the
// fields of the model are.
constexpr std::array<std::pair<const char*, const char*>, 52> kPlaces = {{
    {"train.micro_batch_size", "micro_batch_size"},
    {"train.global_batch_size", "global_batch_size"},
    {"data.micro_batch_size", "micro_batch_size"},
    {"data.global_batch_size", "global_batch_size"},
    {"model.encoder_seq_length", "seq_length"},
    {"dataset.seq_length", "seq_length"},
    {"dataset.sequence_length", "seq_length"},
    {"data.seq_length", "seq_length"},
    {"model.data.seq_length", "seq_length"},
    {"comm_overlap.tp_comm_overlap", "tp_comm_overlap"},
    {"comm_overlap.overlap_p2p_comm", "overlap_p2p_comm"},
    {"comm_overlap.overlap_grad_reduce", "overlap_grad_reduce"},
    {"comm_overlap.overlap_param_gather", "overlap_param_gather"},
    {"comm_overlap.overlap_moe_expert_parallel_comm", "overlap_moe_expert_parallel_comm"},
    {"ddp.overlap_grad_reduce", "overlap_grad_reduce"},
    {"ddp.overlap_param_gather", "overlap_param_gather"},
    {"mixed_precision.grad_reduce_in_fp32", "accumulate_allreduce_grads_in_fp32"},
    {"ddp.use_distributed_optimizer", "use_distributed_optimizer"},
    {"ddp.use_megatron_fsdp", "use_megatron_fsdp"},
    {"ddp.use_custom_fsdp", "use_megatron_fsdp"},
    {"ddp.data_parallel_sharding_strategy", "data_parallel_sharding_strategy"},
    {"ddp.num_distributed_optimizer_instances", "num_distributed_optimizer_instances"},
    {"dist.use_tp_pp_dp_mapping", "use_tp_pp_dp_mapping"},
    {"dist.use_torch_fsdp2", "use_torch_fsdp2"},
    {"optimizer.use_distributed_optimizer", "use_distributed_optimizer"},
    {"optimizer.use_precision_aware_optimizer", "use_precision_aware_optimizer"},
    {"optimizer.optimizer_cpu_offload", "optimizer_cpu_offload"},
    {"optimizer.exp_avg_dtype", "exp_avg_dtype"},
    {"mixed_precision.bf16", "bf16"},
    {"mixed_precision.fp16", "fp16"},
    {"mixed_precision.fp8", "fp8"},
    {"mixed_precision.fp4", "fp4"},
    {"model.optim.overlap_grad_sync", "overlap_grad_reduce"},
    {"model.optim.overlap_param_sync", "overlap_param_gather"},
    {"model.activations_checkpoint_granularity", "recompute_granularity"},
    {"model.activations_checkpoint_method", "recompute_method"},
    {"model.activations_checkpoint_num_layers", "recompute_num_layers"},
    {"model.num_moe_experts", "num_experts"},
    {"model.mamba_ssm_ngroups", "mamba_num_groups"},
    {"model.tokenizer.model", "tokenizer_model"},
    {"model.tokenizer.type", "tokenizer_name_or_path"},
    {"tokenizer.tokenizer_model", "tokenizer_model"},
    {"model.bias", "add_bias_linear"},
    {"model.rotary_percentage", "rotary_percent"},
    {"model.layernorm_epsilon", "norm_epsilon"},
    {"model.seq_len_interpolation_factor", "rotary_seq_len_interpolation_factor"},
    {"model.rope_scaling", "use_rope_scaling"},
    {"model.scale_positional_embedding", "use_rope_scaling"},
    {"model.ub_tp_comm_overlap", "tp_comm_overlap"},
    {"model.num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"},
    {"model.num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"},
    {"model.gated_linear_unit", "swiglu"},
}};

bool describes_layers(const YAML::Node& node) {
  return node.IsMap() && node["num_layers"] && node["hidden_size"];
}

class NemoConfig {
 public:
  // Throws YAML::Exception.
  explicit NemoConfig(const YAML::Node& document) : root_(document) {
    if (root_.IsMap() && root_["cfg"] && root_["cfg"].IsMap()) root_.reset(document["cfg"]);
    for (const char* path : {"model", "model.config", "config", "model.language_config"}) {
      const YAML::Node found = path_from(root_, path);
      if (found.IsDefined() && describes_layers(found)) model_.reset(found);
    }
    if (describes_layers(root_)) model_.reset(root_);
  }

  bool has_model() const { return model_.IsDefined() && model_.IsMap(); }

  // Empty where there is nothing, null or a reference to nothing.
  std::string text(std::string_view path) const { return text_of(node_at(path), path); }

  bool has(std::string_view path) const {
    const YAML::Node node = node_at(path);
    return node.IsDefined() && !node.IsNull();
  }

 private:
  YAML::Node node_at(std::string_view path) const {
    return path.starts_with("model.") ? path_from(model_, path.substr(6)) : path_from(root_, path);
  }

  // An undefined node where the path leads nowhere.
  static YAML::Node path_from(const YAML::Node& start, std::string_view path) {
    YAML::Node at;
    at.reset(start);
    while (!path.empty()) {
      const std::size_t dot = std::min(path.find('.'), path.size());
      if (!at.IsMap()) return YAML::Node(YAML::NodeType::Undefined);
      const YAML::Node& map = at;
      const YAML::Node next = map[std::string(path.substr(0, dot))];
      if (!next.IsDefined()) return next;
      at.reset(next);
      path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return at;
  }

  std::string text_of(const YAML::Node& node, std::string_view path, int depth = 0) const {
    constexpr int kDeepest = 8;
    if (!node.IsDefined() || node.IsNull() || depth > kDeepest) return "";
    if (node.IsSequence()) {
      std::string words;
      for (const YAML::Node& each : node)
        if (each.IsScalar()) words += (words.empty() ? "" : " ") + each.Scalar();
      return words;
    }
    // Functions and types: {_target_: torch.bfloat16}.
    if (node.IsMap()) return text_of(path_from(node, "_target_"), path, depth + 1);
    const std::string& text = node.Scalar();
    if (text == "None" || text == "???") return "";
    if (text.find("${") != std::string::npos) return followed(text, path, depth);
    bool is_on = false;
    const bool is_word = text.find_first_of("0123456789") == std::string::npos;
    if (is_word && YAML::convert<bool>::decode(node, is_on)) return is_on ? "True" : "False";
    return text;
  }

  // The value of ${model.encoder_seq_length}, or of ${.hidden_size} beside the field.
  std::string followed(std::string_view text, std::string_view path, int depth) const {
    if (!text.starts_with("${") || text.find('}') != text.size() - 1) return "";
    const std::string_view reference = text.substr(2, text.size() - 3);
    if (!reference.starts_with("."))
      return text_of(path_from(root_, reference), reference, depth + 1);
    const std::string beside = fmt::format("{}{}", path.substr(0, path.rfind('.')), reference);
    const std::string_view within = std::string_view(beside).substr(
        beside.starts_with("model.") ? std::string_view("model.").size() : 0);
    return text_of(path_from(beside.starts_with("model.") ? model_ : root_, within), beside,
                   depth + 1);
  }

  YAML::Node root_;
  YAML::Node model_{YAML::NodeType::Undefined};
};

using Values = std::map<std::string, std::string>;

void read_names_of_kinds(const NemoConfig& config, Values& values) {
  // "swiglu", "fast-swiglu", "squared-relu", and functions: "torch.nn.functional.silu".
  const std::string activation = config.text("model.activation");
  if (activation.ends_with("glu")) values["swiglu"] = "True";
  const std::string function = config.text("model.activation_func");
  if (activation == "squared-relu" || function.ends_with("squared_relu"))
    values["squared_relu"] = "True";
  const std::string norm = config.text("model.normalization");
  if (!norm.empty())
    values["normalization"] = norm == "rmsnorm" || norm == "RMSNorm" ? "RMSNorm" : "LayerNorm";
  const std::string shares = config.text("model.share_embeddings_and_output_weights");
  if (shares == "False") values["untie_embeddings_and_output_weights"] = "True";
  // NeMo's configuration of Mamba, which has layers of attention only where a pattern says so.
  if (!config.text("model.mamba_ssm_ngroups").empty()) values["is_hybrid_model"] = "True";
  if (values.contains("num_query_groups")) values["group_query_attention"] = "True";
  // Blocks of this kind are four times as wide, gated or not.
  std::int64_t hidden = 0;
  const std::string& width = values["hidden_size"];
  std::from_chars(width.data(), width.data() + width.size(), hidden);
  if (!values.contains("ffn_hidden_size") && hidden > 0 && hidden < 1'000'000'000)
    values["ffn_hidden_size"] = std::to_string(4 * hidden);
}

void read_number_formats(const NemoConfig& config, Values& values) {
  // "bf16-mixed", "16", and recipes: "bf16_with_fp8_current_scaling_mixed". NeMo 1 writes that of
  // the trainer into the model, which it saves without the trainer.
  std::vector<const char*> places = {"trainer.precision", "mixed_precision"};
  const bool is_stated = values.contains("bf16") || values.contains("fp16") ||
                         !config.text("trainer.precision").empty();
  if (!is_stated) places.push_back("model.precision");
  for (const char* place : places) {
    const std::string recipe = config.text(place);
    const auto says = [&](const char* word) { return recipe.find(word) != std::string::npos; };
    if (says("bf16")) values["bf16"] = "True";
    if (says("fp16") || recipe == "16" || recipe == "16-mixed") values["fp16"] = "True";
    if (says("fp8")) values["fp8"] = "hybrid";
    if (says("fp4")) values["fp4"] = "e2m1";
  }
  const std::string fp8 = config.text("model.fp8");
  if (fp8 == "True") values["fp8"] = config.text("model.fp8_e4m3") == "True" ? "e4m3" : "hybrid";
  if (!fp8.empty() && fp8 != "True" && fp8 != "False") values["fp8"] = fp8;
}

void read_states_of_optimizer(const NemoConfig& config, Values& values) {
  // Sharding by PyTorch's FSDP, in NeMo 1.
  if (config.text("model.fsdp") == "True") {
    values["use_megatron_fsdp"] = "True";
    values["data_parallel_sharding_strategy"] =
        config.text("model.fsdp_sharding_strategy") == "grad" ? "optim_grads"
                                                              : "optim_grads_params";
  }
  const std::string name = config.text("model.optim.name");
  if (name == "distributed_fused_adam" || name == "mcore_distributed_optim")
    values["use_distributed_optimizer"] = "True";
  if (config.text("model.cpu_offloading") == "True") {
    const std::string layers = config.text("model.cpu_offloading_num_layers");
    if (!layers.empty()) values["cpu_offloading_num_layers"] = layers;
  }
}

std::optional<std::int64_t> processes(const NemoConfig& config) {
  const auto count = [&](const char* path) -> std::optional<std::int64_t> {
    const std::string text = config.text(path);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || value < 1 || value > 10'000'000) return std::nullopt;
    return value;
  };
  const auto nodes = count("trainer.num_nodes"), devices = count("trainer.devices");
  return nodes && devices ? std::optional(*nodes * *devices) : std::nullopt;
}

// What stands where the processes should: "trainer.num_nodes 2, trainer.devices auto".
std::string found_processes(const NemoConfig& config) {
  std::string found;
  for (const char* place : {"trainer.num_nodes", "trainer.devices"})
    if (const std::string text = config.text(place); !text.empty())
      found += fmt::format("{}{} {}", found.empty() ? "" : ", ", place, text);
  return found;
}

// Griffin's recurrence, encoders of images, adapters and shards within groups, which no argument
// describes.
void refuse_other_jobs(const NemoConfig& config, const std::string& source) {
  const auto refuse = [&](const std::string& place, const std::string& expected) {
    const std::string value = config.text(place);
    throw InputError(source, {{place, value.empty() ? "a mapping" : value, expected}});
  };
  if (!config.text("model.activations_checkpoint_recurrent").empty())
    refuse("model.activations_checkpoint_recurrent",
           "a model of attention, or with layers of Mamba-2");
  for (const char* place : {"model.mm_cfg.vision_encoder", "model.vision_config"})
    if (config.has(place)) refuse(place, "none: a model of text alone");
  for (const char* place :
       {"peft._target_", "peft.dim", "peft.peft_scheme", "model.peft.peft_scheme"})
    if (!config.text(place).empty())
      refuse(place, "a job that trains all weights: the plan states adapters (lora)");
  const std::string strategy = config.text("model.fsdp_sharding_strategy");
  if (config.text("model.fsdp") == "True" && strategy == "hybrid")
    refuse("model.fsdp_sharding_strategy", "full or grad");
}

LaunchArguments arguments_of(const NemoConfig& config) {
  LaunchArguments launch;
  const auto add = [&](const std::string& place, const char* argument) {
    const std::string value = config.text(place);
    if (!value.empty()) launch.values.try_emplace(argument, value);
  };
  for (const auto& [place, argument] : kPlaces) add(place, argument);
  for (const char* field : kFieldsOfModel) add(std::string("model.") + field, field);
  read_names_of_kinds(config, launch.values);
  read_number_formats(config, launch.values);
  read_states_of_optimizer(config, launch.values);
  launch.ranks = processes(config);
  if (!launch.ranks) launch.found_ranks = found_processes(config);
  launch.places_of_ranks = "trainer.num_nodes and trainer.devices";
  return launch;
}

}  // namespace

std::optional<LaunchArguments> find_nemo_arguments(std::string_view text,
                                                   const std::string& source) {
  if (text.find("num_layers:") == std::string_view::npos ||
      text.find("hidden_size:") == std::string_view::npos)
    return std::nullopt;
  const bool is_named_so = source.ends_with(".yaml") || source.ends_with(".yml");
  try {
    const NemoConfig config(YAML::Load(std::string(text)));
    if (!config.has_model()) return std::nullopt;
    refuse_other_jobs(config, source);
    LaunchArguments launch = arguments_of(config);
    launch.source = source;
    return launch;
  } catch (const YAML::Exception& error) {
    // Logs may print such a configuration.
    if (!is_named_so) return std::nullopt;
    throw InputError(source, {{fmt::format("line {}", error.mark.line + 1), error.msg, "YAML"}});
  }
}

}  // namespace shardwright::planner
