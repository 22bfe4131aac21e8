// Launch scripts as shells read them: positional parameters, conditions, loops and what `eval`
// reads again.
#include "planner/import/shell_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/import/shell_arithmetic.hpp"
#include "tests/planner/import/imported_text.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kProgram =
    "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--num-attention-heads 32 --seq-length 4096 --vocab-size 50304 --micro-batch-size 1 "
    "--global-batch-size 128 ";

ImportedPlan called_with(const std::string& script,
                         const std::optional<std::vector<std::string>>& values) {
  return import_text(script, "dgx-h100", "megatron-core", {values, "--values"});
}

// The values of the words that echo would print.
std::vector<std::string> echoed(const std::string& script,
                                const std::optional<std::vector<std::string>>& values = {}) {
  std::vector<std::string> words;
  for (const ShellCommand& command : read_shell_script(script, "script", {values, "x"}).commands)
    if (command.front() == "echo") words.insert(words.end(), command.begin() + 1, command.end());
  return words;
}

TEST(ShellScript, PositionalParametersHaveTheValuesOfTheCall) {
  const std::string script =
      std::string("TP=${1:-2}\nPP=$2\n") + kProgram +
      "--tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP}\n";
  const Plan plan = called_with(script, {{"4", "8"}}).scenario.plan;
  EXPECT_EQ(plan.tp, 4);
  EXPECT_EQ(plan.pp, 8);
  const auto problems = problems_thrown_by([&] { called_with(script, std::nullopt); });
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].where, "--pipeline-model-parallel-size");
  EXPECT_EQ(problems[0].found,
            "no value, as it is $2, a positional parameter that --values states");
  EXPECT_THAT(echoed("echo $# \"$@\" ${11} $0\nshift\necho $# $1", {{"a", "b c"}}),
              ElementsAre("2", "a", "b c", "1", "b", "c"));
  // A function has parameters of its own.
  EXPECT_THAT(echoed("f() {\n  echo $1\n}\nfunction g {\n echo $2\n}\necho $1", {{"a", "b"}}),
              ElementsAre("a"));
  // Nobody knows how often a loop shifts.
  EXPECT_THAT(echoed("while [ $# -gt 0 ]; do shift; done; echo $1", {{"a", "b"}}), IsEmpty());
}

TEST(ShellScript, ErrorsNameWhatHasNoValue) {
  const auto found = [](const std::string& script) {
    const auto problems = problems_thrown_by([&] { called_with(script, std::nullopt); });
    return problems.empty() ? "" : problems.front().found;
  };
  const std::string tp = std::string(kProgram) + "--tensor-model-parallel-size ";
  EXPECT_EQ(found(tp + "$TP"), "no value, as it is $TP, a variable of the environment");
  EXPECT_EQ(found("TP=$(cat tp)\nARGS=(--x 1)\n" + tp + "\\\n \"${TP}\" ${ARGS[@]}"),
            "no value, as it is the output of $(cat tp)");
  EXPECT_EQ(found("A=\"" + tp + "$((2 * $3))\"\n$A"),
            "no value, as it is $3, a positional parameter that --values states");
  EXPECT_EQ(found(tp + "${TP%x}"), "no value, as it is $TP, a variable of the environment");
  EXPECT_EQ(found("TP=4x\n" + tp + "${TP%x}"), "no value, as it is ${TP%x}, which is not followed");
  EXPECT_EQ(found("torchrun --nnodes 2 --nproc_per_node $1 a.py --num-layers 2 --hidden-size 64 "
                  "--num-attention-heads 2 --seq-length 128"),
            "--nproc_per_node without a value, as it is $1, a positional parameter that --values "
            "states");
}

