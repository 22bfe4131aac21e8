// Random programs are right, and each kind of mistake is found: so that the first statement means
// something.
#include "core/program/validate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/core/lowering/random_lowering.hpp"
#include "tests/core/program/tiny_program.hpp"

namespace shardwright {
namespace {

std::string texts_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("  stage {} op {}: {}: {}\n", finding.stage, finding.op,
                        name_of(finding.kind), finding.text);
  }
  return text;
}

bool finds(FindingKind kind, const Program& program) {
  const std::vector<Finding> findings = validate(program);
  return std::any_of(findings.begin(), findings.end(),
                     [kind](const Finding& finding) { return finding.kind == kind; });
}

TEST(Validate, FindsNothingInRandomPrograms) {
  constexpr std::uint64_t kPrograms = 2000;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const LoweringCase made = CaseGenerator(seed).next();
    const std::vector<Finding> findings = validate(made.lower(), 5);
    ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << shown(made) << "\n"
                                  << texts_of(findings);
  }
}

// Two stages of two layers, split over two ranks each, with a tied embedding.
Program good_program() {
  LoweringCase made;
  made.model.layers = 4;
  made.model.hidden = 64;
  made.model.vocab = 128;
  made.model.attention = {.heads = 4, .kv_heads = 2, .head_dim = 16};
  made.model.mlp.ffn_hidden = 128;
  made.model.tied_embeddings = true;
  made.plan.tp = made.plan.pp = made.plan.dp = 2;
  made.plan.global_batch = 8;
  made.plan.seq_len = 64;
  return made.lower();
}

// The calls of a stage whose block's first op satisfies `wanted`.
std::vector<Call*> calls_of(Program& program, std::size_t stage,
                            const std::function<bool(const Op&)>& wanted) {
  std::vector<Call*> calls;
  for (Call& call : program.stages[stage].calls) {
    const std::vector<Op>& ops = program.blocks[call.block].ops;
    if (!ops.empty() && wanted(ops.front())) calls.push_back(&call);
  }
  return calls;
}

std::vector<Call*> sends_of(Program& program, std::size_t stage) {
  return calls_of(program, stage, [](const Op& op) { return op.kind == OpKind::Send; });
}

// Gives a call a block of its own, so that a change of it touches nothing else.
Op& own_first_op(Program& program, Call& call) {
  program.blocks.push_back(Block(program.blocks[call.block]));
  call.block = static_cast<BlockId>(program.blocks.size() - 1);
  return program.blocks.back().ops.front();
}

Op& op_named(Program& program, const std::string& block, const std::string& op) {
  for (Block& each : program.blocks) {
    if (each.name != block) continue;
    for (Op& candidate : each.ops) {
      if (candidate.name == op) return candidate;
    }
  }
  ADD_FAILURE() << "no op " << op << " in " << block;
  return program.blocks.front().ops.front();
}

TEST(Validate, AcceptsTheProgramThatTheMistakesAreMadeIn) {
  EXPECT_EQ(texts_of(validate(good_program())), "");
}

TEST(Validate, FindsACallThatDoesNotFollowTheOneBefore) {
  Program program = good_program();
  ++program.stages[1].calls[3].first_op;
  EXPECT_TRUE(finds(FindingKind::Structure, program));
}

