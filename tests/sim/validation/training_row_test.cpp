// Reading of published measurements.
#include "sim/validation/training_row.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/row_stack.hpp"
#include "tests/scratch_path.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

class RowFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::filesystem::path path = scratch_path("rows.jsonl");
    std::ofstream(path) << text;
    return path.string();
  }
};

constexpr const char* kGoodRow =
    R"({"id":"a","source":{},"model":{"name":"m"},"cluster":{"gpu":"H100","gpus":8},"plan":{},"measured":{},"more":1})";

TEST_F(RowFile, ProblemsAreTheReasonOfTheirRowAlone) {
  const std::string bad =
      R"({"id":"b","source":{},"model":{"name":"m","layers":"32"},"cluster":{"gpu":"H100","gpus":0},"plan":{"tp":1.5},"measured":{"oom":1},"target":{"metric":"speed","value":2}})";
  const auto rows = read_training_rows(write(std::string(kGoodRow) + "\n\n" + bad + "\n[1]\n"));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].unreadable, "");
  for (const char* place : {"line 3/model/layers", "line 3/cluster/gpus", "line 3/plan/tp",
                            "line 3/measured/oom", "line 3/target/metric"})
    EXPECT_NE(rows[1].unreadable.find(place), std::string::npos) << place;
  EXPECT_NE(rows[2].unreadable.find("line 4: found an array of 1, expected an object"),
            std::string::npos);
  EXPECT_EQ(scenario_of(rows[1]).reason, rows[1].unreadable);
}

TEST_F(RowFile, FiguresInOtherUnitsAreNamed) {
  const auto rows = read_training_rows(write(
      R"({"id":"a","model":{"name":"m"},"cluster":{"gpu":"H100","gpus":8},"measured":{"iteration_ms":5100,"tokens_per_s":null,"mfu":null,"log":"x"}})"));
  EXPECT_EQ(rows.at(0).measured.others, std::vector<std::string>{"iteration_ms"});
  EXPECT_EQ(rows.at(0).unreadable, "");
  EXPECT_FALSE(rows.at(0).target.has_value());
}

// As of a row whose values make no sense, its reason is told in its place.
TEST_F(RowFile, ALineThatIsNoJsonIsARowThatCannotBeRead) {
  const std::string good = kGoodRow;
  const auto rows = read_training_rows(write(good + "\n{\"id\": \"cut\n" + good + "\n"));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].id, "line 2");
  EXPECT_NE(rows[1].unreadable.find("expected"), std::string::npos) << rows[1].unreadable;
  EXPECT_EQ(scenario_of(rows[1]).reason, rows[1].unreadable);
  EXPECT_EQ(rows[2].unreadable, "");
}

TEST_F(RowFile, FileWithoutAnyReadableRowIsRefused) {
  EXPECT_THROW(read_training_rows(write("{\"id\": 3}\n{\"id\": 4}\n")), InputError);
  EXPECT_TRUE(read_training_rows(write("\n")).empty());
}

// Whatever part of a row is null, the rows around it are used and it says what is missing.
TEST_F(RowFile, NullPartsConcernTheirRowAlone) {
  std::ifstream shipped(kShipped);
  std::string line;
  std::getline(shipped, line);
  const std::vector<std::string> parts = {"/cluster/gpu", "/cluster/gpus", "/model/name",
                                          "/plan",        "/measured",     "/source",
                                          "/cluster",     "/model",        "/id"};
  std::string text;
  for (const std::string& part : parts) {
    auto row = nlohmann::json::parse(line);
    row["id"] = part;
    row["target"] = nullptr;
    row[nlohmann::json::json_pointer(part)] = nullptr;
    text += row.dump() + "\n";
  }
  const auto rows = read_training_rows(write(line + "\n" + text));
  ASSERT_EQ(rows.size(), parts.size() + 1);
  for (const TrainingRow& row : rows) {
    const RowScenario result = scenario_of(row);
    EXPECT_NE(result.scenario.has_value(), !result.reason.empty()) << row.id;
  }
  const auto reason = [&](std::size_t part) { return scenario_of(rows[part + 1]).reason; };
  EXPECT_NE(reason(0).find("accelerator"), std::string::npos);
  EXPECT_EQ(reason(1), "");  // the product of the degrees
  EXPECT_EQ(rows[2].cluster.gpus, rows[0].cluster.gpus);
  EXPECT_EQ(reason(2), "");
  EXPECT_EQ(reason(3), "");  // the batch follows from the step's time and its TFLOP/s
  EXPECT_EQ(reason(4), "");
  EXPECT_EQ(reason(5), "");
  EXPECT_NE(reason(6).find("accelerator"), std::string::npos);
  EXPECT_NE(reason(7).find("layers"), std::string::npos);
  EXPECT_EQ(rows.back().id, "line 10");
}

TEST_F(RowFile, OptionsOfTheStackAreReadLikeNotes) {
  const auto stack = [this](const std::string& options) {
    const std::string row =
        R"({"stack":"torchtitan","notes":"a run","stack_options":)" + options + "}";
    std::vector<std::string> filled_in;
    return stack_of_row(read_training_rows(write(row + "\n")).front(), filled_in).name;
  };
  EXPECT_EQ(stack(R"({"compile":true})"), "fsdp2-compile");
  EXPECT_EQ(stack(R"({"mode":"torch.compile","attention_kernel":null})"), "fsdp2-compile");
  EXPECT_EQ(stack(R"({"compile":false})"), "fsdp2");
  EXPECT_EQ(stack(R"({"compile":null})"), "fsdp2");
}

