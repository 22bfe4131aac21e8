#include "gui/models/opened_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <QFile>
#include <QFileInfo>
#include <QTemporaryDir>
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.hpp"
#include "core/spec/batch_json.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/run_json.hpp"
#include "core/timeline/perfetto.hpp"
#include "gui/models/read_files.hpp"
#include "gui/models/run_follower.hpp"
#include "gui/models/run_process.hpp"
#include "tests/calibration/traces/written_trace.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/small_scenario.hpp"
#include "tests/thrown.hpp"

namespace shardwright::gui {
namespace {

class OpenedFileTest : public ::testing::Test {
 protected:
  QString write(const char* name, const std::string& text) {
    const QString path = folder_.filePath(to_qstring(name));
    QFile file(path);
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(text.data(), static_cast<qint64>(text.size()));
    return path;
  }

  static std::vector<std::string> problems(const QString& path) {
    return problems_of([&path] { open_file(path); });
  }

  QTemporaryDir folder_;
};

TEST_F(OpenedFileTest, DistinguishesTheKinds) {
  const Scenario scenario = small_set()->scenario(0);
  const std::vector<std::pair<QString, const char*>> files = {
      {write("plan.json", to_json(scenario).dump()), "plan"},
      {write("cluster.json", to_json(scenario.cluster).dump()), "cluster"},
      {write("model.json", to_json(scenario.model).dump()), "model"},
      {write("run.json", to_json(load_run("spot-fleet")).dump()), "run profile"},
      {write("batch.json", to_json(load_batch("kaplan-2020")).dump()), "batch profile"},
      {write("timeline.json", to_json(Timeline{}).dump()), "timeline"},
      {QStringLiteral(SHARDWRIGHT_SOURCE_DIR "/tests/core/spec/data/huggingface/qwen3-8b.json"),
       "model"}};
  for (const auto& [path, kind] : files)
    EXPECT_EQ(kind_of(open_file(path)), to_qstring(kind)) << path.toStdString();
}

TEST_F(OpenedFileTest, APlanComesBackAsItWas) {
  const Scenario scenario = small_set()->scenario(1);
  const OpenedFile file = open_file(write("plan.json", to_json(scenario).dump()));
  EXPECT_EQ(std::get<Scenario>(file.content), scenario);
}

TEST_F(OpenedFileTest, FoldersOfRunsHaveMetricsAndTimelines) {
  write("metrics.jsonl", "");
  write("timeline-10-0.json", "{}");
  const OpenedFile file = open_file(folder_.path());
  EXPECT_EQ(std::get<RunFolder>(file.content).timelines.size(), 1U);
}

// The last one may be on its way, or have lost ranks.
TEST_F(OpenedFileTest, TheStepOfARunIsTheLastThatAllRanksRecorded) {
  write("metrics.jsonl", "");
  for (const char* name : {"timeline-2-0.json", "timeline-2-1.json", "timeline-10-0.json",
                           "timeline-10-1.json", "timeline-50-1.json"})
    write(name, "{}");
  const OpenedFile run = open_file(folder_.path());
  QStringList files;
  for (const QString& file : std::get<RunFolder>(run.content).timelines)
    files.append(QFileInfo(file).fileName());
  EXPECT_EQ(files, (QStringList{u"timeline-10-0.json"_s, u"timeline-10-1.json"_s}));
}

TEST_F(OpenedFileTest, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(problems(u"/no/such/file"_s), std::vector<std::string>{});
  EXPECT_NE(problems(folder_.path()), std::vector<std::string>{});
  EXPECT_NE(problems(write("text.json", "no json")), std::vector<std::string>{});
  EXPECT_NE(problems(write("list.json", "[1, 2]")), std::vector<std::string>{});
  EXPECT_EQ(problems(write("odd.json", R"({"schema": "shardwright/odd"})")),
            std::vector<std::string>{""});
  ReadingProgress progress;
  for (const auto& [text, said] :
       {std::pair{"{\n\"schema\": ", "a syntax error at line 2, column"},
        {"[1, 2]", "a JSON file that holds no object; expected a scenario, a plan"},
        {R"({"hidden_size": 64})", "names neither its kind"},
        {R"({"schema": "shardwright/cluster", "version": 99})", "version: 99; expected 1"}}) {
    const auto read = read_files({write("any.json", text)}, small_choice(), progress, {});
    ASSERT_EQ(read.problems.size(), 1U) << text;
    EXPECT_THAT(read.problems.front().text, Says(said));
  }
}

TEST_F(OpenedFileTest, NamesEveryProblemOfADamagedFile) {
  nlohmann::ordered_json plan = to_json(small_set()->scenario(0));
  plan["plan"]["tp"] = 3;
  EXPECT_NE(problems(write("plan.json", plan.dump())), std::vector<std::string>{});
  nlohmann::ordered_json cluster = to_json(small_set()->request.cluster);
  cluster["accelerator"]["memory"].erase("capacity_bytes");
  EXPECT_NE(problems(write("cluster.json", cluster.dump())), std::vector<std::string>{});
  const auto timeline = problems(write("timeline.json", R"({"schema": "shardwright/timeline",
      "version": 1, "origin": "guessed", "ranks": [], "spans": [{}], "flows": [], "memory": []})"));
  EXPECT_GT(timeline.size(), 1U);
}

TEST_F(OpenedFileTest, NamesTheProblemsOfModels) {
  nlohmann::ordered_json model = to_json(small_set()->request.model);
  model.erase("layers");
  EXPECT_EQ(problems(write("model.json", model.dump())), std::vector<std::string>{"/layers"});
  const auto config =
      problems(write("config.json", R"({"model_type": "llama", "hidden_size": "x"})"));
  EXPECT_NE(std::find(config.begin(), config.end(), "/hidden_size"), config.end());
  EXPECT_GT(config.size(), 1U);
}

// The other files in the folder of a run may be damaged as well as its metrics.
TEST_F(OpenedFileTest, NamesTheProblemsOfTheFilesOfARun) {
  write("metrics.jsonl", "");
  ReadingProgress progress;
  const auto read = [&] { return read_files({folder_.path()}, small_choice(), progress, {}); };
  ASSERT_EQ(read().files.size(), 1U);
  write("timeline-10-0.json", R"({"schema": "shardwright/timeline", "version": 1})");
  ASSERT_EQ(read().problems.size(), 1U);
  EXPECT_THAT(read().problems.front().text, Says("timeline-10-0.json: origin: no such key"));
  write("timeline-10-0.json", to_json(Timeline{}).dump());
  write("plan.json", R"({"schema": "shardwright/plan", "version": 1})");
  ASSERT_EQ(read().problems.size(), 1U);
  EXPECT_THAT(read().problems.front().text, Says("plan.json: model: no such key"));
}

TEST_F(OpenedFileTest, AResultWithoutAPlanIsReported) {
  const QString path =
      write("plans.json", R"({"schema": "shardwright/plans", "version": 1, "inputs":
      {"model": "llama3.2-1b", "cluster": "dgx-h100", "stack": "megatron-core"}, "front": [],
      "plans": []})");
  ReadingProgress progress;
  const ReadFiles read = read_files({path}, small_choice(), progress, {});
  EXPECT_TRUE(read.files.empty());
  ASSERT_EQ(read.problems.size(), 1U);
  EXPECT_TRUE(read.problems.front().text.contains(u"no plan"_s));
}

TEST_F(OpenedFileTest, ATraceOpensAsItsTimelineDoes) {
  const Timeline timeline = *fixtures::small_step().timeline;
  std::ostringstream trace;
  write_perfetto(timeline, trace);
  const OpenedFile file = open_file(write("trace.json", trace.str()));
  EXPECT_EQ(kind_of(file), u"timeline"_s);
  const auto& opened = *std::get<std::shared_ptr<const Timeline>>(file.content);
  EXPECT_EQ(opened.spans.size(), timeline.spans.size());
  EXPECT_EQ(opened.ranks, timeline.ranks);
  EXPECT_EQ(opened.flows, timeline.flows);
}

// In the window's progress bar, and by its Stop.
TEST_F(OpenedFileTest, TheReadingOfATraceIsFollowedAndStopped) {
  const calibration::WrittenTrace trace(12'000);
  const QString path = to_qstring(trace.path().string());
  ReadingProgress progress;
  progress.begin({path});
  std::stop_source stop;
  EXPECT_EQ(kind_of(open_file(path, progress.watch(stop.get_token()))), u"trace"_s);
  EXPECT_EQ(progress.state().bytes, progress.state().total);
  stop.request_stop();
  EXPECT_THROW(open_file(path, progress.watch(stop.get_token())), ReadingStopped);
}

TEST_F(OpenedFileTest, ChromesArrayOfEventsIsATrace) {
  std::string events = "[\n";
  for (std::int64_t kernel = 0; kernel < 4; ++kernel) calibration::append_kernel(events, kernel);
  events.resize(events.rfind(','));
  EXPECT_EQ(kind_of(open_file(write("trace.json", events + "]"))), u"trace"_s);
}

TEST_F(OpenedFileTest, ATraceInWhichNothingRunsOnADeviceIsReported) {
  EXPECT_EQ(problems(write("trace.json", R"({"traceEvents": []})")), std::vector<std::string>{""});
}

// Reading would wait for whoever writes to it.
TEST_F(OpenedFileTest, APipeIsRefused) {
  const QString path = folder_.filePath(u"pipe.json"_s);
  ASSERT_EQ(mkfifo(qPrintable(path), 0600), 0);
  EXPECT_EQ(problems(path), std::vector<std::string>{""});
}

// The file is larger than what people write by hand.
TEST_F(OpenedFileTest, ReadsLargeTimelines) {
  const QString path = write("large.json", to_json(Timeline{}).dump() + std::string(70 << 20, ' '));
  EXPECT_EQ(kind_of(open_file(path)), u"timeline"_s);
}

TEST_F(OpenedFileTest, AFollowerOfAnEndedRunAsksLessOften) {
  const QString path = write("metrics.jsonl", "{\"step\": 0, \"step_s\": 0.1}\nno line\n");
  RunFollower follower;
  follower.follow(path);
  const int first = follower.pause_ms();
  ASSERT_TRUE(wait_for([&] { return follower.pause_ms() > 1.3 * first; }));
  EXPECT_EQ(follower.damaged_lines(), 1);
  write("metrics.jsonl", "{\"step\": 0, \"step_s\": 0.1}\n");  // The file is a new one.
  ASSERT_TRUE(wait_for([&] { return follower.damaged_lines() == 0; }));
  EXPECT_EQ(follower.pause_ms(), first);
}

TEST_F(OpenedFileTest, RefusesASearchResultWithAPlanThatCannotRun) {
  const auto text = [](int tp) {
    return R"({"schema": "shardwright/plans", "version": 1, "inputs": {"model": "llama3.2-1b",
      "cluster": "dgx-h100", "stack": "megatron-core"}, "front": [], "plans": [{"plan": {"dp": 1,
      "tp": )" +
           std::to_string(tp) + R"(, "pp": 1, "micro_batch": 1, "global_batch": 8, "seq_len": 2048},
      "step_s": 1.0}]})";
  };
  const auto places = problems(write("plans.json", text(7)));
  EXPECT_NE(std::find(places.begin(), places.end(), "/plans/0/plan/tp"), places.end());
  EXPECT_NE(std::find(places.begin(), places.end(), "/plans/0/stages"), places.end());
}

