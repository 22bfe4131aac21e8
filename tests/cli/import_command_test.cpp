// import: what it prints of traces, and how it refuses files that are none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "tests/cli/command_run.hpp"
#include "tests/pickle_writer.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string imported_trace(const std::string& name) {
  return SHARDWRIGHT_SOURCE_DIR "/tests/calibration/traces/files/" + name + ".json.gz";
}

// The names that scripts rely on.
TEST(ImportCommand, ReportsEachFile) {
  const json report = json_of("import " + imported_trace("h100-bert-small-forward") + " " +
                              imported_trace("no-rank"));
  ASSERT_EQ(report.at("files").size(), 2U);
  const json& file = report.at("files").at(0);
  EXPECT_EQ(file.at("path"), imported_trace("h100-bert-small-forward"));
  EXPECT_EQ(file.at("gpu"), "NVIDIA H100 80GB HBM3");
  EXPECT_TRUE(file.at("rank").is_null());
  EXPECT_TRUE(file.at("world_size").is_null());
  EXPECT_EQ(file.at("kernels"), 60);
  // The one ProfilerStep of the file.
  EXPECT_NEAR(file.at("steps").at(0).at("duration_s").get<double>(), 4426.114e-6, 1e-9);
  EXPECT_GE(file.at("steps").at(0).at("start_s"), 0.0);
  double sum = 0.0;
  for (const char* part :
       {"gemm_s", "attention_s", "elementwise_s", "collective_s", "memory_copy_s", "other_s"})
    sum += file.at("time").at(part).get<double>();
  // One stream: its kernels do not overlap.
  EXPECT_NEAR(file.at("busy_s").get<double>(), sum, 1e-9);
  EXPECT_LT(file.at("compute_busy_s"), file.at("busy_s"));
  EXPECT_EQ(file.at("collective_busy_s"), 0.0);
  EXPECT_EQ(file.at("exposed_collective_s"), 0.0);
  EXPECT_TRUE(file.at("collectives").is_array());
  EXPECT_EQ(report.at("files").at(1).at("kernels"), 0);
}

TEST(ImportCommand, SaysWhereTheTimeWent) {
  const ScratchFolder folder;
  const CommandResult result = run_command(
      "import " + imported_trace("h100-bert-small-forward") + " --out " + folder.file("measured"),
      {.environment = {{"COLUMNS", "80"}}});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  for (const char* text :
       {"NVIDIA H100 80GB HBM3", "The one whole step takes 4.43 ms of the device",
        "matrix products", "the host had not launched", "aten::addmm"})
    EXPECT_THAT(result.output, HasSubstr(text));
  std::istringstream lines(result.output);
  // Bytes, of which a line's few letters beyond ASCII have more than columns.
  for (std::string line; std::getline(lines, line);) {
    if (line.find(".json.gz") != std::string::npos || line.find("─") != std::string::npos) continue;
    EXPECT_LE(line.size(), 84U) << line;
  }
  EXPECT_EQ(
      json::parse(content_of(folder.file("measured") + "/trace_report.json")).at("files").size(),
      1U);
  expect_refused("import " + imported_trace("no-rank") + " --out " + folder.file("measured"),
                 {"trace_report.json", "--force"});
}

TEST(ImportCommand, ExplainsSeveralRanksAsOne) {
  const ScratchFolder folder;
  const std::string ranks = imported_trace("nanogpt/rank0") + " " + imported_trace("nanogpt/rank1");
  const CommandResult result =
      run_command("import " + ranks + " --html " + folder.file("page.html"),
                  {.environment = {{"COLUMNS", "200"}}});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  for (const char* text :
       {"NVIDIA H100 80GB HBM3, ranks 0, 1 of 8", "in the slowest, rank0.json.gz",
        "the mean of 2 traces", "the host had not launched", "Collectives of group 0 run for",
        "The straggler is rank1.json.gz: it causes", "It arrives last at 32 of its 48 matched"})
    EXPECT_THAT(result.output, HasSubstr(text));
  const std::string page = folder.read("page.html");
  for (const char* text :
       {"<title>Traces of 2 files: NVIDIA H100 80GB HBM3, ranks 0, 1 of 8</title>", "<svg",
        "Time by category", "<canvas>", "rank 0: stream 7",
        // A name that the text shortens.
        "nvjet_tst_256x128_64x4_"})
    EXPECT_THAT(page, HasSubstr(text));
}

