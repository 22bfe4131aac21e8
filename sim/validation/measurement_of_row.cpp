#include "sim/validation/measurement_of_row.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/spec/spec_document.hpp"
#include "sim/validation/collective_timing.hpp"
#include "sim/validation/json_lines.hpp"
#include "sim/validation/kernel_timing.hpp"
#include "sim/validation/measurement_json.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/row_stack.hpp"
#include "sim/validation/validation.hpp"

namespace shardwright::sim {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::optional<std::int64_t> sane_year(std::optional<std::int64_t> year) {
  return year && *year >= 1900 && *year <= 2100 ? year : std::nullopt;
}

StepMetric metric_named(const std::string& name) {
  for (const StepMetric metric :
       {StepMetric::StepTime, StepMetric::TokenRate, StepMetric::FlopRate})
    if (name == name_of(metric)) return metric;
  return StepMetric::Mfu;
}

void take_figures(const TrainingRow& row, Measurement& measurement) {
  measurement.outcome = row.measured.oom ? Outcome::OutOfMemory : Outcome::Ran;
  MeasuredFigures& measured = measurement.measured;
  measured.step_s = row.measured.iteration_s;
  measured.tokens_per_s_per_gpu = row.measured.tokens_per_s_per_gpu;
  measured.tflops_per_gpu = row.measured.tflops_per_gpu;
  measured.mfu = row.measured.mfu;
  if (!row.target || row.measured.oom) return;
  measurement.figure.emplace();
  measurement.figure->metric = metric_named(row.target->metric);
  measurement.figure->value = row.target->value;
  measurement.figure->derived = row.target->derived;
  if (counts_flop(measurement.figure->metric))
    measurement.figure->flops = flops_convention_in(row.flops_convention);
}

void take_memory(const TrainingRow& row, Measurement& measurement) {
  MemoryReading reading = memory_reading_of(row, measurement.scenario->stack);
  if (row.measured.peak_memory_gb)
    measurement.measured.peak_memory = reading.unit * *row.measured.peak_memory_gb;
  reading.unit = MemoryReading{}.unit;
  measurement.memory = reading;
}

std::string all_notes(const TrainingRow& row) {
  if (row.flops_convention.empty() || row.flops_convention == "n/a") return row.notes;
  return row.notes + (row.notes.empty() ? "" : " ") + "FLOP: " + row.flops_convention;
}

// Makes a scenario what its plan file reads as: figures that were changed without a source are
// assumptions, and a torus has all of its nodes. Returns why it cannot be read; empty if it can.
std::string make_readable(Scenario& scenario, const std::string& file) {
  // Documents of models have a name.
  if (scenario.model.name.empty()) scenario.model.name = "unnamed";
  try {
    scenario = read_scenario(json(to_json(scenario)), file);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

json parsed(const std::string& text) {
  return json::parse(text, nullptr, false);
}

// The lines of a file that hold something.
std::vector<std::string> filled_lines(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  return lines;
}

bool mentions(const std::vector<std::string>& lines, const char* key) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    const json row = parsed(line);
    return row.is_object() && row.contains(key);
  });
}

// Gives a row whose id another row has, too, one of its own.
void make_unique(std::string& id, std::set<std::string>& ids, Conversion& conversion) {
  const std::string stated = id;
  for (int number = 2; !ids.insert(id).second; ++number) id = fmt::format("{} #{}", stated, number);
  if (id != stated)
    conversion.problems.push_back(
        fmt::format("{}: another row has this id; it is now \"{}\"", stated, id));
}

void count(const std::string& id, const std::string& unsupported, const std::string& problem,
           Conversion& conversion) {
  ++conversion.rows;
  if (!unsupported.empty()) ++conversion.unsupported;
  if (!problem.empty()) conversion.problems.push_back(fmt::format("{}: {}", id, problem));
}

// What is wrong with the typed line of a measurement; empty where it reads back equal.
std::string fault_of(const std::string& line, Measurement measurement) {
  std::istringstream stream(line);
  try {
    const Measurement read = read_measurements(stream, measurement.file).front();
    if (read == measurement) return "";
    if (!read.scenario || !measurement.scenario) return "reads back with another scenario";
    const json before = json(to_json(*measurement.scenario)), after = json(to_json(*read.scenario));
    const std::string difference = smallest_patch(before, after).dump();
    measurement.scenario = read.scenario;
    return fmt::format("reads back with {} and the scenario changed by {}",
                       read == measurement ? "equal fields" : "other fields", difference);
  } catch (const InputError& error) {
    return error.what();
  }
}

// A row that could not be written stays, so that it counts.
std::string line_of(Measurement& measurement, std::string& fault) {
  std::string line = to_json(measurement).dump();
  fault = fault_of(line, measurement);
  if (fault.empty()) return line;
  Measurement without = measurement;
  without.scenario.reset();
  without.open.clear();
  without.chosen_to_fit = false;
  without.unsupported = "the conversion failed: " + fault;
  return to_json(without).dump();
}

