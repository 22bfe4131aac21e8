// Every kind of bad input: exit code 2, nothing on standard output, and a message that names the
// file, the place, what was found and what was expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// "@" among the arguments is a file with `text`.
struct BadCase {
  const char* name;
  std::vector<std::string> arguments;
  std::string text;
  std::vector<std::string> says;
};

void PrintTo(const BadCase& bad, std::ostream* stream) {
  *stream << bad.name;
}

class BadInput : public testing::TestWithParam<BadCase> {};

TEST_P(BadInput, IsRefusedWithItsPlace) {
  const BadCase& bad = GetParam();
  const ScratchFolder folder;
  const std::string file = folder.write("bad.json", bad.text);
  std::vector<std::string> arguments = bad.arguments;
  for (std::string& argument : arguments) {
    if (argument == "@") argument = file;
  }
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.errors;
  EXPECT_THAT(result.output, IsEmpty());
  for (const std::string& fragment : bad.says) EXPECT_THAT(result.errors, HasSubstr(fragment));
}

std::string test_name(const testing::TestParamInfo<BadCase>& info) {
  return info.param.name;
}

// A correct plan file in which one text is replaced.
std::string plan_file(const std::string& from = "", const std::string& to = "") {
  std::string text = R"({"schema": "shardwright/plan", "version": 1, "model": "llama3-8b",
    "cluster": "dgx-h100", "stack": "megatron-core",
    "plan": {"dp": 4, "tp": 2, "pp": 1, "micro_batch": 1, "global_batch": 32, "seq_len": 8192}})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

std::string model_file(const std::string& from = "", const std::string& to = "") {
  std::string text = R"({"schema": "shardwright/model", "version": 1, "name": "mine",
    "layers": 4, "hidden": 64, "vocab": 100,
    "attention": {"heads": 8, "kv_heads": 2, "head_dim": 8}, "mlp": {"ffn_hidden": 128}})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

std::string huggingface_file(const std::string& from = "", const std::string& to = "") {
  std::string text = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 100})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

std::string flow_file(const std::string& from = "", const std::string& to = "") {
  std::string text = R"({"links": [{"id": "a", "bandwidth_bytes_per_s": 1e9, "latency_s": 1e-6}],
    "flows": [{"id": "x", "bytes": 1e6, "route": ["a"], "start_s": 0}]})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

std::string cluster_file(const std::string& from = "", const std::string& to = "") {
  std::string text = R"({"schema": "shardwright/cluster", "version": 1, "name": "mine",
    "accelerator": "h100-sxm", "node": "dgx-h100", "fabric": "ib-ndr-rail"})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

