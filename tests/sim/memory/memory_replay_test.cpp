// The memory replay, which looks at each block once, against one that follows every tensor
// instance of every op.
#include "sim/memory/memory_replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "tests/core/lowering/random_lowering.hpp"

namespace shardwright::sim {
namespace {

struct NaivePeak {
  double bytes = 0.0;
  CategoryBytes held{};
};

// Follows each instance by tensor, layer and microbatch: allocated at its first write, given back
// at its free.
NaivePeak naive_peak(const Program& program, const RankProgram& rank) {
  std::map<std::tuple<int, int, int>, double> alive;
  CategoryBytes held{};
  for (const PersistentMemory& state : rank.persistent)
    held[static_cast<std::size_t>(state.category)] += state.bytes.value();
  const auto total = [&held] { return std::accumulate(held.begin(), held.end(), 0.0); };
  NaivePeak peak{total(), held};
  for (const Call& call : rank.calls) {
    const auto instance = [&](TensorRef ref) {
      const bool shared = !program.tensors[ref.tensor].per_microbatch;
      return std::tuple<int, int, int>(ref.tensor, call.layer + ref.layer_offset,
                                       shared ? -1 : call.microbatch);
    };
    for (const Op& op : program.blocks[call.block].ops) {
      for (const TensorRef ref : op.writes) {
        const TensorSpec& tensor = program.tensors[ref.tensor];
        if (alive.emplace(instance(ref), tensor.bytes.value()).second)
          held[static_cast<std::size_t>(tensor.category)] += tensor.bytes.value();
      }
      if (total() > peak.bytes) peak = {total(), held};
      for (const TensorRef ref : op.frees) {
        EXPECT_EQ(alive.erase(instance(ref)), 1U);
        const TensorSpec& tensor = program.tensors[ref.tensor];
        held[static_cast<std::size_t>(tensor.category)] -= tensor.bytes.value();
      }
    }
  }
  EXPECT_TRUE(alive.empty());
  return peak;
}

StackSpec bare(StackSpec stack) {
  stack.memory.context = Bytes(0);
  stack.memory.fragmentation = 0.0;
  stack.memory.communicator = Bytes(0);
  return stack;
}

TEST(MemoryReplay, PeakIsThatOfFollowingEveryInstance) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    LoweringCase made = CaseGenerator(seed).next();
    made.stack = bare(made.stack);
    const Program program = made.lower();
    const std::vector<MemoryPeak> peaks = peak_memory(program, made.stack);
    for (std::size_t s = 0; s < peaks.size(); ++s) {
      const NaivePeak expected = naive_peak(program, program.stages[s]);
      ASSERT_NEAR(peaks[s].peak.value(), expected.bytes, 1e-9 * expected.bytes)
          << "seed " << seed << " stage " << s << ": " << shown(made);
      double sum = 0.0;
      for (const Bytes part : peaks[s].breakdown) {
        ASSERT_GE(part.value(), -1e-6 * expected.bytes);
        sum += part.value();
      }
      ASSERT_NEAR(sum, peaks[s].peak.value(), 1e-9 * expected.bytes);
    }
  }
}

// The counters of PyTorch and of the device differ by the stack's overheads alone.
TEST(MemoryReplay, AllocatedReservedAndDeviceDifferByTheOverheads) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    LoweringCase made = CaseGenerator(seed).next();
    made.stack = bare(made.stack);
    const MemoryPeak tensors = peak_memory(made.lower(), made.stack).front();
    made.stack.memory.context = gigabytes(1.5);
    made.stack.memory.communicator = gigabytes(0.25);
    made.stack.memory.fragmentation = 0.08;
    const MemoryPeak peak = peak_memory(made.lower(), made.stack).front();
    const double tolerance = 1e-9 * peak.peak.value();
    ASSERT_NEAR(peak.allocated().value(), tensors.peak.value(), tolerance);
    ASSERT_NEAR(peak.reserved().value(), 1.08 * tensors.peak.value(), tolerance);
    ASSERT_NEAR((peak.peak - peak.reserved()).value(), 1.5e9 + 0.25e9 * communicators(made.lower()),
                tolerance);
    ASSERT_NEAR(peak.of(MemoryCategory::Fragmentation).value(), 0.08 * tensors.peak.value(),
                tolerance);
    ASSERT_EQ(peak.of(MemoryCategory::Context), gigabytes(1.5));
  }
}