TEST_F(RowFile, AFileThatIsNamedTwiceIsReadOnce) {
  const std::string file = write(std::string(kGoodRow) + "\n");
  EXPECT_EQ(read_training_rows(std::vector<std::string>{file, file}).size(), 1U);
}

TEST_F(RowFile, RecomputationMayBeATruthValue) {
  const auto row_with = [&](const std::string& recompute) {
    return read_training_rows(
               write(R"({"id":"a","cluster":{"gpu":"H100","gpus":8},"plan":{"recompute":)" +
                     recompute + "}}"))
        .front()
        .plan.recompute;
  };
  EXPECT_EQ(row_with("true"), "full");
  EXPECT_EQ(row_with("false"), "none");
  EXPECT_EQ(row_with("null"), "");
}

TEST_F(RowFile, TargetComesFromTheFiguresWhereNoneIsNamed) {
  const auto row_with = [&](const std::string& measured) {
    const std::string row = R"({"id":"a","cluster":{"gpu":"H100","gpus":8},"measured":)";
    return read_training_rows(write(row + measured + "}")).front();
  };
  EXPECT_EQ(row_with(R"({"mfu":0.4,"iteration_s":2})").target, (TargetRow{"step_s", 2.0}));
  EXPECT_EQ(row_with(R"({"mfu":0.4})").target, (TargetRow{"mfu", 0.4}));
  EXPECT_EQ(row_with(R"({"oom":true,"mfu":0.4})").target, std::nullopt);
}

// More than 100 % is no MFU in either form.
TEST_F(RowFile, AnMfuAboveOneIsAPercentage) {
  const auto row_with = [&](const std::string& more) {
    const std::string good(kGoodRow);
    const std::string row = R"({"id":"a","cluster":{"gpu":"H100","gpus":8},)";
    return read_training_rows(write(good + "\n" + row + more + "}\n")).back();
  };
  const TrainingRow target = row_with(R"("target":{"metric":"mfu","value":45})");
  EXPECT_EQ(target.target, (TargetRow{"mfu", 0.45}));
  EXPECT_TRUE(any_says(target.filled_in, "target: 0.45, as 45 is a percentage"));
  const TrainingRow measured = row_with(R"("measured":{"mfu":45})");
  EXPECT_EQ(measured.target, (TargetRow{"mfu", 0.45}));
  EXPECT_TRUE(any_says(measured.filled_in, "mfu: 0.45, as 45 is a percentage"));
  EXPECT_TRUE(row_with(R"("measured":{"mfu":0.45})").unreadable.empty());
  EXPECT_FALSE(row_with(R"("measured":{"mfu":450})").unreadable.empty());
  EXPECT_FALSE(row_with(R"("target":{"metric":"mfu","value":450})").unreadable.empty());
  EXPECT_FALSE(row_with(R"("measured":{"iteration_s":0})").unreadable.empty());
}

TEST_F(RowFile, EndlessLineIsRefusedBeforeItIsRead) {
  const std::string file = write(std::string(kGoodRow) + "\n" + std::string(3 << 20, 'x'));
  try {
    read_training_rows(file);
    FAIL() << "read an endless line";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().front().where, "line 2");
    EXPECT_EQ(error.problems().front().found, "more than 1048576 bytes");
  }
}

TEST_F(RowFile, GarbageEndsTheReadingAfterAHundredLines) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "garbage\n";
  try {
    read_training_rows(write(text));
    FAIL() << "read garbage";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 100U);
  }
}

// Products of such numbers do not fit in 64 bits; some wrap to zero.
TEST_F(RowFile, NumbersBeyondAnySizeAreProblems) {
  const std::string row =
      R"({"id":"a","source":{},"model":{"name":"m","hidden":1000000000000,"moe":{"experts":8,"top_k":2,"expert_ffn":1000000000000,"shared_experts":1000000000000}},"cluster":{"gpu":"H100","gpus":8},"plan":{"tp":4194304,"pp":2097152,"cp":2097152,"micro_batch":1000000000000},"measured":{}})";
  const std::string file = write(row + "\n");
  try {
    read_training_rows(file);
    FAIL() << "read sizes that no training has";
  } catch (const InputError& error) {
    const std::string found = error.problems().front().found;
    for (const char* place :
         {"line 1/model/hidden", "line 1/model/moe/expert_ffn", "line 1/model/moe/shared_experts",
          "line 1/plan/tp", "line 1/plan/pp", "line 1/plan/cp", "line 1/plan/micro_batch"})
      EXPECT_NE(found.find(place), std::string::npos) << place << " in " << found;
  }
}

TEST(TrainingRow, NullMeansNotSaid) {
  const TrainingRow row = shipped_row("sc21-t1-1.7b");
  EXPECT_FALSE(row.measured.iteration_s.has_value());
  EXPECT_EQ(row.plan.tp, 1);
  EXPECT_EQ(row.target->metric, "tflops_per_gpu");
  EXPECT_DOUBLE_EQ(row.target->value, 137.0);
}

TEST(TrainingRow, MissingIdSuggestsTheNearest) {
  try {
    shipped_row("sc21-t1-1.7c");
    FAIL() << "found a row that is not there";
  } catch (const InputError& error) {
    EXPECT_NE(error.problems().front().expected.find("sc21-t1-1.7b"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardwright::sim