std::string trace_of_calls(const char* name, const char* arguments, int calls, int microseconds) {
  std::string events;
  for (int i = 0; i < calls; ++i)
    events += fmt::format(
        R"({}{{"ph": "X", "cat": "kernel", "name": "{}", "ts": {}, "dur": {}, "pid": 0, "tid": 7,)"
        R"( "args": {{"device": 0, "stream": 7, "correlation": {}{}}}}})",
        i > 0 ? "," : "", name, 1000 * i, microseconds, i + 1, arguments);
  return R"({"traceEvents": [)" + events + "]}";
}

// Of eight calls, five take 40 µs; the three of the other trace take longer in all.
TEST(ImportCommand, TakesMediansOverTheCallsOfAllTraces) {
  const ScratchFolder folder;
  constexpr const char *kReduction = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                       *kArguments =
                           R"(, "Collective name": "allreduce", "In msg nelems": 2000000,)"
                           R"( "Out msg nelems": 2000000, "dtype": "Float", "Group size": 2)";
  const auto output_of = [&](const char* name, const char* arguments) {
    const std::string many = folder.write("many.json", trace_of_calls(name, arguments, 5, 40));
    const std::string few = folder.write("few.json", trace_of_calls(name, arguments, 3, 200));
    return run_command("import " + many + " " + few).output;
  };
  const std::string collectives = output_of(kReduction, kArguments);
  EXPECT_THAT(collectives, HasSubstr("200 GB/s"));
  EXPECT_THAT(collectives, Not(HasSubstr("40 GB/s")));
  EXPECT_THAT(output_of("nvjet_hsh_128x128", ""), testing::ContainsRegex("nvjet_hsh.* 8 +40 "));
}

TEST(ImportCommand, NamesTheTracesOfOneRank) {
  const std::string rank0 = imported_trace("nanogpt/rank0"),
                    rank1 = imported_trace("nanogpt/rank1");
  const ScratchFolder folder;
  const std::string copy = folder.file("copy.json.gz");
  std::filesystem::copy_file(rank0, copy);
  const json report = json_of("import " + rank0 + " " + rank1 + " " + copy);
  EXPECT_TRUE(report.at("across_ranks").is_null());
  EXPECT_EQ(report.at("warnings").at(0), "The traces are not compared as ranks of one run: " +
                                             rank0 + " and " + copy + " are both of rank 0.");
}

// The kernels within the annotation of SGD's step, which count in their own categories too.
TEST(ImportCommand, TellsTheTimeOfTheOptimizer) {
  const std::string trace = imported_trace("mi250-two-steps");
  const json time = json_of("import " + trace).at("files").at(0).at("time");
  EXPECT_NEAR(time.at("optimizer_s").get<double>(), 8.481e-6, 1e-9);
  EXPECT_GT(time.at("elementwise_s"), time.at("optimizer_s"));
  EXPECT_THAT(run_command("import " + trace).output, HasSubstr("of these in the optimizer's step"));
}

// A product of 2 m n k operations against the data sheet's 989 TFLOP/s in bf16, without a plan.
TEST(ImportCommand, PutsProductsBesideTheDevice) {
  const std::string trace = imported_trace("nanogpt/rank0");
  const json products = json_of("import " + trace).at("files").at(0).at("products");
  const auto up = std::find_if(products.begin(), products.end(), [](const json& each) {
    return each.at("m") == 16384 && each.at("n") == 3072 && each.at("k") == 768;
  });
  ASSERT_NE(up, products.end());
  EXPECT_EQ(up->at("precision"), "bf16");
  const double rate = 2.0 * 16384 * 3072 * 768 / up->at("median_s").get<double>();
  EXPECT_NEAR(up->at("roofline").at("flop_per_s").get<double>() / rate, 1.0, 1e-9);
  EXPECT_NEAR(up->at("roofline").at("of_peak_ratio").get<double>(), rate / 989.4e12, 0.005);
  EXPECT_GT(up->at("roofline").at("of_peak_ratio"), 0.5);
  EXPECT_THAT(run_command("import " + trace).output, HasSubstr("16384 x 3072 x 768"));
}