TEST_F(OpenedFileTest, ASearchResultMayLeaveOutCopiesAndStalls) {
  const auto places =
      problems(write("plans.json", R"({"schema": "shardwright/plans", "version": 1, "inputs":
      {"model": "llama3.2-1b", "cluster": "dgx-h100", "stack": "megatron-core"}, "front": [], "plans":
      [{"plan": {"dp": 1, "tp": 1, "pp": 1, "micro_batch": 1, "global_batch": 8, "seq_len": 2048},
      "step_s": 1.0, "stages": [{"time": {}}]}]})"));
  const auto refused = [&](const std::string& key) {
    return std::find(places.begin(), places.end(), "/plans/0/stages/0/time/" + key) != places.end();
  };
  EXPECT_TRUE(refused("gemm_s") && refused("host_s"));
  EXPECT_FALSE(refused("offload_s") || refused("stall_s"));
}

// A user's own model is in no library, and a shipped one may have changed since.
TEST_F(OpenedFileTest, ASearchResultBringsItsModelAlong) {
  const Scenario scenario = small_set()->scenario(0);
  const auto places_with_heads = [&](std::int64_t heads) {
    ModelSpec model = scenario.model;
    model.name = "mine";
    model.attention.heads = model.attention.kv_heads = heads;
    const nlohmann::ordered_json document = {{"schema", "shardwright/plans"},
                                             {"version", 1},
                                             {"model", to_json(model)},
                                             {"cluster", to_json(scenario.cluster)},
                                             {"stack", "megatron-core"},
                                             {"front", nlohmann::json::array()},
                                             {"plans",
                                              {{{"plan",
                                                 {{"dp", 1},
                                                  {"tp", 2},
                                                  {"pp", 1},
                                                  {"micro_batch", 1},
                                                  {"global_batch", 8},
                                                  {"seq_len", 2048}}}}}}};
    return problems(write("plans.json", document.dump()));
  };
  const auto odd = places_with_heads(31), even = places_with_heads(32);
  EXPECT_NE(std::find(odd.begin(), odd.end(), "/plans/0/plan/tp"), odd.end());
  EXPECT_EQ(std::find(even.begin(), even.end(), "/plans/0/plan/tp"), even.end());
  EXPECT_NE(std::find(even.begin(), even.end(), "/plans/0/stages"), even.end());
}

