// Every field of a model, a plan and a stack is computed, refused by name, or irrelevant to
// training. A new field of a model or plan fails these tests until a table below lists it; a new
// field of a stack fails them unless it is irrelevant.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/program/executable.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

enum class Fate {
  // The field changes what is trained.
  Changes,
  // The field is refused by name.
  Refused,
  // The field is irrelevant to training.
  NoMatter,
};

// Changes one field of `small_llama` (or another model), or of `one_rank_plan`, and other fields if
// the model or plan would not be valid otherwise.
template <class Spec>
struct Field {
  // The JSON pointer in the document of the spec.
  const char* name;
  Fate fate;
  void (*change)(Spec&);
  // The name in the refusal; null stands for its own.
  const char* refused_as = nullptr;
  // The model that is changed, or that the plan is for.
  ModelSpec (*model)() = small_llama;
};

constexpr Fate kChanges = Fate::Changes, kRefused = Fate::Refused, kNoMatter = Fate::NoMatter;
using M = ModelSpec;

const std::vector<Field<ModelSpec>> kModelFields = {
    {"/name", kNoMatter, [](M& m) { m.name = "other"; }},
    {"/family", kNoMatter, [](M& m) { m.family = "other"; }},
    {"/aliases", kNoMatter, [](M& m) { m.aliases = {"other"}; }},
    {"/source", kNoMatter, [](M& m) { m.source = "other"; }},
    {"/layers", kChanges, [](M& m) { m.layers = 3; }},
    {"/hidden", kChanges, [](M& m) { m.hidden = 48; }},
    {"/vocab", kChanges, [](M& m) { m.vocab = 300; }},
    {"/max_seq_len", kNoMatter, [](M& m) { m.max_seq_len = 64; }},
    {"/attention/kind", kChanges, [](M& m) { m.attention.kind = AttentionKind::GroupedQuery; },
     nullptr, small_deepseek_v3},
    {"/attention/heads", kChanges, [](M& m) { m.attention.heads = 2; }},
    {"/attention/kv_heads", kChanges, [](M& m) { m.attention.kv_heads = 4; }},
    {"/attention/head_dim", kChanges, [](M& m) { m.attention.head_dim = 16; }},
    {"/attention/qkv_bias", kChanges, [](M& m) { m.attention.qkv_bias = true; }},
    {"/attention/output_bias", kChanges, [](M& m) { m.attention.output_bias = true; }},
    {"/attention/qk_norm", kChanges, [](M& m) { m.attention.qk_norm = true; }},
    {"/attention/qk_norm_whole", kRefused,
     [](M& m) { m.attention.qk_norm = m.attention.qk_norm_whole = true; }},
    {"/attention/output_gate", kRefused, [](M& m) { m.attention.output_gate = true; }},
    {"/attention/sinks", kRefused, [](M& m) { m.attention.sinks = true; }},
    {"/attention/sliding_window", kRefused, [](M& m) { m.attention.sliding_window = 8; }},
    {"/attention/full_attention_interval", kRefused,
     [](M& m) { m.attention.sliding_window = 8, m.attention.full_attention_interval = 2; },
     "/attention/sliding_window"},
    {"/attention/full_attention_first_layers", kRefused,
     [](M& m) { m.attention.sliding_window = 8, m.attention.full_attention_first_layers = 2; },
     "/attention/sliding_window"},
    {"/attention/q_lora_rank", kChanges, [](M& m) { m.attention.q_lora_rank = 8; }, nullptr,
     small_deepseek_v3},
    {"/attention/kv_lora_rank", kChanges, [](M& m) { m.attention.kv_lora_rank = 8; }, nullptr,
     small_deepseek_v3},
    {"/attention/qk_nope_head_dim", kChanges,
     [](M& m) { m.attention.qk_nope_head_dim += 2, m.attention.head_dim += 2; }, nullptr,
     small_deepseek_v3},
    {"/attention/qk_rope_head_dim", kChanges,
     [](M& m) { m.attention.qk_rope_head_dim += 2, m.attention.head_dim += 2; }, nullptr,
     small_deepseek_v3},
    {"/attention/v_head_dim", kChanges, [](M& m) { m.attention.v_head_dim = 8; }, nullptr,
     small_deepseek_v3},
    {"/mlp/ffn_hidden", kChanges, [](M& m) { m.mlp.ffn_hidden = 64; }},
    {"/mlp/activation", kChanges, [](M& m) { m.mlp.activation = Activation::Relu; }},
    {"/mlp/gated", kChanges, [](M& m) { m.mlp.gated = false; }},
    {"/mlp/bias", kChanges, [](M& m) { m.mlp.bias = true; }},
    {"/mlp/clamped", kRefused, [](M& m) { m.mlp.clamped = true; }},
    {"/moe/experts", kChanges, [](M& m) { m.moe->experts = 6; }, nullptr, small_mixtral},
    {"/moe/top_k", kChanges, [](M& m) { m.moe->top_k = 1; }, nullptr, small_mixtral},
    {"/moe/expert_ffn", kChanges, [](M& m) { m.moe->expert_ffn = 16; }, nullptr, small_mixtral},
    {"/moe/shared_experts", kChanges,
     [](M& m) { m.moe->shared_experts = 1, m.moe->shared_expert_ffn = 16; }, nullptr,
     small_mixtral},
    {"/moe/shared_expert_gate", kChanges,
     [](M& m) {
       m.moe->shared_experts = 1, m.moe->shared_expert_ffn = 16, m.moe->shared_expert_gate = true;
     },
     nullptr, small_mixtral},
    {"/moe/shared_expert_ffn", kChanges, [](M& m) { m.moe->shared_expert_ffn = 8; }, nullptr,
     small_qwen2_moe},
    {"/moe/first_dense_layers", kChanges, [](M& m) { m.moe->first_dense_layers = 1; }, nullptr,
     small_mixtral},
    {"/moe/layer_interval", kChanges, [](M& m) { m.moe->layer_interval = 2; }, nullptr,
     small_mixtral},
    {"/moe/token_nodes", kRefused, [](M& m) { m.moe->token_nodes = 2; }, nullptr, small_mixtral},
    {"/moe/router_bias", kRefused, [](M& m) { m.moe->router_bias = true; }, nullptr, small_mixtral},
    {"/moe/router_linear_bias", kRefused, [](M& m) { m.moe->router_linear_bias = true; }, nullptr,
     small_mixtral},
    {"/moe/renormalised", kChanges, [](M& m) { m.moe->renormalised = false; }, nullptr,
     small_mixtral},
    {"/moe/balanced_routing", kRefused, [](M& m) { m.moe->balanced_routing = true; }, nullptr,
     small_mixtral},
    {"/moe/load_variation", kNoMatter, [](M& m) { m.moe->load_variation = 0.2; }, nullptr,
     small_mixtral},
    {"/moe/capacity_factor", kChanges, [](M& m) { m.moe->capacity_factor = 1.0; }, nullptr,
     small_mixtral},
    {"/moe/pads_to_capacity", kRefused,
     [](M& m) { m.moe->capacity_factor = 1.0, m.moe->pads_to_capacity = true; }, nullptr,
     small_mixtral},
    {"/linear_attention", kRefused,
     [](M& m) { m.linear_attention.emplace(), m.layer_pattern = "L"; }, "/layer_pattern"},
    {"/layer_pattern", kRefused, [](M& m) { m.layer_pattern = "*-"; }},
    {"/norm", kChanges, [](M& m) { m.norm = NormKind::LayerNorm; }},
    {"/norm_bias", kChanges, [](M& m) { m.norm_bias = false; }, nullptr, small_gpt2},
    {"/norm_epsilon", kChanges, [](M& m) { m.norm_epsilon = 0.1; }},
    {"/norms_per_layer", kRefused, [](M& m) { m.norms_per_layer = 4; }},
    {"/post_norm", kRefused, [](M& m) { m.post_norm = true; }},
    {"/final_norm", kRefused, [](M& m) { m.final_norm = false; }},
    {"/embedding_norm", kRefused, [](M& m) { m.embedding_norm = true; }},
    {"/parallel_block", kRefused, [](M& m) { m.parallel_block = true; }},
    {"/position", kRefused, [](M& m) { m.position = PositionKind::Alibi; }},
    // Rows beyond the positions of the sequences.
    {"/position_embeddings", kNoMatter, [](M& m) { m.position_embeddings = 66; }, nullptr,
     small_gpt2},
    {"/rotary_share", kChanges, [](M& m) { m.rotary_share = 0.5; }},
    {"/rope_theta", kChanges, [](M& m) { m.rope_theta = 100.0; }},
    {"/rope_scaling", kChanges, [](M& m) { m.rope_scaling.emplace().factor = 8.0; }},
    {"/rope_scaling", kRefused, [](M& m) { m.rope_scaling.emplace().kind = RopeScalingKind::Yarn; },
     "/rope_scaling/kind"},
    {"/rope_scaling", kChanges, [](M& m) { m.rope_scaling->mscale_all_dim = 1.0; }, nullptr,
     small_deepseek_v2},
    {"/tied_embeddings", kChanges, [](M& m) { m.tied_embeddings = true; }},
    {"/tied_head_stored", kNoMatter, [](M& m) { m.tied_head_stored = true; }, nullptr, small_gpt2},
    {"/head_bias", kRefused, [](M& m) { m.head_bias = true; }},
    {"/embedding_width", kRefused, [](M& m) { m.embedding_width = 16; }},
    {"/dropout", kRefused, [](M& m) { m.dropout = 0.1; }},
    {"/not_simulated", kNoMatter, [](M& m) { m.not_simulated = {"a tower"}; }},
    {"/mtp_layers", kRefused, [](M& m) { m.mtp_layers = 1; }},
};

