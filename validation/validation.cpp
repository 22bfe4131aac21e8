#include "validation/validation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/quantity_text.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/simulate.hpp"
#include "validation/flops_convention.hpp"
#include "validation/prediction_errors.hpp"
#include "validation/validated_ground.hpp"

namespace shardwright::validation {
namespace {

// Kendall's tau needs a few rows to mean anything.
constexpr std::size_t kLeastRanked = 3;

double predicted_metric(const ComparedFigure& figure, const Scenario& scenario,
                        const sim::StepResult& result) {
  if (figure.metric == StepMetric::StepTime) return result.step.value();
  if (figure.metric == StepMetric::TokenRate) return result.throughput.tokens_per_s_per_gpu;
  const FlopPerSecond rate = counted_flop(scenario.model, scenario.plan, figure.flops) /
                             (result.step * static_cast<double>(scenario.plan.world_size()));
  if (figure.metric == StepMetric::FlopRate) return rate / teraflops(1.0);
  const Precision precision = figure.flops.peak_is_bf16 ? Precision::Bf16 : scenario.plan.precision;
  return rate / scenario.cluster.accelerator.matrix.of(precision);
}

double speed(const RowComparison& row, bool measured) {
  // Rows of a group have the same model and accelerators, so all rates have the same order.
  const double value = measured ? row.measured : row.predicted;
  return row.metric == "step_s" ? row.tokens / value : value;
}

std::optional<double> rank_correlation(const std::vector<const RowComparison*>& rows) {
  std::vector<calibration::RankedValue> values;
  for (const RowComparison* row : rows)
    values.push_back({row->plan, speed(*row, true), speed(*row, false)});
  return calibration::kendall_tau(values);
}

std::optional<double> mean_rank_correlation(const std::vector<const RowComparison*>& rows) {
  std::map<std::string, std::vector<const RowComparison*>> groups;
  for (const RowComparison* row : rows) groups[row->group + '|' + row->metric].push_back(row);
  double sum = 0.0, count = 0.0;
  for (const auto& [name, members] : groups) {
    if (members.size() < kLeastRanked) continue;
    const std::optional<double> tau = rank_correlation(members);
    if (!tau) continue;
    sum += *tau;
    count += 1.0;
  }
  return count > 0.0 ? std::optional(sum / count) : std::nullopt;
}

// Adds the rank correlation of the rows that share a name, such as that of a stack, to their
// summary.
void rank_each(const std::vector<const RowComparison*>& rows, std::string RowComparison::*name,
               calibration::ErrorsByName& summaries) {
  std::map<std::string, std::vector<const RowComparison*>> named;
  for (const RowComparison* row : rows) named[row->*name].push_back(row);
  for (auto& [each, summary] : summaries)
    summary.rank_correlation = mean_rank_correlation(named[each]);
}

void count_fit(const RowComparison& row, OutOfMemoryTable& table) {
  if (row.out_of_memory_measured) {
    ++(row.out_of_memory_predicted ? table.true_positive : table.false_negative);
  } else {
    ++(row.out_of_memory_predicted ? table.false_positive : table.true_negative);
    if (row.chosen_to_fit && !row.out_of_memory_predicted) ++table.chosen_to_fit;
  }
}

ValidationReport report_on(std::vector<RowComparison> rows) {
  ValidationReport report;
  std::vector<calibration::ErrorSample> times, memories;
  std::vector<const RowComparison*> timed;
  calibration::SamplesByName source, accelerator, stack, parallelism, of_class, memory_source;
  for (const RowComparison& row : rows) {
    if (row.skipped) {
      ++report.skipped;
      continue;
    }
    count_fit(row, report.out_of_memory);
    if (row.measured_memory) {
      const calibration::ErrorSample sample{row.predicted_memory / *row.measured_memory - 1.0,
                                            false};
      memories.push_back(sample);
      memory_source[row.source].push_back(sample);
    }
    if (!row.timed) continue;
    const calibration::ErrorSample sample{
        row.error, row.interval_low <= row.measured && row.measured <= row.interval_high};
    times.push_back(sample);
    timed.push_back(&row);
    source[row.source].push_back(sample);
    accelerator[row.accelerator_profile].push_back(sample);
    stack[row.stack].push_back(sample);
    parallelism[row.parallelism].push_back(sample);
    of_class[row.prediction_class].push_back(sample);
  }
  report.time = calibration::summarise(times);
  report.memory = calibration::summarise(memories);
  report.by_source = calibration::summarise_each(source);
  report.by_accelerator = calibration::summarise_each(accelerator);
  report.by_stack = calibration::summarise_each(stack);
  report.by_parallelism = calibration::summarise_each(parallelism);
  report.by_class = calibration::summarise_each(of_class);
  report.memory_by_source = calibration::summarise_each(memory_source);
  report.time.rank_correlation = mean_rank_correlation(timed);
  rank_each(timed, &RowComparison::source, report.by_source);
  rank_each(timed, &RowComparison::accelerator_profile, report.by_accelerator);
  rank_each(timed, &RowComparison::stack, report.by_stack);
  rank_each(timed, &RowComparison::parallelism, report.by_parallelism);
  report.rows = std::move(rows);
  return report;
}

// Says why no such accelerator can have run the row at the rate that it states, its attention left
// aside; empty if it can. The margin allows for clocks, whose errors are small; mistaken units are
// off by factors.
std::string rate_gap(const RowComparison& row, const Scenario& scenario) {
  constexpr double kRateMargin = 1.05;
  if (!row.timed) return "";
  const FlopsConvention without_scores{.attention_share = 0.0};
  const Seconds predicted = row.predicted_time.total();
  const FlopPerSecond rate =
      counted_flop(scenario.model, scenario.plan, without_scores) /
      (predicted / (1.0 + row.error) * static_cast<double>(scenario.plan.world_size()));
  const FlopPerSecond peak = scenario.cluster.accelerator.matrix.of(scenario.plan.precision);
  if (peak <= FlopPerSecond(0) || rate <= peak * kRateMargin) return "";
  return fmt::format("{} of each {} are above its peak of {}", format_flop_rate(rate),
                     scenario.cluster.accelerator.name, format_flop_rate(peak));
}

// Holds the measured time or rate against the simulated one.
void compare_time(const Measurement& measurement, const Scenario& scenario,
                  const sim::StepResult& result, RowComparison& comparison) {
  if (!measurement.figure || measurement.outcome == Outcome::OutOfMemory) return;
  const ComparedFigure& figure = *measurement.figure;
  comparison.timed = true;
  comparison.metric = name_of(figure.metric);
  comparison.measured = figure.value;
  comparison.predicted = predicted_metric(figure, scenario, result);
  const bool is_time = figure.metric == StepMetric::StepTime;
  const PredictionClass of = class_of(measurement, scenario);
  comparison.prediction_class = class_text(of);
  const auto [low, high] = prediction_interval(comparison.predicted, !is_time, of);
  comparison.interval_low = low;
  comparison.interval_high = high;
  const double slower = is_time ? comparison.predicted / comparison.measured
                                : comparison.measured / comparison.predicted;
  comparison.error = slower - 1.0;
}

// The simulated memory of the stage that the source reads.
const sim::MemoryPeak& peak_read(const sim::StepResult& result, const MemoryReading& reading) {
  return reading.rank == MemoryRank::LastStage ? result.stages.back().memory : result.memory();
}

// The figure that the source's counter would show in the simulated step.
Bytes read_memory(const sim::MemoryPeak& peak, MemoryCounter counter) {
  switch (counter) {
    case MemoryCounter::Allocated:
      return peak.allocated();
    case MemoryCounter::Reserved:
      return peak.reserved();
    case MemoryCounter::Device:
      break;
  }
  return peak.peak;
}

void compare_memory(const Measurement& measurement, const Scenario& scenario,
                    const sim::StepResult& result, RowComparison& comparison) {
  comparison.predicted_peak = peak_read(result, measurement.memory);
  comparison.predicted_memory = read_memory(comparison.predicted_peak, measurement.memory.counter);
  comparison.out_of_memory_measured = measurement.outcome == Outcome::OutOfMemory;
  comparison.out_of_memory_predicted = result.memory().peak > scenario.cluster.accelerator.memory;
  if (measurement.measured.peak_memory > Bytes())
    comparison.measured_memory = measurement.measured.peak_memory;
}

RowComparison described(const Measurement& measurement) {
  RowComparison comparison;
  comparison.id = measurement.id;
  comparison.source = measurement.source.title;
  comparison.accelerator = measurement.stated_accelerator;
  comparison.stack = measurement.stated_stack;
  comparison.group = measurement.group;
  comparison.grade = measurement.grade;
  return comparison;
}

// Simulates the scenario, and describes it in the comparison.
sim::StepResult simulate_into(RowComparison& comparison, const Scenario& scenario) {
  comparison.parallelism = parallelism_text(scenario.plan);
  comparison.plan = to_json(scenario.plan).dump();
  comparison.accelerator_profile = scenario.cluster.accelerator.name;
  comparison.cluster_profile = scenario.cluster.name;
  comparison.stack_profile = scenario.stack.name;
  comparison.run_kind = run_kind_text(scenario.plan);
  comparison.architecture = name_of(scenario.cluster.accelerator.architecture);
  comparison.family = scenario.stack.family;
  comparison.experts = scenario.model.moe.has_value();
  comparison.low_precision = casts_operands(scenario.plan.precision);
  comparison.accelerators = scenario.plan.world_size();
  comparison.sequence = scenario.plan.seq_len;
  comparison.tokens =
      static_cast<double>(scenario.plan.global_batch) * static_cast<double>(scenario.plan.seq_len);
  sim::StepResult result = sim::simulate_step(scenario);
  comparison.predicted_time = result.time();
  return result;
}

}  // namespace

PredictionClass class_of(const Measurement& measurement, const Scenario& scenario) {
  PredictionClass of = class_of(scenario, measurement.source.title).value_or(PredictionClass());
  const bool inferred =
      measurement.grade == "B" || measurement.grade == "C" || leaves_plan_open(measurement);
  if (measurement.stack_stands_in) of.ground = PredictionGround::GenericStack;
  if (of.ground == PredictionGround::StatedPlan && inferred)
    of.ground = PredictionGround::InferredPlan;
  return of;
}

RowComparison compare_row(const Measurement& measurement) {
  RowComparison comparison = described(measurement);
  comparison.reason = measurement.unsupported;
  std::vector<std::string> filled_in = measurement.assumed;
  if (measurement.scenario) {
    const Scenario scenario = resolved_scenario(measurement);
    if (!measurement.open.empty()) filled_in.push_back(choice_text(measurement, scenario.plan));
    RowComparison compared = compare_with(measurement, scenario);
    comparison.reason = rate_gap(compared, scenario);
    if (comparison.reason.empty()) comparison = std::move(compared);
  }
  comparison.skipped = comparison.accelerator_profile.empty();
  comparison.chosen_to_fit = !measurement.open.empty();
  comparison.filled_in = std::move(filled_in);
  if (!comparison.skipped && measurement.figure && counts_flop(measurement.figure->metric))
    comparison.filled_in.push_back("FLOP: " + description_of(measurement.figure->flops));
  return comparison;
}

RowComparison compare_with(const Measurement& measurement, const Scenario& scenario) {
  RowComparison comparison = described(measurement);
  comparison.chosen = open_values(measurement, scenario.plan).dump();
  const sim::StepResult result = simulate_into(comparison, scenario);
  compare_time(measurement, scenario, result, comparison);
  compare_memory(measurement, scenario, result, comparison);
  return comparison;
}

ValidationReport validate_rows(const std::vector<std::string>& files,
                               const ValidationOptions& options) {
  std::vector<Measurement> rows;
  std::size_t other_grades = 0;
  for (Measurement& row : read_measurements(files)) {
    if (row.grade.empty() || options.grades.find(row.grade) != std::string::npos) {
      rows.push_back(std::move(row));
    } else {
      ++other_grades;
    }
  }
  std::vector<std::optional<RowComparison>> comparisons(rows.size());
  std::atomic<std::size_t> compared = 0;
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
    if (options.stop.stop_requested()) return;
    comparisons[i] = compare_row(rows[i]);
    if (options.progress)
      options.progress(static_cast<double>(++compared) / static_cast<double>(rows.size()));
  });
  std::vector<RowComparison> done;
  for (std::optional<RowComparison>& comparison : comparisons) {
    if (comparison) done.push_back(std::move(*comparison));
  }
  const bool partial = done.size() < rows.size();
  ValidationReport report = report_on(std::move(done));
  report.partial = partial;
  report.other_grades = other_grades;
  return report;
}

}  // namespace shardwright::validation
