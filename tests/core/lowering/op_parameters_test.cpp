// Ops name the parameters that they apply, and calls the parts whose gradients they carry.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/program/groups.hpp"
#include "core/program/validate.hpp"
#include "tests/core/lowering/random_lowering.hpp"

namespace shardwright {
namespace {

constexpr int kCases = 200;

// A model of which every parameter has ops that name it: projections of narrow embeddings are not
// lowered.
bool is_named(const ModelSpec& model) {
  return model.embedding_row() == model.hidden;
}

template <class Visit>
void for_each_named_case(Visit visit) {
  CaseGenerator cases(11);
  for (int i = 0; i < kCases;) {
    const LoweringCase made = cases.next();
    if (!is_named(made.model)) continue;
    ++i;
    SCOPED_TRACE(shown(made));
    visit(made, made.lower());
  }
}

std::string with_layer(std::string name, std::int32_t layer) {
  const std::size_t star = name.find('*');
  return star == std::string::npos ? name : name.replace(star, 1, std::to_string(layer));
}

// The parameters that the ops of a phase apply, over all stages.
std::set<std::string> applied(const Program& program, bool backward) {
  std::set<std::string> names;
  for (const RankProgram& rank : program.stages) {
    for (const Call& call : rank.calls) {
      for (const Op& op : program.blocks[call.block].ops) {
        const bool adds_gradients = op.phase == Phase::BackwardWeight || op.kind == OpKind::Norm;
        const bool wanted =
            backward ? adds_gradients && op.phase != Phase::Forward : op.phase == Phase::Forward;
        if (!wanted) continue;
        for (const std::string& name : op.parameters) names.insert(with_layer(name, call.layer));
      }
    }
  }
  return names;
}

std::set<std::string> trained_parameters(const LoweringCase& made) {
  std::set<std::string> names;
  for (const ParameterTensor& tensor : parameter_tensors(made.model)) {
    if (tensor.place == ParameterPlace::Mtp && !made.plan.multi_token_prediction) continue;
    names.insert(tensor.name.substr(0, tensor.name.rfind('.')));
  }
  return names;
}

TEST(OpParameters, EachIsAppliedAndGetsAGradient) {
  for_each_named_case([](const LoweringCase& made, const Program& program) {
    const std::set<std::string> trained = trained_parameters(made);
    EXPECT_EQ(applied(program, false), trained);
    EXPECT_EQ(applied(program, true), trained);
  });
}

// OLMo 2: norms behind the branches, and over all heads of queries and keys, whose sums of squares
// the tensor-parallel ranks add up.
TEST(OpParameters, NormsBehindTheBranchesAndOverAllHeadsAreApplied) {
  LoweringCase made = small_case(2);
  made.model.post_norm = true;
  made.model.attention.qk_norm = made.model.attention.qk_norm_whole = true;
  for (const std::int64_t tp : {1, 2}) {
    made.plan.tp = tp;
    const Program program = made.lower();
    EXPECT_TRUE(validate(program).empty());
    EXPECT_EQ(applied(program, false), trained_parameters(made));
    EXPECT_EQ(applied(program, true), trained_parameters(made));
  }
}

// Each part that a stage computes with is covered once where gradients are reduced once a step, and
// a shared embedding on both stages that hold it.
TEST(OpParameters, ReductionsCoverEachPartOnce) {
  for_each_named_case([](const LoweringCase& made, const Program& program) {
    const Plan& plan = made.plan;
    const Group group = plan.zero_stage == 0 ? Group::Data : Group::ShardInner;
    if (plan.zero_stage > 1 || group_size(group, plan) == 1) return;
    for (const RankProgram& rank : program.stages) {
      std::map<PartId, int> covered;
      std::set<PartId> held;
      for (std::size_t c = 0; c < rank.calls.size(); ++c) {
        for (const Op& op : program.blocks[rank.calls[c].block].ops) {
          const auto* work = std::get_if<CommunicationWork>(&op.work);
          if (op.payload == Payload::Gradients && work->group == group) {
            for (const PartId part : Program::covered(rank, c)) ++covered[part];
          }
          for (const std::string& name : op.parameters) {
            const bool embedding =
                name == "embedding" || name == "position_embedding" || name == "embedding_norm";
            held.insert(embedding ? kEmbeddingPart : rank.calls[c].layer);
          }
        }
      }
      for (const auto& [part, times] : covered) EXPECT_EQ(times, 1) << part;
      for (const PartId part : held) EXPECT_EQ(covered.count(part), 1U) << part;
    }
  });
}

}  // namespace
}  // namespace shardwright