using P = Plan;

const std::vector<Field<Plan>> kPlanFields = {
    {"/dp", kNoMatter, [](P& p) { p.dp = 2; }},
    {"/tp", kNoMatter, [](P& p) { p.tp = 2; }},
    {"/pp", kNoMatter, [](P& p) { p.pp = 2; }},
    {"/cp", kNoMatter, [](P& p) { p.cp = 2, p.context_parallel = ContextParallelKind::AllGather; }},
    {"/context_parallel", kNoMatter, [](P& p) { p.cp = 2; }},
    {"/context_parallel", kNoMatter,
     [](P& p) { p.cp = 2, p.context_parallel = ContextParallelKind::Ulysses; }},
    {"/cp", kRefused, [](P& p) { p.cp = 4, p.context_parallel = ContextParallelKind::Ulysses; }},
    {"/ep", kNoMatter, [](P& p) { p.dp = p.ep = 2; }, nullptr, small_mixtral},
    {"/expert_tp", kNoMatter, [](P& p) { p.tp = p.expert_tp = 2; }, nullptr, small_mixtral},
    {"/vpp", kNoMatter, [](P& p) { p.pp = p.vpp = 2, p.schedule = ScheduleKind::Interleaved; }},
    {"/sequence_parallel", kNoMatter, [](P& p) { p.tp = 2, p.sequence_parallel = false; }},
    {"/sequence_parallel", kRefused, [](P& p) { p.tp = 2, p.sequence_parallel = false; }, nullptr,
     small_mixtral},
    {"/zero_stage", kNoMatter, [](P& p) { p.dp = 2, p.zero_stage = 1; }},
    {"/zero_stage", kNoMatter, [](P& p) { p.dp = 2, p.zero_stage = 2; }},
    {"/zero_stage", kNoMatter, [](P& p) { p.dp = 2, p.zero_stage = 3; }},
    {"/shard_group", kNoMatter, [](P& p) { p.dp = 4, p.zero_stage = 1, p.shard_group = 2; }},
    {"/shard_group", kNoMatter, [](P& p) { p.dp = 4, p.zero_stage = p.shard_group = 2; }},
    {"/micro_batch", kNoMatter, [](P& p) { p.micro_batch = 4; }},
    {"/global_batch", kChanges, [](P& p) { p.global_batch = 4; }},
    {"/seq_len", kChanges, [](P& p) { p.seq_len = 16; }},
    {"/schedule", kNoMatter, [](P& p) { p.pp = 2, p.schedule = ScheduleKind::GPipe; }},
    {"/schedule", kNoMatter, [](P& p) { p.pp = 2, p.schedule = ScheduleKind::ZbH1; }},
    {"/schedule", kNoMatter, [](P& p) { p.pp = 2, p.schedule = ScheduleKind::DualPipe; }},
    {"/context_parallel", kNoMatter,
     [](P& p) { p.context_parallel = ContextParallelKind::AllGather; }},
    {"/recompute", kNoMatter, [](P& p) { p.recompute = RecomputePolicy::Full; }},
    {"/recompute", kNoMatter, [](P& p) { p.recompute = RecomputePolicy::Selective; }},
    {"/recompute", kRefused, [](P& p) { p.recompute = RecomputePolicy::PerOp; }},
    {"/recompute_modules", kNoMatter,
     [](P& p) {
       p.recompute = RecomputePolicy::Selective, p.recompute_modules = {RecomputeModule::Mlp};
     }},
    {"/recompute_modules", kNoMatter,
     [](P& p) {
       p.dp = p.ep = 2, p.recompute = RecomputePolicy::Selective;
       p.recompute_modules = {RecomputeModule::Moe, RecomputeModule::LayerNorm};
     },
     nullptr, small_qwen2_moe},
    {"/recompute_modules", kNoMatter,
     [](P& p) {
       p.dp = p.ep = 2, p.recompute = RecomputePolicy::Selective;
       p.recompute_modules = {RecomputeModule::MoeActivation, RecomputeModule::SharedExperts};
     },
     nullptr, small_qwen2_moe},
    {"/recompute_modules", kNoMatter,
     [](P& p) {
       p.recompute = RecomputePolicy::Selective;
       p.recompute_modules = {RecomputeModule::MlaUpProjection, RecomputeModule::MlpActivation};
     },
     nullptr, small_deepseek_v3},
    {"/recompute_modules", kRefused,
     [](P& p) {
       p.cp = 2, p.recompute = RecomputePolicy::Selective;
       p.recompute_modules = {RecomputeModule::MlaUpProjection};
     },
     nullptr, small_deepseek_v3},
    {"/recompute_layers", kNoMatter,
     [](P& p) { p.recompute = RecomputePolicy::Full, p.recompute_layers = 1; }},
    {"/recompute_interval", kNoMatter,
     [](P& p) { p.recompute = RecomputePolicy::Full, p.recompute_interval = 2; }},
    {"/recompute_group", kNoMatter,
     [](P& p) { p.recompute = RecomputePolicy::Full, p.recompute_group = 2; }},
    {"/recompute_group", kNoMatter,
     [](P& p) { p.recompute = RecomputePolicy::Full, p.recompute_group = 4; }},
    {"/precision", kChanges, [](P& p) { p.precision = Precision::Bf16; }},
    {"/precision", kChanges, [](P& p) { p.precision = Precision::Bf16; }, nullptr, small_mixtral},
    {"/precision", kRefused, [](P& p) { p.precision = Precision::Fp8; }},
    {"/overlap/grad_reduce", kNoMatter, [](P& p) { p.dp = 2, p.overlap.grad_reduce = false; }},
    {"/overlap/param_gather", kNoMatter,
     [](P& p) { p.dp = 2, p.zero_stage = 1, p.overlap.param_gather = false; }},
    {"/overlap/tensor_parallel", kNoMatter,
     [](P& p) { p.tp = 2, p.overlap.tensor_parallel = true; }},
    {"/overlap/p2p", kNoMatter, [](P& p) { p.pp = 2, p.overlap.p2p = false; }},
    {"/overlap/expert_parallel", kNoMatter,
     [](P& p) { p.dp = p.ep = 2, p.overlap.expert_parallel = true; }, nullptr, small_qwen2_moe},
    {"/overlap/expert_microbatches", kNoMatter,
     [](P& p) { p.dp = p.ep = 2, p.overlap.expert_microbatches = true; }, nullptr, small_mixtral},
    {"/rank_order", kNoMatter,
     [](P& p) {
       p.dp = p.pp = 2;
       p.rank_order = {Axis::Pipeline, Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data};
     }},
    {"/stage_layers", kNoMatter,
     [](P& p) {
       p.pp = 2, p.stage_layers = {1, 3};
     }},
    {"/stage_recompute_layers", kNoMatter,
     [](P& p) {
       p.pp = 2, p.recompute = RecomputePolicy::Full, p.stage_recompute_layers = {1, 0};
     }},
    {"/stage_pools", kNoMatter,
     [](P& p) {
       p.pp = 2, p.stage_pools = {"first", "second"};
     }},
    {"/replica_pools", kNoMatter,
     [](P& p) {
       p.dp = 2, p.replica_pools = {{"first", 1, 5}, {"second", 1, 3}};
     }},
    {"/embedding_counts_as_layer", kNoMatter,
     [](P& p) { p.pp = 2, p.embedding_counts_as_layer = true; }},
    {"/head_counts_as_layer", kNoMatter, [](P& p) { p.pp = 2, p.head_counts_as_layer = true; }},
    {"/optimizer_states", kNoMatter, [](P& p) { p.optimizer_states = OptimizerStates::Fp32; }},
    {"/optimizer_states", kRefused, [](P& p) { p.optimizer_states = OptimizerStates::EightBit; }},
    {"/offload_optimizer", kRefused, [](P& p) { p.offload_optimizer = OptimizerOffload::Host; }},
    {"/offload_activations", kNoMatter, [](P& p) { p.offload_activations = true; }},
    {"/offload_modules", kNoMatter,
     [](P& p) { p.offload_activations = true, p.offload_modules = {OffloadModule::QkvLinear}; }},
    {"/offload_layers", kNoMatter,
     [](P& p) { p.offload_activations = true, p.offload_layers = 1; }},
    {"/offload_ratio", kNoMatter,
     [](P& p) { p.offload_activations = true, p.offload_ratio = 0.5; }},
    {"/multi_token_prediction", kNoMatter, [](P& p) { p.multi_token_prediction = false; }},
    {"/lora", kRefused, [](P& p) { p.lora = Lora{}; }},
    {"/data_parallel", kChanges,
     [](P& p) { p.dp = 2, p.replicas.compression = ReplicaCompression::TopK; }},
    {"/data_parallel", kRefused,
     [](P& p) { p.dp = 2, p.replicas.compression = ReplicaCompression::Fp16; },
     "/data_parallel/compression"},
    {"/data_parallel", kRefused,
     [](P& p) { p.dp = p.tp = 2, p.replicas.sync = ReplicaSync::ParameterServer; },
     "/data_parallel/sync"},
};

