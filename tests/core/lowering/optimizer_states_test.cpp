// Optimizer states of fewer bits: what a rank holds, and the bytes that Adam's step moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/lowering/stage_states.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright {
namespace {

using enum OptimizerStates;

constexpr double kParameters = 1e9;

Plan plan_with(OptimizerStates states, Precision precision = Precision::Bf16) {
  Plan plan;
  plan.zero_stage = 0;
  plan.precision = precision;
  plan.optimizer_states = states;
  return plan;
}

// Bytes of a parameter.
double held(const StackSpec& stack, const Plan& plan) {
  double sum = 0.0;
  for (const PersistentMemory& state : persistent_memory({.dense = kParameters}, plan, stack))
    sum += state.bytes / Bytes(kParameters);
  return sum;
}

// Bytes that the step moves of a parameter.
double moved(const StackSpec& stack, const Plan& plan) {
  const auto work = std::get<MemoryWork>(optimizer_work(kParameters, plan, stack));
  return (work.read + work.written) / Bytes(kParameters);
}

// Weights and gradients take 2 + 4 bytes.
TEST(OptimizerStates, TakeTheBytesOfTheirFormats) {
  StackSpec stack;
  const auto of = [&](OptimizerStates states) { return held(stack, plan_with(states)); };
  EXPECT_DOUBLE_EQ(of(OfStack), 2 + 4 + 4 + 8);
  EXPECT_DOUBLE_EQ(of(Fp32), of(OfStack));
  EXPECT_DOUBLE_EQ(of(Bf16), 2 + 4 + 4 + 4);
  EXPECT_DOUBLE_EQ(of(EightBit), 2 + 4 + 4 + 2 * (1 + 4.0 / 256));
  EXPECT_DOUBLE_EQ(of(PureBf16), 2 + 2 + 4);
  EXPECT_DOUBLE_EQ(of(PureBf16EightBit), 2 + 2 + 2 * (1 + 4.0 / 256));
  stack.memory.narrow_master_weight_bytes = Bytes(2);
  EXPECT_DOUBLE_EQ(of(Bf16), 2 + 4 + 2 + 4);
  EXPECT_DOUBLE_EQ(of(Fp32), of(OfStack));
  EXPECT_DOUBLE_EQ(held(stack, plan_with(Bf16, Precision::Fp8)), 2 + 4 + 4 + 4)
      << "the weights are not those of bf16";
}

// Neither memory nor the step's traffic grows where bits are left out, with any shipped stack.
TEST(OptimizerStates, OfFewerBitsTakeNoMore) {
  for (const StackSpec& stack : shipped_stack_specs()) {
    // Without master weights of the stack only its own states leave the weight unread.
    if (stack.memory.master_weight_bytes == Bytes()) continue;
    for (const Precision precision : {Precision::Bf16, Precision::Fp8}) {
      for (const auto& [more, fewer] :
           {std::pair{Fp32, Bf16}, std::pair{Bf16, EightBit}, std::pair{Bf16, PureBf16},
            std::pair{EightBit, PureBf16EightBit}, std::pair{PureBf16, PureBf16EightBit}}) {
        const Plan wide = plan_with(more, precision), narrow = plan_with(fewer, precision);
        EXPECT_LE(held(stack, narrow), held(stack, wide)) << stack.name << ' ' << name_of(fewer);
        EXPECT_LE(moved(stack, narrow), moved(stack, wide)) << stack.name << ' ' << name_of(fewer);
      }
    }
  }
}

// What a stack does anyway costs the same if a plan says it.
TEST(OptimizerStates, OfTheStackMayBeNamed) {
  for (const StackSpec& stack : shipped_stack_specs()) {
    if (stack.memory.optimizer_state_bytes != Bytes(8)) continue;
    EXPECT_DOUBLE_EQ(held(stack, plan_with(Fp32)), held(stack, plan_with(OfStack))) << stack.name;
    EXPECT_DOUBLE_EQ(moved(stack, plan_with(Fp32)), moved(stack, plan_with(OfStack))) << stack.name;
  }
}

// torchao's optim/README.md: fine-tuning Llama 2 7B in bf16 peaks at 51.6 GiB with PyTorch's AdamW
// and at 39.3 GiB with that of bitsandbytes in 8 bits.
TEST(OptimizerStates, SaveWhatWasMeasured) {
  const StackSpec stack;
  const double parameters = static_cast<double>(count_parameters(load_model("llama2-7b")).total);
  const double saved = held(stack, plan_with(PureBf16)) - held(stack, plan_with(PureBf16EightBit));
  constexpr double kGib = 1 << 30;
  EXPECT_NEAR(saved * parameters / kGib, 51.6 - 39.3, 0.1);
}

}  // namespace
}  // namespace shardwright