TEST(ShellScript, FollowsConditionsOfKnownValues) {
  const auto taken = [](const std::string& condition) {
    return echoed("A=8B; N=4\nif " + condition +
                      "; then echo yes; B=1; else echo no; B=2; fi\n"
                      "echo $B",
                  {{"bf16"}});
  };
  for (const char* holds :
       {"[ $A = 8B ]", "[[ \"$A\" == 8B ]]", "test $N -ge 4", "[ $1 = bf16 ]", "[ -n \"$A\" ]",
        "! [ $A = 70B ]", "[ ! $N -gt 4 ]", "[ -z \"$UNSET\" ]", "[ $A = 8B ] && [ $N -eq 4 ]",
        "[ $A = 9B ] || [ $N != 5 ]", "[ -z $2 ]", "[ $A = 8B ] || unknown"})
    EXPECT_THAT(taken(holds), ElementsAre("yes", "1")) << holds;
  for (const char* fails :
       {"[ $A = 70B ]", "[ $N -lt 4 ]", "[ \"$UNSET\" = 1 ]", "[ $A = 8B ] && [ $N -eq 5 ]",
        "[ -n \"$UNSET\" ]", "[ $A != 8B ] && unknown"})
    EXPECT_THAT(taken(fails), ElementsAre("no", "2")) << fails;
  for (const char* unknown : {"[ -d data ]", "grep -q x y", "[ $(hostname) = a ]", "[[ $A == 8* ]]",
                              "[ $A = 8B ] && unknown", "(( N > 3 ))", "[ $0 = run.sh ]"})
    EXPECT_THAT(taken(unknown), ElementsAre("yes", "no", "2")) << unknown;
  EXPECT_THAT(
      echoed("A=2\nif [ $A = 1 ]; then echo 1; elif [ $A = 2 ]; then echo 2; elif [ $A = 2 ]"
             "\nthen echo 3\nelse echo 4; fi; echo end"),
      ElementsAre("2", "end"));
  EXPECT_THAT(echoed("if [ -d a ]; then echo 1; elif [ 1 = 1 ]; then echo 2; else echo 3; fi"),
              ElementsAre("1", "2"));
  EXPECT_THAT(
      echoed("if [ 1 = 2 ]; then for i in 1 2; do if [ 1 = 1 ]; then echo a; fi; done; else "
             "echo b; fi"),
      ElementsAre("b"));
}

// As bash prints them.
TEST(ShellScript, FollowsListsOfKnownValues) {
  const auto taken = [](const std::string& list) {
    return echoed("A=8B; N=4; X=\"\"; OFF=false\nTP=1\n" + list + "\necho $TP");
  };
  for (const char* held :
       {"[ $A = 8B ] && TP=4", "test $N -eq 5 || TP=4", "[ $A = 9B ] && TP=2 || TP=4",
        "[ $A = 8B ] &&\n  TP=4", "[ $A = 8B ] && { EP=2; TP=4; }", "[ -z \"$X\" ] && TP=4",
        "[ $A = 9B ] && { TP=8; } || TP=4", "true && TP=4", "(( N > 3 )) && TP=4", "! $OFF && TP=4",
        "if [ $A = 8B ]; then [ $N = 4 ] && TP=4; fi"})
    EXPECT_THAT(taken(held), ElementsAre("4")) << held;
  for (const char* failed :
       {"[ $A = 9B ] && TP=4", "test $N -eq 4 || TP=4", "[ $A = 9B ] && { EP=2; TP=4; }",
        "[ -n \"$X\" ] && TP=4", "$OFF && TP=4", "(( N == 3 )) && TP=4", "if $OFF; then TP=4; fi",
        "[ $A = 8B ] && [ $N = 5 ] && TP=4"})
    EXPECT_THAT(taken(failed), ElementsAre("1")) << failed;
  const ShellScript unknown = read_shell_script("TP=1\n[ -d data ] && TP=4\necho $TP", "script");
  EXPECT_TRUE(unknown.conditional.contains("TP"));
  const ShellScript printed = read_shell_script(
      "if [ 1 = 1 ]; then\ncat <<E\n{\n \"a\": {\n }\n}\nE\nelse\n TP=4\nfi", "s");
  EXPECT_TRUE(printed.conditional.empty());
}

