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

const std::string kLlama =
    "simulate --model llama3-8b --cluster dgx-h100 --global-batch 32 --seq-len 8192 ";

// "@" in the line stands for a file with `text`.
struct BadCase {
  const char* name;
  std::string line;
  std::vector<std::string> says;
  std::string text{};
};

void PrintTo(const BadCase& bad, std::ostream* stream) {
  *stream << bad.name;
}

class BadInput : public testing::TestWithParam<BadCase> {};

TEST_P(BadInput, IsRefusedWithItsPlace) {
  const BadCase& bad = GetParam();
  const ScratchFolder folder;
  const std::string file = folder.write("bad.json", bad.text);
  std::vector<std::string> arguments = words_of(bad.line);
  std::replace(arguments.begin(), arguments.end(), std::string("@"), file);
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.errors;
  EXPECT_THAT(result.output, IsEmpty());
  for (const std::string& fragment : bad.says) EXPECT_THAT(result.errors, HasSubstr(fragment));
}

std::string test_name(const testing::TestParamInfo<BadCase>& info) {
  return info.param.name;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

// A mistake in a file that is correct otherwise: `to` in place of `from`.
struct Mistake {
  const char* name;
  std::string from, to;
  std::vector<std::string> says;
};

std::vector<BadCase> with_mistakes(const std::string& line, const std::string& text,
                                   const std::vector<Mistake>& mistakes) {
  std::vector<BadCase> cases;
  for (const Mistake& each : mistakes)
    cases.push_back({each.name, line, each.says, replaced(text, each.from, each.to)});
  return cases;
}

const std::string kPlan = R"({"schema": "shardwright/plan", "version": 1, "model": "llama3-8b",
    "cluster": "dgx-h100", "stack": "megatron-core",
    "plan": {"dp": 4, "tp": 2, "pp": 1, "micro_batch": 1, "global_batch": 32, "seq_len": 8192}})";
const std::string kModel = R"({"schema": "shardwright/model", "version": 1, "name": "mine",
    "layers": 4, "hidden": 64, "vocab": 100,
    "attention": {"heads": 8, "kv_heads": 2, "head_dim": 8}, "mlp": {"ffn_hidden": 128}})";
const std::string kHuggingFace = R"({"model_type": "llama", "hidden_size": 64,
    "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 128,
    "vocab_size": 100})";
const std::string kFlows = R"({"links": [{"id": "a", "bandwidth_bytes_per_s": 1e9,
    "latency_s": 1e-6}], "flows": [{"id": "x", "bytes": 1e6, "route": ["a"], "start_s": 0}]})";
const std::string kCluster = R"({"schema": "shardwright/cluster", "version": 1, "name": "mine",
    "accelerator": "h100-sxm", "node": "dgx-h100", "fabric": "ib-ndr-rail"})";

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

const std::vector<BadCase> kUsage = {
    {"NoSubcommand", "", {"ubcommand"}},
    {"UnknownSubcommand", "simulat", {"\"simulat\"", "did you mean simulate?"}},
    {"SwappedSubcommand", "plna", {"\"plna\"", "did you mean plan?"}},
    {"FarSubcommand", "quantum", {"unknown subcommand \"quantum\""}},
    {"UnknownNestedSubcommand", "models shw", {"models: unknown", "did you mean show?"}},
    {"NoNestedSubcommand", "clusters", {"shardwright clusters"}},
    {"UnknownOption", "models list --jsn -", {"--jsn", "did you mean --json?"}},
    {"PartOfAName", "stacks show megatron", {"megatron:", "did you mean \"megatron-core\""}},
    {"UnknownOptionOfSimulate", "simulate --modle x", {"did you mean --model?"}},
    {"OptionWithoutValue", "simulate --tp", {"--tp"}},
    {"ExtraArgument", "models show gpt2 gpt2-xl", {"gpt2-xl"}},
    {"MissingArgument", "models show", {"model"}},
    {"PlanWithoutItsOption", "simulate p.json", {"p.json", "--plan p.json"}},
    {"OptionForTheFile", "export --plan p.json", {"without \"--plan\"", "export FILE"}},
    {"OptionStatedTwice",
     "validate --kernels a --kernels b",
     {"found --kernels 2 times; expected it once"}},
    {"BadColour", "models list --color pink", {"--color"}},
    {"NothingToSimulate",
     "simulate",
     {"--model: found nothing", "--cluster: found nothing", "--global-batch", "--seq-len"}},
    {"PlanFileAndRow", "simulate --plan a --row b:c", {"one of the two"}},
    {"JsonIntoMissingFolder",
     "models list --json /no/such/folder/x.json",
     {"--json", "/no/such/folder"}},
    {"JsonIntoFolder", "models list --json /tmp", {"--json", "folder \"/tmp\""}},
    {"ExistingJson", "models list --json @", {"existing file", "--force"}, "here"},
    {"ExistingPlan", kLlama + "--gpus 8 --out @", {"existing", "--force"}, "here"},
};
INSTANTIATE_TEST_SUITE_P(Usage, BadInput, testing::ValuesIn(kUsage), test_name);

