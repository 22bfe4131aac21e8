// Every field of a model, a plan and a stack is computed, refused by name, or irrelevant to
// training. A new field fails these tests until a table below lists it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/spec/model_json.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"
#include "executor/kernels/cuda/fused_kernels.hpp"
#include "executor/runtime/executable.hpp"
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

// Changes one field of `small_llama` or `small_gpt2`, of `one_rank_plan`, or of the executor's
// stack, and other fields if the model or plan would not be valid otherwise.
template <class Spec>
struct Field {
  // The JSON pointer in the document of the spec.
  const char* name;
  Fate fate;
  void (*change)(Spec&);
  // The name in the refusal; null stands for its own.
  const char* refused_as = nullptr;
  // True for a GPT-2 instead of a Llama.
  bool gpt2 = false;
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
    {"/attention/kind", kRefused, [](M& m) { m.attention.kind = AttentionKind::MultiHeadLatent; }},
    {"/attention/heads", kChanges, [](M& m) { m.attention.heads = 2; }},
    {"/attention/kv_heads", kChanges, [](M& m) { m.attention.kv_heads = 4; }},
    {"/attention/head_dim", kChanges, [](M& m) { m.attention.head_dim = 16; }},
    {"/attention/qkv_bias", kChanges, [](M& m) { m.attention.qkv_bias = true; }},
    {"/attention/output_bias", kChanges, [](M& m) { m.attention.output_bias = true; }},
    {"/attention/qk_norm", kRefused, [](M& m) { m.attention.qk_norm = true; }},
    {"/attention/sinks", kRefused, [](M& m) { m.attention.sinks = true; }},
    {"/attention/sliding_window", kRefused, [](M& m) { m.attention.sliding_window = 8; }},
    {"/attention/full_attention_interval", kRefused,
     [](M& m) { m.attention.sliding_window = 8, m.attention.full_attention_interval = 2; },
     "/attention/sliding_window"},
    {"/attention/full_attention_first_layers", kRefused,
     [](M& m) { m.attention.sliding_window = 8, m.attention.full_attention_first_layers = 2; },
     "/attention/sliding_window"},
    {"/mlp/ffn_hidden", kChanges, [](M& m) { m.mlp.ffn_hidden = 64; }},
    {"/mlp/activation", kChanges, [](M& m) { m.mlp.activation = Activation::Relu; }},
    {"/mlp/gated", kChanges, [](M& m) { m.mlp.gated = false; }},
    {"/mlp/bias", kChanges, [](M& m) { m.mlp.bias = true; }},
    {"/mlp/clamped", kRefused, [](M& m) { m.mlp.clamped = true; }},
    {"/moe", kRefused, [](M& m) { m.moe.emplace(); }},
    {"/norm", kChanges, [](M& m) { m.norm = NormKind::LayerNorm; }},
    {"/norm_bias", kChanges, [](M& m) { m.norm_bias = false; }, nullptr, true},
    {"/norm_epsilon", kChanges, [](M& m) { m.norm_epsilon = 0.1; }},
    {"/norms_per_layer", kRefused, [](M& m) { m.norms_per_layer = 4; }},
    {"/final_norm", kRefused, [](M& m) { m.final_norm = false; }},
    {"/embedding_norm", kRefused, [](M& m) { m.embedding_norm = true; }},
    {"/parallel_block", kRefused, [](M& m) { m.parallel_block = true; }},
    {"/position", kRefused, [](M& m) { m.position = PositionKind::Alibi; }},
    // Rows beyond the positions of the sequences.
    {"/position_embeddings", kNoMatter, [](M& m) { m.position_embeddings = 66; }, nullptr, true},
    {"/rotary_share", kChanges, [](M& m) { m.rotary_share = 0.5; }},
    {"/rope_theta", kChanges, [](M& m) { m.rope_theta = 100.0; }},
    {"/tied_embeddings", kChanges, [](M& m) { m.tied_embeddings = true; }},
    {"/tied_head_stored", kNoMatter, [](M& m) { m.tied_head_stored = true; }, nullptr, true},
    {"/head_bias", kRefused, [](M& m) { m.head_bias = true; }},
    {"/embedding_width", kRefused, [](M& m) { m.embedding_width = 16; }},
    {"/dropout", kRefused, [](M& m) { m.dropout = 0.1; }},
    {"/mtp_layers", kRefused, [](M& m) { m.mtp_layers = 1; }},
};

