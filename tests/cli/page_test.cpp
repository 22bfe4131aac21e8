// The HTML form of results: one document that needs nothing else and holds what the text and the
// JSON hold.
#include "cli/output/page.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/wording.hpp"
#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t begin = text.find(before) + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

TEST(HtmlPage, IsOneDocumentWithTheTimelineOfTheStep) {
  const ScratchFolder folder;
  const std::string html_file = folder.file("step.html"), plan_file = folder.file("plan.json");
  const json step = json_of(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --pp 2 --global-batch 16 "
      "--seq-len 8192 --html " +
      html_file + " --out " + plan_file);
  std::string html = content_of(html_file);
  // The plan file is text, in which sources have addresses: with its marks unescaped it is what
  // --out wrote.
  const std::string plan = between(html, "<details><summary>JSON</summary><pre>", "</pre>");
  EXPECT_THAT(plan, Not(testing::ContainsRegex("[<>]")));
  std::string unescaped = plan;
  for (const auto& [mark, text] :
       {std::pair("&quot;", "\""), {"&lt;", "<"}, {"&gt;", ">"}, {"&#39;", "'"}, {"&amp;", "&"}})
    for (std::size_t at = 0; (at = unescaped.find(mark, at)) != std::string::npos; ++at)
      unescaped.replace(at, std::string(mark).size(), text);
  EXPECT_EQ(json::parse(unescaped), json::parse(content_of(plan_file)));
  html.erase(html.find(plan), plan.size());
  for (const char* outside : {"http:", "https:", " src=", "<link", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  const json data = json::parse(between(html, "previousElementSibling, ", ");</script>"));
  EXPECT_NEAR(data["end"].get<double>() / step["step_s"].get<double>(), 1.0, 1e-6);
  for (const json& row : data["rows"]) {
    const json& spans = row["spans"];
    ASSERT_EQ(spans.size() % 5, 0U);
    for (std::size_t i = 0; i < spans.size(); i += 5) {
      EXPECT_LE(spans[i], spans[i + 1]);
      EXPECT_LE(spans[i + 1], data["units"]);
      EXPECT_LT(spans[i + 2], data["names"].size());
    }
  }
  // The command at its end gives the same step again.
  const std::string command = between(html, "<pre>shardwright ", "</pre>");
  EXPECT_EQ(json_of(command)["step_s"], step["step_s"]);
  EXPECT_THAT(command, Not(HasSubstr("--html")));
}

// Many spans are drawn as fewer blocks, which say how long they are busy.
TEST(HtmlPage, TimelineOfManySpansIsAsBusyAsTheStep) {
  const ScratchFolder folder;
  const std::string html = folder.file("step.html"), timeline_file = folder.file("timeline.json");
  ASSERT_EQ(run_command("simulate --model llama3-70b --cluster dgx-h100 --gpus 64 --tp 8 --pp 8 "
                        "--schedule interleaved --vpp 2 --global-batch 16 --seq-len 8192 --html " +
                        html + " --timeline " + timeline_file)
                .exit_code,
            0);
  const json timeline = json::parse(content_of(timeline_file));
  ASSERT_GT(timeline["spans"].size(), 20'000U);
  std::map<std::string, double> busy;
  for (const json& span : timeline["spans"]) {
    const int stage = span["rank"].get<int>() / 8;
    std::string row = fmt::format("stage {}: {}", stage, span["stream"].get<std::string>());
    std::replace(row.begin(), row.end(), '_', ' ');
    busy[row] += span["duration_s"].get<double>();
  }
  const json data =
      json::parse(between(content_of(html), "previousElementSibling, ", ");</script>"));
  EXPECT_EQ(data["rows"].size(), busy.size());
  std::size_t blocks = 0;
  for (const json& row : data["rows"]) {
    const json& spans = row["spans"];
    double shown = 0.0;
    for (std::size_t i = 0; i < spans.size(); i += 5) shown += spans[i + 4].get<double>();
    blocks += spans.size() / 5;
    const double end = data["end"], units = data["units"];
    EXPECT_NEAR(shown / units * end, busy[row["label"]], 1e-3 * end) << row["label"];
  }
  EXPECT_LT(blocks, 20'000U);
}

// A name may hold what ends a script in HTML, or hides its end.
TEST(HtmlPage, KeepsNamesOfKernelsInsideItsScript) {
  const ScratchFolder folder;
  const std::string name = "<!--<script></script>", html = folder.file("page.html");
  const json kernel = {{"ph", "X"}, {"cat", "kernel"}, {"name", name}, {"ts", 1},
                       {"dur", 5},  {"pid", 0},        {"tid", 7},     {"args", {{"stream", 7}}}};
  const std::string trace = folder.write("trace.json", json{{"traceEvents", {kernel}}}.dump());
  ASSERT_EQ(run_command("import " + trace + " --html " + html).exit_code, 0);
  const std::string page = content_of(html);
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  const json data = json::parse(between(page, "previousElementSibling, ", ");</script>"));
  EXPECT_THAT(data["names"].dump(), HasSubstr(name));
}

TEST(HtmlPage, EscapesWhatHtmlGivesAMeaningTo) {
  Page page(PageStyle{.style = Style()});
  page.heading("a < b");
  page.facts({{"name", "</dl><script>"}});
  page.paragraph("`x & y`");
  Table table({{"t<i>tle"}});
  table.add_row({"\"<b>\""});
  page.table(table);
  const std::string html = page.html("command '<&>'", "1");
  EXPECT_THAT(html, HasSubstr("<h1>a &lt; b</h1>"));
  EXPECT_THAT(html, HasSubstr("<dd>&lt;/dl&gt;&lt;script&gt;</dd>"));
  EXPECT_THAT(html, HasSubstr("<code>x &amp; y</code>"));
  EXPECT_THAT(html, HasSubstr("<th>t&lt;i&gt;tle</th>"));
  EXPECT_THAT(html, HasSubstr("<td>&quot;&lt;b&gt;&quot;</td>"));
  EXPECT_THAT(html, HasSubstr("<pre>command '&lt;&amp;&gt;'</pre>"));
}

TEST(HtmlPage, IsNotWrittenOverAFileUnlessForced) {
  const ScratchFolder folder;
  const std::string file = folder.write("page.html", "mine");
  EXPECT_EQ(run_command("models list --html " + file).exit_code, 2);
  EXPECT_EQ(content_of(file), "mine");
  EXPECT_EQ(run_command("models list --force --html " + file).exit_code, 0);
  EXPECT_THAT(content_of(file), HasSubstr("llama3-8b"));
  EXPECT_THAT(content_of(file), HasSubstr("<title>shardwright models list</title>"));
}

// The texts of all commands call accelerators GPUs; the page has the word for those of its cluster.
TEST(CommandPage, CallsAcceleratorsWhatTheClusterHas) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json"), curve = folder.file("scale.html");
  const std::string job = " --model llama3-8b --cluster tpu-v5e-torus --seq-len 4096 --gpus ";
  for (const std::string& command :
       {"plan" + job + "64 --global-batch 64 --out " + plan, "simulate --plan " + plan,
        "explain --plan " + plan, "forecast --tokens 100B --plan " + plan,
        "compare " + plan + " " + plan, "plan" + job + "64..128 --global-batch 64 --tokens 20B",
        "scale" + job + "64,128 --global-batch 128 --html " + curve}) {
    const CommandResult result = run_command(command);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("TPU")) << command;
    EXPECT_THAT(result.output, Not(HasSubstr("GPU"))) << command;
  }
  EXPECT_THAT(content_of(curve), HasSubstr(">TPUs (logarithmic)</text>"));
  EXPECT_THAT(content_of(curve), Not(HasSubstr(">GPUs (logarithmic)</text>")));
  const CommandResult none = run_command("plan" + job + "8 --global-batch 64");
  EXPECT_THAT(none.errors, HasSubstr("No plan fits 8 TPUs"));
  EXPECT_THAT(none.errors, Not(HasSubstr("GPU")));
}

TEST(CommandPage, LeavesGpusOfGpusAndHyphenatesWordsOfTwo) {
  using planner::with_accelerator;
  EXPECT_EQ(with_accelerator("GPU-hours of 8 GPUs", "GPU"), "GPU-hours of 8 GPUs");
  EXPECT_EQ(with_accelerator("GPU-hours of 8 GPUs", "CPU rank"), "CPU-rank-hours of 8 CPU ranks");
  EXPECT_EQ(with_accelerator("GPUs of a node", "accelerator"), "Accelerators of a node");
}

}  // namespace
}  // namespace shardwright::cli