const std::vector<BadCase> kDegrees = {
    {"ZeroDegree", kLlama + "--tp 0", {"--tp: found 0; expected an integer from 1"}},
    {"NegativeDegree", kLlama + "--pp -2", {"--pp: found -2"}},
    {"FractionalDegree", kLlama + "--dp 1.5", {"--dp: found 1.5"}},
    {"WordAsDegree", kLlama + "--cp two", {"--cp: found \"two\""}},
    {"NotANumber", kLlama + "--tp NaN", {"--tp: found \"NaN\""}},
    {"InfiniteDegree", kLlama + "--tp 1e999", {"--tp: found"}},
    {"OverflowingDegree", kLlama + "--tp 99999999999999999999", {"--tp: found"}},
    {"OverflowingWorld", kLlama + "--tp 1000000 --pp 1000000", {"expected", "10000000"}},
    {"TwoProblemsAtOnce", kLlama + "--tp 0 --pp x", {"--tp: found", "--pp: found"}},
    {"GpusNotProduct", kLlama + "--gpus 12 --tp 8", {"expected", "12"}},
    {"GpusWord", kLlama + "--gpus many", {"--gpus: found \"many\""}},
    {"GpusZero", kLlama + "--gpus 0", {"--gpus: found \"0\""}},
    {"HeadsNotDivisible", kLlama + "--dp 1 --tp 3", {"--tp", "found", "expected"}},
    {"ExpertsOfDenseModel", kLlama + "--dp 8 --ep 8", {"--ep", "expected"}},
    {"TooManyStages", kLlama + "--dp 1 --pp 64", {"--pp", "expected"}},
    {"BatchNotDivisible", kLlama + "--dp 5", {"found", "expected"}},
    {"UnknownSchedule",
     kLlama + "--schedule 1f2b",
     {"--schedule: found", "did you mean \"1f1b\"?"}},
    {"UnknownRecompute", kLlama + "--recompute ful", {"--recompute", "\"full\""}},
    {"UnknownPrecision", kLlama + "--precision bf1", {"--precision", "\"bf16\""}},
    {"ZeroStageFour", kLlama + "--zero 4", {"--zero: found 4"}},
    {"SettingWithoutValue", kLlama + "--set tp", {"--set: found \"tp\"", "FIELD=VALUE"}},
    {"SettingOfAPart", kLlama + "--set dp=8 --set dp.x=3", {"dp: found an object"}},
    {"UnknownSetting", kLlama + "--set tpp=2", {"tpp", "did you mean"}},
    {"SettingBesideItsOption", kLlama + "--cp 1 --set cp=1", {"--cp: found also --set cp"}},
    {"SettingOfThePlan", kLlama + "--set plan.overlap.p2p=false", {"as in overlap.p2p=false"}},
    {"NameOfAPart",
     kLlama + "--set cluster.accelerator=h200",
     {"/accelerator: found \"h200\"", "fields to change in that of the base"}},
    {"UnknownSettingOfAStack",
     kLlama + "--set stack.host.cuda_graph=true",
     {"--set stack: /host/cuda_graph", "did you mean \"cuda_graphs\"?"}},
    {"SettingOutOfRange",
     kLlama + "--set cluster.node.nic.efficiency_ratio=2",
     {"--set cluster: /node/nic/efficiency_ratio: found 2"}},
    {"UnknownModel",
     "simulate --model lama3-8b --cluster dgx-h100 --global-batch 8 --seq-len 128",
     {"--model", "did you mean \"llama3-8b\"?"}},
    {"UnknownCluster",
     "simulate --model llama3-8b --cluster dgx-h10 --global-batch 8 --seq-len 128",
     {"--cluster dgx-h10: found no cluster of this name", "did you mean \"dgx-h100\"?"}},
    {"ThisMachineInCapitals",
     "simulate --cluster Here",
     {"--cluster Here: found no cluster of this name", "did you mean \"here\"?"}},
    {"AdaptersThatTheStackDoesNotTrain",
     "plan --model llama3-8b --cluster dgx-h100 --gpus 8 --global-batch 32 --seq-len 8192 --stack "
     "megatron-lm-2023 --lora rank=16",
     {"lora", "LoRA of rank 16", "megatron-lm-2023 trains no adapters (LoRA)"}},
    {"TargetsThatTheStackDoesNotAdapt",
     "plan --model llama3-8b --cluster dgx-h100 --gpus 8 --global-batch 32 --seq-len 8192 --stack "
     "fsdp2 --lora rank=16,targets=q+v",
     {"fsdp2 adds adapters to both of k and v or to neither"}},
    {"UnknownStack", kLlama + "--stack megatron-cor", {"--stack", "megatron-core"}},
    {"UnknownFidelity",
     kLlama + "--gpus 8 --fidelity evnt",
     {"shardwright simulate: --fidelity: found \"evnt\""}},
    {"MissingRowFile", "simulate --row /no/such.jsonl:x", {"/no/such.jsonl"}},
    {"RowWithoutId", "simulate --row rows.jsonl", {"--row", "FILE:ID"}},
};
INSTANTIATE_TEST_SUITE_P(CommandLine, BadInput, testing::ValuesIn(kDegrees), test_name);