// The fields of a stack that are refused. All others are irrelevant to training on the CPU.
const std::set<std::string> kRefusedStackFields = {"/fusion/flash_attention",
                                                   "/fusion/norm",
                                                   "/fusion/loss",
                                                   "/fusion/loss_chunks",
                                                   "/fusion/parallel_loss",
                                                   "/fusion/wgrad_accumulation",
                                                   "/communication/scatters_messages",
                                                   "/memory/optimizer_state_bytes"};

// Members of documents that no field of a spec holds. A model's "parameters" follow from its
// fields.
const std::set<std::string> kNoFields = {"/schema", "/version", "/sources", "/parameters"};

// Calls visit(pointer, schema) for each field that the JSON Schema of a spec describes.
template <class Visit>
void for_each_field(const nlohmann::json& schema, const std::string& pointer, const Visit& visit) {
  for (const auto& [key, field] : schema.at("properties").items()) {
    const std::string name = fmt::format("{}/{}", pointer, key);
    if (kNoFields.contains(name)) continue;
    if (field.contains("type") && field.at("type") == "object") {
      for_each_field(field, name, visit);
    } else {
      visit(name, field);
    }
  }
}

template <class Spec>
nlohmann::json schema_of_spec() {
  Spec spec;
  return json_schema([&](FieldVisitor& fields) { describe(spec, fields); });
}

