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
  return std::ranges::any_of(findings,
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
  LoweringCase made = small_case(4);
  made.model.tied_embeddings = true;
  made.plan.tp = made.plan.pp = made.plan.dp = 2;
  made.plan.global_batch = 8;
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

// The only call of a stage whose block begins with this op.
Call& call_named(Program& program, std::size_t stage, const std::string& name) {
  const auto calls = calls_of(program, stage, [&name](const Op& op) { return op.name == name; });
  EXPECT_EQ(calls.size(), 1U) << name;
  return *calls.at(0);
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

CommunicationWork& own_work(Program& program, Call& call) {
  return std::get<CommunicationWork>(own_first_op(program, call).work);
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

struct Mistake {
  FindingKind found;
  const char* name;
  std::function<void(Program&)> make;
};

std::vector<Mistake> mistakes() {
  using enum FindingKind;
  return {
      {Structure, "a call that does not follow the one before",
       [](Program& program) { ++program.stages[1].calls[3].first_op; }},
      {Structure, "a block that is not there",
       [](Program& program) { program.stages[0].calls.back().block = 100'000; }},
      {Structure, "a tensor that is not there",
       [](Program& program) {
         program.blocks[0].ops[0].reads.push_back({60'000, 0});
       }},
      {FindingKind::Wait, "a wait for a later op of the block",
       [](Program& program) { program.blocks[0].ops[0].waits.push_back(1); }},
      {FindingKind::Wait, "a wait for a later op of the stage",
       [](Program& program) {
         shardwright::Wait& wait = program.stages[1].waits.front();
         wait.on = wait.op + 1;
       }},
      {Collective, "a collective that differs between stages",
       [](Program& program) {
         own_work(program, call_named(program, 1, "embedding.tie")).bytes = Bytes(1.0);
       }},
      {Collective, "a stage that leaves a collective out",
       [](Program& program) {
         own_work(program, call_named(program, 0, "gradient_norm.all_reduce")).group =
             Group::Tensor;
       }},
      {Message, "a send without its receive",
       [](Program& program) { sends_of(program, 0).back()->microbatch = 77; }},
      {Message, "a message of another size",
       [](Program& program) {
         own_work(program, *sends_of(program, 0).front()).bytes = Bytes(1.0);
       }},
      {Message, "a message to no stage",
       [](Program& program) { own_work(program, *sends_of(program, 0).front()).peer_offset = -1; }},
      {Order, "sends in another order than the receives",
       [](Program& program) {
         const std::vector<Call*> sends = sends_of(program, 0);
         std::swap(sends[0]->microbatch, sends[1]->microbatch);
       }},
      {Race, "a read that does not wait for its writer",
       [](Program& program) { op_named(program, "layer.forward", "attention.qkv").waits.clear(); }},
      {Race, "a call that does not wait for a message",
       [](Program& program) {
         program.stages[1].waits.clear();
         for (Call& call : program.stages[1].calls) call.first_wait = 0;
       }},
      {Undefined, "a read of what was never written",
       [](Program& program) {
         op_named(program, "layer.forward", "attention.norm").writes.clear();
       }},
      {Undefined, "use after free",
       [](Program& program) {
         Op& early = op_named(program, "layer.forward", "attention.norm");
         early.frees.push_back(early.reads.front());
       }},
      {Undefined, "a tensor that is freed twice",
       [](Program& program) {
         Op& twice = op_named(program, "layer.backward", "attention.norm.backward");
         twice.frees.push_back(twice.frees.at(0));
       }},
      {Leak, "a missing free",
       [](Program& program) {
         op_named(program, "layer.backward", "attention.norm.backward").frees.clear();
       }},
  };
}

TEST(Validate, FindsEachMistake) {
  for (const Mistake& mistake : mistakes()) {
    Program program = good_program();
    mistake.make(program);
    EXPECT_TRUE(finds(mistake.found, program)) << mistake.name;
  }
}

// Stage s of DualPipe adds its gradients up with stage p-1-s.
TEST(Validate, FindsMirroredStagesThatDoNotAddUpTheSame) {
  LoweringCase made = small_case(4);
  made.plan.pp = 4;
  made.plan.schedule = ScheduleKind::DualPipe;
  made.plan.global_batch = 8;
  Program program = made.lower();
  ASSERT_TRUE(validate(program).empty());
  own_work(program, call_named(program, 1, "mirrored_gradients.all_reduce")).bytes = Bytes(1.0);
  EXPECT_TRUE(finds(FindingKind::Collective, program));
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