// A first trace without a device hides nothing of the next one.
TEST(ImportCommand, ShowsTheFirstTraceWithADevice) {
  const ScratchFolder folder;
  const std::string trace = imported_trace("h100-bert-small-forward");
  const std::string alone = folder.file("alone.html"), both = folder.file("both.html");
  const CommandResult one = run_command("import " + trace + " --html " + alone);
  const CommandResult two = run_command("import " + imported_trace("no-rank") + " " + trace +
                                        " --html " + both + " --out " + folder.file("measured"));
  ASSERT_EQ(two.exit_code, 0) << two.errors;
  for (const char* text : {"Layers", "Matrix products", "H100"}) {
    ASSERT_THAT(one.output, HasSubstr(text));
    EXPECT_THAT(two.output, HasSubstr(text));
  }
  EXPECT_TRUE(std::filesystem::exists(folder.file("measured/kernels.csv")));
  const auto timeline_of = [&](const std::string& page) {
    return content_of(page).find("One recorded step of h100-bert-small-forward") !=
           std::string::npos;
  };
  EXPECT_TRUE(timeline_of(alone));
  EXPECT_TRUE(timeline_of(both));
}

TEST(ImportCommand, SaysThatNothingRanOnADevice) {
  EXPECT_THAT(run_command("import " + imported_trace("no-distributed-info-no-gpu")).output,
              HasSubstr("the host alone"));
}

TEST(ImportCommand, PutsMemorySnapshotsBesideAPlan) {
  const ScratchFolder folder;
  const json tensor = {
      {"size", 1 << 30}, {"requested_size", 1 << 30}, {"state", "active_allocated"}};
  const json segment = {
      {"device", 0}, {"address", 0}, {"total_size", 1 << 30}, {"blocks", {tensor}}};
  const std::string snapshot = folder.write("snapshot.pickle", pickled({{"segments", {segment}}}));
  const std::string plan =
      " --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --global-batch 8 --seq-len 4096";
  const CommandResult result = run_command("import " + snapshot + plan);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  for (const char* text :
       {"Memory of snapshot.pickle", "1.07", "Beside the plan", "optimizer states"})
    EXPECT_THAT(result.output, HasSubstr(text));
  const json report = json_of("import " + snapshot + plan);
  EXPECT_EQ(report.at("memory").at(0).at("devices").at(0).at("peak_allocated_bytes"), 1 << 30);
  const json& planned = report.at("planned_memory");
  EXPECT_EQ(planned.at("predicted").at("peak_bytes"),
            json_of("simulate" + plan).at("memory").at("peak_bytes"));
  EXPECT_LT(planned.at("predicted_allocated_bytes"), planned.at("predicted_reserved_bytes"));
  EXPECT_TRUE(json_of("import " + snapshot).at("planned_memory").is_null());
  expect_refused("import " + folder.write("other.pickle", pickled({{"a", 1}})),
                 {"segments", "args"});
}

TEST(ImportCommand, CountsAFileOnceAndPredictsTracesAlone) {
  const ScratchFolder folder;
  const std::string log = folder.write(
      "train.log", "steps: 10 loss: 7.7012 iter time (s): 0.498 samples/sec: 64.257\n");
  EXPECT_THAT(run_command("import " + log).output,
              testing::AllOf(HasSubstr("samples/s"), HasSubstr("64.26")));
  const std::string rank = imported_trace("nanogpt/rank0");
  const CommandResult twice = run_command("import --json - " + rank + " " + folder.file("../") +
                                          std::filesystem::path(folder.path()).filename().string() +
                                          "/train.log " + log + " " + rank);
  EXPECT_EQ(twice.exit_code, 0) << twice.errors;
  EXPECT_THAT(twice.errors, HasSubstr("rank0.json.gz is given twice and counts once"));
  EXPECT_EQ(json::parse(twice.output).at("files").size(), 1U);
  EXPECT_EQ(json::parse(twice.output).at("logs").size(), 1U);
  expect_refused("import " + rank + " --against " + log, {"--against", "train.log", "no trace"});
  expect_refused("import " + rank + " --against " + rank, {"--against", "not among those"});
  expect_refused("import " + log + " --against " + rank, {"--against", "without a trace"});
}