// `scale` writes the best plan of each size, without a front.
TEST_F(OpenedFileTest, AResultOfScaleIsASearchResult) {
  const auto places = problems(write("scale.json", R"({"schema": "shardwright/scale", "version": 1,
      "model": "llama3.2-1b", "cluster": "dgx-h100", "stack": "megatron-core", "plans": [{"plan":
      {"dp": 1, "tp": 7, "pp": 1, "micro_batch": 1, "global_batch": 8, "seq_len": 2048}}]})"));
  EXPECT_NE(std::find(places.begin(), places.end(), "/plans/0/plan/tp"), places.end());
  EXPECT_EQ(std::find(places.begin(), places.end(), "/front"), places.end());
}

TEST_F(OpenedFileTest, AFollowerReadsWhatIsAdded) {
  const QString path = write("metrics.jsonl", R"({"step": 0, "loss": 5.5, "step_s": 0.2}
{"step": 1, "loss": null, "step_s": 0.1}
no line of metrics
{"step": 2, "lo)");
  RunFollower follower;
  follower.follow(path);
  ASSERT_EQ(follower.steps().size(), 2U);
  EXPECT_TRUE(std::isnan(follower.steps()[1].loss));
  EXPECT_EQ(follower.damaged_lines(), 1);
  QFile file(path);
  ASSERT_TRUE(file.open(QIODevice::Append));
  file.write("ss\": 4.5, \"step_s\": 0.1}\n");
  file.close();
  ASSERT_TRUE(wait_for([&] { return follower.steps().size() == 3; }));
  EXPECT_DOUBLE_EQ(follower.steps()[2].loss, 4.5);
}

TEST(ReadRunStep, TakesWhatARunWrites) {
  const auto step = read_run_step(R"({"step": 7, "loss": null, "gradient_norm": 3e38, "step_s": 0.5,
      "tokens_per_s": 2048, "mfu": 0.4, "tensor_peak_bytes": 0, "device": "cpu"})");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->step, 7.0);
  EXPECT_TRUE(std::isnan(step->loss));
  EXPECT_EQ(step->gradient_norm, 3e38);
  EXPECT_EQ(step->step_s, 0.5);
  EXPECT_EQ(step->tokens_per_s, 2048.0);
  EXPECT_EQ(step->memory_bytes, 0.0);
}