using P = Plan;

const std::vector<Field<Plan>> kPlanFields = {
    {"/dp", kNoMatter, [](P& p) { p.dp = 2; }},
    {"/tp", kNoMatter, [](P& p) { p.tp = 2; }},
    {"/pp", kNoMatter, [](P& p) { p.pp = 2; }},
    {"/cp", kRefused, [](P& p) { p.cp = 2; }},
    {"/ep", kRefused, [](P& p) { p.ep = 2; }},
    {"/expert_tp", kRefused, [](P& p) { p.expert_tp = 2; }},
    {"/vpp", kNoMatter, [](P& p) { p.pp = p.vpp = 2, p.schedule = ScheduleKind::Interleaved; }},
    {"/sequence_parallel", kNoMatter, [](P& p) { p.tp = 2, p.sequence_parallel = false; }},
    {"/zero_stage", kNoMatter, [](P& p) { p.dp = 2, p.zero_stage = 1; }},
    {"/zero_stage", kRefused, [](P& p) { p.dp = 2, p.zero_stage = 2; }},
    {"/shard_group", kRefused, [](P& p) { p.dp = 4, p.zero_stage = 1, p.shard_group = 2; }},
    {"/micro_batch", kNoMatter, [](P& p) { p.micro_batch = 4; }},
    {"/global_batch", kChanges, [](P& p) { p.global_batch = 4; }},
    {"/seq_len", kChanges, [](P& p) { p.seq_len = 16; }},
    {"/schedule", kNoMatter, [](P& p) { p.pp = 2, p.schedule = ScheduleKind::GPipe; }},
    {"/schedule", kRefused, [](P& p) { p.pp = 2, p.schedule = ScheduleKind::ZbH1; }},
    {"/context_parallel", kNoMatter,
     [](P& p) { p.context_parallel = ContextParallelKind::AllGather; }},
    {"/recompute", kNoMatter, [](P& p) { p.recompute = RecomputePolicy::Full; }},
    {"/recompute", kNoMatter, [](P& p) { p.recompute = RecomputePolicy::Selective; }},
    {"/recompute_layers", kNoMatter,
     [](P& p) { p.recompute = RecomputePolicy::Full, p.recompute_layers = 1; }},
    {"/precision", kRefused, [](P& p) { p.precision = Precision::Bf16; }},
    {"/overlap/grad_reduce", kNoMatter, [](P& p) { p.dp = 2, p.overlap.grad_reduce = false; }},
    {"/overlap/param_gather", kNoMatter,
     [](P& p) { p.dp = 2, p.zero_stage = 1, p.overlap.param_gather = false; }},
    {"/overlap/tensor_parallel", kNoMatter,
     [](P& p) { p.tp = 2, p.overlap.tensor_parallel = true; }},
    {"/overlap/p2p", kNoMatter, [](P& p) { p.pp = 2, p.overlap.p2p = false; }},
    {"/overlap/expert_parallel", kNoMatter, [](P& p) { p.overlap.expert_parallel = true; }},
    // The rules of plans without experts refuse these.
    {"/overlap/expert_microbatches", kNoMatter, nullptr},
    {"/rank_order", kNoMatter,
     [](P& p) {
       p.dp = p.pp = 2;
       p.rank_order = {Axis::Pipeline, Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data};
     }},
    {"/stage_layers", kNoMatter,
     [](P& p) {
       p.pp = 2, p.stage_layers = {1, 3};
     }},
    {"/embedding_counts_as_layer", kNoMatter,
     [](P& p) { p.pp = 2, p.embedding_counts_as_layer = true; }},
    {"/head_counts_as_layer", kNoMatter, [](P& p) { p.pp = 2, p.head_counts_as_layer = true; }},
    {"/offload_optimizer", kRefused, [](P& p) { p.offload_optimizer = OptimizerOffload::Host; }},
    {"/offload_activations", kRefused, [](P& p) { p.offload_activations = true; }},
    {"/multi_token_prediction", kNoMatter, [](P& p) { p.multi_token_prediction = false; }},
};

using S = StackSpec;