const std::string kForecast = "forecast " + kLlama.substr(kLlama.find(' ') + 1) + "--gpus 8 ";
const std::vector<BadCase> kForecasts = {
    {"NoTokens", kForecast, {"--tokens: found nothing", "15T"}},
    {"NegativeTokens", kForecast + "--tokens -5", {"--tokens: found \"-5\""}},
    {"TokensThatAreNoNumber", kForecast + "--tokens NaN", {"--tokens: found \"NaN\"", "as in 15T"}},
    {"UnknownRunProfile",
     kForecast + "--tokens 1T --run setled-fleet",
     {"setled-fleet", "did you mean \"settled-fleet\"?"}},
    {"UnknownRunProfileWithSettings",
     kForecast + "--tokens 1T --run setled-fleet --set run.startup_s=-3",
     {"setled-fleet", "startup_s: found -3"}},
    {"ShardsOfUnknownSpeed",
     kForecast + "--tokens 1T --set run.input.shards=100",
     {"shard_read_bytes_per_s: found 100 shards without it"}},
    {"AllAtOnce",
     kForecast + "--tp 0 --set run.failures.gpu.per_1000_node_days=-1 --set run.startup_s=NaN "
                 "--set run.recovery.spares=1",
     {"--tokens", "--tp", "per_1000_node_days: found -1", "startup_s: found \"NaN\"", "spares",
      "spare_ratio"}},
    {"TokensAndLoss",
     kForecast + "--tokens 1T --target-loss 2",
     {"--tokens: found also --target-loss"}},
    {"AllOfTheBatch",
     kForecast + "--target-loss -2 --batch-law hofmann-2022 --critical-batch 0",
     {"--target-loss: found \"-2\"", "did you mean \"hoffmann-2022\"", "--critical-batch"}},
    {"RunsAndKernels", "validate --runs a.jsonl --kernels b.jsonl", {"--runs FILE"}},
    {"RunSettingOfAStep", kLlama + "--gpus 8 --set run.startup_s=1", {"run"}},
    {"RateTwice",
     kForecast + "--tokens 1T --run @",
     {"mtbf_hours: found also per_1000_node_days"},
     R"({"base": "settled-fleet", "failures": {"gpu": {"mtbf_hours": 100}}})"},
    {"StageOfAnotherModel",
     kForecast + "--tokens 1T --run @",
     {"bad.json: /stages/0", "global_batch"},
     R"({"base": "settled-fleet", "name": "mine", "stages": [{"name": "a", "global_batch": 33}]})"},
};
INSTANTIATE_TEST_SUITE_P(Forecast, BadInput, testing::ValuesIn(kForecasts), test_name);