TEST(Validate, FindsABlockAndATensorThatAreNotThere) {
  Program program = good_program();
  program.stages[0].calls.back().block = 100'000;
  EXPECT_TRUE(finds(FindingKind::Structure, program));
  program = good_program();
  program.blocks[0].ops[0].reads.push_back({60'000, 0});
  EXPECT_TRUE(finds(FindingKind::Structure, program));
}

TEST(Validate, FindsAWaitForALaterOp) {
  Program program = good_program();
  program.blocks[0].ops[0].waits.push_back(1);
  EXPECT_TRUE(finds(FindingKind::Wait, program));
  program = good_program();
  Wait& wait = program.stages[1].waits.front();
  wait.on = wait.op + 1;
  EXPECT_TRUE(finds(FindingKind::Wait, program));
}

TEST(Validate, FindsCollectivesThatDifferBetweenStages) {
  Program program = good_program();
  const auto ties = calls_of(program, 1, [](const Op& op) { return op.name == "embedding.tie"; });
  ASSERT_EQ(ties.size(), 1U);
  std::get<CommunicationWork>(own_first_op(program, *ties.front()).work).bytes = Bytes(1.0);
  EXPECT_TRUE(finds(FindingKind::Collective, program));
}

// Stage s of DualPipe adds its gradients up with stage p-1-s.
TEST(Validate, FindsMirroredStagesThatDoNotAddUpTheSame) {
  LoweringCase made;
  made.model.layers = 4;
  made.model.hidden = 64;
  made.model.vocab = 128;
  made.model.attention = {.heads = 8, .kv_heads = 4, .head_dim = 8};
  made.model.mlp.ffn_hidden = 128;
  made.plan.pp = 4;
  made.plan.schedule = ScheduleKind::DualPipe;
  made.plan.global_batch = 8;
  Program program = made.lower();
  ASSERT_TRUE(validate(program).empty());
  const auto sums =
      calls_of(program, 1, [](const Op& op) { return op.name == "mirrored_gradients.all_reduce"; });
  ASSERT_EQ(sums.size(), 1U);
  std::get<CommunicationWork>(own_first_op(program, *sums.front()).work).bytes = Bytes(1.0);
  EXPECT_TRUE(finds(FindingKind::Collective, program));
}

TEST(Validate, FindsAStageThatLeavesACollectiveOut) {
  Program program = good_program();
  const auto norms =
      calls_of(program, 0, [](const Op& op) { return op.name == "gradient_norm.all_reduce"; });
  ASSERT_EQ(norms.size(), 1U);
  std::get<CommunicationWork>(own_first_op(program, *norms.front()).work).group = Group::Tensor;
  EXPECT_TRUE(finds(FindingKind::Collective, program));
}

TEST(Validate, FindsASendWithoutItsReceive) {
  Program program = good_program();
  sends_of(program, 0).back()->microbatch = 77;
  EXPECT_TRUE(finds(FindingKind::Message, program));
}

TEST(Validate, FindsAMessageOfAnotherSizeOrToNoStage) {
  Program program = good_program();
  std::get<CommunicationWork>(own_first_op(program, *sends_of(program, 0).front()).work).bytes =
      Bytes(1.0);
  EXPECT_TRUE(finds(FindingKind::Message, program));
  program = good_program();
  std::get<CommunicationWork>(own_first_op(program, *sends_of(program, 0).front()).work)
      .peer_offset = -1;
  EXPECT_TRUE(finds(FindingKind::Message, program));
}

TEST(Validate, FindsSendsInAnotherOrderThanTheReceives) {
  Program program = good_program();
  const std::vector<Call*> sends = sends_of(program, 0);
  std::swap(sends[0]->microbatch, sends[1]->microbatch);
  EXPECT_TRUE(finds(FindingKind::Order, program));
}

TEST(Validate, FindsStagesThatWaitForEachOther) {
  TinyProgram tiny(2);
  const std::uint32_t gradient = tiny.call(0, {TinyProgram::message(OpKind::Receive, true, 1)});
  tiny.call(0, {TinyProgram::message(OpKind::Send, false, 1)}, {gradient});
  const std::uint32_t activation = tiny.call(1, {TinyProgram::message(OpKind::Receive, false, -1)});
  tiny.call(1, {TinyProgram::message(OpKind::Send, true, -1)}, {activation});
  const std::vector<Finding> findings = validate(tiny.program());
  ASSERT_EQ(findings.size(), 4U) << texts_of(findings);
  for (const Finding& finding : findings) EXPECT_EQ(finding.kind, FindingKind::Deadlock);
}

TEST(Validate, FindsAReadThatDoesNotWaitForItsWriter) {
  Program program = good_program();
  op_named(program, "layer.forward", "attention.qkv").waits.clear();
  EXPECT_TRUE(finds(FindingKind::Race, program));
}

TEST(Validate, FindsACallThatDoesNotWaitForAMessage) {
  Program program = good_program();
  RankProgram& rank = program.stages[1];
  rank.waits.clear();
  for (Call& call : rank.calls) call.first_wait = 0;
  EXPECT_TRUE(finds(FindingKind::Race, program));
}

TEST(Validate, FindsAnOverwriteOfWhatAnotherStreamStillReads) {
  TinyProgram tiny(1);
  const TensorRef buffer = tiny.tensor("buffer");
  Op reader = TinyProgram::kernel({buffer}, {}, {}, Stream::ContextParallel);
  reader.waits = {0};
  Op writer = TinyProgram::kernel({buffer}, {buffer}, {buffer});
  const auto program = [&] {
    TinyProgram made = tiny;
    made.call(0, {TinyProgram::kernel({}, {buffer}), reader, writer});
    return made.program();
  };
  EXPECT_TRUE(finds(FindingKind::Race, program()));
  writer.waits = {1};
  EXPECT_EQ(texts_of(validate(program())), "");
}

TEST(Validate, FollowsWaitsThroughOtherStreams) {
  TinyProgram tiny(1);
  const TensorRef value = tiny.tensor("value");
  tiny.call(0, {TinyProgram::kernel({}, {value})});
  const std::uint32_t between =
      tiny.call(0, {TinyProgram::kernel({}, {}, {}, Stream::Offload)}, {0});
  tiny.call(0, {TinyProgram::kernel({value}, {}, {value}, Stream::TensorParallel)}, {between});
  EXPECT_EQ(texts_of(validate(tiny.program())), "");
}

TEST(Validate, FindsAReadOfWhatWasNeverWritten) {
  Program program = good_program();
  op_named(program, "layer.forward", "attention.norm").writes.clear();
  EXPECT_TRUE(finds(FindingKind::Undefined, program));
}

TEST(Validate, FindsUseAfterFreeAndDoubleFree) {
  Program program = good_program();
  Op& early = op_named(program, "layer.forward", "attention.norm");
  early.frees.push_back(early.reads.front());
  EXPECT_TRUE(finds(FindingKind::Undefined, program));
  program = good_program();
  Op& twice = op_named(program, "layer.backward", "attention.norm.backward");
  ASSERT_FALSE(twice.frees.empty());
  twice.frees.push_back(twice.frees.front());
  EXPECT_TRUE(finds(FindingKind::Undefined, program));
}

TEST(Validate, FindsAMissingFree) {
  Program program = good_program();
  op_named(program, "layer.backward", "attention.norm.backward").frees.clear();
  EXPECT_TRUE(finds(FindingKind::Leak, program));
}

TEST(Validate, FindsATensorThatIsWrittenAnewWhileAlive) {
  TinyProgram tiny(1);
  const TensorRef value = tiny.tensor("value");
  tiny.call(0, {TinyProgram::kernel({}, {value})});
  tiny.call(0, {TinyProgram::kernel({}, {value})});
  tiny.call(0, {TinyProgram::kernel({value}, {}, {value})});
  const std::vector<Finding> findings = validate(tiny.program());
  ASSERT_EQ(findings.size(), 1U) << texts_of(findings);
  EXPECT_EQ(findings.front().kind, FindingKind::Overwritten);
}

TEST(Validate, StopsAtTheNumberOfFindingsAskedFor) {
  Program program = good_program();
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) op.frees.clear();
  }
  EXPECT_EQ(validate(program, 3).size(), 3U);
}

}  // namespace
}  // namespace shardwright
