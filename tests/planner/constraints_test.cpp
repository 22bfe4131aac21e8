#include "planner/constraints.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "core/base/error.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

std::string refusal_of(const std::string& text) {
  const std::vector<Problem> problems =
      problems_thrown_by([&text] { parse_constraint(text, "--fix"); });
  return problems.empty() ? "accepted" : to_string(problems.front().expected);
}

TEST(Constraints, ReadValuesOfEveryKind) {
  EXPECT_EQ(parse_constraint("tp=8", "--fix").values, (std::vector<std::int64_t>{8}));
  EXPECT_EQ(parse_constraint("micro-batch=1,2", "--fix").values, (std::vector<std::int64_t>{1, 2}));
  const Constraint schedule = parse_constraint("schedule=1f1b,zb-h1", "--fix");
  Plan plan;
  plan.schedule = ScheduleKind::ZbH1;
  EXPECT_TRUE(schedule.holds(plan));
  plan.schedule = ScheduleKind::GPipe;
  EXPECT_FALSE(schedule.holds(plan));
  EXPECT_TRUE(parse_constraint("sp=true", "--fix").holds(plan));
  EXPECT_EQ(to_string(parse_constraint("zero_stage=3", "--fix")), "zero=3");
  const Constraint modules = parse_constraint("recompute_modules=mlp+moe_act,default", "--fix");
  EXPECT_TRUE(modules.holds(plan));
  plan.recompute_modules = {RecomputeModule::MoeActivation, RecomputeModule::Mlp};
  EXPECT_TRUE(modules.holds(plan));
  plan.recompute_modules.insert(RecomputeModule::LayerNorm);
  EXPECT_FALSE(modules.holds(plan));
  EXPECT_EQ(to_string(modules), "recompute_modules=moe_act+mlp,default");
  EXPECT_EQ(to_string(schedule), "schedule=1f1b,zb-h1");
}

TEST(Constraints, BoundsHoldOnTheirSide) {
  Plan plan;
  for (const auto& [text, least, most] :
       {std::tuple{"pp>=4", 4, 9}, {"pp>4", 5, 9}, {"pp<=4", 1, 4}, {"pp<4", 1, 3}}) {
    const Constraint bound = parse_constraint(text, "--fix");
    for (plan.pp = 1; plan.pp < 10; ++plan.pp)
      EXPECT_EQ(bound.holds(plan), plan.pp >= least && plan.pp <= most) << text << " " << plan.pp;
    EXPECT_EQ(parse_constraint(to_string(bound), "--fix"), bound);
  }
  EXPECT_NE(refusal_of("schedule>=1f1b").find("schedule="), std::string::npos);
}

TEST(Constraints, RefuseWithTheNearestName) {
  EXPECT_NE(refusal_of("tpp=8").find("tp"), std::string::npos);
  EXPECT_NE(refusal_of("recompute=ful").find("full"), std::string::npos);
  EXPECT_NE(refusal_of("recompute_modules=mlp+moe_action").find("moe_act"), std::string::npos);
  for (const char* text :
       {"tp", "tp=", "tp=x", "tp=-1", "tp=8,", "=8", "", "tp=99999999999999999999", "tp>", "tp<=x"})
    EXPECT_NE(refusal_of(text), "accepted") << text;
}

TEST(Constraints, NameTheFirstThatIsBroken) {
  Constraints constraints;
  constraints.fixed = {parse_constraint("tp=1", "--fix"), parse_constraint("pp=4", "--fix")};
  constraints.forbidden = {parse_constraint("zero=1", "--forbid")};
  Plan plan;
  EXPECT_EQ(broken_constraint(constraints, plan), "fix pp=4");
  plan.pp = 4;
  EXPECT_EQ(broken_constraint(constraints, plan), "forbid zero=1");
  plan.zero_stage = 2;
  EXPECT_EQ(broken_constraint(constraints, plan), "");
}

}  // namespace
}  // namespace shardwright::planner