const std::vector<BadCase> kPlanFiles = {
    {"Missing", "simulate --plan /no/plan.json", {"/no/plan.json: found no such file"}},
    {"Folder", "simulate --plan /tmp", {"/tmp: found a folder"}},
    {"Empty", "simulate --plan @", {"bad.json: found an empty file"}},
    {"Truncated",
     "simulate --plan @",
     {"bad.json", "expected well-formed JSON"},
     kPlan.substr(0, 100)},
    {"Binary",
     "simulate --plan @",
     {"found binary data"},
     std::string("\x7f"
                 "ELF\0\1\2",
                 7)},
    {"BrokenUtf8", "simulate --plan @", {"expected well-formed"}, "{\"a\": \"\xff\xfe\"}"},
    {"DeeplyNested", "simulate --plan @", {"nested deeper"}, nested(100'000)},
    {"NotAnObject", "simulate --plan @", {"expected"}, "[1, 2]"},
    {"Null", "simulate --plan @", {"expected"}, "null"},
    {"ReplacedField", "simulate --plan @ --tp 0", {"/plan/tp: found 0"}, kPlan},
    {"HeadsOfAnotherModel",
     "simulate --plan @ --model gpt2",
     {"/plan/tp", "found", "expected"},
     replaced(kPlan, R"("tp": 2)", R"("tp": 8)")},
    // A file is not at fault for parts that options replace, so the options are named beside it.
    {"BatchForOtherGpus",
     "simulate --plan @ --gpus 12",
     {"bad.json with --gpus 12: /plan/global_batch"},
     kPlan},
    {"SettingOfAPlanFile",
     "simulate --plan @ --set overlap.p2q=1",
     {"with --set overlap.p2q=1: /plan/overlap/p2q", "did you mean \"p2p\"?"},
     kPlan},
};
INSTANTIATE_TEST_SUITE_P(PlanFile, BadInput, testing::ValuesIn(kPlanFiles), test_name);

const std::vector<Mistake> kPlanMistakes = {
    {"WrongSchema",
     "shardwright/plan",
     "shardwright/plon",
     {"/schema: found", "\"shardwright/plan\""}},
    {"FutureVersion", R"("version": 1)", R"("version": 2)", {"/version: found 2"}},
    {"DuplicateKey", R"("tp": 2)", R"("tp": 2, "tp": 4)", {"twice in one object"}},
    {"UnknownKey",
     R"("pp": 1)",
     R"("pp": 1, "seqlen": 5)",
     {"/plan/seqlen", "did you mean \"seq_len\"?"}},
    {"MissingKey", R"("pp": 1, )", "", {"/plan/pp", "expected"}},
    {"TextAsNumber", R"("tp": 2)", R"("tp": "2")", {"/plan/tp: found \"2\""}},
    {"ListAsNumber", R"("tp": 2)", R"("tp": [2])", {"/plan/tp: found an array"}},
    {"HugeNumber", R"("tp": 2)", R"("tp": 1e999)", {"bad.json", "expected"}},
    {"NegativeSequence", "8192", "-8192", {"/plan/seq_len: found -8192"}},
    {"EveryProblemAtOnce",
     R"("dp": 4, "tp": 2)",
     R"("dp": 0, "tp": null)",
     {"/plan/dp: found 0", "/plan/tp: found"}},
    {"UnknownModelName", "llama3-8b", "llama3-9b", {"/model", "did you mean \"llama3-8b\"?"}},
};
INSTANTIATE_TEST_SUITE_P(PlanMistake, BadInput,
                         testing::ValuesIn(with_mistakes("simulate --plan @", kPlan,
                                                         kPlanMistakes)),
                         test_name);

const std::vector<BadCase> kProfileFiles = {
    {"MissingModel", "models show ./nothing.json", {"nothing.json"}},
    {"FolderWithoutConfig", "models show /tmp", {"config.json"}},
    {"UnknownModel", "models show gpt3-176b", {"did you mean \"gpt3-175b\"?"}},
    {"NeitherFormat", "models show @", {"\"schema\"", "\"model_type\""}, "{}"},
    {"MissingCluster", "clusters show ./none.json", {"none.json"}},
    {"StackTruncated", "stacks show @", {"expected well-formed JSON"}, "{\"schema\": "},
    {"StackWrongType",
     "stacks show @",
     {"/fusion/norm: found 3"},
     R"({"schema": "shardwright/stack", "version": 1, "name": "x", "family": "x",
         "fusion": {"norm": 3}})"},
};
INSTANTIATE_TEST_SUITE_P(Profile, BadInput, testing::ValuesIn(kProfileFiles), test_name);

const std::vector<Mistake> kHuggingFaceMistakes = {
    {"UnknownModelType",
     R"("llama")",
     R"("lama")",
     {"/model_type: found \"lama\"", "did you mean \"llama\"?"}},
    {"MissingSize", R"("hidden_size": 64,)", "", {"/hidden_size"}},
    {"HeadsDoNotDivideWidth",
     R"("num_attention_heads": 8)",
     R"("num_attention_heads": 7)",
     {"/hidden_size: found 64", "7 heads"}},
};
INSTANTIATE_TEST_SUITE_P(HuggingFaceMistake, BadInput,
                         testing::ValuesIn(with_mistakes("models show @", kHuggingFace,
                                                         kHuggingFaceMistakes)),
                         test_name);

const std::vector<Mistake> kModelMistakes = {
    {"UnknownKey",
     R"("layers")",
     R"("leyers": 3, "layers")",
     {"/leyers", "did you mean \"layers\"?"}},
    {"ZeroLayers", R"("layers": 4)", R"("layers": 0)", {"/layers: found 0"}},
    {"KvHeadsDoNotDivide",
     R"("kv_heads": 2)",
     R"("kv_heads": 3)",
     {"/attention/kv_heads: found 3"}},
    {"HugeWidth", R"("hidden": 64)", R"("hidden": 1e300)", {"/hidden"}},
    {"WrongTypes",
     R"("hidden": 64, "vocab": 100)",
     R"("hidden": true, "vocab": {})",
     {"/hidden: found true", "/vocab: found"}},
};
INSTANTIATE_TEST_SUITE_P(ModelMistake, BadInput,
                         testing::ValuesIn(with_mistakes("models show @", kModel, kModelMistakes)),
                         test_name);

const std::vector<Mistake> kClusterMistakes = {
    {"UnknownPart",
     R"("h100-sxm")",
     R"("h100-sxn")",
     {"/accelerator", "did you mean \"h100-sxm\"?"}},
    {"UnknownKey", R"("name")", R"("nodess": 4, "name")", {"/nodess", "did you mean \"nodes\"?"}},
    {"NegativeNodes", R"("name")", R"("nodes": -4, "name")", {"/nodes: found -4"}},
    {"CutNetwork", R"("ib-ndr-rail")", R"("none", "nodes": 4)", {"bad.json", "expected"}},
    {"StackForCluster", "shardwright/cluster", "shardwright/stack", {"/schema: found"}},
};
INSTANTIATE_TEST_SUITE_P(ClusterMistake, BadInput,
                         testing::ValuesIn(with_mistakes("clusters show @", kCluster,
                                                         kClusterMistakes)),
                         test_name);

const std::vector<Mistake> kFlowMistakes = {
    {"NegativeBandwidth", "1e9", "-1e9", {"/links/0/bandwidth_bytes_per_s: found"}},
    {"ZeroBandwidth", "1e9", "0", {"/links/0/bandwidth_bytes_per_s: found 0"}},
    {"UnknownLink", R"(["a"])", R"(["b"])", {"/flows/0/route/0", "\"b\""}},
    {"CircleOfFlows", R"("start_s": 0)", R"("after": ["x"])", {"bad.json", "found"}},
    {"UnknownKey", R"("bytes")", R"("bites")", {"/flows/0/bites"}},
};
INSTANTIATE_TEST_SUITE_P(FlowMistake, BadInput,
                         testing::ValuesIn(with_mistakes("network @", kFlows, kFlowMistakes)),
                         test_name);

const std::vector<BadCase> kRows = {
    {"FlowsTruncated", "network @", {"expected well-formed JSON"}, "{\"links\": ["},
    {"RowsThatAreNoJson", "validate @", {"bad.json", "line 1"}, "{\"id\": \n"},
    {"MissingRows", "validate /no/rows.jsonl", {"/no/rows.jsonl"}},
    {"SeveralFiles",
     "validate @ /no/second.jsonl",
     {"bad.json line 1: found", "/no/second.jsonl : found no such readable file"},
     "{\n"},
    {"BadTolerance",
     "validate @ --fail-over -3,25",
     {"--fail-over: found \"-3,25\"", "two percentages"}},
    {"OneTolerance", "validate @ --fail-over 8", {"--fail-over: found \"8\"", "two percentages"}},
    {"BadGrade", "validate @ --grades AX", {"--grades: found \"AX\""}},
    {"GradesOfKernels", "validate --kernels @ --grades A", {"--grades: found"}},
};
INSTANTIATE_TEST_SUITE_P(Rows, BadInput, testing::ValuesIn(kRows), test_name);

TEST(BadInput, ALineNamesEachProblemOnce) {
  const std::string no_plan =
      replaced(kPlan.substr(0, kPlan.find("{\"dp\"")), "\"plan\":", "\"other\": 3}");
  const std::string no_attention = R"({"schema": "shardwright/model", "version": 1,
      "name": "mine", "layers": 4, "hidden": 64, "vocab": 100, "mlp": {"ffn_hidden": 128}})";
  // The flows of a link that is missing are no further problem; an unknown key is.
  const std::string no_links = R"({"links": 3, "flows": [
      {"id": "x", "bytes": 1, "route": ["a"], "start_s": 0}]})";
  struct Case {
    std::string command, text, says;
    int lines;
  };
  for (const Case& each :
       {Case{"simulate --plan ", no_plan, "/plan: found no such key; expected an object", 2},
        Case{"models show ", no_attention, "/attention: found no such key; expected an object", 1},
        Case{"network ", no_links, "/links: found 3", 1}}) {
    const ScratchFolder folder;
    const CommandResult result = run_command(each.command + folder.write("bad.json", each.text));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), each.lines)
        << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(each.says));
  }
}

