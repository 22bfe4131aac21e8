// The executor's command line: refused values and help.
#include "executor/launch/run_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunOptions parse(std::vector<std::string> more) {
  CLI::App app;
  RunOptions options;
  add_run_options(app, options);
  std::vector<std::string> arguments = {"plan.json", "--data", "a", "--out", "b", "--steps", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  // CLI11 takes arguments in reverse order.
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  check_run_options(options);
  return options;
}

template <class Error = CLI::ParseError>
std::string refusal_of(const std::vector<std::string>& more) {
  return thrown_by<Error>([&] { parse(more); });
}

using OptionAndValue = std::vector<std::string>;

class RefusedValue : public testing::TestWithParam<OptionAndValue> {};

TEST_P(RefusedValue, IsNamedWithWhatIsExpected) {
  EXPECT_THAT(refusal_of<CLI::ValidationError>(GetParam()),
              AllOf(HasSubstr(GetParam().front()),
                    HasSubstr("found " + GetParam().back() + "; expected a")));
}

INSTANTIATE_TEST_SUITE_P(Numbers, RefusedValue,
                         testing::ValuesIn(std::vector<OptionAndValue>{
                             {"--timeout", "nan"},
                             {"--timeout", "inf"},
                             {"--timeout", "0"},
                             {"--lr", "nan"},
                             {"--lr", "-1"},
                             {"--min-lr-ratio", "1.5"},
                             {"--clip", "NaN"},
                             {"--weight-decay", "-nan"},
                             {"--keep", "0"},
                             {"--keep", "2.5"},
                             {"--restarts", "2.7"},
                             {"--checkpoint-every", "1e2"},
                             {"--warmup-steps", "-1"},
                             {"--restarts", "10000000000000000"}}));

// Fractions and numbers in scientific notation are no counts; no step may be omitted.
TEST(RunOptions, TakesDigitsAloneForStepsToRecord) {
  EXPECT_EQ(parse({"--timeline-steps", "1,0"}).recorded_steps(), (std::vector<std::int64_t>{1, 0}));
  for (const auto& [list, part] : {std::pair{"0,,1", "\"\""},
                                   {"0,", "\"\""},
                                   {",0", "\"\""},
                                   {"0,-1", "\"-1\""},
                                   {"1e0", "\"1e0\""},
                                   {"0.5", "\"0.5\""}}) {
    EXPECT_THAT(refusal_of({"--timeline-steps", list}),
                HasSubstr(std::string("found ") + part + " in " + list));
  }
}

TEST(RunOptions, RefusesToRecordStepsThatTheRunDoesNotHave) {
  EXPECT_EQ(parse({"--timeline-steps", "0,1"}).recorded_steps().size(), 2U);
  EXPECT_THAT(refusal_of<InputError>({"--timeline-steps", "1,99"}),
              HasSubstr("--timeline-steps: found 99; expected steps from 0 to 1"));
}

// The rate would rise until the last step and never reach its peak.
TEST(RunOptions, RefusesAWarmUpThatIsLongerThanTheRun) {
  EXPECT_EQ(parse({"--warmup-steps", "2"}).training.warmup_steps, 2);
  EXPECT_THAT(refusal_of<InputError>({"--warmup-steps", "3"}),
              HasSubstr("--warmup-steps: found 3; expected at most the 2 of --steps"));
}

TEST(RunOptions, RefusesCheckpointOptionsWithoutCheckpoints) {
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--async-checkpoints"}, {"--keep", "3"}}) {
    EXPECT_EQ(refusal_of(how), how.front() + " requires --checkpoint-every");
    std::vector<std::string> with = how;
    with.insert(with.end(), {"--checkpoint-every", "1"});
    EXPECT_THAT(remarks_on(parse(with)), Not(Contains(HasSubstr(how.front()))));
  }
}

TEST(RunOptions, RemarksOnOptionsWithoutEffect) {
  // The number of steps is the default, which was not given.
  EXPECT_THAT(
      remarks_on(parse({})),
      ElementsAre(HasSubstr("does not reach --lr in these 2 steps: it rises over 10 steps")));
  const std::vector<std::string> quiet = {"--warmup-steps", "0"};
  EXPECT_THAT(remarks_on(parse(quiet)), IsEmpty());
  const auto remarks = [&](std::vector<std::string> more) {
    more.insert(more.end(), quiet.begin(), quiet.end());
    return remarks_on(parse(more));
  };
  EXPECT_THAT(remarks({"--timeline-steps", "0,1"}), IsEmpty());
  EXPECT_THAT(remarks({"--timeline-steps", "1,0,1,0,1"}),
              ElementsAre("--timeline-steps repeats 0, 1: each step is recorded once"));
  EXPECT_THAT(remarks({"--async-checkpoints", "--checkpoint-every", "0"}),
              ElementsAre(HasSubstr("--async-checkpoints has no effect")));
}

TEST(RunOptions, TakesAnySeedThatIsAnInteger) {
  EXPECT_EQ(parse({"--seed", "18446744073709551615"}).training.seed, 18446744073709551615U);
  for (const char* seed : {"x", "-1", "1.5", "18446744073709551616", ""}) {
    EXPECT_THAT(refusal_of({"--seed", seed}), HasSubstr("expected an integer from 0 to 2^64 - 1"))
        << seed;
  }
}

TEST(RunOptions, HelpShowsDefaultsAndNoInternals) {
  CLI::App app;
  RunOptions options;
  add_run_options(app, options);
  const std::string help = app.help();
  for (const char* part :
       {"--timeout NUMBER=60", "--keep N=2", "--lr NUMBER=0.0003", "--restarts", "NAME.u16"})
    EXPECT_THAT(help, HasSubstr(part));
  for (const char* part : {"--planner", "--continue-under", "--local", "1000000"})
    EXPECT_THAT(help, Not(HasSubstr(part)));
}

}  // namespace
}  // namespace shardwright::executor
