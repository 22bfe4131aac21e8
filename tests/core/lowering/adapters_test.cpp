// Programs of low-rank fine-tuning: no gradients of frozen weights, those of adapters, and the
// memory that goes with them.
#include "core/spec/adapters.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/lowering/model_flop.hpp"
#include "core/program/validate.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/core/lowering/random_lowering.hpp"
#include "tests/core/program/volumes.hpp"

namespace shardwright {
namespace {

using enum LoraTarget;

Lora any_lora(CaseGenerator& cases, const LoweringCase& made) {
  Lora lora{.rank = cases.one_of<std::int64_t>({1, 4, 16}), .targets = {}, .joint = cases.flag(4)};
  if (cases.flag()) lora.targets = cases.flag() ? LoraTargetSet{Q, K, V} : LoraTargetSet{O, Down};
  if (cases.flag(3) && !casts_operands(made.plan.precision)) lora.base = FrozenFormat::Nf4;
  return lora;
}

// Random cases with adapters of whatever the model has.
template <class Visit>
void for_adapted_cases(int count, Visit visit) {
  CaseGenerator cases(2026);
  while (count > 0) {
    LoweringCase made = cases.next();
    made.plan.lora = any_lora(cases, made);
    if (!broken_rules(made.model, nullptr, made.plan).empty()) continue;
    SCOPED_TRACE(shown(made));
    visit(made);
    --count;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(AdaptedPrograms, AreValid) {
  for_adapted_cases(200, [](const LoweringCase& made) {
    const auto findings = validate(made.lower());
    for (const Finding& finding : findings) ADD_FAILURE() << finding.text;
  });
}

// The phase of weight gradients names adapters alone, and each of them.
TEST(AdaptedPrograms, HaveGradientsOfAdaptersAlone) {
  for_adapted_cases(100, [](const LoweringCase& made) {
    std::set<std::string> wanted, found;
    for (std::int64_t layer = 0; layer < made.model.layers; ++layer) {
      for (const ParameterTensor& tensor : adapter_parameters(made.model, *made.plan.lora, layer))
        wanted.insert(tensor.name.substr(tensor.name.find('.', 7) + 1));
    }
    for (const Block& block : make_blocks(made.model, made.plan, made.stack).blocks) {
      for (const Op& op : block.ops) {
        if (op.phase != Phase::BackwardWeight) continue;
        for (const std::string& name : op.parameters)
          found.insert(name.substr(name.find('.', 7) + 1) + ".weight");
      }
    }
    EXPECT_EQ(found, wanted);
  });
}

// The FLOP of one rank by phase are those of the formulas: 2 T W forward and for the gradient of
// the input, where W counts frozen weights and adapters, and 2 T A for the gradients of A adapters.
TEST(AdaptedPrograms, HaveTheFlopOfTheFormulas) {
  LoweringCase made = small_case(4);
  made.model.vocab = 128;
  const RankVolumes full = volumes(made.lower()).front();
  for (const Lora& lora : {Lora{.rank = 8, .targets = {}}, Lora{.rank = 8, .targets = {Q, Down}},
                           Lora{.rank = 8, .targets = {}, .joint = true}}) {
    made.plan.lora = lora;
    const RankVolumes rank = volumes(made.lower()).front();
    const double adapters =
        2.0 * 64.0 * static_cast<double>(count_adapters(made.model, lora).total);
    EXPECT_EQ(rank.of(Phase::BackwardWeight).value(), adapters);
    EXPECT_EQ((rank.of(Phase::Forward) - full.of(Phase::Forward)).value(), adapters);
    EXPECT_EQ((rank.of(Phase::BackwardInput) - full.of(Phase::BackwardInput)).value(), adapters);
  }
}

// Megatron Bridge's table for Llama 3 70B on 8 H100: 735 TFLOP/s at 2,643 tokens/s with adapters of
// queries, keys and values (docs/performance-summary-archive.md, container 26.06). It counts
// products of weights alone.
TEST(AdaptedPrograms, CountFlopAsMegatronBridgeDoes) {
  const ModelSpec model = load_model("llama3-70b");
  Plan plan;
  plan.lora = Lora{.rank = 16, .targets = {Q, K, V}, .joint = true};
  const double scores = 12.0 * 80.0 * 8192.0 * static_cast<double>(plan.seq_len);
  const double of_token =
      model_flop_per_step(model, plan).value() / static_cast<double>(plan.seq_len) - scores;
  EXPECT_NEAR(of_token, 735e12 / 2643.0, 2e-3 * of_token);
}

struct Llama {
  ModelSpec model = load_model("llama3-8b");
  StackSpec stack = load_stack("nemo-te");
  Plan plan;

  explicit Llama(std::optional<Lora> lora = {}) {
    plan.zero_stage = 0;
    plan.seq_len = 4096;
    plan.lora = lora;
  }

  double kept() const {
    const BlockSet blocks = make_blocks(model, plan, stack);
    return kept_bytes(blocks.blocks[blocks.kept.front().forward], blocks.tensors).value();
  }
};

// Inputs of frozen projections are kept only where an adapter or another op reads them. With
// adapters of queries, keys and values, a layer drops the input of the feed-forward block's
// projections: 2 bytes of hidden and of feed-forward elements each; it keeps the adapters' inner
// products.
TEST(AdaptedPrograms, KeepNoInputsOfProjectionsWithoutAdapter) {
  const double tokens = 4096.0, hidden = 4096.0, ffn = 14336.0;
  const Lora lora{.rank = 16, .targets = {Q, K, V}};
  EXPECT_DOUBLE_EQ(Llama().kept() - Llama(lora).kept(),
                   2.0 * tokens * (hidden + ffn) - 3.0 * 2.0 * tokens * 16.0);
  EXPECT_DOUBLE_EQ(Llama(Lora{.rank = 16, .targets = {}}).kept() - Llama().kept(),
                   7.0 * 2.0 * tokens * 16.0);
}

double bytes_of(const Program& program, MemoryCategory category) {
  double sum = 0.0;
  for (const PersistentMemory& state : program.stages.front().persistent)
    if (state.category == category) sum += state.bytes.value();
  return sum;
}

// GPT-3's checkpoint of 350 GB, of which LoRA trains and stores 35 MB (arXiv 2106.09685, section
// 4.2: rank 4 on queries and values), has no further states but those of the adapters.
TEST(AdaptedPrograms, HoldStatesOfAdaptersAlone) {
  LoweringCase made;
  made.model = load_model("gpt3-175b");
  made.stack = load_stack("megatron-core");
  made.plan.zero_stage = 0;
  made.plan.lora = Lora{.rank = 4, .targets = {Q, V}};
  const Program program = made.lower();
  const double adapters = 18'874'368.0;
  EXPECT_EQ(program.stages.front().parameters.dense, adapters);
  EXPECT_NEAR(adapters * 2.0, 35.0 * 1024.0 * 1024.0, 0.05 * adapters * 2.0);
  EXPECT_EQ(bytes_of(program, MemoryCategory::OptimizerStates), 8.0 * adapters);
  EXPECT_EQ(bytes_of(program, MemoryCategory::MasterWeights), 4.0 * adapters);
  EXPECT_EQ(bytes_of(program, MemoryCategory::Gradients), 4.0 * adapters);
  EXPECT_NEAR(bytes_of(program, MemoryCategory::Weights), 350e9, 0.02 * 350e9);
}

// QLoRA holds LLaMA-65B in less than half of a GPU of 80 GB (arXiv 2305.14314).
TEST(AdaptedPrograms, HoldFrozenWeightsIn4Bits) {
  LoweringCase made;
  made.model = load_model("llama-65b");
  made.stack = load_stack("fsdp2");
  made.plan.lora = Lora{.rank = 16, .targets = {}, .base = FrozenFormat::Nf4};
  const double projections = 80.0 * (4.0 * 8192.0 * 8192.0 + 3.0 * 8192.0 * 22016.0);
  const double others = 2.0 * 32000.0 * 8192.0 + 161.0 * 8192.0;
  const double adapters = static_cast<double>(count_adapters(made.model, *made.plan.lora).total);
  EXPECT_NEAR(bytes_of(made.lower(), MemoryCategory::Weights),
              projections * kNf4Bytes + 2.0 * (others + adapters), 1.0);
}

// ZeRO-3 gathers frozen weights with the adapters, and reduces the gradients of these alone.
TEST(AdaptedPrograms, GatherFrozenWeightsAndReduceAdapters) {
  LoweringCase made;
  made.model = load_model("llama3-8b");
  made.stack = load_stack("fsdp2");
  made.plan.dp = made.plan.global_batch = 8;
  made.plan.zero_stage = 3;
  const auto sent = [&](OpKind kind) {
    double bytes = 0.0;
    const Program program = made.lower();
    for (const Call& call : program.stages.front().calls) {
      for (const Op& op : program.blocks[call.block].ops) {
        const auto* work = std::get_if<CommunicationWork>(&op.work);
        if (op.kind == kind && work->group == Group::ShardInner) bytes += work->bytes.value();
      }
    }
    return bytes;
  };
  const double gathered = sent(OpKind::AllGather);
  made.plan.lora = Lora{.rank = 16, .targets = {}};
  const double adapters = 41'943'040.0;
  // Layers and head are gathered again for the backward pass; the frozen embedding is not either
  // way.
  EXPECT_NEAR(sent(OpKind::AllGather) - gathered, 2.0 * 2.0 * adapters, 1.0);
  const double element = reduced_gradient_bytes(made.stack, made.plan.precision).value();
  EXPECT_NEAR(sent(OpKind::ReduceScatter), element * adapters, 1.0);
}

}  // namespace
}  // namespace shardwright