// Simulates 8 GPUs with further arguments.
std::vector<std::string> simulate(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"simulate",  "--model",   "llama3-8b",
                                        "--cluster", "dgx-h100",  "--global-batch",
                                        "32",        "--seq-len", "8192"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string nested(int levels) {
  return std::string(static_cast<std::size_t>(levels), '[') +
         std::string(static_cast<std::size_t>(levels), ']');
}

const std::vector<BadCase> kUsage = {
    {"NoSubcommand", {}, "", {"ubcommand"}},
    {"UnknownSubcommand", {"simulat"}, "", {"\"simulat\"", "did you mean simulate?"}},
    {"FarSubcommand", {"quantum"}, "", {"unknown subcommand \"quantum\""}},
    {"UnknownNestedSubcommand", {"models", "shw"}, "", {"models: unknown", "did you mean show?"}},
    {"NoNestedSubcommand", {"clusters"}, "", {"shardwright clusters"}},
    {"UnknownOption", {"models", "list", "--jsn", "-"}, "", {"--jsn", "did you mean --json?"}},
    {"UnknownOptionOfSimulate", {"simulate", "--modle", "x"}, "", {"did you mean --model?"}},
    {"OptionWithoutValue", {"simulate", "--tp"}, "", {"--tp"}},
    {"ExtraArgument", {"models", "show", "gpt2", "gpt2-xl"}, "", {"gpt2-xl"}},
    {"MissingArgument", {"models", "show"}, "", {"model"}},
    {"BadColour", {"models", "list", "--color", "pink"}, "", {"--color"}},
    {"NothingToSimulate",
     {"simulate"},
     "",
     {"--model: found nothing", "--cluster: found nothing", "--global-batch", "--seq-len"}},
    {"PlanFileAndRow", {"simulate", "--plan", "a", "--row", "b:c"}, "", {"one of the two"}},
    {"JsonIntoMissingFolder",
     {"models", "list", "--json", "/no/such/folder/x.json"},
     "",
     {"--json", "/no/such/folder"}},
    {"JsonIntoFolder", {"models", "list", "--json", "/tmp"}, "", {"--json", "folder \"/tmp\""}},
    {"ExistingJson", {"models", "list", "--json", "@"}, "here", {"existing file", "--force"}},
    {"ExistingPlan", simulate({"--gpus", "8", "--out", "@"}), "here", {"existing", "--force"}},
};
INSTANTIATE_TEST_SUITE_P(Usage, BadInput, testing::ValuesIn(kUsage), test_name);

const std::vector<BadCase> kDegrees = {
    {"ZeroDegree", simulate({"--tp", "0"}), "", {"--tp: found 0; expected an integer from 1"}},
    {"NegativeDegree", simulate({"--pp", "-2"}), "", {"--pp: found -2"}},
    {"FractionalDegree", simulate({"--dp", "1.5"}), "", {"--dp: found 1.5"}},
    {"WordAsDegree", simulate({"--cp", "two"}), "", {"--cp: found \"two\""}},
    {"NotANumber", simulate({"--tp", "NaN"}), "", {"--tp: found \"NaN\""}},
    {"InfiniteDegree", simulate({"--tp", "1e999"}), "", {"--tp: found"}},
    {"OverflowingDegree", simulate({"--tp", "99999999999999999999"}), "", {"--tp: found"}},
    {"OverflowingWorld",
     simulate({"--tp", "1000000", "--pp", "1000000"}),
     "",
     {"expected", "10000000"}},
    {"TwoProblemsAtOnce", simulate({"--tp", "0", "--pp", "x"}), "", {"--tp: found", "--pp: found"}},
    {"GpusNotProduct", simulate({"--gpus", "12", "--tp", "8"}), "", {"expected", "12"}},
    {"GpusWord", simulate({"--gpus", "many"}), "", {"--gpus: found \"many\""}},
    {"GpusZero", simulate({"--gpus", "0"}), "", {"--gpus: found \"0\""}},
    {"HeadsNotDivisible", simulate({"--dp", "1", "--tp", "3"}), "", {"--tp", "found", "expected"}},
    {"ExpertsOfDenseModel", simulate({"--dp", "8", "--ep", "8"}), "", {"--ep", "expected"}},
    {"TooManyStages", simulate({"--dp", "1", "--pp", "64"}), "", {"--pp", "expected"}},
    {"BatchNotDivisible", simulate({"--dp", "5"}), "", {"found", "expected"}},
    {"UnknownSchedule",
     simulate({"--schedule", "1f2b"}),
     "",
     {"--schedule: found", "did you mean \"1f1b\"?"}},
    {"UnknownRecompute", simulate({"--recompute", "ful"}), "", {"--recompute", "\"full\""}},
    {"UnknownPrecision", simulate({"--precision", "bf1"}), "", {"--precision", "\"bf16\""}},
    {"ZeroStageFour", simulate({"--zero", "4"}), "", {"--zero: found 4"}},
    {"SettingWithoutValue", simulate({"--set", "tp"}), "", {"--set: found \"tp\"", "FIELD=VALUE"}},
    {"SettingOfAPart", simulate({"--set", "dp=8", "--set", "dp.x=3"}), "", {"dp: found an object"}},
    {"UnknownSetting", simulate({"--set", "tpp=2"}), "", {"tpp", "did you mean"}},
    {"UnknownSettingOfAStack",
     simulate({"--set", "stack.host.cuda_graph=true"}),
     "",
     {"--set stack: /host/cuda_graph", "did you mean \"cuda_graphs\"?"}},
    {"SettingOutOfRange",
     simulate({"--set", "cluster.node.nic.efficiency_ratio=2"}),
     "",
     {"--set cluster: /node/nic/efficiency_ratio: found 2"}},
    {"UnknownModel",
     {"simulate", "--model", "lama3-8b", "--cluster", "dgx-h100", "--global-batch", "8",
      "--seq-len", "128"},
     "",
     {"--model", "did you mean \"llama3-8b\"?"}},
    {"UnknownCluster",
     {"simulate", "--model", "llama3-8b", "--cluster", "dgx-h10", "--global-batch", "8",
      "--seq-len", "128"},
     "",
     {"--cluster", "did you mean \"dgx-h100\"?"}},
    {"UnknownStack", simulate({"--stack", "megatron-cor"}), "", {"--stack", "megatron-core"}},
    {"MissingRowFile", {"simulate", "--row", "/no/such.jsonl:x"}, "", {"/no/such.jsonl"}},
    {"RowWithoutId", {"simulate", "--row", "rows.jsonl"}, "", {"--row", "FILE:ID"}},
};
INSTANTIATE_TEST_SUITE_P(CommandLine, BadInput, testing::ValuesIn(kDegrees), test_name);

const std::vector<BadCase> kPlans = {
    {"Missing", {"simulate", "--plan", "/no/plan.json"}, "", {"/no/plan.json: found no such file"}},
    {"Folder", {"simulate", "--plan", "/tmp"}, "", {"/tmp: found a folder"}},
    {"Empty", {"simulate", "--plan", "@"}, "", {"bad.json: found an empty file"}},
    {"Truncated",
     {"simulate", "--plan", "@"},
     plan_file().substr(0, 100),
     {"bad.json", "expected well-formed JSON"}},
    {"Binary",
     {"simulate", "--plan", "@"},
     std::string("\x7f"
                 "ELF\0\1\2",
                 7),
     {"found binary data"}},
    {"BrokenUtf8", {"simulate", "--plan", "@"}, "{\"a\": \"\xff\xfe\"}", {"expected well-formed"}},
    {"DeeplyNested", {"simulate", "--plan", "@"}, nested(100'000), {"nested deeper"}},
    {"NotAnObject", {"simulate", "--plan", "@"}, "[1, 2]", {"expected"}},
    {"Null", {"simulate", "--plan", "@"}, "null", {"expected"}},
    {"WrongSchema",
     {"simulate", "--plan", "@"},
     plan_file("shardwright/plan", "shardwright/plon"),
     {"/schema: found", "\"shardwright/plan\""}},
    {"FutureVersion",
     {"simulate", "--plan", "@"},
     plan_file("\"version\": 1", "\"version\": 2"),
     {"/version: found 2"}},
    {"DuplicateKey",
     {"simulate", "--plan", "@"},
     plan_file("\"tp\": 2", "\"tp\": 2, \"tp\": 4"),
     {"twice in one object"}},
    {"UnknownKey",
     {"simulate", "--plan", "@"},
     plan_file("\"pp\": 1", "\"pp\": 1, \"seqlen\": 5"),
     {"/plan/seqlen", "did you mean \"seq_len\"?"}},
    {"MissingKey",
     {"simulate", "--plan", "@"},
     plan_file("\"pp\": 1, ", ""),
     {"/plan/pp", "expected"}},
    {"TextAsNumber",
     {"simulate", "--plan", "@"},
     plan_file("\"tp\": 2", "\"tp\": \"2\""),
     {"/plan/tp: found \"2\""}},
    {"ListAsNumber",
     {"simulate", "--plan", "@"},
     plan_file("\"tp\": 2", "\"tp\": [2]"),
     {"/plan/tp: found an array"}},
    {"HugeNumber",
     {"simulate", "--plan", "@"},
     plan_file("\"tp\": 2", "\"tp\": 1e999"),
     {"bad.json", "expected"}},
    {"NegativeSequence",
     {"simulate", "--plan", "@"},
     plan_file("8192", "-8192"),
     {"/plan/seq_len: found -8192"}},
    {"EveryProblemAtOnce",
     {"simulate", "--plan", "@"},
     plan_file("\"dp\": 4, \"tp\": 2", "\"dp\": 0, \"tp\": null"),
     {"/plan/dp: found 0", "/plan/tp: found"}},
    {"HeadsOfAnotherModel",
     {"simulate", "--plan", "@", "--model", "gpt2"},
     plan_file("\"tp\": 2", "\"tp\": 8"),
     {"/plan/tp", "found", "expected"}},
    {"ReplacedField", {"simulate", "--plan", "@", "--tp", "0"}, plan_file(), {"/plan/tp: found 0"}},
    {"UnknownModelName",
     {"simulate", "--plan", "@"},
     plan_file("llama3-8b", "llama3-9b"),
     {"/model", "did you mean \"llama3-8b\"?"}},
};
INSTANTIATE_TEST_SUITE_P(PlanFile, BadInput, testing::ValuesIn(kPlans), test_name);

const std::vector<BadCase> kModels = {
    {"MissingFile", {"models", "show", "./nothing.json"}, "", {"nothing.json"}},
    {"FolderWithoutConfig", {"models", "show", "/tmp"}, "", {"config.json"}},
    {"UnknownName", {"models", "show", "gpt3-176b"}, "", {"did you mean \"gpt3-175b\"?"}},
    {"NeitherFormat", {"models", "show", "@"}, "{}", {"\"schema\"", "\"model_type\""}},
    {"UnknownModelType",
     {"models", "show", "@"},
     huggingface_file("\"llama\"", "\"lama\""),
     {"/model_type: found \"lama\"", "did you mean \"llama\"?"}},
    {"MissingSize",
     {"models", "show", "@"},
     huggingface_file("\"hidden_size\": 64, ", ""),
     {"/hidden_size"}},
    {"HeadsDoNotDivideWidth",
     {"models", "show", "@"},
     huggingface_file("\"num_attention_heads\": 8", "\"num_attention_heads\": 7"),
     {"/hidden_size: found 64", "7 heads"}},
    {"UnknownKeyOfOurs",
     {"models", "show", "@"},
     model_file("\"layers\"", "\"leyers\": 3, \"layers\""),
     {"/leyers", "did you mean \"layers\"?"}},
    {"ZeroLayers",
     {"models", "show", "@"},
     model_file("\"layers\": 4", "\"layers\": 0"),
     {"/layers: found 0"}},
    {"KvHeadsDoNotDivide",
     {"models", "show", "@"},
     model_file("\"kv_heads\": 2", "\"kv_heads\": 3"),
     {"/attention/kv_heads: found 3"}},
    {"HugeWidth",
     {"models", "show", "@"},
     model_file("\"hidden\": 64", "\"hidden\": 1e300"),
     {"/hidden"}},
    {"WrongTypes",
     {"models", "show", "@"},
     model_file("\"hidden\": 64, \"vocab\": 100", "\"hidden\": true, \"vocab\": {}"),
     {"/hidden: found true", "/vocab: found"}},
};
INSTANTIATE_TEST_SUITE_P(Model, BadInput, testing::ValuesIn(kModels), test_name);

const std::vector<BadCase> kClusters = {
    {"UnknownPart",
     {"clusters", "show", "@"},
     cluster_file("\"h100-sxm\"", "\"h100-sxn\""),
     {"/accelerator", "did you mean \"h100-sxm\"?"}},
    {"UnknownKey",
     {"clusters", "show", "@"},
     cluster_file("\"name\"", "\"nodess\": 4, \"name\""),
     {"/nodess", "did you mean \"nodes\"?"}},
    {"NegativeNodes",
     {"clusters", "show", "@"},
     cluster_file("\"name\"", "\"nodes\": -4, \"name\""),
     {"/nodes: found -4"}},
    {"CutNetwork",
     {"clusters", "show", "@"},
     cluster_file("\"fabric\": \"ib-ndr-rail\"", "\"fabric\": \"none\", \"nodes\": 4"),
     {"bad.json", "expected"}},
    {"MissingFile", {"clusters", "show", "./none.json"}, "", {"none.json"}},
    {"StackForCluster",
     {"clusters", "show", "@"},
     cluster_file("shardwright/cluster", "shardwright/stack"),
     {"/schema: found"}},
    {"StackTruncated", {"stacks", "show", "@"}, "{\"schema\": ", {"expected well-formed JSON"}},
    {"StackWrongType",
     {"stacks", "show", "@"},
     R"({"schema": "shardwright/stack", "version": 1, "name": "x", "family": "x",
         "fusion": {"norm": 3}})",
     {"/fusion/norm: found 3"}},
};
INSTANTIATE_TEST_SUITE_P(Profile, BadInput, testing::ValuesIn(kClusters), test_name);

const std::vector<BadCase> kFlows = {
    {"NegativeBandwidth",
     {"network", "@"},
     flow_file("1e9", "-1e9"),
     {"/links/0/bandwidth_bytes_per_s: found"}},
    {"ZeroBandwidth",
     {"network", "@"},
     flow_file("1e9", "0"),
     {"/links/0/bandwidth_bytes_per_s: found 0"}},
    {"UnknownLink",
     {"network", "@"},
     flow_file("[\"a\"]", "[\"b\"]"),
     {"/flows/0/route/0", "\"b\""}},
    {"CircleOfFlows",
     {"network", "@"},
     flow_file("\"start_s\": 0", "\"after\": [\"x\"]"),
     {"bad.json", "found"}},
    {"UnknownKey", {"network", "@"}, flow_file("\"bytes\"", "\"bites\""), {"/flows/0/bites"}},
    {"Truncated", {"network", "@"}, "{\"links\": [", {"expected well-formed JSON"}},
    {"RowsThatAreNoJson", {"validate", "@"}, "{\"id\": \n", {"bad.json", "line 1"}},
    {"MissingRows", {"validate", "/no/rows.jsonl"}, "", {"/no/rows.jsonl"}},
    {"BadTolerance",
     {"validate", "@", "--fail-over", "-3,25"},
     "",
     {"--fail-over: found \"-3,25\"", "two percentages"}},
    {"OneTolerance",
     {"validate", "@", "--fail-over", "8"},
     "",
     {"--fail-over: found \"8\"", "two percentages"}},
    {"BadGrade", {"validate", "@", "--grades", "AX"}, "", {"--grades: found \"AX\""}},
    {"GradesOfKernels", {"validate", "--kernels", "@", "--grades", "A"}, "", {"--grades: found"}},
    {"ReportOfKernels",
     {"validate", "--kernels", "@", "--report", "/tmp/no.html"},
     "",
     {"--report: found"}},
};
INSTANTIATE_TEST_SUITE_P(FlowsAndRows, BadInput, testing::ValuesIn(kFlows), test_name);

int count_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(BadInput, AMissingObjectIsOneProblem) {
  const ScratchFolder folder;
  std::string text = plan_file();
  text.replace(text.find("\"plan\": {"), std::string::npos, "\"other\": 3}");
  const CommandResult plan = run_command({"simulate", "--plan", folder.write("plan.json", text)});
  EXPECT_EQ(plan.exit_code, 2);
  EXPECT_THAT(plan.errors, HasSubstr("/plan: found no such key; expected an object"));
  EXPECT_EQ(count_lines(plan.errors), 2) << plan.errors;  // and the unknown key
  const CommandResult model = run_command(
      {"models", "show",
       folder.write("model.json", R"({"schema": "shardwright/model", "version": 1, "name": "mine",
         "layers": 4, "hidden": 64, "vocab": 100, "mlp": {"ffn_hidden": 128}})")});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_EQ(count_lines(model.errors), 1) << model.errors;
  EXPECT_THAT(model.errors, HasSubstr("/attention: found no such key; expected an object"));
}

TEST(BadInput, FlowsOfMissingLinksAreNoFurtherProblems) {
  const ScratchFolder folder;
  const CommandResult result =
      run_command({"network", folder.write("flows.json", R"({"links": 3, "flows": [
        {"id": "x", "bytes": 1, "route": ["a"], "start_s": 0}]})")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count_lines(result.errors), 1) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("/links: found 3"));
}

TEST(BadInput, EachOfSeveralBadFilesIsNamed) {
  const ScratchFolder folder;
  const std::string first = folder.write("first.jsonl", "{\n");
  const CommandResult result = run_command({"validate", first, "/no/second.jsonl"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("first.jsonl line 1: found"));
  EXPECT_THAT(result.errors, HasSubstr("/no/second.jsonl : found no such readable file"));
}

TEST(BadInput, ComparedFilesHaveAllTheirProblemsNamed) {
  const ScratchFolder folder;
  const std::string first = folder.write("first.json", plan_file("\"dp\": 4", "\"dp\": 0"));
  const std::string second = folder.write("second.json", plan_file("\"tp\": 2", "\"tp\": -1"));
  const CommandResult result = run_command({"compare", first, second});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("first.json: /plan/dp: found 0"));
  EXPECT_THAT(result.errors, HasSubstr("second.json: /plan/tp: found -1"));
}

// Nothing that a file or an argument says reaches the terminal as a control character.
TEST(BadInput, IsQuotedWithoutControlCharacters) {
  const ScratchFolder folder;
  const std::string binary = std::string("\x1b[2J\x07\xff,\x9b\n\x1b]0;owned\x07,1\n");
  const std::string csv = folder.write("bad.csv", binary);
  const std::string model =
      folder.write("model.json", model_file("mine", "\\u001b[31mmine\\u0007"));
  const std::string plan = folder.write("plan.json", plan_file("\"pp\"", "\"\\u001b[31mpp\""));
  const std::vector<std::vector<std::string>> commands = {
      simulate({"--kernels", csv}),
      {"models", "show", model},
      {"simulate", "--plan", plan},
      {"validate", csv},
      {"models", "show", "\x1b[2J"},
      {"\x1b[2Jplan"},
      {"plan", "--\x1b[2J"},
      {"simulate", "--plan", "\x1b[2J"},
      {"calibrate", csv, "--cluster", "dgx-h100"}};
  for (const auto& command : commands) {
    const CommandResult result = run_command(command);
    for (const char c : result.output + result.errors) {
      ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20)
          << command.front() << ": " << static_cast<int>(c);
      ASSERT_NE(c, '\x7f');
    }
  }
}

TEST(BadInput, AHundredMegabytesAreRefusedByTheirSize) {
  const ScratchFolder folder;
  const std::string file = folder.write("large.json", "");
  std::filesystem::resize_file(file, 100'000'000);
  const CommandResult result = run_command({"simulate", "--plan", file});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("large.json: found a file of 100000000 bytes"));
}