// Returns the fields that no row of the table names.
template <class Spec>
std::vector<std::string> unnamed_fields(const std::vector<Field<Spec>>& fields) {
  std::vector<std::string> unnamed;
  for_each_field(schema_of_spec<Spec>(), "", [&](const std::string& name, const auto& /*schema*/) {
    const bool known = std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
      return name == field.name || name.starts_with(std::string(field.name) + "/");
    });
    if (!known) unnamed.push_back(name);
  });
  return unnamed;
}

// A value that the schema allows; of arrays one with an element.
nlohmann::json allowed_value(const nlohmann::json& schema) {
  if (schema.contains("enum")) return schema.at("enum").front();
  if (schema.contains("items")) return nlohmann::json::array({allowed_value(schema.at("items"))});
  if (schema.contains("required")) {
    nlohmann::json object;
    for (const nlohmann::json& key : schema.at("required"))
      object[key.get<std::string>()] = allowed_value(schema.at("properties").at(key));
    return object;
  }
  return schema.contains("minimum") ? schema.at("minimum") : nlohmann::json("other");
}

// Returns another valid value of a field.
nlohmann::json other_value(const nlohmann::json& schema, const nlohmann::json& now) {
  if (now.is_boolean()) return !now.get<bool>();
  if (now.is_number_float()) return now == 0.0 ? 0.5 : now.get<double>() / 2.0;
  if (now.is_number()) return now.get<std::int64_t>() + 1;
  if (now.is_array()) return now.empty() ? allowed_value(schema) : nlohmann::json::array();
  if (!schema.contains("enum")) return "other";
  return schema.at("enum").front() == now ? schema.at("enum").back() : schema.at("enum").front();
}

