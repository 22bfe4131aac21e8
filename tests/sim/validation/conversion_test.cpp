// The conversion of rows to typed measurements moves no prediction: scenarios, as JSON, and all
// numbers of the comparisons are equal before and after, bit for bit.
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/spec/scenario.hpp"
#include "sim/validation/collective_timing.hpp"
#include "sim/validation/kernel_timing.hpp"
#include "sim/validation/measurement_json.hpp"
#include "sim/validation/measurement_of_row.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/validation.hpp"

namespace shardwright::sim {
namespace {

// Other files than the shipped ones, named by a variable of the environment.
std::vector<std::string> files_of(const char* variable, const std::string& shipped) {
  const char* given = std::getenv(variable);
  std::istringstream names(given == nullptr ? shipped : given);
  return {std::istream_iterator<std::string>(names), {}};
}

const std::string kFolder = SHARDWRIGHT_SOURCE_DIR "/tests/ground_truth/";

// Every number and name of a comparison.
std::string all_of(const RowComparison& row) {
  ValidationReport report;
  report.rows = {row};
  nlohmann::ordered_json json = to_json(report)["rows"];
  json.push_back({row.measured, row.predicted, row.interval_low, row.interval_high, row.error,
                  row.tokens, row.predicted_memory.value(), row.chosen_to_fit, row.plan, row.group,
                  row.timed, row.skipped});
  return json.dump();
}

// A scenario as its plan file reads: a figure that a row changed is one without a source.
std::string as_read(const Scenario& scenario) {
  return to_json(read_scenario(nlohmann::json(to_json(scenario)), "scenario")).dump();
}

TEST(Conversion, KeepsEveryScenarioAndPrediction) {
  for (const std::string& file : files_of("SHARDWRIGHT_ROWS", kFolder + "training.jsonl")) {
    const std::vector<TrainingRow> rows = read_training_rows(file);
    const Conversion conversion = convert_rows(file);
    for (const std::string& problem : conversion.problems) std::printf("%s\n", problem.c_str());
    std::istringstream stream(conversion.lines);
    const std::vector<Measurement> typed = read_measurements(stream, file);
    ASSERT_EQ(typed.size(), rows.size());
    std::vector<std::string> before(rows.size()), after(rows.size());
    tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
      RowComparison old = compare_row(rows[i]);
      old.id = typed[i].id;
      before[i] = all_of(old);
      after[i] = all_of(compare_measurement(typed[i]));
      if (!typed[i].scenario) return;
      before[i] += as_read(*scenario_of(rows[i]).scenario);
      after[i] += to_json(*typed[i].scenario).dump();
    });
    std::size_t equal = 0, simulated = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(before[i], after[i]) << file << " " << typed[i].id;
      equal += before[i] == after[i] ? 1 : 0;
      simulated += typed[i].scenario ? 1 : 0;
    }
    std::printf("%s: %zu rows, %zu simulated, %zu equal\n", file.c_str(), rows.size(), simulated,
                equal);
  }
}

template <class Row>
void expect_equal(const std::vector<Row>& before, const std::vector<Row>& after,
                  const std::string& file) {
  ASSERT_EQ(before.size(), after.size());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].measured, after[i].measured) << before[i].id;
    EXPECT_EQ(before[i].predicted, after[i].predicted) << before[i].id;
    EXPECT_EQ(before[i].op, after[i].op) << before[i].id;
    EXPECT_EQ(before[i].profile, after[i].profile) << before[i].id;
    EXPECT_EQ(before[i].device, after[i].device) << before[i].id;
    EXPECT_EQ(before[i].source, after[i].source) << before[i].id;
    EXPECT_EQ(before[i].skipped, after[i].skipped) << before[i].id;
    EXPECT_EQ(before[i].reason, after[i].reason) << before[i].id;
    compared += before[i].skipped ? 0 : 1;
  }
  std::printf("%s: %zu rows, %zu compared\n", file.c_str(), before.size(), compared);
}

std::string converted(const std::string& file) {
  const std::string typed = testing::TempDir() + "converted.jsonl";
  const Conversion conversion = convert_rows(file);
  EXPECT_EQ(conversion.problems, std::vector<std::string>{});
  std::ofstream(typed) << conversion.lines;
  return typed;
}

TEST(Conversion, KeepsEveryTimingOfCollectives) {
  for (const std::string& file : files_of("SHARDWRIGHT_COLLECTIVES", kFolder + "collectives.jsonl"))
    expect_equal(validate_collectives(file).rows, validate_collectives(converted(file)).rows, file);
}

TEST(Conversion, KeepsEveryTimingOfKernels) {
  for (const std::string& file : files_of("SHARDWRIGHT_KERNELS", kFolder + "kernels.jsonl"))
    expect_equal(validate_kernels(file).rows, validate_kernels(converted(file)).rows, file);
}

}  // namespace
}  // namespace shardwright::sim