// Last night's trace, what the plan says of it, and a plan on more GPUs by the refitted profile.
TEST(ImportCommand, MatchesAPlanAndRefitsItsProfile) {
  const ScratchFolder folder;
  const std::string traces =
      imported_trace("nanogpt/rank0") + " " + imported_trace("nanogpt/rank1");
  const std::string measured = folder.file("measured");
  const json report = json_of("import " + traces +
                              " --model gpt2 --cluster dgx-h100 --gpus 8 --global-batch 128 "
                              "--micro-batch 16 --seq-len 1024 "
                              "--out " +
                              measured + " --what-if overlap-gradients --against " +
                              imported_trace("nanogpt/rank2"));
  const json& match = report.at("matched").at("files").at(0);
  EXPECT_GT(match.at("step").at("measured_s"), 0.03);
  EXPECT_GT(match.at("step").at("predicted_s"), 0.0);
  // A step has one time: beside a plan, alone, and as what-ifs and other traces have it.
  const double step = report.at("files").at(0).at("step_s");
  const double other = report.at("files").at(1).at("step_s");
  EXPECT_NEAR(match.at("step").at("measured_s").get<double>(), step, 1e-12);
  EXPECT_NEAR(report.at("what_if").at("overlap_gradients").at("recorded_s").get<double>(),
              (step + other) / 2, 1e-9);
  const json rank2 = json_of("import " + imported_trace("nanogpt/rank2"));
  EXPECT_NEAR(report.at("held_out").at("step").at("measured_s").get<double>(),
              rank2.at("files").at(0).at("step_s").get<double>(), 1e-12);
  EXPECT_EQ(match.at("differences").size(), 10U);
  double matched = 0.0;
  for (const json& kind : match.at("by_kind"))
    if (kind.at("kind") == "gemm") matched = kind.at("matched_ops");
  EXPECT_GT(matched, 0.0);
  EXPECT_EQ(report.at("held_out").at("kernels").size(), 1U);
  EXPECT_GT(report.at("what_if").at("overlap_gradients").at("predicted_s"), 0.0);
  EXPECT_EQ(report.at("files").at(0).at("structure").at("tokens"), 16384);
  const json plan = json_of(
      "simulate --model llama3-8b --cluster " + measured + "/cluster.json --kernels " + measured +
      "/kernels.csv --gpus 1024 --tp 2 --zero 1 --global-batch 1024 --seq-len 8192");
  EXPECT_GT(plan.at("step_s"), 0.0);
  // The traces are of a host-bound job at a high clock, and steps of training take as long as
  // before.
  const std::string training =
      " --model llama3-8b --gpus 64 --tp 2 --zero 1 --global-batch 64 --seq-len 8192";
  const double shipped = json_of("simulate --cluster dgx-h100" + training).at("step_s");
  const double refitted =
      json_of("simulate --cluster " + measured + "/cluster.json" + training).at("step_s");
  EXPECT_NEAR(refitted / shipped, 1.0, 0.08);
  expect_refused("import " + traces + " --what-if nothing", {"--what-if", "overlap-gradients"});
}

// Neither another GPU nor a single rank's waiting nor a profiler's work on the host gets into a
// profile.
TEST(ImportCommand, RefitsNothingThatTheTracesDoNotTell) {
  const json alone = json_of("import " + imported_trace("nanogpt/rank0") + " --cluster dgx-h100");
  EXPECT_THAT(alone.at("warnings").dump(), HasSubstr("what a single rank records"));
  for (const json& figure : alone.at("calibration").at("figures"))
    EXPECT_THAT(figure.dump(),
                Not(testing::AnyOf(HasSubstr("beta_bytes_per_s"), HasSubstr("launch_s"))));
  EXPECT_THAT(alone.at("warnings").dump(),
              HasSubstr("the profiler that records its calls slows it"));
  const json other = json_of("import " + imported_trace("nanogpt/rank0") + " --cluster dgx-a100");
  EXPECT_TRUE(other.at("calibration").is_null());
  EXPECT_THAT(other.at("warnings").dump(), HasSubstr("and the profile of a100"));
}

// As many tokens in sequences of another length: attention would be faster than the device.
TEST(ImportCommand, SaysThatAPlanHasOtherShapes) {
  const auto warnings_of = [](const std::string& batch) {
    const json report =
        json_of("import " + imported_trace("nanogpt/rank0") +
                " --model gpt2 --set model.max_seq_len=65536 --set model.position_embeddings=65536 "
                "--cluster dgx-h100 --gpus 8 " +
                batch);
    return report.at("warnings").dump();
  };
  constexpr const char* kWarning = "The plan's shapes are not those of the trace: attention.core";
  EXPECT_THAT(warnings_of("--global-batch 8 --micro-batch 1 --seq-len 16384"), HasSubstr(kWarning));
  EXPECT_THAT(warnings_of("--global-batch 128 --micro-batch 16 --seq-len 1024"),
              Not(HasSubstr(kWarning)));
}