// Of a chain of sizes the one that the call names, without a word on the others.
TEST(ShellScript, TheSizeOfTheCallIsImported) {
  const std::string script = std::string(
                                 "SIZE=$1\nif [ $SIZE = 8B ]; then\n  W=14336\nelif [ $SIZE = 70B "
                                 "]; then\n  W=28672\nfi\nif [ -z ${OWN_VP} ]; then VP=\"\"; else "
                                 "VP=\"--num-layers-per-virtual-pipeline-stage $OWN_VP\"; fi\n") +
                             kProgram + "--ffn-hidden-size $W $VP";
  const ImportedPlan small = called_with(script, {{"8B"}});
  EXPECT_EQ(small.scenario.model.mlp.ffn_hidden, 14'336);
  EXPECT_THAT(small.assumed, Contains(HasSubstr("OWN_VP counts as not set")));
  EXPECT_THAT(small.assumed, Not(Contains(HasSubstr("condition"))));
  EXPECT_EQ(called_with(script, {{"70B"}}).scenario.model.mlp.ffn_hidden, 28'672);
  EXPECT_THAT(called_with(script, std::nullopt).assumed,
              Contains(HasSubstr("as if its condition held")));
}

TEST(ShellScript, TheFirstTurnOfALoopCounts) {
  const ImportedPlan imported = import_text(std::string("for TP in 2 4 8; do\n") + kProgram +
                                            "--tensor-model-parallel-size $TP\ndone");
  EXPECT_EQ(imported.scenario.plan.tp, 2);
  EXPECT_THAT(imported.assumed,
              Contains(HasSubstr(
                  "of the loop \"for TP in 2 4 8\" in line 1 the first turn counts, with 2")));
}

// As bash prints them; functions that nothing calls come last.
TEST(ShellScript, FunctionsCountWhereTheyAreCalled) {
  const std::string models =
      "small() {\n  L=32 # }\n  T=\"}\"\n}\nfunction large {\n  L=80; { T=8; }\n}\n";
  EXPECT_THAT(echoed(models + "small\necho $L $T"), ElementsAre("32", "}"));
  EXPECT_THAT(echoed(models + "small; large\necho $L $T"), ElementsAre("80", "8"));
  EXPECT_THAT(echoed("f() { TP=8; }; TP=1; f; echo $TP"), ElementsAre("8"));
  EXPECT_THAT(echoed("f() { echo $1 $#; }\nf a b\necho $1", {{"x"}}), ElementsAre("a", "2", "x"));
  EXPECT_THAT(echoed("f()\n{\n  echo in\n}\necho out"), ElementsAre("out", "in"));
  EXPECT_THAT(echoed("f() { f; echo $1; }\nf a"), Contains("a"));
  const ShellScript script =
      read_shell_script("f() {\n  TP=8\n}\nTP=1\nif grep x y; then\n  f\nfi\necho $TP", "script");
  ASSERT_TRUE(script.conditional.contains("TP"));
  EXPECT_EQ(script.conditional.at("TP").line, 2);
}

// What changes a variable is followed, or else the variable has no value.
TEST(ShellScript, VariablesThatArithmeticOrUnsetChangesHaveNoValue) {
  for (const char* change : {"((TP++))", "(( TP = TP * 4 ))", "((TP+=2))", "unset TP"})
    EXPECT_THAT(echoed(std::string("TP=2\n") + change + "\necho $TP"), IsEmpty()) << change;
  for (const char* test : {"(( TP == 2 ))", "if (( TP >= 1 )); then :; fi"})
    EXPECT_THAT(echoed(std::string("TP=2\n") + test + "\necho $TP"), ElementsAre("2")) << test;
}

TEST(ShellScript, OfSeveralLaunchesTheFirstCounts) {
  const std::string launch = kProgram;
  const ImportedPlan two =
      import_text(launch + "--bf16\n" + launch + "--bf16 --tensor-model-parallel-size 2\n");
  EXPECT_EQ(two.scenario.plan.tp, 1);
  EXPECT_THAT(two.assumed, Contains(HasSubstr("of its 2 launches the first counts")));
  EXPECT_THAT(import_text(launch + "\n" + launch).assumed, Not(Contains(HasSubstr("launches"))));
}

// As bash prints them.
TEST(ShellScript, EvalReadsItsWordsAgain) {
  EXPECT_THAT(echoed(R"(A="'([0]*1+[1]*3)'"; cmd="echo $A"; eval $cmd 2>&1 | tee log)"),
              ElementsAre("([0]*1+[1]*3)"));
  EXPECT_THAT(echoed("cmd='echo \"a b\" \\|'; eval \"$cmd\"; $cmd"),
              ElementsAre("a b", "|", "\"a", "b\"", "\\|"));
  EXPECT_THAT(echoed("eval 'B=3'; echo $B; eval \"echo 'x\""), ElementsAre("3"));
}

TEST(ShellScript, ArithmeticIsThatOfBash) {
  const auto value = [](const std::string& text) {
    return arithmetic_value(text, [](const std::string& name) {
      return std::string(name == "TP" || name == "1" ? "8" : "");
    });
  };
  EXPECT_EQ(value("($TP > 1) ? 1 : 0"), 1);
  EXPECT_EQ(value("TP <= 7 ? 10 : TP == 8 ? 20 : 30"), 20);
  EXPECT_EQ(value("${TP} != 8"), 0);
  EXPECT_EQ(value("$1 * 1"), 8);
  for (const char* wrong : {"TP >", "1 ? 2", "? 1 : 2", "TP = 8", "(((1)", "1 ? : 2"})
    EXPECT_EQ(value(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace shardwright::planner