const std::vector<Field<StackSpec>> kStackFields = {
    {"/name", kNoMatter, [](S& s) { s.name = "other"; }},
    {"/family", kNoMatter, [](S& s) { s.family = "other"; }},
    {"/aliases", kNoMatter, [](S& s) { s.aliases = {"other"}; }},
    {"/schedules", kNoMatter, [](S& s) { s.schedules.clear(); }},
    {"/zero_stages", kNoMatter, [](S& s) { s.zero_stages.clear(); }},
    {"/filled_in", kNoMatter, [](S& s) { s.filled_in = {"/fusion/norm"}; }},
    {"/notes", kNoMatter, [](S& s) { s.notes = "other"; }},
    {"/sources", kNoMatter, [](S& s) { s.sources.clear(); }},
    {"/fusion/flash_attention", kRefused, [](S& s) { s.fusion.flash_attention = false; }},
    {"/fusion/attention_kernel_ratio", kNoMatter,
     [](S& s) { s.fusion.attention_kernel_ratio = 0.5; }},
    {"/fusion/hopper_attention_kernel_ratio", kNoMatter,
     [](S& s) { s.fusion.hopper_attention_kernel_ratio = 0.5; }},
    {"/fusion/norm", kRefused, [](S& s) { s.fusion.norm = false; }},
    {"/fusion/rope", kNoMatter, [](S& s) { s.fusion.rope = false; }},
    {"/fusion/activation", kNoMatter, [](S& s) { s.fusion.activation = false; }},
    {"/fusion/dropout_add", kNoMatter, [](S& s) { s.fusion.dropout_add = false; }},
    {"/fusion/loss", kRefused, [](S& s) { s.fusion.loss = false; }},
    {"/fusion/parallel_loss", kRefused, [](S& s) { s.fusion.parallel_loss = false; }},
    {"/fusion/library_loss", kNoMatter, [](S& s) { s.fusion.library_loss = true; }},
    {"/fusion/softmax", kNoMatter, [](S& s) { s.fusion.softmax = false; }},
    {"/fusion/optimizer", kNoMatter, [](S& s) { s.fusion.optimizer = false; }},
    {"/fusion/grouped_gemm", kNoMatter, [](S& s) { s.fusion.grouped_gemm = true; }},
    {"/fusion/expert_bias", kNoMatter, [](S& s) { s.fusion.expert_bias = false; }},
    {"/fusion/wgrad_accumulation", kRefused, [](S& s) { s.fusion.wgrad_accumulation = false; }},
    {"/overlap/grad_reduce", kNoMatter, [](S& s) { s.overlap.grad_reduce = false; }},
    {"/overlap/param_gather", kNoMatter, [](S& s) { s.overlap.param_gather = false; }},
    {"/overlap/tensor_parallel", kNoMatter, [](S& s) { s.overlap.tensor_parallel = true; }},
    {"/overlap/input_gradient", kNoMatter, [](S& s) { s.overlap.input_gradient = false; }},
    {"/overlap/p2p", kNoMatter, [](S& s) { s.overlap.p2p = false; }},
    {"/overlap/expert_parallel", kNoMatter, [](S& s) { s.overlap.expert_parallel = true; }},
    {"/overlap/tensor_parallel_share_ratio", kNoMatter,
     [](S& s) { s.overlap.tensor_parallel_share = 0.5; }},
    {"/overlap/expert_parallel_share_ratio", kNoMatter,
     [](S& s) { s.overlap.expert_parallel_share = 0.5; }},
    {"/overlap/slowdown_ratio", kNoMatter, [](S& s) { s.overlap.slowdown = 0.5; }},
    {"/overlap/collective_slowdown_ratio", kNoMatter,
     [](S& s) { s.overlap.collective_slowdown = 0.5; }},
    {"/communication/collective_ratio", kNoMatter,
     [](S& s) { s.communication.collective_ratio = 0.5; }},
    {"/communication/all_to_all_ratio", kNoMatter,
     [](S& s) { s.communication.all_to_all_ratio = 0.5; }},
    {"/communication/scatters_messages", kRefused,
     [](S& s) { s.communication.scatters_messages = true; }},
    {"/communication/sends_tokens_once_per_node", kNoMatter,
     [](S& s) { s.communication.sends_tokens_once_per_node = true; }},
    {"/host/launch_s", kNoMatter, [](S& s) { s.host.launch_time = microseconds(9.0); }},
    {"/host/module_s", kNoMatter, [](S& s) { s.host.module_launch_time = microseconds(9.0); }},
    {"/host/waits_for_messages", kNoMatter, [](S& s) { s.host.waits_for_messages = true; }},
    {"/host/reads_token_counts", kNoMatter, [](S& s) { s.host.reads_token_counts = true; }},
    {"/host/router_launches", kNoMatter, [](S& s) { s.host.router_launches = 3; }},
    {"/host/cuda_graphs", kNoMatter, [](S& s) { s.host.cuda_graphs = true; }},
    {"/host/graphs_to_dispatch", kNoMatter, [](S& s) { s.host.graphs_to_dispatch = true; }},
    {"/host/prefetch_layers", kNoMatter, [](S& s) { s.host.prefetch_layers = 3; }},
    {"/gradients/buckets", kNoMatter,
     [](S& s) { s.gradients.buckets = GradientBuckets::PerLayer; }},
    {"/gradients/bucket_elements", kNoMatter, [](S& s) { s.gradients.bucket_elements = 1000.0; }},
    {"/gradients/bucket_elements_per_replica", kNoMatter,
     [](S& s) {
       s.gradients.bucket_elements = 1.0, s.gradients.bucket_elements_per_replica = 5e3;
     }},
    // Irrelevant on the CPU, where everything is fp32.
    {"/gradients/fp32_reduction", kNoMatter, [](S& s) { s.gradients.fp32_reduction = false; }},
    {"/gradients/fp32_accumulation", kNoMatter,
     [](S& s) { s.gradients.fp32_accumulation = false; }},
    {"/memory/master_weight_bytes", kNoMatter,
     [](S& s) { s.memory.master_weight_bytes = Bytes(0); }},
    {"/memory/optimizer_state_bytes", kRefused,
     [](S& s) { s.memory.optimizer_state_bytes = Bytes(4); }},
    {"/memory/context_bytes", kNoMatter, [](S& s) { s.memory.context = Bytes(1e6); }},
    {"/memory/communicator_bytes", kNoMatter, [](S& s) { s.memory.communicator = Bytes(1e6); }},
    {"/memory/fragmentation_ratio", kNoMatter, [](S& s) { s.memory.fragmentation = 0.5; }},
    {"/memory/keeps_half_gradients", kNoMatter, [](S& s) { s.memory.keeps_half_gradients = true; }},
    {"/memory/reduction_buffer", kNoMatter, [](S& s) { s.memory.reduction_buffer = true; }},
    {"/memory/gradient_placeholders", kNoMatter,
     [](S& s) { s.memory.gradient_placeholders = true; }},
    {"/memory/fp8_saved_inputs", kNoMatter, [](S& s) { s.memory.fp8_saved_inputs = true; }},
    {"/memory/dropout_mask_saved", kNoMatter, [](S& s) { s.memory.dropout_mask_saved = true; }},
    {"/memory/fp8_weight_bytes", kNoMatter, [](S& s) { s.memory.fp8_weight_bytes = Bytes(1); }},
    {"/memory/step_gradient_bytes", kNoMatter,
     [](S& s) { s.memory.step_gradient_bytes = Bytes(4); }},
};