// Returns the pointers of refused fields.
std::vector<std::string> refusals(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                                  bool on_gpu = false) {
  return problems_of([&] { check_executable(model, plan, stack, on_gpu, "plan.json"); });
}

constexpr TrainingOptions kThreeSteps{.steps = 3, .learning_rate = 3e-3};

double worst_difference(const std::vector<double>& losses, const std::vector<double>& expected) {
  EXPECT_EQ(losses.size(), expected.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < losses.size(); ++i)
    worst = std::max(worst, std::abs(losses[i] / expected[i] - 1.0));
  return worst;
}

// The losses on one rank differ if anything else is computed, if only in the last bits.
TEST(EveryField, OfAModelIsComputedRefusedOrIrrelevant) {
  const Plan plan = one_rank_plan();
  const StackSpec stack = load_stack("shardwright");
  for (const auto& field : kModelFields) {
    const ModelSpec before = field.model();
    ModelSpec model = before;
    field.change(model);
    ASSERT_NE(model, before) << field.name;
    const std::string refused_as = field.refused_as != nullptr ? field.refused_as : field.name;
    const auto refused = refusals(model, plan, stack);
    if (field.fate == Fate::Refused) {
      EXPECT_THAT(refused, testing::Contains("/model" + refused_as));
      continue;
    }
    ASSERT_THAT(refused, testing::IsEmpty()) << field.name;
    const bool same = train(model, plan, kThreeSteps) == train(before, plan, kThreeSteps);
    EXPECT_EQ(same, field.fate == Fate::NoMatter) << field.name;
  }
}