TEST(BadInput, ComparedFilesHaveAllTheirProblemsNamed) {
  const ScratchFolder folder;
  const std::string first = folder.write("first.json", replaced(kPlan, R"("dp": 4)", R"("dp": 0)"));
  const std::string second =
      folder.write("second.json", replaced(kPlan, R"("tp": 2)", R"("tp": -1)"));
  expect_refused("compare " + first + " " + second,
                 {"first.json: /plan/dp: found 0", "second.json: /plan/tp: found -1"});
}

// Nothing that a file or an argument says reaches the terminal as a control character.
TEST(BadInput, IsQuotedWithoutControlCharacters) {
  const ScratchFolder folder;
  const std::string binary = std::string("\x1b[2J\x07\xff,\x9b\n\x1b]0;owned\x07,1\n");
  const std::string csv = folder.write("bad.csv", binary);
  const std::string model =
      folder.write("model.json", replaced(kModel, "mine", "\\u001b[31mmine\\u0007"));
  const std::string plan =
      folder.write("plan.json", replaced(kPlan, "\"pp\"", "\"\\u001b[31mpp\""));
  for (const std::string& line :
       {kLlama + "--kernels " + csv, "models show " + model, "simulate --plan " + plan,
        "validate " + csv, std::string("models show \x1b[2J"), std::string("\x1b[2Jplan"),
        std::string("plan --\x1b[2J"), std::string("simulate --plan \x1b[2J"),
        "calibrate " + csv + " --cluster dgx-h100"}) {
    const CommandResult result = run_command(line);
    for (const char c : result.output + result.errors) {
      ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20)
          << line << ": " << static_cast<int>(c);
      ASSERT_NE(c, '\x7f');
    }
  }
}