// Returns the fields of the document that no row of the table names.
template <class Spec>
void find_unnamed(const nlohmann::json& object, const std::string& pointer,
                  const std::vector<Field<Spec>>& fields, std::vector<std::string>& unnamed) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = fmt::format("{}/{}", pointer, key);
    const bool known = std::any_of(fields.begin(), fields.end(),
                                   [&](const auto& field) { return field.name == name; });
    const bool is_form = name == "/schema" || name == "/version";
    if (known || is_form) continue;
    if (value.is_object()) {
      find_unnamed(value, name, fields, unnamed);
    } else {
      unnamed.push_back(name);
    }
  }
}

// `all` has a value for every field that a document omits if it is the default.
template <class Spec>
std::vector<std::string> unnamed_fields(const Spec& all, const std::vector<Field<Spec>>& fields) {
  std::vector<std::string> unnamed;
  find_unnamed<Spec>(nlohmann::json(to_json(all)), "", fields, unnamed);
  return unnamed;
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
    const ModelSpec before = field.gpt2 ? small_gpt2() : small_llama();
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
  const ModelSpec model = small_llama();
  const std::vector<double> expected = train(model, one_rank_plan(), kThreeSteps);
  for (const auto& field : kPlanFields) {
    if (field.change == nullptr) continue;
    Plan plan = one_rank_plan();
    field.change(plan);
    const auto refused = refusals(model, plan, load_stack("shardwright"));
    if (field.fate == Fate::Refused) {
      EXPECT_THAT(refused, testing::Contains(std::string("/plan") + field.name));
      continue;
    }
    ASSERT_THAT(refused, testing::IsEmpty()) << field.name;
    const double difference = worst_difference(train(model, plan, kThreeSteps), expected);
    EXPECT_EQ(difference <= 1e-5, field.fate == Fate::NoMatter) << field.name << difference;
  }
}