// The closed form, which searches take, against the ops of the program.
TEST(MemoryReplay, CommunicatorsAreTheGroupsThatTheStepUses) {
  double most = 0.0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const LoweringCase made = CaseGenerator(seed).next();
    const auto& moe = made.model.moe;
    // A model with experts and no sparse layer, as no file can have it (check_model).
    if (moe && moe->first_dense_layers + moe->layer_interval > made.model.layers) continue;
    const double opened = communicators(made.lower());
    EXPECT_EQ(communicators(made.plan, made.model), opened) << shown(made);
    most = std::max(most, opened);
  }
  EXPECT_GE(most, 5.0);  // the cases have such plans
}

TEST(MemoryReplay, CurveReachesThePeakAndReturnsToTheStates) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    LoweringCase made = CaseGenerator(seed).next();
    made.stack = bare(made.stack);
    const Program program = made.lower();
    const MemoryPeak peak = peak_memory(program, made.stack).front();
    const std::vector<MemorySample> curve = memory_curve(program, 0);
    const auto highest = std::max_element(
        curve.begin(), curve.end(),
        [](const MemorySample& a, const MemorySample& b) { return a.level < b.level; });
    ASSERT_NEAR(highest->level.value(), peak.peak.value(), 1e-9 * peak.peak.value());
    ASSERT_NEAR(curve.back().level.value(), curve.front().level.value(), 1e-6);
  }
}

// Larger microbatches hold larger activations; fewer of them in flight never make up for it when
// their number stays.
TEST(MemoryReplay, PeakGrowsWithTheMicrobatch) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    LoweringCase made = CaseGenerator(seed).next();
    const MemoryPeak before = peak_memory(made.lower(), made.stack).front();
    made.plan.micro_batch *= 2;
    made.plan.global_batch *= 2;
    const MemoryPeak after = peak_memory(made.lower(), made.stack).front();
    ASSERT_GT(after.peak, before.peak) << shown(made);
  }
}

// ZeRO (arXiv 1910.02054, figure 1): 2 + 2 + 12 bytes per parameter, of which stage 1 divides 12,
// stage 2 also the gradients and stage 3 all by the number of ranks.
TEST(MemoryReplay, ModelStatesAreThoseOfZero) {
  LoweringCase made = small_case(2);
  made.plan.dp = made.plan.global_batch = 4;
  made.stack.gradients.fp32_accumulation = false;
  const auto parameters = static_cast<double>(count_parameters(made.model).total);
  const double expected[] = {16.0, 4.0 + 12.0 / 4.0, 2.0 + 14.0 / 4.0};
  for (int stage = 0; stage < 3; ++stage) {
    made.plan.zero_stage = stage;
    double bytes = 0.0;
    const Program program = made.lower();
    for (const PersistentMemory& state : program.stages.front().persistent)
      bytes += state.bytes.value();
    EXPECT_DOUBLE_EQ(bytes / parameters, expected[stage]) << "stage " << stage;
  }
}

// FP8 weights with a transposed copy take what 16-bit ones do, those without it half of that; other
// formats know nothing of it.
TEST(MemoryReplay, EightBitWeightsHalveTheWeightsOfFp8PlansAlone) {
  for (const Precision precision : {Precision::Bf16, Precision::Fp8}) {
    LoweringCase made = CaseGenerator(7).next();
    made.plan.precision = precision;
    const auto weights = [&made] {
      return peak_memory(made.lower(), made.stack).front().of(MemoryCategory::Weights).value();
    };
    const double before = weights();
    made.stack.memory.fp8_weight_bytes = Bytes(1);
    EXPECT_DOUBLE_EQ(weights(), precision == Precision::Fp8 ? before / 2.0 : before);
  }
}

}  // namespace
}  // namespace shardwright::sim