TEST(BadInput, AHundredMegabytesAreRefused) {
  const ScratchFolder folder;
  const std::string file = folder.write("large.json", "");
  std::filesystem::resize_file(file, 100'000'000);
  expect_refused("simulate --plan " + file, {"large.json: found a file of 100000000 bytes"});
  expect_refused("validate " + file, {"large.json: line 1: found more than 1048576 bytes"});
}

TEST(BadInput, StandardInputIsNamed) {
  expect_refused("simulate --plan -", {"stdin: found"}, {.input = "{\"x\": "});
  expect_refused("simulate --plan -", {"stdin: /model"}, {.input = "{}"});
}

// Each layer's pass of a microbatch takes memory, so twenty million of them are refused before any
// is laid out.
TEST(BadInput, StepsOfMillionsOfMicrobatchesAreRefused) {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "plan.json", replaced(kPlan, R"("global_batch": 32)", R"("global_batch": 80000000)"));
  const std::string sound = folder.write("sound.json", kPlan);
  for (const std::string& line :
       {"simulate --plan " + file, "simulate --fidelity bound --plan " + file,
        "explain --plan " + file, "compare " + sound + " " + file,
        "export --format megatron " + file}) {
    expect_refused(line, {"plan.json: /plan/global_batch: found 80000000, in 20000000 microbatches "
                          "through 32 layers; expected at most 1000000 microbatches x layers"});
  }
}