// Under a plan with every axis; irrelevant fields all at once.
TEST(EveryField, OfAStackIsRefusedOrIrrelevant) {
  const ModelSpec model = small_llama();
  Plan plan = one_rank_plan();
  plan.dp = plan.tp = plan.pp = 2;
  plan.zero_stage = 1;
  plan.sequence_parallel = false;
  plan.overlap.tensor_parallel = true;
  StackSpec other = load_stack("shardwright");
  for (const auto& field : kStackFields) {
    if (field.fate == Fate::NoMatter) {
      field.change(other);
      continue;
    }
    StackSpec stack = load_stack("shardwright");
    field.change(stack);
    EXPECT_THAT(refusals(model, plan, stack),
                testing::ElementsAre(std::string("/stack") + field.name));
  }
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

TEST(EveryField, OfThreeElementsOfAHeadCannotBeRotated) {
  ModelSpec model = small_llama();
  model.rotary_share = 0.4;
  EXPECT_THAT(refusals(model, one_rank_plan(), load_stack("shardwright")),
              testing::ElementsAre("/model/rotary_share"));
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

// These initialisers do not compile with a new field, which a document may omit if it is the
// default. Then give it a value in `unnamed_fields` below and a row in the table.
[[maybe_unused]] void name_each_member(const ModelSpec& model, const Plan& plan) {
  [[maybe_unused]] const auto& [name, family, aliases, source, layers, hidden, vocab, max_seq_len,
                                attention, mlp, moe, norm, norm_bias, norm_epsilon, norms_per_layer,
                                final_norm, embedding_norm, parallel_block, position,
                                position_embeddings, rotary_share, rope_theta, tied_embeddings,
                                tied_head_stored, head_bias, embedding_width, dropout, mtp_layers] =
      model;
  [[maybe_unused]] const auto& [kind, heads, kv_heads, head_dim, qkv_bias, output_bias, qk_norm,
                                sinks, sliding_window, full_attention_interval,
                                full_attention_first_layers, q_lora_rank, kv_lora_rank,
                                qk_nope_head_dim, qk_rope_head_dim, v_head_dim] = attention;
  [[maybe_unused]] const auto& [ffn_hidden, activation, gated, bias, clamped] = mlp;
  [[maybe_unused]] const auto& [dp, tp, pp, cp, ep, expert_tp, vpp, sequence_parallel, zero_stage,
                                shard_group, micro_batch, global_batch, seq_len, schedule,
                                context_parallel, recompute, recompute_layers, precision, overlap,
                                rank_order, stage_layers, embedding_counts_as_layer,
                                head_counts_as_layer, offload_optimizer, offload_activations,
                                multi_token_prediction] = plan;
  [[maybe_unused]] const auto& [grad_reduce, param_gather, tensor_parallel, p2p, expert_parallel,
                                expert_microbatches] = overlap;
}

TEST(EveryField, IsListedInATable) {
  ModelSpec model = small_llama();
  model.mlp.clamped = true;
  model.moe.emplace();
  EXPECT_THAT(unnamed_fields(model, kModelFields), testing::IsEmpty());
  EXPECT_THAT(unnamed_fields(one_rank_plan(), kPlanFields), testing::IsEmpty());
  StackSpec stack = load_stack("shardwright");
  for (const auto& field : kStackFields) field.change(stack);
  stack.sources["/notes"] = {};
  EXPECT_THAT(unnamed_fields(stack, kStackFields), testing::IsEmpty());
}

}  // namespace
}  // namespace shardwright::executor
