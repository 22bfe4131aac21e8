// Laws of what replicas send each other: bytes, ops and states by the way in which they agree.
#include "core/lowering/replica_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/lowering/lowering.hpp"
#include "core/program/groups.hpp"
#include "core/program/validate.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/core/program/volumes.hpp"

namespace shardwright {
namespace {

Plan eight_replicas() {
  Plan plan;
  plan.dp = 8;
  plan.zero_stage = 0;
  plan.global_batch = 16;
  plan.seq_len = 512;
  return plan;
}

Plan agreeing(ReplicaSync sync, ReplicaCompression compression, std::int64_t inner_steps = 1) {
  Plan plan = eight_replicas();
  plan.replicas.sync = sync;
  plan.replicas.compression = compression;
  plan.replicas.inner_steps = inner_steps;
  return plan;
}

// Bytes that a rank sends to other replicas in the mean step.
double sent(const Plan& plan, const StackSpec& stack) {
  const Program program = lower(load_model("gpt2"), plan, stack);
  EXPECT_TRUE(validate(program).empty());
  double bytes = 0.0;
  for (const Call& call : program.stages[0].calls) {
    for (const Op& op : program.blocks[call.block].ops) {
      const auto* work = std::get_if<CommunicationWork>(&op.work);
      if (work == nullptr || work->group != replica_group(plan, false)) continue;
      bytes += sent_bytes(op.kind, work->bytes, group_size(work->group, plan)).value() /
               static_cast<double>(op.every);
    }
  }
  return bytes;
}

double parameters() {
  return static_cast<double>(count_parameters(load_model("gpt2")).total);
}

// Bytes of the ops of a kind on the only stage.
double bytes_of_kind(const Program& program, OpKind kind) {
  double bytes = 0.0;
  for (const Call& call : program.stages[0].calls) {
    for (const Op& op : program.blocks[call.block].ops) {
      if (op.kind == kind) bytes += std::get<CommunicationWork>(op.work).bytes.value();
    }
  }
  return bytes;
}

// A rank pushes each gradient once and pulls each parameter once, however its replica agrees.
TEST(ParameterServers, ReceiveEachGradientAndSendEachParameterOnce) {
  StackSpec stack = load_stack("megatron-core");
  stack.gradients.fp32_reduction = true;
  for (const ServerUpdates updates : enumerators<ServerUpdates>()) {
    Plan plan = eight_replicas();
    plan.replicas.sync = ReplicaSync::ParameterServer;
    plan.replicas.server_updates = updates;
    plan.replicas.staleness = updates == ServerUpdates::BoundedStaleness ? 3 : 0;
    const Program program = lower(load_model("gpt2"), plan, stack);
    EXPECT_TRUE(validate(program).empty());
    EXPECT_NEAR(bytes_of_kind(program, OpKind::Push) / (4.0 * parameters()), 1.0, 1e-3);
    EXPECT_NEAR(bytes_of_kind(program, OpKind::Pull) / (2.0 * parameters()), 1.0, 1e-3);
    EXPECT_EQ(bytes_of_kind(program, OpKind::AllReduce), 0.0);
  }
}

// Ranks keep weights and gradients alone.
TEST(ParameterServers, TakeTheStatesOfTheOptimizer) {
  const StackSpec stack = load_stack("megatron-core");
  const auto held = [&](const Plan& plan) {
    const Program program = lower(load_model("gpt2"), plan, stack);
    double bytes = 0.0;
    for (const PersistentMemory& memory : program.stages[0].persistent) {
      const bool of_optimizer = memory.category == MemoryCategory::OptimizerStates ||
                                memory.category == MemoryCategory::MasterWeights;
      if (of_optimizer) bytes += memory.bytes.value();
    }
    return bytes;
  };
  Plan served = eight_replicas();
  served.replicas.sync = ReplicaSync::ParameterServer;
  EXPECT_EQ(held(served), 0.0);
  EXPECT_NEAR(held(eight_replicas()) / parameters(), 12.0, 0.1);
}

using Compression = ReplicaCompression;
constexpr ReplicaSync kAllReduce = ReplicaSync::AllReduce, kLocal = ReplicaSync::LocalSteps;

// The mean of parameters in fp32 takes what the sum of gradients in fp32 does, and a part of it if
// it is taken more rarely.
TEST(ReplicaExchange, LocalStepsSendTheAllReduceEachSoManySteps) {
  StackSpec stack = load_stack("megatron-core");
  stack.gradients.fp32_reduction = true;
  const double all_reduce = sent(eight_replicas(), stack);
  EXPECT_NEAR(sent(agreeing(kLocal, Compression::None, 1), stack) / all_reduce, 1.0, 1e-12);
  EXPECT_NEAR(sent(agreeing(kLocal, Compression::None, 500), stack) * 500.0 / all_reduce, 1.0,
              1e-12);
}

// Two bytes of two, or all 16 bits of gradients that have no more, are no compression.
TEST(ReplicaExchange, OfNoFewerBitsIsNone) {
  StackSpec stack = load_stack("megatron-core");
  stack.gradients.fp32_reduction = false;
  EXPECT_EQ(sent(agreeing(kAllReduce, Compression::Bf16), stack), sent(eight_replicas(), stack));
  stack.gradients.fp32_reduction = true;
  EXPECT_NEAR(sent(agreeing(kAllReduce, Compression::Bf16), stack) / sent(eight_replicas(), stack),
              0.5, 1e-12);
}

// Of N elements on n ranks: int8 and fp8 send 2 (n - 1) / n bytes and a scale for each block, and
// 1bit an eighth of that; top-k sends its own share to all others; PowerSGD adds up two matrices of
// r columns.
TEST(ReplicaExchange, SendsTheBytesOfItsForm) {
  StackSpec stack = load_stack("megatron-core");
  stack.gradients.buckets = GradientBuckets::Single;
  const double all = parameters(), side = std::ceil(std::sqrt(all));
  const double bytes = 2.0 * 7.0 / 8.0 * all * (1.0 + 4.0 / 256.0);
  const double blocks_not_full = 2.0 * 8.0 * (256.0 + 4.0);
  for (const Compression form : {Compression::Int8, Compression::Fp8})
    EXPECT_NEAR(sent(agreeing(kAllReduce, form), stack), bytes, blocks_not_full);
  EXPECT_NEAR(sent(agreeing(kAllReduce, Compression::OneBit), stack), bytes / 8.0, blocks_not_full);
  Plan topk = agreeing(kAllReduce, Compression::TopK);
  topk.replicas.topk_ratio = 0.001;
  EXPECT_NEAR(sent(topk, stack), 7.0 * 8.0 * std::round(all / 1000.0), 1.0);
  Plan powersgd = agreeing(kLocal, Compression::PowerSgd, 10);
  powersgd.replicas.powersgd_rank = 2;
  EXPECT_NEAR(sent(powersgd, stack), 2.0 * 2.0 * 7.0 / 8.0 * 4.0 * side * 2.0 / 10.0, 1.0);
}

Plan in_fragments(std::int64_t fragments, FragmentOrder order,
                  Compression form = Compression::None) {
  Plan plan = agreeing(kLocal, form, 12);
  plan.replicas.fragments = fragments;
  plan.replicas.fragment_order = order;
  return plan;
}

// All fragments together send what one exchange does; 4 bits are an eighth of 32, with the scales.
TEST(StreamingDiLoCo, SendsTheBytesOfOneExchange) {
  const StackSpec stack = load_stack("megatron-core");
  const double whole = sent(agreeing(kLocal, Compression::None, 12), stack);
  for (const FragmentOrder order : enumerators<FragmentOrder>()) {
    for (const std::int64_t fragments : {2, 3, 5, 12}) {
      EXPECT_NEAR(sent(in_fragments(fragments, order), stack) / whole, 1.0, 1e-12) << fragments;
      EXPECT_NEAR(sent(in_fragments(fragments, order, Compression::Fp4), stack) / whole,
                  (1.0 + 4.0 / 256.0) / 8.0, 1e-3)
          << fragments;
    }
  }
}

// Each part of a stage is in one fragment; both copies of the embedding that the ends of the
// pipeline share are in the first one. GPT-2 has 12 layers, so that with three stages four each.
TEST(StreamingDiLoCo, HasEachPartInOneFragment) {
  const StackSpec stack = load_stack("megatron-core");
  for (const FragmentOrder order : enumerators<FragmentOrder>()) {
    Plan plan = in_fragments(2, order);
    plan.pp = 3;
    const Program program = lower(load_model("gpt2"), plan, stack);
    std::vector<std::vector<std::vector<PartId>>> covered;
    for (const RankProgram& rank : program.stages) {
      std::vector<std::vector<PartId>>& fragments = covered.emplace_back();
      for (std::size_t i = 0; i < rank.calls.size(); ++i) {
        if (program.blocks[rank.calls[i].block].ops.front().payload != Payload::LocalSteps)
          continue;
        const auto parts = Program::covered(rank, i);
        fragments.emplace_back(parts.begin(), parts.end());
        std::sort(fragments.back().begin(), fragments.back().end());
      }
    }
    using Parts = std::vector<std::vector<PartId>>;
    const bool strided = order == FragmentOrder::Strided;
    EXPECT_EQ(covered[0], strided ? (Parts{{kEmbeddingPart, 0, 2}, {1, 3}})
                                  : (Parts{{kEmbeddingPart, 0, 1}, {2, 3}}));
    EXPECT_EQ(covered[1], strided ? (Parts{{4, 6}, {5, 7}}) : (Parts{{4, 5}, {6, 7}}));
    EXPECT_EQ(covered[2], strided ? (Parts{{kEmbeddingPart, 8, 10}, {9, 11, 12}})
                                  : (Parts{{kEmbeddingPart, 8, 9}, {10, 11, 12}}));
  }
}

// In any H steps each fragment is sent once, and taken over so many steps later.
TEST(StreamingDiLoCo, SpreadsItsExchangesOverTheSteps) {
  Plan plan = in_fragments(5, FragmentOrder::Sequential);
  plan.replicas.overlap_steps = 2;
  const Program program = lower(load_model("gpt2"), plan, load_stack("megatron-core"));
  std::vector<std::int64_t> sends, takes;
  for (const Block& block : program.blocks) {
    if (block.ops.front().payload != Payload::LocalSteps) continue;
    for (std::int64_t step = 1; step <= 24; ++step) {
      if (block.ops.front().runs_in(step)) takes.push_back(step);
      if (block.ops.back().runs_in(step)) sends.push_back(step);
    }
  }
  std::sort(sends.begin(), sends.end());
  std::sort(takes.begin(), takes.end());
  EXPECT_EQ(sends, (std::vector<std::int64_t>{2, 4, 7, 9, 12, 14, 16, 19, 21, 24}));
  EXPECT_EQ(takes, (std::vector<std::int64_t>{4, 6, 9, 11, 14, 16, 18, 21, 23}));
}

// What is on its way has room for the largest fragment: the first one of four of GPT-2 has the
// embedding, nearly a third of all parameters.
TEST(StreamingDiLoCo, HasRoomForItsLargestFragment) {
  for (const FragmentOrder order : enumerators<FragmentOrder>()) {
    Plan plan = in_fragments(4, order);
    plan.replicas.overlap_steps = 1;
    const Program program = lower(load_model("gpt2"), plan, load_stack("megatron-core"));
    Bytes largest, all, room;
    for (const Block& block : program.blocks) {
      for (const Op& op : block.ops) {
        if (op.payload != Payload::LocalSteps || !is_communication(op.kind)) continue;
        const Bytes bytes = std::get<CommunicationWork>(op.work).bytes;
        largest = std::max(largest, bytes);
        all += bytes;
      }
    }
    for (const PersistentMemory& memory : program.stages[0].persistent)
      if (memory.category == MemoryCategory::CommunicationBuffers) room += memory.bytes;
    EXPECT_EQ(room, largest);
    EXPECT_GT(largest, all * 0.4);
  }
}

// Local steps between shard groups exchange a shard each.
TEST(ReplicaExchange, OfShardGroupsIsOfOneShard) {
  const StackSpec stack = load_stack("megatron-core");
  Plan plan = agreeing(kLocal, Compression::None, 100);
  const double whole = sent(plan, stack);
  plan.zero_stage = 3;
  plan.shard_group = 4;
  ASSERT_TRUE(broken_rules(load_model("gpt2"), nullptr, plan).empty());
  EXPECT_NEAR(sent(plan, stack) / whole, (1.0 / 4.0) * (1.0 / 2.0) / (7.0 / 8.0), 1e-9);
}

// DiLoCo keeps the parameters of the last exchange and a momentum; error feedback keeps a residual.
TEST(ReplicaExchange, KeepsTheStatesOfItsMethod) {
  ReplicaAgreement agreement;
  const auto kept = [&] { return outer_state_bytes(agreement) + residual_bytes(agreement, 8); };
  EXPECT_EQ(kept(), Bytes());
  agreement.compression = Compression::Fp8;
  EXPECT_EQ(kept(), Bytes());
  // A residual of its own gradients, and one of its part of the sum.
  agreement.compression = Compression::OneBit;
  EXPECT_EQ(kept(), Bytes(4.5));
  agreement.compression = Compression::TopK;
  EXPECT_EQ(kept(), Bytes(4));
  agreement.sync = kLocal;
  EXPECT_EQ(kept(), Bytes(8));
  agreement.compression = Compression::None;
  EXPECT_EQ(outer_state_bytes(agreement), Bytes());
  agreement.outer = OuterOptimizer::Nesterov;
  EXPECT_EQ(outer_state_bytes(agreement), Bytes(8));
}

}  // namespace
}  // namespace shardwright