TEST(ReadRunStep, TakesNoNumberThatNoRunWrites) {
  const std::string whole = R"({"step": 3, "loss": 5.5, "gradient_norm": 1, "step_s": 0.1,
      "tokens_per_s": 1, "mfu": 0.1, "tensor_peak_bytes": 1})";
  ASSERT_TRUE(read_run_step(QByteArray::fromStdString(whole)));
  const auto with = [&](const std::string& was, const std::string& is) {
    std::string line = whole;
    line.replace(line.find(was), was.size(), is);
    return QByteArray::fromStdString(line);
  };
  for (const QByteArray& line :
       {with(R"("step": 3, )", ""), with(R"("step": 3)", R"("step": -1)"),
        with(R"("step": 3)", R"("step": 0.5)"), with(R"("step": 3)", R"("step": -1e300)"),
        with(R"("step": 3)", R"("step": 1e19)"), with(R"("step": 3)", R"("step": "3")"),
        with(R"("step_s": 0.1,)", ""), with(R"("step_s": 0.1)", R"("step_s": null)"),
        with(R"("step_s": 0.1)", R"("step_s": 0)"), with(R"("step_s": 0.1)", R"("step_s": -1)"),
        with(R"("step_s": 0.1)", R"("step_s": 1e300)"), with("5.5", R"("low")"),
        with("5.5", "1e308"), with(R"("gradient_norm": 1)", R"("gradient_norm": -1)"),
        with(R"("tokens_per_s": 1)", R"("tokens_per_s": 1e300)"),
        with(R"("mfu": 0.1)", R"("mfu": [])"),
        with(R"("tensor_peak_bytes": 1)", R"("tensor_peak_bytes": 1e308)"),
        with(R"("tensor_peak_bytes": 1)", R"("tensor_peak_bytes": -1)"), QByteArray("[3]")})
    EXPECT_FALSE(read_run_step(line)) << line.toStdString();
}