TEST(EveryField, OfAPlanIsComputedRefusedOrIrrelevant) {
  std::map<std::string, std::vector<double>> known;
  for (const auto& field : kPlanFields) {
    if (field.change == nullptr) continue;
    const ModelSpec model = field.model();
    std::vector<double>& expected = known[model.name];
    if (expected.empty()) expected = train(model, one_rank_plan(), kThreeSteps);
    Plan plan = one_rank_plan();
    field.change(plan);
    const auto refused = refusals(model, plan, load_stack("shardwright"));
    if (field.fate == Fate::Refused) {
      const char* refused_as = field.refused_as != nullptr ? field.refused_as : field.name;
      EXPECT_THAT(refused, testing::Contains(std::string("/plan") + refused_as));
      continue;
    }
    ASSERT_THAT(refused, testing::IsEmpty()) << field.name;
    const double difference = worst_difference(train(model, plan, kThreeSteps), expected);
    EXPECT_EQ(difference <= 1e-5, field.fate == Fate::NoMatter) << field.name << difference;
  }
}

// The plan uses every axis, and irrelevant fields change all at once.
TEST(EveryField, OfAStackIsRefusedOrIrrelevant) {
  const ModelSpec model = small_llama();
  Plan plan = one_rank_plan();
  plan.dp = plan.tp = plan.pp = 2;
  plan.zero_stage = 1;
  plan.sequence_parallel = false;
  plan.overlap.tensor_parallel = true;
  StackSpec stack = load_stack("shardwright");
  stack.sources.clear();
  // A section that is there as a whole or not at all.
  stack.capabilities.lora.emplace();
  stack.capabilities.lora->source = "a document";
  stack.capabilities.lora->targets = {LoraTarget::Q};
  const nlohmann::json before = to_json(stack);
  nlohmann::json irrelevant = before;
  std::size_t refused = 0;
  for_each_field(schema_of_spec<StackSpec>(), "", [&](const std::string& name, const auto& schema) {
    const nlohmann::json::json_pointer place(name);
    const nlohmann::json none = schema.contains("items") ? nlohmann::json::array() : "";
    nlohmann::json changed = before;
    changed[place] = other_value(schema, before.value(place, schema.value("default", none)));
    const StackSpec other = read_stack(changed, "stack.json");
    EXPECT_NE(other, read_stack(before, "stack.json")) << name;
    if (!kRefusedStackFields.contains(name)) {
      irrelevant[place] = changed[place];
      return;
    }
    ++refused;
    EXPECT_THAT(refusals(model, plan, other), testing::ElementsAre("/stack" + name));
  });
  EXPECT_EQ(refused, kRefusedStackFields.size());
  // The model has several buckets only if they are small.
  irrelevant["gradients"]["bucket_elements"] = 1.0;
  irrelevant["gradients"]["bucket_elements_per_replica"] = 5e3;
  const StackSpec other = read_stack(irrelevant, "stack.json");
  ASSERT_THAT(refusals(model, plan, other), testing::IsEmpty());
  const std::vector<double> expected = train(model, one_rank_plan(), kThreeSteps);
  EXPECT_LE(worst_difference(train(model, plan, kThreeSteps, other), expected), 1e-5);
}