TEST(BadInput, AHundredMegabytesOfRowsAreRefusedAtTheirFirstLine) {
  const ScratchFolder folder;
  const std::string file = folder.write("rows.jsonl", "");
  std::filesystem::resize_file(file, 100'000'000);
  const CommandResult result = run_command({"validate", file});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("rows.jsonl: line 1: found more than 1048576 bytes"));
}

TEST(BadInput, OptionsNameTheirCommand) {
  const CommandResult result =
      run_command({"simulate", "--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "8",
                   "--global-batch", "8", "--seq-len", "2048", "--fidelity", "evnt"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("shardwright simulate: --fidelity: found \"evnt\""));
}

TEST(BadInput, StandardInputIsNamed) {
  const CommandResult torn = run_command({"simulate", "--plan", "-"}, {.input = "{\"x\": "});
  EXPECT_EQ(torn.exit_code, 2);
  EXPECT_THAT(torn.errors, HasSubstr("stdin: found"));
  const CommandResult empty = run_command({"simulate", "--plan", "-"}, {.input = "{}"});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.errors, HasSubstr("stdin: /model"));
}

// A file is not at fault for parts that options replace.
TEST(BadInput, OptionsOnAPlanFileAreNamedBesideIt) {
  const ScratchFolder folder;
  const std::string file = folder.write("plan.json", plan_file());
  const CommandResult batch = run_command({"simulate", "--plan", file, "--gpus", "12"});
  EXPECT_EQ(batch.exit_code, 2);
  EXPECT_THAT(batch.errors, HasSubstr("plan.json with --gpus 12: /plan/global_batch"));
  const CommandResult field = run_command({"simulate", "--plan", file, "--set", "overlap.p2q=1"});
  EXPECT_EQ(field.exit_code, 2);
  EXPECT_THAT(field.errors, HasSubstr("with --set overlap.p2q=1: /plan/overlap/p2q"));
  EXPECT_THAT(field.errors, HasSubstr("did you mean \"p2p\"?"));
}