// Steps that are shown or replayed op by op have limits of their own.
TEST(BadInput, LongStepsAreRefusedByTimelinesAndTheFullLevel) {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "plan.json", replaced(kPlan, R"("global_batch": 32)", R"("global_batch": 120000)"));
  for (const std::string option : {"--trace", "--timeline"}) {
    expect_refused("simulate --plan " + file + " " + option + " " + folder.file("step.json"),
                   {option + ": found a step of ", "at most 4000000: fewer microbatches"});
  }
  expect_refused("simulate --fidelity full --plan " + file,
                 {"/global_batch: found 120000, in 30000 microbatches on 8 ranks, whose replay "
                  "takes about"});
}

// A plan file has the parts of its cluster with it, and one mistake hides no other.
TEST(BadInput, AllMistakesOfAPlanFileAreReported) {
  const std::string text = replaced(
      replaced(kPlan, R"("tp": 2)", R"("tp": "two", "rank_order": ["tp", "tp"])"), "\"dgx-h100\"",
      R"({"schema": "shardwright/cluster", "version": 1, "name": "mine", "sorces": {},
                   "accelerator": "h100-sxm", "node": "dgx-h100", "fabric": "none"})");
  expect_refused(
      "simulate --plan -",
      {"/cluster/fabric: found \"none\"; expected an object", "did you mean \"sources\"?",
       "/plan/tp: found \"two\"", "/plan/rank_order: found the axis \"tp\" twice"},
      {.input = text});
}

}  // namespace
}  // namespace shardwright::cli