// Each rank already sends only its own part of the hidden state.
TEST(EveryField, OfScatteredTransfersIsIrrelevantUnderSequenceParallelism) {
  const ModelSpec model = small_llama();
  Plan plan = one_rank_plan();
  plan.tp = plan.pp = 2;
  StackSpec stack = load_stack("shardwright");
  stack.communication.scatters_messages = true;
  EXPECT_THAT(refusals(model, plan, stack), testing::IsEmpty());
  const std::vector<double> expected = train(model, one_rank_plan(), kThreeSteps);
  EXPECT_LE(worst_difference(train(model, plan, kThreeSteps, stack), expected), 1e-5);
}

// Formats other than fp32 for states and transfers train differently in bf16.
TEST(EveryField, ThatIsAFormatIsRefusedOnAGpu) {
  Plan plan = one_rank_plan();
  plan.precision = Precision::Bf16;
  StackSpec stack = load_stack("shardwright");
  EXPECT_THAT(refusals(small_llama(), plan, stack, true), testing::IsEmpty());
  stack.gradients.fp32_reduction = stack.gradients.fp32_accumulation = false;
  stack.memory.master_weight_bytes = Bytes(0);
  EXPECT_THAT(refusals(small_llama(), plan, stack, true),
              testing::UnorderedElementsAre("/stack/gradients/fp32_reduction",
                                            "/stack/gradients/fp32_accumulation",
                                            "/stack/memory/master_weight_bytes"));
}

TEST(EveryField, OfAttentionWithoutKernelsForAGpuIsRefusedThere) {
  Plan plan = one_rank_plan();
  plan.precision = Precision::Bf16;
  const auto refused = [&](const ModelSpec& model) {
    return refusals(model, plan, load_stack("shardwright"), true);
  };
  EXPECT_THAT(refused(small_qwen3()), testing::Contains("/model/attention/qk_norm"));
  EXPECT_THAT(refused(small_deepseek_v3()), testing::Contains("/model/attention/kind"));
}

// Three elements of a head cannot be rotated, and heads of latent attention have a rotary part.
TEST(EveryField, OfARotaryShareThatDoesNotFitIsRefused) {
  for (ModelSpec model : {small_llama(), small_deepseek_v3()}) {
    model.rotary_share = 0.4;
    EXPECT_THAT(refusals(model, one_rank_plan(), load_stack("shardwright")),
                testing::ElementsAre("/model/rotary_share"));
  }
}

TEST(EveryField, OfRowsTooLongForTheNormsOfAGpuIsRefused) {
  const auto refusal = [](std::int64_t hidden, bool on_gpu) {
    ModelSpec model = small_llama();
    model.hidden = hidden;
    Plan plan = one_rank_plan();
    plan.precision = on_gpu ? Precision::Bf16 : Precision::Fp32;
    return thrown_by(
        [&] { check_executable(model, plan, load_stack("shardwright"), on_gpu, "plan.json"); });
  };
  for (const bool packed : {true, false}) {
    const std::int64_t longest = longest_norm_row(packed) - (packed ? 0 : 1);
    const std::int64_t longer = longest + (packed ? 8 : 2);
    EXPECT_EQ(refusal(longest, true), "");
    EXPECT_EQ(refusal(longer, false), "");
    EXPECT_THAT(refusal(longer, true),
                testing::AllOf(testing::HasSubstr("plan.json"), testing::HasSubstr("/model/hidden"),
                               testing::HasSubstr(std::to_string(longer)),
                               testing::HasSubstr(packed ? "at most 16384" : "at most 2048")));
  }
}

TEST(EveryField, IsListedInATable) {
  EXPECT_THAT(unnamed_fields(kModelFields), testing::IsEmpty());
  EXPECT_THAT(unnamed_fields(kPlanFields), testing::IsEmpty());
}

}  // namespace
}  // namespace shardwright::executor