// Each layer's pass of a microbatch takes memory: twenty million of them are refused before any is
// laid out.
TEST(BadInput, StepsOfMillionsOfMicrobatchesAreRefused) {
  const ScratchFolder folder;
  const std::string file =
      folder.write("plan.json", plan_file("\"global_batch\": 32", "\"global_batch\": 80000000"));
  const std::string sound = folder.write("sound.json", plan_file());
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"simulate", "--plan", file},
        {"simulate", "--plan", file, "--fidelity", "bound"},
        {"explain", "--plan", file},
        {"compare", sound, file},
        {"export", file, "--format", "megatron"}}) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments.front();
    EXPECT_THAT(result.errors,
                HasSubstr("plan.json: /plan/global_batch: found 80000000, in 20000000 microbatches "
                          "through 32 layers; expected at most 1000000 microbatches x layers"))
        << arguments.front();
  }
}

// Steps that are shown or replayed op by op have limits of their own.
TEST(BadInput, LongStepsAreRefusedByTimelinesAndTheFullLevel) {
  const ScratchFolder folder;
  const std::string file =
      folder.write("plan.json", plan_file("\"global_batch\": 32", "\"global_batch\": 120000"));
  for (const std::string option : {"--trace", "--timeline"}) {
    const CommandResult shown =
        run_command({"simulate", "--plan", file, option, folder.file("step.json")});
    EXPECT_EQ(shown.exit_code, 2);
    EXPECT_THAT(shown.errors, HasSubstr(option + ": found a step of "));
    EXPECT_THAT(shown.errors, HasSubstr("at most 4000000: fewer microbatches"));
  }
  const CommandResult full = run_command({"simulate", "--plan", file, "--fidelity", "full"});
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_THAT(full.errors, HasSubstr("/global_batch: found 120000, in 30000 microbatches on 8 "
                                     "ranks, whose replay takes about"));
}

// A plan file brings the parts of its cluster along; one mistake hides no other.
TEST(BadInput, AllMistakesOfAPlanFileAreTold) {
  std::string text = plan_file("\"tp\": 2", R"("tp": "two", "rank_order": ["tp", "tp"])");
  const std::string name = "\"dgx-h100\"";
  text.replace(text.find(name), name.size(),
               R"({"schema": "shardwright/cluster", "version": 1, "name": "mine", "sorces": {},
                   "accelerator": "h100-sxm", "node": "dgx-h100", "fabric": "none"})");
  const CommandResult result = run_command({"simulate", "--plan", "-"}, {.input = text});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("/cluster/fabric: found \"none\"; expected an object"));
  EXPECT_THAT(result.errors, HasSubstr("did you mean \"sources\"?"));
  EXPECT_THAT(result.errors, HasSubstr("/plan/tp: found \"two\""));
  EXPECT_THAT(result.errors, HasSubstr("/plan/rank_order: found the axis \"tp\" twice"));
}

}  // namespace
}  // namespace shardwright::cli