Conversion convert_steps(const std::string& file) {
  const std::vector<TrainingRow> rows = read_training_rows(file);
  std::vector<Measurement> measurements(rows.size());
  std::vector<std::string> lines(rows.size()), faults(rows.size());
  Conversion conversion;
  tbb::parallel_for(std::size_t{0}, rows.size(),
                    [&](std::size_t i) { measurements[i] = measurement_of(rows[i]); });
  std::set<std::string> ids;
  for (Measurement& each : measurements) make_unique(each.id, ids, conversion);
  tbb::parallel_for(std::size_t{0}, rows.size(),
                    [&](std::size_t i) { lines[i] = line_of(measurements[i], faults[i]); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    count(measurements[i].id, measurements[i].unsupported, faults[i], conversion);
    conversion.lines += lines[i] + '\n';
  }
  return conversion;
}

PublishedSource source_in(const json& row) {
  PublishedSource source;
  const json stated = row.is_object() && row.contains("source") ? row["source"] : json();
  const auto text = [](const json& object, const char* key) {
    return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
  };
  if (stated.is_string()) source.title = stated.get<std::string>();
  if (!stated.is_object()) return source;
  source.title = text(stated, "title");
  source.where = text(stated, "where");
  if (stated.contains("year") && stated["year"].is_number_integer())
    source.year = sane_year(stated["year"].get<std::int64_t>());
  return source;
}

bool is_verified(const json& row) {
  return row.is_object() && row.contains("verified") && row["verified"] == true;
}

std::string notes_in(const json& row) {
  return row.is_object() && row.contains("notes") && row["notes"].is_string()
             ? row["notes"].get<std::string>()
             : "";
}

template <class Read>
std::string problem_of_line(const std::string& line, const Read& read) {
  std::istringstream stream(line);
  try {
    return read(stream) ? "" : "reads back with another prediction";
  } catch (const InputError& error) {
    return error.what();
  }
}

Conversion convert_collectives(const std::string& file, const std::vector<std::string>& lines) {
  Conversion conversion;
  std::set<std::string> ids;
  std::vector<CollectiveTiming> timings = read_collective_timings(file);
  for (std::size_t i = 0; i < timings.size(); ++i) {
    CollectiveTiming& timing = timings[i];
    const json row = parsed(lines[i]);
    make_unique(timing.id, ids, conversion);
    if (timing.unsupported.empty()) {
      timing.cluster = cluster_of(timing);
      timing.unsupported = why_not_comparable(timing);
    }
    timing.members = std::max<std::int64_t>(timing.members, 2);
    const std::string line = to_json(timing, source_in(row), is_verified(row)).dump();
    const std::string problem = problem_of_line(line, [&](std::istream& stream) {
      const CollectiveTiming read = read_typed_collectives(stream, file).front();
      return read.unsupported == timing.unsupported &&
             (!read.unsupported.empty() ||
              (read.measured == timing.measured &&
               predict(read, *read.cluster) == predict(timing, *timing.cluster)));
    });
    count(timing.id, timing.unsupported, problem, conversion);
    conversion.lines += line + '\n';
  }
  return conversion;
}

Conversion convert_kernels(const std::string& file, const std::vector<std::string>& lines) {
  Conversion conversion;
  std::set<std::string> ids;
  std::vector<KernelTiming> timings = read_kernel_timings(file);
  for (std::size_t i = 0; i < timings.size(); ++i) {
    KernelTiming& timing = timings[i];
    const json row = parsed(lines[i]);
    make_unique(timing.id, ids, conversion);
    const auto accelerator = benchmarked_accelerator(timing.accelerator);
    if (timing.unsupported.empty() && !accelerator)
      timing.unsupported = gap_of(timing, accelerator);
    const std::string line =
        to_json(timing, source_in(row), is_verified(row), notes_in(row)).dump();
    const std::string problem = problem_of_line(line, [&](std::istream& stream) {
      const KernelTiming read = read_typed_kernels(stream, file).front();
      return read.unsupported == timing.unsupported &&
             (!read.unsupported.empty() ||
              (read.accelerator == timing.accelerator && read.measured == timing.measured &&
               predict(read, *accelerator) == predict(timing, *accelerator)));
    });
    count(timing.id, timing.unsupported, problem, conversion);
    conversion.lines += line + '\n';
  }
  return conversion;
}

}  // namespace

Measurement measurement_of(const TrainingRow& row) {
  Measurement measurement;
  measurement.id = row.id;
  measurement.file = row.file;
  measurement.source = {row.source_title, row.source_address, sane_year(row.source_year)};
  measurement.verified = row.verified;
  if (row.grade == "A" || row.grade == "B" || row.grade == "C") measurement.grade = row.grade;
  measurement.group = row.group;
  measurement.stated_accelerator = row.cluster.gpu;
  measurement.stated_stack = row.stack;
  measurement.notes = all_notes(row);
  measurement.unsupported = why_not_comparable(row);
  if (row.unreadable.empty()) take_figures(row, measurement);
  if (!measurement.unsupported.empty()) return measurement;
  RowScenario made = scenario_of(row);
  measurement.assumed = std::move(made.filled_in);
  measurement.unsupported = std::move(made.reason);
  if (!made.scenario) return measurement;
  measurement.scenario = std::move(made.scenario);
  measurement.unsupported = make_readable(*measurement.scenario, row.file);
  if (!measurement.unsupported.empty()) {
    measurement.scenario.reset();
    return measurement;
  }
  measurement.open = std::move(made.open);
  measurement.chosen_to_fit = made.chosen_to_fit;
  measurement.stack_stands_in = !has_own_profile(row);
  take_memory(row, measurement);
  return measurement;
}

std::vector<Measurement> measurements_of(const std::vector<std::string>& files) {
  const auto is_typed_file = [](const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return is_typed(stream);
  };
  if (!files.empty() && std::all_of(files.begin(), files.end(), is_typed_file))
    return read_measurements(files);
  const std::vector<TrainingRow> rows = read_training_rows(files);
  std::vector<Measurement> measurements(rows.size());
  tbb::parallel_for(std::size_t{0}, rows.size(),
                    [&](std::size_t i) { measurements[i] = measurement_of(rows[i]); });
  return measurements;
}

Conversion convert_rows(const std::string& file) {
  const std::vector<std::string> lines = filled_lines(file);
  if (mentions(lines, "collective")) return convert_collectives(file, lines);
  if (mentions(lines, "op")) return convert_kernels(file, lines);
  return convert_steps(file);
}

}  // namespace shardwright::sim