TEST(ImportCommand, RefusesFilesThatAreNoTraces) {
  const ScratchFolder folder;
  const std::string whole = content_of(imported_trace("mi210-gpu-only-no-cpu-ops"));
  const std::string cut = folder.write("cut.json.gz", whole.substr(0, whole.size() / 2));
  std::string damaged_bytes = whole;
  damaged_bytes[damaged_bytes.size() / 2] ^= 0x55;
  expect_refused("import " + cut,
                 {"cut.json.gz", "byte", "the end of the file", "a complete gzip file"});
  expect_refused("import " + folder.write("damaged.json.gz", damaged_bytes),
                 {"damaged.json.gz", "byte"});
  expect_refused("import " + folder.write("text.json", "step 1 took 3 s"),
                 {"text.json", "no line that states a step", "Megatron-LM"});
  expect_refused("import " + folder.write("other.json", "{\"a\": [1, 2]}"),
                 {"/traceEvents", "nothing", "an array of events"});
  expect_refused(
      "import " + folder.write("broken.json", "{\"traceEvents\": [{\"ph\": \"X\"}, {\"ph\": "),
      {"broken.json", "event 1, byte", "the end of the file"});
  expect_refused("import " + folder.write("empty.json", ""), {"empty.json", "an empty file"});
  expect_refused(
      "import " + folder.write("none.sqlite", std::string("SQLite format 3\0rubbish", 23)),
      {"none.sqlite"});
  expect_refused("import " + folder.file(""), {"broken.json", "cut.json.gz"});
  EXPECT_THAT(run_command("import " + folder.file("")).errors, Not(HasSubstr("other.json")));
  expect_refused("import " + folder.file("missing.json") + " --out " + folder.file("new"),
                 {"missing.json", "No such file", "a trace, a log"});
  EXPECT_FALSE(std::filesystem::exists(folder.file("new")));
  expect_refused("import " + folder.write("list.json", "[{\"ph\": \"X\"}, 2]"),
                 {"/traceEvents/1", "an event"});
  // All bad files are named at once.
  expect_refused("import " + cut + " " + folder.file("missing.json"),
                 {"cut.json.gz", "missing.json"});
}

std::string gzip_member(const std::string& text) {
  const ScratchFolder folder;
  gzFile_s* const stream = gzopen(folder.file("member").c_str(), "wb");
  gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
  gzclose(stream);
  return folder.read("member");
}

// The blanks of a trace that takes far longer to read than the test waits.
TEST(ImportCommand, RefusesTimelinesThatTheCommandPredicted) {
  const ScratchFolder folder;
  const std::string trace = folder.file("trace.json"), timeline = folder.file("timeline.json");
  ASSERT_EQ(
      run_command("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --global-batch 8 "
                  "--seq-len 2048 --trace " +
                  trace + " --timeline " + timeline)
          .exit_code,
      0);
  for (const std::string& file : {trace, timeline}) {
    const CommandResult result = run_command("import " + file + " --cluster dgx-h100");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.errors, HasSubstr("predicted, not measured"));
    EXPECT_THAT(result.output, testing::Not(HasSubstr("Refitted")));
  }
}

TEST(ImportCommand, RefusesOptionsThatChangeNothing) {
  const ScratchFolder folder;
  const std::string trace = " " + imported_trace("nanogpt/rank0");
  const std::string script =
      " " + folder.write("run.sh",
                         "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --hidden-size "
                         "256 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1 "
                         "--global-batch-size 8 --tensor-model-parallel-size 4\n");
  const CommandResult refused =
      run_command("import" + trace + " --gpus abc --tp 2 --set zero_stage=1 --stack no");
  EXPECT_EQ(refused.exit_code, 2);
  for (const char* option : {"--gpus abc", "--tp 2", "--set zero_stage=1", "--stack no"})
    EXPECT_THAT(refused.errors, HasSubstr(std::string(option) + ": found no plan"));
  EXPECT_EQ(run_command("import" + script + " --gpus 8").exit_code, 0);
  const CommandResult launch = run_command("import" + script + " --tp 2");
  EXPECT_EQ(launch.exit_code, 2);
  EXPECT_THAT(launch.errors, HasSubstr("--tp 2: found plans of launches"));
}