TEST_F(OpenedFileTest, AFollowerNamesTheFirstDamagedLine) {
  RunFollower follower;
  follower.follow(write("metrics.jsonl",
                        "{\"step\": 0, \"step_s\": 0.1}\n\n{\"step\": 1}\nno line\n"
                        "{\"step\": 2, \"step_s\": 0.1}\n"));
  EXPECT_EQ(follower.steps().size(), 2U);
  EXPECT_EQ(follower.damaged_lines(), 2);
  EXPECT_EQ(follower.first_damaged_line(), 3);
  follower.follow(write("metrics.jsonl", "{\"step\": 0, \"step_s\": 0.1}\n"));
  EXPECT_EQ(follower.damaged_lines(), 0);
  EXPECT_EQ(follower.first_damaged_line(), 0);
}

// The window stays free while a long run is read.
TEST_F(OpenedFileTest, AFollowerReadsLongMetricsInParts) {
  constexpr std::size_t kSteps = 100'000;
  std::string lines;
  for (std::size_t i = 0; i < kSteps; ++i)
    lines += "{\"step\": " + std::to_string(i) + ", \"step_s\": 0.5}\n";
  RunFollower follower;
  int emitted = 0;
  QObject::connect(&follower, &RunFollower::grown, [&] { ++emitted; });
  const QString path = write("metrics.jsonl", lines);
  follower.follow(path);
  EXPECT_GT(follower.steps().size(), 0U);
  EXPECT_LT(follower.steps().size(), kSteps);
  ASSERT_TRUE(wait_for([&] { return follower.steps().size() == kSteps; }));
  EXPECT_EQ(follower.damaged_lines(), 0);
  for (std::size_t i = 0; i < kSteps; ++i)
    ASSERT_EQ(follower.steps()[i].step, static_cast<double>(i));
  EXPECT_GT(emitted, 0);

  follower.follow(path);
  follower.finish();  // It ends at once, whatever is left.
  EXPECT_EQ(follower.steps().size(), kSteps);
}

TEST(RecordedSteps, AreFewEarlyAndLateOnes) {
  EXPECT_EQ(recorded_steps(1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(recorded_steps(14), (std::vector<std::int64_t>{2, 5, 7, 8, 9, 11, 12}));
  for (std::int64_t steps = 1; steps < 3'000'000'000; steps += 1 + steps / 3) {
    const std::vector<std::int64_t> recorded = recorded_steps(steps);
    ASSERT_EQ(std::adjacent_find(recorded.begin(), recorded.end(), std::greater_equal<>()),
              recorded.end());
    EXPECT_GE(recorded.front(), 0);
    EXPECT_LT(recorded.back(), steps);
    EXPECT_LE(recorded.size(), 40U);
    // A run that stops after its third step has a checkpoint of one of its latest steps.
    for (std::size_t i = 0; i + 1 < recorded.size(); ++i)
      EXPECT_LE(recorded[i + 1], std::max<std::int64_t>(5, 3 * recorded[i])) << steps;
    if (steps > 5) {
      EXPECT_EQ(recorded.front(), 2) << steps;
    }
  }
}

TEST(BottleneckWarning, ComesWhenStepsGetSlower) {
  std::vector<RunStep> steps;
  for (int i = 0; i < 30; ++i) steps.push_back({double(i), 1.0, 1.0, 0.1, 1e4, 1e6});
  EXPECT_EQ(bottleneck_warning(steps, 0.1), QString());
  EXPECT_NE(bottleneck_warning(steps, 0.03), QString());
  for (std::size_t i = 24; i < 30; ++i) steps[i].step_s = 0.2;
  EXPECT_TRUE(bottleneck_warning(steps, 0.1).contains(u"200"_s));
}

}  // namespace
}  // namespace shardwright::gui