TEST(ImportCommand, AnInterruptEndsTheReadingWithinAFile) {
  const ScratchFolder folder;
  const std::string blanks = gzip_member(std::string(1U << 24U, ' '));
  std::string trace = gzip_member("{\"traceEvents\": [");
  for (int i = 0; i < 2000; ++i) trace += blanks;
  RunningCommand running("import " + folder.write("trace.json.gz", trace) + " --json -");
  running.interrupt_at_work(std::chrono::milliseconds(50));
  const CommandResult result = running.finish();
  EXPECT_EQ(result.exit_code, 130) << result.errors;
  EXPECT_THAT(result.output, IsEmpty());
}

TEST(ImportCommand, AFolderStandsForItsTraces) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.file("traces"));
  folder.write("traces/rank1.json.gz", content_of(imported_trace("nanogpt/rank1")));
  folder.write("traces/rank0.json.gz", content_of(imported_trace("nanogpt/rank0")));
  folder.write("traces/notes.txt", "no trace");
  const CommandResult result = run_command("import --json - " + folder.file("traces") + " " +
                                           folder.file("traces/rank1.json.gz"));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("rank1.json.gz is given twice"));
  const json files = json::parse(result.output).at("files");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files.at(0).at("rank"), 0);
  EXPECT_EQ(files.at(1).at("rank"), 1);
  expect_refused("import " + folder.file("traces") + " --against " + folder.file("traces"),
                 {"--against", "not among those"});
  std::filesystem::create_directories(folder.file("empty"));
  expect_refused("import " + folder.file("empty"), {"a folder without traces", "*.json.gz"});
}

// What --out writes may lie beside the traces; rank 10 comes behind rank 2.
TEST(ImportCommand, ReadsTheRecordingsOfAFolder) {
  const ScratchFolder folder;
  const std::string trace =
      R"({"distributedInfo": {"rank": %, "world_size": 16}, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]})";
  for (const char* rank : {"0", "2", "10"}) {
    std::string text = trace;
    text.replace(text.find('%'), 1, rank);
    folder.write(fmt::format("rank{}.json", rank), text);
  }
  folder.write("plan.json", R"({"schema": "shardwright/plan", "version": 1})");
  const std::string place = std::filesystem::path(folder.file("rank0.json")).parent_path().string();
  std::vector<int> ranks;
  const json report = json_of("import " + place);
  for (const json& file : report.at("files")) ranks.push_back(file.at("rank"));
  EXPECT_THAT(ranks, testing::ElementsAre(0, 2, 10));
  const std::string above = folder.file("above");
  std::filesystem::create_directories(above + "/iteration_10");
  std::filesystem::copy_file(place + "/rank0.json", above + "/iteration_10/rank0_trace.json");
  expect_refused("import " + above, {"its folders iteration_10 have some"});
}

TEST(ImportCommand, SaysWhatOtherFilesAre) {
  const ScratchFolder folder;
  expect_refused("import " + folder.write("ds.json", R"({"train_batch_size": 32, "bf16": {}})"),
                 {"ds.json: found a configuration of DeepSpeed", "log"});
  expect_refused("import " + folder.write("steps.log", std::string("\xff\xfei\0t\0", 6)),
                 {"steps.log: found text in UTF-16", "Out-File -Encoding utf8"});
  // Hugging Face's Trainer states no step times.
  expect_refused("import " + folder.write("trainer.log", "{'loss': 2.5, 'epoch': 0.1}\n"),
                 {"no line that states a step", "Megatron-LM, NeMo, torchtitan"});
  for (const char* launch : {"torchrun --nproc-per-node 8 -m torchtitan.train --training.steps 9\n",
                             "[parallelism]\ntensor_parallel_degree = 2\n"})
    expect_refused("import " + folder.write("titan.sh", launch),
                   {"titan.sh: found a launch that is not Megatron-LM's", "NeMo"});
  expect_refused("import " + folder.write("run.nsys-rep", "report"), {"nsys export --type sqlite"});
  expect_refused("import " + folder.write("log.xz",
                                          "\xfd"
                                          "7zXZ"),
                 {"compressed", "gzip"});
  expect_refused("import " + folder.write("x.bin", std::string("a\0b", 3)),
                 {"x.bin: found binary"});
  expect_refused("calibrate " + imported_trace("nanogpt/rank0") + " --cluster dgx-h100 --out " +
                     folder.file("measured.json"),
                 {"shardwright import FILE --cluster CLUSTER"});
  expect_refused("validate --kernels", {"measurements/operators.jsonl"});
}

}  // namespace
}  // namespace shardwright::cli
